//! Apps of MCP (`io.modelcontextprotocol/ui` of 2026-01-26): pages of a server that hosts show beside the answers of
//! its tools. A tool names its page in `_meta.ui.resourceUri`; what the page may do stands in `_meta.ui` of the resource.

use serde_json::{Map, Value, json};

use super::{meta::META, uris::ResourceUri};
use crate::json::{JsonValue as _, Node};

/// The extension, as clients and servers declare it.
pub const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// Media type of a page.
pub const MEDIA_TYPE: &str = "text/html;profile=mcp-app";
/// Member of `_meta`.
pub const UI: &str = "ui";
/// Begin of the URI of each page.
pub const SCHEME: &str = "ui://";
/// Member of `_meta` in which older servers name the page of a tool.
const FLAT: &str = "ui/resourceUri";
/// Most addresses of a list.
const MOST_ADDRESSES: usize = 64;
const LONGEST_ADDRESS: usize = 256;

/// Rights of the pages of a provider beyond showing their own HTML: none, unless they are named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppRules {
    /// Addresses for `connectDomains`: origins, `https://*.example.com`, or `*` for all.
    pub connect: Vec<String>,
    /// The same for `resourceDomains`.
    pub resource: Vec<String>,
    /// The same for `frameDomains`.
    pub frame: Vec<String>,
    /// The same for `baseUriDomains`.
    pub base: Vec<String>,
    /// Permissions such as `camera` that pages may ask for.
    pub permissions: Vec<String>,
    /// Pages may have an origin of their own choice.
    pub domain: bool,
}

/// The declaration of the extension by a client or server.
#[must_use]
pub fn declaration() -> Value {
    json!({ "mimeTypes": [MEDIA_TYPE] })
}

/// The `ui` of a tool from its `_meta`: its page, and who may call it (`model`, `app`). `None` if neither is said in the
/// way of the extension.
#[must_use]
pub fn of_tool(meta: &Value) -> Option<Value> {
    let ui = meta.get(UI);
    let page = ui.and_then(|ui| ui.get("resourceUri")).or_else(|| meta.get(FLAT));
    let page = page.and_then(Value::as_str).filter(|uri| is_page(uri));
    let known = |told: &Value| {
        let told = told.as_array().into_iter().flatten();
        told.filter(|it| *it == "model" || *it == "app").cloned().collect::<Vec<_>>()
    };
    let audience = ui.and_then(|ui| ui.get("visibility")).map(known);
    let members =
        [("resourceUri", page.map(Value::from)), ("visibility", audience.map(Value::from))];
    let members = members.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?)));
    let members: Map<String, Value> = members.collect();
    (!members.is_empty()).then_some(Value::Object(members))
}

/// Returns true for the URI of a page.
#[must_use]
pub fn is_page(uri: &str) -> bool {
    uri.starts_with(SCHEME) && ResourceUri::parse(uri).is_ok()
}

/// Returns true if a tool with this `ui` is there for pages, and models are not shown it.
#[must_use]
pub fn is_for_pages_alone(ui: &Value) -> bool {
    let audience = ui.get("visibility").and_then(Value::as_array);
    audience.is_some_and(|all| !all.iter().any(|it| it == "model"))
}

/// Returns true for an address as rules and pages may name one: an origin whose host may begin with `*.`, or `*`.
/// Whatever would end the address in a header is none.
#[must_use]
pub fn is_address(text: &str) -> bool {
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let (host, port) = rest.split_once(':').unwrap_or((rest, "443"));
    text.len() <= LONGEST_ADDRESS
        && matches!(scheme, "https" | "http" | "wss" | "ws")
        && is_host(host.strip_prefix("*.").unwrap_or(host))
        && port.bytes().all(|it| it.is_ascii_digit())
        && port.parse::<u16>().is_ok()
}

fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
    };
    text.len() <= LONGEST_ADDRESS && text.split('.').all(is_label)
}

