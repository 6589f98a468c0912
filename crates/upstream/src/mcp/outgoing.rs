//! Requests and notifications to servers, each written once into one buffer.

use std::{borrow::Cow, future::pending, sync::Arc};

use portcullis_core::{
    call::Completion,
    capability::CapabilityName,
    json::Node,
    mcp::{Era, MODERN, Method, interaction::ClientCapabilities, meta},
    refusal::{Executed, UpstreamReason},
    trace::TraceParent,
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, json};

use super::message::RpcError;
use crate::{error::CallError, forms::FormTally, live::Live, server_message::ServerWords};

/// The prompt or template of an argument that values are suggested for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reference<'a> {
    Prompt(&'a str),
    Template(&'a str),
}

impl Reference<'_> {
    fn to_value(self) -> Value {
        match self {
            Self::Prompt(name) => json!({ "type": "ref/prompt", "name": name }),
            Self::Template(uri) => json!({ "type": "ref/resource", "uri": uri }),
        }
    }
}

/// A request, whichever era it will be sent in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) method: Method,
    pub(crate) name: Option<&'a CapabilityName>,
    /// The resource that is read.
    pub(crate) uri: Option<&'a str>,
    /// The task that is asked about, by the id that its server gave.
    pub(crate) task: Option<&'a str>,
    pub(crate) arguments: Option<Node<'a>>,
    /// The argument that values are suggested for, and of what it is one.
    pub(crate) completion: Option<(Reference<'a>, Completion<'a>)>,
    /// Capabilities of the caller, told to servers of the modern era; in `initialize` our own.
    pub(crate) capabilities: ClientCapabilities,
    /// Answers of the caller to questions, and the state that came with these.
    pub(crate) responses: Option<Node<'a>>,
    pub(crate) state: Option<&'a str>,
    pub(crate) cursor: Option<&'a str>,
    /// The resources that a stream is to tell of; of none, it tells of lists.
    pub(crate) watched: &'a [Arc<str>],
    pub(crate) traceparent: Option<TraceParent>,
    pub(crate) tracestate: Option<&'a str>,
    /// Receiver of its progress. The token is its id, so that no byte of the caller's goes out.
    pub(crate) live: Option<&'a Live>,
    /// Counter of the forms that a server of the older era presents meanwhile.
    pub(crate) forms: Option<&'a FormTally>,
    /// Place for the words of a server that answers with an error.
    pub(crate) said: Option<&'a ServerWords>,
    /// Number of the one process or session that it may be sent to.
    pub(crate) peer: Option<u64>,
}

impl Outgoing<'_> {
    /// A request with nothing but its method.
    pub(crate) const fn bare(method: Method) -> Self {
        Self {
            method,
            name: None,
            uri: None,
            task: None,
            arguments: None,
            completion: None,
            capabilities: ClientCapabilities {
                form: false,
                url: false,
                sampling: false,
                sampling_context: false,
                sampling_tools: false,
                roots: false,
                ui: false,
                tasks: false,
            },
            responses: None,
            state: None,
            cursor: None,
            watched: &[],
            traceparent: None,
            tracestate: None,
            live: None,
            forms: None,
            said: None,
            peer: None,
        }
    }

    /// Fails if it may not be sent to the process or session of this number.
    pub(crate) fn check_peer(&self, peer: u64) -> Result<(), CallError> {
        let is_wrong = self.peer.is_some_and(|only| only != peer);
        if is_wrong { Err(CallError::new_peer()) } else { Ok(()) }
    }

    /// The failure of a server's error. Keeps its words where the call has room for them.
    pub(crate) fn failed(&self, error: &RpcError) -> CallError {
        if let Some(said) = self.said {
            said.hear(&error.message);
        }
        let reads = matches!(self.method, Method::ReadResource | Method::GetSkill);
        if (reads || self.task.is_some()) && error.is_about_a_resource() {
            return CallError::not_found();
        }
        error.to_call_error()
    }

    /// Returns true if something may end it before its answer or its time.
    pub(crate) const fn may_be_abandoned(&self) -> bool {
        self.live.is_some() || self.forms.is_some()
    }

    /// Ends once its answer is not waited for any more, because the caller gave it up or its server
    /// wants an answer that will not come; says which.
    pub(crate) async fn abandoned(&self) -> CallError {
        let given_up = async {
            match self.live {
                Some(live) => live.given_up().await,
                None => pending().await,
            }
        };
        let refused = async {
            match self.forms {
                Some(forms) => forms.ended().await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = given_up => CallError::cancelled(Executed::Unknown),
            () = refused => {
                CallError::upstream(UpstreamReason::InteractionRequired, Executed::Unknown)
            }
        }
    }

    /// The request's text with no line feed in it.
    pub(crate) fn encode(&self, id: u64, era: Era) -> Result<Vec<u8>, CallError> {
        let modern = era == Era::Modern;
        let initializes = self.method == Method::Initialize;
        let meta = Meta {
            version: modern.then_some(MODERN),
            client: modern.then_some(CLIENT),
            capabilities: modern.then_some(Declared(self.capabilities)),
            traceparent: self.traceparent,
            tracestate: self.tracestate,
            progress_token: self.live.map(|_| id),
        };
        let has_meta = modern || self.traceparent.is_some() || self.live.is_some();
        let params = Params {
            name: self.name.map(CapabilityName::as_str),
            uri: self.uri,
            task: self.task,
            state: self.state.filter(|_| modern),
            cursor: self.cursor,
            notifications: (self.method == Method::Listen).then_some(match self.watched {
                [] => NotificationFilter::Lists { tools: true, prompts: true, resources: true },
                watched => NotificationFilter::Resources { watched },
            }),
            version: match era {
                Era::Legacy(version) if initializes => Some(version),
                Era::Legacy(_) | Era::Modern => None,
            },
            capabilities: initializes.then_some(Declared(self.capabilities)),
            client: initializes.then_some(CLIENT),
            meta: has_meta.then_some(meta),
        };
        let responses = self.responses.filter(|_| modern);
        let parts = [("arguments", self.arguments), ("inputResponses", responses)];
        let written = parts.map(|(name, part)| Some((name, part?.line())));
        let completed = self.completion.map(|(reference, asked)| completed(reference, asked));
        let [of, argument, context] = completed.unwrap_or_default();
        let [arguments, responses] = written;
        let lines = [arguments, responses, of, argument, context];
        let room =
            lines.iter().flatten().map(|(name, line)| name.len() + line.len()).sum::<usize>();
        let mut text = Vec::with_capacity(room + 1024);
        let method = self.method.as_str();
        text.extend_from_slice(
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":"#).as_bytes(),
        );
        serde_json::to_writer(&mut text, &params).map_err(|_| CallError::protocol(Executed::No))?;
        for (name, line) in lines.into_iter().flatten() {
            add_member(&mut text, name, &line);
        }
        text.push(b'}');
        Ok(text)
    }
}

