//! Questions of a tool before it ends a call (MCP 2026-07-28, multi round-trip requests): the
//! capabilities of a client, the questions, and the answers.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::Url;

use super::{apps, meta, tasks};
use crate::{
    hidden::is_hidden,
    json::{JsonValue, Kind},
    oauth::is_loopback,
};

/// Questions, and answers, that one leg of a call may hold.
pub const MOST_QUESTIONS: usize = 16;
/// Longest name of a question in bytes.
const LONGEST_NAME: usize = 128;
/// Longest address that a person is asked to open, in bytes.
const LONGEST_ADDRESS: usize = 2_000;
/// Name of the question by which the gateway shows the address of an approval.
pub const APPROVAL: &str = "approval";
/// Longest state of an upstream in bytes.
const LONGEST_STATE: usize = 64 << 10;

/// Capabilities of a client that tools may ask for.
#[expect(clippy::struct_excessive_bools, reason = "each is declared by itself")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClientCapabilities {
    /// Forms for a person.
    #[serde(default, skip_serializing_if = "is_false")]
    pub form: bool,
    /// Addresses for a person to open.
    #[serde(default, skip_serializing_if = "is_false")]
    pub url: bool,
    /// Prompts for its model.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sampling: bool,
    /// Prompts with context of its servers.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sampling_context: bool,
    /// Prompts with tools.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sampling_tools: bool,
    /// The folders that it works in.
    #[serde(default, skip_serializing_if = "is_false")]
    pub roots: bool,
    /// Pages of [apps](super::apps), which it shows.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ui: bool,
    /// [Tasks](super::tasks): it asks later for answers.
    #[serde(default, skip_serializing_if = "is_false")]
    pub tasks: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks in this way")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// Returns true if a client shows pages of apps in the form that there is.
fn shows_pages<'a>(declared: impl JsonValue<'a>) -> bool {
    let ui = declared.get("extensions").and_then(|all| all.get(apps::EXTENSION));
    let Some(Kind::Array(kinds)) = ui.and_then(|ui| ui.get("mimeTypes")).map(JsonValue::kind)
    else {
        return false;
    };
    kinds.into_iter().any(|kind| kind.text() == Some(apps::MEDIA_TYPE))
}