/// Takes from content of an answer, and all that is in it, what pages ask for: a page keeps its text, and nothing else says
/// anything of the rights of one. Returns true if anything was taken.
pub fn remove_rights(part: &mut Value) -> bool {
    match part {
        Value::Array(parts) => parts.iter_mut().fold(false, |taken, it| remove_rights(it) | taken),
        Value::Object(members) => {
            let before = members.len();
            if members.get("uri").and_then(Value::as_str).is_some_and(is_like_a_page) {
                members.retain(|name, _| OF_PAGES.contains(&name.as_str()));
            }
            let mut taken = members.len() < before;
            if let Some(Value::Object(meta)) = members.get_mut(META) {
                let said = meta.len();
                meta.retain(|name, _| !is_right(name));
                taken |= meta.len() < said;
            }
            members.values_mut().fold(taken, |taken, it| remove_rights(it) | taken)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns true if [`remove_rights`] would take anything.
#[must_use]
pub fn has_rights(part: Node<'_>) -> bool {
    if let Some(mut parts) = part.items() {
        return parts.any(has_rights);
    }
    let is_of_page = part.get("uri").and_then(Node::text).is_some_and(is_like_a_page);
    let members = part.members().into_iter().flatten();
    members.into_iter().any(|(name, value)| {
        let rights = || value.members().is_some_and(|mut all| all.any(|(name, _)| is_right(name)));
        (is_of_page && !OF_PAGES.contains(&name)) || (name == META && rights()) || has_rights(value)
    })
}

/// Members of a page, or of a link to one, that stay.
const OF_PAGES: [&str; 10] = [
    "type", "uri", "name", "title", "description", "mimeType", "text", "blob", "size",
    "annotations",
];

/// Returns true for a member of `_meta` in which hosts look for what a page may do.
#[must_use]
pub fn is_right(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    let begins = ["ui/", "ui.", "openai/widget", "openai.widget"];
    name == UI || begins.iter().any(|begin| name.starts_with(begin))
}

/// Returns true for what readers may take for the URI of a page.
fn is_like_a_page(uri: &str) -> bool {
    let begin = uri.trim_start().get(..SCHEME.len());
    begin.is_some_and(|begin| begin.eq_ignore_ascii_case(SCHEME))
}

/// Returns true if an entry of the rules holds an address that a page names.
fn holds(entry: &str, address: &str) -> bool {
    if entry == address {
        return true;
    }
    if entry == "*" {
        return address != "*";
    }
    let Some((scheme, domain)) = entry.split_once("://*.") else { return false };
    let host = address.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://"));
    host.and_then(|host| host.strip_suffix(domain)).is_some_and(|begin| begin.ends_with('.'))
}

impl AppRules {
    /// Returns the `ui` of a page as far as the rules permit it, and whether anything was cut from it.
    #[must_use]
    pub fn narrow(&self, ui: &Value) -> (Value, bool) {
        let mut kept = Map::new();
        let mut is_cut = false;
        for (name, value) in ui.as_object().into_iter().flatten() {
            let narrowed = match name.as_str() {
                "csp" => self.narrow_csp(value),
                "permissions" => self.narrow_permissions(value),
                "domain" if self.domain && value.as_str().is_some_and(is_host) => value.clone(),
                "prefersBorder" if value.is_boolean() => value.clone(),
                _ => Value::Null,
            };
            is_cut |= narrowed != *value;
            if !narrowed.is_null() {
                kept.insert(name.clone(), narrowed);
            }
        }
        (Value::Object(kept), is_cut || !ui.is_object())
    }

    fn narrow_csp(&self, csp: &Value) -> Value {
        let lists = [
            ("connectDomains", &self.connect),
            ("resourceDomains", &self.resource),
            ("frameDomains", &self.frame),
            ("baseUriDomains", &self.base),
        ];
        let lists = lists.into_iter().filter_map(|(name, rules)| {
            let told = csp.get(name)?.as_array()?.iter().filter_map(Value::as_str);
            let is_held = |it: &&str| is_address(it) && rules.iter().any(|entry| holds(entry, it));
            let held: Vec<&str> = told.filter(is_held).take(MOST_ADDRESSES).collect();
            Some((name.to_owned(), json!(held)))
        });
        Value::Object(lists.collect())
    }

    fn narrow_permissions(&self, asked: &Value) -> Value {
        let asked = asked.as_object().into_iter().flatten();
        let held = asked.filter(|(name, _)| self.permissions.contains(name));
        Value::Object(held.map(|(name, _)| (name.clone(), json!({}))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    #[test]
    fn addresses_of_a_page_are_those_that_the_rules_hold() {
        for (entry, address, is_held) in [
            ("https://a.example", "https://a.example", true),
            ("https://a.example", "https://a.example:443", false),
            ("https://a.example", "http://a.example", false),
            ("https://a.example", "https://b.a.example", false),
            ("https://*.a.example", "https://b.a.example", true),
            ("https://*.a.example", "https://c.b.a.example", true),
            ("https://*.a.example", "https://*.a.example", true),
            ("https://*.a.example", "https://*.b.a.example", true),
            ("https://*.a.example", "https://a.example", false),
            ("https://*.a.example", "https://ba.example", false),
            ("https://*.a.example", "wss://b.a.example", false),
            ("https://*.a.example", "*", false),
            ("https://a.example", "*", false),
            ("*", "https://a.example", true),
            ("*", "wss://a.example:8443", true),
            ("*", "*", true),
            ("*", "https://a.example; script-src *", false),
            ("*", "https://a.example, https://b.example", false),
            ("*", "https://a.example/p", false),
            ("*", "https://", false),
            ("*", "data:", false),
            ("*", "'unsafe-eval'", false),
            ("*", "https://a.example:+443", false),
        ] {
            let rules = AppRules { connect: vec![entry.to_owned()], ..AppRules::default() };
            let (kept, is_cut) = rules.narrow(&json!({"csp": {"connectDomains": [address]}}));

            let held = kept["csp"]["connectDomains"].as_array().unwrap().len();
            assert_eq!((held == 1, is_cut), (is_held, !is_held), "{entry} {address}");
        }
    }

    #[test]
    fn a_page_has_what_the_rules_permit_and_nothing_else() {
        let ui = json!({
            "csp": {"connectDomains": ["https://a.example"], "frameDomains": ["*"], "scripts": ["*"]},
            "permissions": {"camera": {"always": 1}, "microphone": {}},
            "domain": "a.example", "prefersBorder": true, "more": 1, "UI": {},
        });
        let some = AppRules {
            connect: vec!["*".to_owned()],
            permissions: vec!["camera".to_owned()],
            domain: true,
            ..AppRules::default()
        };

        let csp = json!({"connectDomains": ["https://a.example"], "frameDomains": []});
        let kept = json!({"csp": csp, "permissions": {"camera": {}}, "domain": "a.example",
            "prefersBorder": true});
        assert_eq!(some.narrow(&ui), (kept, true));
        let csp = json!({"connectDomains": [], "frameDomains": []});
        let kept = json!({"csp": csp, "permissions": {}, "prefersBorder": true});
        assert_eq!(AppRules::default().narrow(&ui), (kept, true));
        assert!(!some.narrow(&json!({"prefersBorder": true})).1);
        assert_eq!(some.narrow(&json!("all")), (json!({}), true));
        let odd = some.narrow(&json!({"domain": "a.example; script-src *"}));
        assert_eq!(odd, (json!({}), true));
    }

    #[test]
    fn content_says_nothing_of_the_rights_of_pages() {
        let meta = json!({"ui": {}, "UI": {}, "Ui/csp": 1, "OpenAI/widgetCSP": {}, "a": 1});
        let page = json!({"uri": "ui://a", "text": "<p>", "csp": {}, "_meta": meta});
        let mut told = json!([
            {"type": "resource", "resource": page, "_meta": meta},
            {"type": "resource_link", "uri": "ui://a", "name": "a", "_meta": meta},
            {"type": "text", "text": "ui", "_meta": {"a": {"ui": 1}}},
        ]);

        assert!(has_rights(Document::of(&told).root()));
        assert!(remove_rights(&mut told));
        assert_eq!(
            told,
            json!([
                {"type": "resource", "resource": {"uri": "ui://a", "text": "<p>"}, "_meta": {"a": 1}},
                {"type": "resource_link", "uri": "ui://a", "name": "a"},
                {"type": "text", "text": "ui", "_meta": {"a": {"ui": 1}}},
            ])
        );
        assert!(!remove_rights(&mut told) && !has_rights(Document::of(&told).root()));
    }

    #[test]
    fn the_page_of_a_tool_is_read_from_either_member() {
        let page = json!({"resourceUri": "ui://a/b.html"});
        for (meta, wanted) in [
            (json!({"ui": page, "more": 1}), Some(page.clone())),
            (json!({"ui/resourceUri": "ui://a/b.html"}), Some(page.clone())),
            (
                json!({"ui": {"resourceUri": "ui://a/b.html", "visibility": ["app"], "x": 1}}),
                Some(json!({"resourceUri": "ui://a/b.html", "visibility": ["app"]})),
            ),
            (json!({"ui": {"visibility": ["app", "me"]}}), Some(json!({"visibility": ["app"]}))),
            (json!({"ui": {"visibility": "app"}}), Some(json!({"visibility": []}))),
            (json!({"ui": {"resourceUri": "https://a.example"}}), None),
            (json!({"ui": {"resourceUri": "ui://a/../b"}}), None),
            (json!({"ui": 7}), None),
            (json!(7), None),
        ] {
            assert_eq!(of_tool(&meta), wanted, "{meta}");
        }
        for (audience, alone) in
            [(json!(["app"]), true), (json!([]), true), (json!(["model", "app"]), false)]
        {
            assert_eq!(is_for_pages_alone(&json!({"visibility": audience})), alone);
        }
        assert!(!is_for_pages_alone(&page));
    }
}