/// A member of a request as text.
type Line = Option<(&'static str, Cow<'static, str>)>;

/// The members of the request for a completion: what the argument is of, the argument as far as it is written, and the
/// others.
fn completed(reference: Reference<'_>, asked: Completion<'_>) -> [Line; 3] {
    let Value::Object(mut values) = asked.values.to_value() else { return [None, None, None] };
    let line = |name, value: Value| Some((name, Cow::Owned(value.to_string())));
    let value = values.remove(asked.argument).unwrap_or_default();
    let argument = json!({ "name": asked.argument, "value": value });
    let context = json!({ "arguments": values });
    [
        line("ref", reference.to_value()),
        line("argument", argument),
        line("context", context).filter(|_| !values.is_empty()),
    ]
}

/// Adds a member to the object with which a text ends: the very bytes that were judged.
fn add_member(text: &mut Vec<u8>, name: &str, value: &str) {
    text.pop();
    if text.last() != Some(&b'{') {
        text.push(b',');
    }
    for part in ["\"", name, "\":", value, "}"] {
        text.extend_from_slice(part.as_bytes());
    }
}

#[derive(Serialize)]
struct Params<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    #[serde(rename = "taskId", skip_serializing_if = "Option::is_none")]
    task: Option<&'a str>,
    #[serde(rename = "requestState", skip_serializing_if = "Option::is_none")]
    state: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notifications: Option<NotificationFilter<'a>>,
    #[serde(rename = "protocolVersion", skip_serializing_if = "Option::is_none")]
    version: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<Declared>,
    #[serde(rename = "clientInfo", skip_serializing_if = "Option::is_none")]
    client: Option<Client>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
}

struct Meta<'a> {
    version: Option<&'static str>,
    client: Option<Client>,
    capabilities: Option<Declared>,
    traceparent: Option<TraceParent>,
    tracestate: Option<&'a str>,
    progress_token: Option<u64>,
}

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        if let Some(version) = self.version {
            members.serialize_entry(meta::PROTOCOL_VERSION, version)?;
        }
        if let Some(client) = &self.client {
            members.serialize_entry(meta::CLIENT_INFO, client)?;
        }
        if let Some(capabilities) = &self.capabilities {
            members.serialize_entry(meta::CLIENT_CAPABILITIES, capabilities)?;
        }
        if let Some(traceparent) = self.traceparent {
            members.serialize_entry(meta::TRACEPARENT, &traceparent)?;
        }
        if let Some(tracestate) = self.tracestate {
            members.serialize_entry("tracestate", tracestate)?;
        }
        if let Some(token) = self.progress_token {
            members.serialize_entry(meta::PROGRESS_TOKEN, &token)?;
        }
        members.end()
    }
}