impl ClientCapabilities {
    /// Reads a `ClientCapabilities` object of MCP. Members that no tool can ask for, such as other extensions than those of
    /// apps and tasks, are left out, so they are never declared to an upstream.
    #[must_use]
    pub fn read<'a>(declared: impl JsonValue<'a>) -> Self {
        let member = |name: &str| declared.get(name).filter(|value| is_object(*value));
        let has = |value: Option<_>, name: &str| {
            value.and_then(|value| JsonValue::get(value, name)).is_some_and(is_object)
        };
        let elicitation = member("elicitation");
        let sampling = member("sampling");
        let url = has(elicitation, "url");
        Self {
            // An empty object stands for forms.
            form: elicitation.is_some() && (has(elicitation, "form") || !url),
            url,
            sampling: sampling.is_some(),
            sampling_context: has(sampling, "context"),
            sampling_tools: has(sampling, "tools"),
            roots: member("roots").is_some(),
            ui: shows_pages(declared),
            tasks: has(member("extensions"), tasks::EXTENSION),
        }
    }

    /// Returns true if nothing is declared.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// As an object of MCP.
    #[must_use]
    pub fn declared(self) -> Value {
        let part = |members: &[(&str, bool)]| {
            let set = members.iter().filter(|(_, set)| *set);
            Value::Object(set.map(|(name, _)| ((*name).to_owned(), json!({}))).collect())
        };
        let mut all = Map::new();
        if self.form || self.url {
            let modes = part(&[("form", self.form), ("url", self.url)]);
            all.insert("elicitation".to_owned(), modes);
        }
        if self.sampling {
            let more = part(&[("context", self.sampling_context), ("tools", self.sampling_tools)]);
            all.insert("sampling".to_owned(), more);
        }
        if self.roots {
            all.insert("roots".to_owned(), json!({}));
        }
        let extensions = [
            self.ui.then(|| (apps::EXTENSION.to_owned(), apps::declaration())),
            self.tasks.then(|| (tasks::EXTENSION.to_owned(), json!({}))),
        ];
        let extensions: Map<_, _> = extensions.into_iter().flatten().collect();
        if !extensions.is_empty() {
            all.insert("extensions".to_owned(), Value::Object(extensions));
        }
        Value::Object(all)
    }

    /// Capabilities of `self` that `held` lacks.
    #[must_use]
    pub fn beyond(self, held: Self) -> Self {
        let context = self.sampling_context && !held.sampling_context;
        let tools = self.sampling_tools && !held.sampling_tools;
        Self {
            form: self.form && !held.form,
            url: self.url && !held.url,
            sampling: (self.sampling && !held.sampling) || context || tools,
            sampling_context: context,
            sampling_tools: tools,
            roots: self.roots && !held.roots,
            ui: self.ui && !held.ui,
            tasks: self.tasks && !held.tasks,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            form: self.form || other.form,
            url: self.url || other.url,
            sampling: self.sampling || other.sampling,
            sampling_context: self.sampling_context || other.sampling_context,
            sampling_tools: self.sampling_tools || other.sampling_tools,
            roots: self.roots || other.roots,
            ui: self.ui || other.ui,
            tasks: self.tasks || other.tasks,
        }
    }

    /// Capabilities that this question needs; `None` if the protocol has no such question.
    fn needed(question: &Value) -> Option<Self> {
        let params = question.get("params");
        if params.is_some_and(|params| !params.is_object()) {
            return None;
        }
        let param = |name: &str| params.and_then(|params| params.get(name));
        let none = Self::default();
        match question.get("method").and_then(Value::as_str)? {
            "elicitation/create" => match param("mode").map(Value::as_str) {
                None | Some(Some("form")) => Some(Self { form: true, ..none }),
                Some(Some("url")) => {
                    let address = param("url").and_then(Value::as_str);
                    address.is_some_and(may_be_opened).then_some(Self { url: true, ..none })
                }
                Some(Some(_) | None) => None,
            },
            "sampling/createMessage" => {
                let context = param("includeContext").and_then(Value::as_str);
                Some(Self {
                    sampling: true,
                    sampling_context: context.is_some_and(|it| it != "none"),
                    sampling_tools: param("tools").is_some() || param("toolChoice").is_some(),
                    ..none
                })
            }
            "roots/list" => Some(Self { roots: true, ..none }),
            _ => None,
        }
    }
}

/// Questions that have to be answered before a call can go on.
#[derive(Debug, Clone, PartialEq)]
pub struct Interaction {
    /// Requests for the client, by name; none if it only has to call again.
    pub requests: Map<String, Value>,
    /// State of the server, which it wants back as it is.
    pub state: Option<String>,
    /// Capabilities that the questions need.
    pub needed: ClientCapabilities,
}

impl Interaction {
    /// Reads a result whose `resultType` is `input_required`, without what only the gateway may say
    /// in `_meta`. `None` for more than [`MOST_QUESTIONS`], for questions that are none of the
    /// protocol, that look like those of the gateway or have people open an unsafe address, for a state
    /// beyond 64 KiB, and for neither questions nor state.
    #[must_use]
    pub fn read(result: &mut Map<String, Value>) -> Option<Self> {
        let mut requests = match result.remove("inputRequests") {
            None => Map::new(),
            Some(Value::Object(requests)) => requests,
            Some(_) => return None,
        };
        let state = match result.remove("requestState") {
            None => None,
            Some(Value::String(state)) if state.len() <= LONGEST_STATE => Some(state),
            Some(_) => return None,
        };
        if requests.len() > MOST_QUESTIONS || (requests.is_empty() && state.is_none()) {
            return None;
        }
        let mut needed = ClientCapabilities::default();
        for (name, question) in &mut requests {
            if name.len() > LONGEST_NAME || looks_like_ours(name, question) {
                return None;
            }
            needed = needed.and(ClientCapabilities::needed(question)?);
            remove_reserved(question);
        }
        Some(Self { requests, state, needed })
    }

    /// The result of a leg that ends with these questions and this state of the gateway.
    #[must_use]
    pub fn result(requests: Value, state: String) -> Value {
        let object = |members: [(&str, Value); 2]| {
            members.into_iter().map(|(name, it)| (name.to_owned(), it)).collect()
        };
        let asks: Value = object([("requests", requests), ("state", Value::String(state))]);
        Value::Object(Map::from_iter([("interaction".to_owned(), asks)]))
    }
}