#[derive(Serialize)]
struct Client {
    name: &'static str,
    version: &'static str,
}

const CLIENT: Client = Client { name: "portcullis", version: env!("CARGO_PKG_VERSION") };

/// Capabilities: those of the caller in the modern era, ours in the older one.
struct Declared(ClientCapabilities);

impl Serialize for Declared {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_empty() {
            return Empty {}.serialize(serializer);
        }
        self.0.declared().serialize(serializer)
    }
}

/// An object without members.
#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
#[serde(untagged)]
enum NotificationFilter<'a> {
    Lists {
        #[serde(rename = "toolsListChanged")]
        tools: bool,
        #[serde(rename = "promptsListChanged")]
        prompts: bool,
        #[serde(rename = "resourcesListChanged")]
        resources: bool,
    },
    Resources {
        #[serde(rename = "resourceSubscriptions", serialize_with = "texts")]
        watched: &'a [Arc<str>],
    },
}

fn texts<S: Serializer>(texts: &[Arc<str>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(texts.iter().map(|text| &**text))
}

/// `notifications/initialized`, which ends the handshake of the older era.
pub(crate) const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// `notifications/cancelled` for the request `id`.
pub(crate) fn cancelled(id: u64) -> Vec<u8> {
    let head = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#;
    format!("{head}{id}}}}}").into_bytes()
}

#[cfg(test)]
mod tests {
    use portcullis_core::json::{Bounds, Document};

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn encoded(request: &Outgoing<'_>, era: Era) -> Value {
        serde_json::from_slice(&request.encode(7, era).unwrap()).unwrap()
    }

    #[test]
    fn a_modern_call_names_version_and_client_in_every_request() {
        let name = "add".parse().unwrap();
        let arguments = json!({"a": 1});
        let document = Document::of(&arguments);
        let call = Outgoing {
            name: Some(&name),
            arguments: Some(document.root()),
            traceparent: TraceParent::parse(PARENT.as_bytes()),
            ..Outgoing::bare(Method::CallTool)
        };

        let message = encoded(&call, Era::Modern);

        let meta = &message["params"]["_meta"];
        assert_eq!(message["id"], 7);
        assert_eq!(message["method"], "tools/call");
        assert_eq!(message["params"]["name"], "add");
        assert_eq!(message["params"]["arguments"], arguments);
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "portcullis");
        assert_eq!(meta["traceparent"], PARENT);
    }

    #[test]
    fn a_completion_names_what_it_is_of_and_parts_the_argument_from_the_others() {
        let prompt = json!({"type": "ref/prompt", "name": "greet"});
        let template = json!({"type": "ref/resource", "uri": "x://{a}/{b}"});
        for (reference, written, context) in [
            (Reference::Prompt("greet"), (prompt.clone(), json!({"a": "1"})), None),
            (
                Reference::Prompt("greet"),
                (prompt, json!({"a": "1", "b": "2"})),
                Some(json!({"b": "2"})),
            ),
            (
                Reference::Template("x://{a}/{b}"),
                (template, json!({"b": "\"", "a": "1"})),
                Some(json!({"b": "\""})),
            ),
        ] {
            let values = Document::of(&written.1);
            let asked = Completion { argument: "a", values: values.root() };
            let request = Outgoing {
                completion: Some((reference, asked)),
                ..Outgoing::bare(Method::Complete)
            };

            let message = encoded(&request, Era::Legacy("2025-06-18"));

            let mut params = json!({"ref": written.0, "argument": {"name": "a", "value": "1"}});
            if let Some(others) = context {
                params["context"] = json!({"arguments": others});
            }
            assert_eq!(message["params"], params);
            assert_eq!(message["method"], "completion/complete");
        }
    }

    #[test]
    fn a_legacy_request_carries_nothing_of_the_modern_era() {
        let list = encoded(&Outgoing::bare(Method::ListTools), Era::Legacy("2025-11-25"));
        let initialize = encoded(&Outgoing::bare(Method::Initialize), Era::Legacy("2025-11-25"));

        assert_eq!(list["params"], json!({}));
        assert_eq!(initialize["params"]["protocolVersion"], "2025-11-25");
        assert_eq!(initialize["params"]["capabilities"], json!({}));
    }

    #[test]
    fn arguments_keep_the_text_of_their_numbers() {
        let name = "add".parse().unwrap();
        let text = b"{\"a\":12345678901234567890.10}";
        let arguments = Document::parse(text, Bounds::REQUEST).unwrap();
        let call = Outgoing {
            name: Some(&name),
            arguments: Some(arguments.root()),
            ..Outgoing::bare(Method::CallTool)
        };

        let text = String::from_utf8(call.encode(1, Era::Modern).unwrap()).unwrap();

        assert!(text.contains("12345678901234567890.10"), "{text}");
    }
}