/// Removes what only the gateway may say from every `_meta` of a question. Parsed JSON is not deep.
fn remove_reserved(part: &mut Value) {
    match part {
        Value::Object(members) => {
            meta::remove_reserved(members);
            members.values_mut().for_each(remove_reserved);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_reserved),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_object<'a>(value: impl JsonValue<'a>) -> bool {
    matches!(value.kind(), Kind::Object(_))
}

/// True for a question that a client could take for one of the gateway about an approval: by its name, or
/// by the id of what it asks.
fn looks_like_ours(name: &str, question: &Value) -> bool {
    let seen = |text: &str| -> String {
        text.chars().filter(|it| !it.is_whitespace() && !is_hidden(*it)).collect()
    };
    let is_approval = |id: &str| seen(id).to_ascii_lowercase().starts_with("apr_");
    let id = question.pointer("/params/elicitationId").and_then(Value::as_str);
    seen(name).eq_ignore_ascii_case(APPROVAL) || is_approval(name) || id.is_some_and(is_approval)
}

/// True for an address that a person can be asked to open: `https` without a user's name, which could pose
/// as the host, or `http` on this very machine.
fn may_be_opened(address: &str) -> bool {
    let is_plain = address.len() <= LONGEST_ADDRESS
        && !address.contains(|it: char| it.is_whitespace() || is_hidden(it));
    let Some(url) = Url::parse(address).ok().filter(|_| is_plain) else { return false };
    let is_local = is_loopback(&url) || url.scheme() == "http" && url.domain() == Some("localhost");
    let is_anonymous = url.username().is_empty() && url.password().is_none();
    is_anonymous && (url.scheme() == "https" || is_local)
}

/// Reads the answers of a client; `None` for what is no object. Answers to what was not asked are among them
/// until the holder of the questions takes them out.
#[must_use]
pub fn responses(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(responses) => Some(responses),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(result: Value) -> Option<Interaction> {
        let Value::Object(mut members) = result else { panic!("an object") };
        Interaction::read(&mut members)
    }

    #[test]
    fn only_what_was_declared_is_declared_upstream() {
        for (told, expected) in [
            (json!({}), json!({})),
            (json!({"elicitation": {}}), json!({"elicitation": {"form": {}}})),
            (json!({"elicitation": {"url": {}}}), json!({"elicitation": {"url": {}}})),
            (
                json!({"elicitation": {"form": {}, "url": {}, "x": {}}, "extensions": {"a/b": {}}}),
                json!({"elicitation": {"form": {}, "url": {}}}),
            ),
            (json!({"sampling": {"tools": {}}}), json!({"sampling": {"tools": {}}})),
            (json!({"roots": {"listChanged": true}}), json!({"roots": {}})),
            (
                json!({"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": [
                    "text/html", "text/html;profile=mcp-app"]}, "a/b": {}}}),
                json!({"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": [
                    "text/html;profile=mcp-app"]}}}),
            ),
            (json!({"extensions": {"io.modelcontextprotocol/ui": {}}}), json!({})),
            (json!({"roots": true, "sampling": 1, "elicitation": []}), json!({})),
        ] {
            assert_eq!(ClientCapabilities::read(&told).declared(), expected, "{told}");
        }
    }

    #[test]
    fn questions_say_what_a_client_needs_to_answer_them() {
        let form = json!({"method": "elicitation/create", "params": {"message": "?"}});
        let url = json!({"method": "elicitation/create", "params": {"mode": "url", "url": "https://a.example/"}});
        let tools = json!({"method": "sampling/createMessage", "params": {"tools": []}});
        let found =
            read(json!({"inputRequests": {"a": form, "b": url, "c": tools}, "requestState": "s"}))
                .unwrap();

        let held = ClientCapabilities::read(&json!({"elicitation": {}, "sampling": {}}));
        assert_eq!(found.state.as_deref(), Some("s"));
        assert_eq!(
            found.needed.beyond(held).declared(),
            json!({"elicitation": {"url": {}}, "sampling": {"tools": {}}})
        );
        assert!(found.needed.beyond(found.needed).is_empty());
    }

    #[test]
    fn what_is_no_question_of_the_protocol_is_refused() {
        let many: Map<String, Value> =
            (0..17).map(|n| (n.to_string(), json!({"method": "roots/list"}))).collect();
        for result in [
            json!({}),
            json!({"inputRequests": {}}),
            json!({"inputRequests": []}),
            json!({"inputRequests": {"a": {"method": "tools/call"}}}),
            json!({"inputRequests": {"a": {"method": "elicitation/create", "params": []}}}),
            json!({"inputRequests": {"a": {"method": "elicitation/create", "params": {"mode": "x"}}}}),
            json!({"inputRequests": {"x".repeat(129): {"method": "roots/list"}}}),
            json!({"inputRequests": many}),
            json!({"requestState": 7}),
            json!({"requestState": "x".repeat((64 << 10) + 1)}),
        ] {
            assert_eq!(read(result.clone()), None, "{result}");
        }
        assert!(read(json!({"requestState": "s"})).is_some());
    }

    /// A result that has a person open an address.
    fn opening(name: &str, id: &str, url: &str) -> Value {
        let params = json!({"mode": "url", "url": url, "elicitationId": id, "message": "?"});
        json!({"inputRequests": {name: {"method": "elicitation/create", "params": params}}})
    }

    #[test]
    fn people_are_asked_to_open_only_safe_addresses() {
        for url in [
            "https://a.example/x?y=z#f", "http://127.0.0.1:8080/cb", "http://[::1]/",
            "http://localhost:3000/",
        ] {
            assert!(read(opening("q", "1", url)).is_some(), "{url}");
        }
        for url in [
            "http://a.example/",
            "http://localhost.a.example/",
            "http://10.0.0.1/",
            "https://gateway.acme.example@a.example/",
            "https://a.example/\u{202e}x",
            "https://a.example/ x",
            "\thttps://a.example/",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "intent://x",
            "//a.example/",
            "https:",
            "",
        ] {
            assert_eq!(read(opening("q", "1", url)), None, "{url}");
        }
        assert_eq!(
            read(opening("q", "1", &format!("https://a.example/{}", "x".repeat(2_000)))),
            None
        );
        let none = json!({"method": "elicitation/create", "params": {"mode": "url"}});
        assert_eq!(read(json!({"inputRequests": {"q": none}})), None);
    }

    #[test]
    fn a_question_that_looks_like_one_of_the_gateway_is_refused() {
        let url = "https://a.example/";
        for (name, id) in [
            ("approval", "1"),
            ("Approval ", "1"),
            ("apr_01M754BKTKX1YB8Q05NMW9TP4G", "1"),
            ("q", "apr_01M754BKTKX1YB8Q05NMW9TP4G"),
            ("q", " APR_1"),
            ("Approval\u{200b}", "1"),
            ("q", "\u{200b}apr_1"),
        ] {
            assert_eq!(read(opening(name, id, url)), None, "{name} {id}");
        }
        let form = json!({"method": "elicitation/create", "params": {"message": "?"}});
        assert_eq!(read(json!({"inputRequests": {"approval": form}})), None);
        assert!(read(opening("approvals", "may-1", url)).is_some());
    }

    #[test]
    fn what_only_the_gateway_may_say_is_removed_from_questions() {
        let params =
            json!({"_meta": {"dev.portcullis/error": 1, "io.modelcontextprotocol/x": 1, "a": 2}});
        let found =
            read(json!({"inputRequests": {"r": {"method": "roots/list", "params": params}}}));

        assert_eq!(found.unwrap().requests["r"]["params"]["_meta"], json!({"a": 2}));

        let meta = |more| json!({"dev.portcullis/tool": "a:b", "a": more});
        let part = |more| json!({"_meta": meta(1), "content": [{"type": "tool_result", "_meta": meta(2), "content": [more]}]});
        let params =
            json!({"messages": [part(json!({"type": "text", "text": "t", "_meta": meta(3)}))]});
        let asked = json!({"method": "sampling/createMessage", "params": params});
        let found = read(json!({"inputRequests": {"r": asked}})).unwrap();
        let told = Value::Object(found.requests).to_string();
        assert_eq!(told.matches(r#""_meta":{"a":"#).count(), 3, "{told}");
    }
}
