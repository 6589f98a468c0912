//! JSON-RPC messages: requests are written once into one buffer, answers are parsed once.

use std::{future::pending, ops::RangeInclusive};

use portcullis_core::{
    json::{self, Bounds, Document, JsonValue, Kind, Node},
    mcp::{
        Era, MODERN, Method,
        code::{
            INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY,
            UNSUPPORTED_VERSION, URL_ELICITATION,
        },
        interaction::ClientCapabilities,
        meta,
    },
    refusal::{Executed, UpstreamReason},
    tool::ToolName,
    trace::TraceParent,
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

use super::{mended::mended, reply::ServerRequest};
use crate::{
    error::{CallError, CallErrorKind},
    forms::FormTally,
    live::{Live, Progress},
    said::{Said, cut},
};

/// A request, whichever era it will be sent in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) method: Method,
    pub(crate) name: Option<&'a ToolName>,
    pub(crate) arguments: Option<Node<'a>>,
    /// Capabilities of the caller, told to servers of the modern era; in `initialize` our own.
    pub(crate) capabilities: ClientCapabilities,
    /// Answers of the caller to questions, and the state that came with these.
    pub(crate) responses: Option<Node<'a>>,
    pub(crate) state: Option<&'a str>,
    pub(crate) cursor: Option<&'a str>,
    pub(crate) traceparent: Option<TraceParent>,
    pub(crate) tracestate: Option<&'a str>,
    /// Receiver of its progress. The token is its id, so that no byte of the caller's goes out.
    pub(crate) live: Option<&'a Live>,
    /// Counter of the forms that a server of the older era presents meanwhile.
    pub(crate) forms: Option<&'a FormTally>,
    /// Place for the words of a server that answers with an error.
    pub(crate) said: Option<&'a Said>,
}

impl Outgoing<'_> {
    /// A request with nothing but its method.
    pub(crate) const fn bare(method: Method) -> Self {
        Self {
            method,
            name: None,
            arguments: None,
            capabilities: ClientCapabilities {
                form: false,
                url: false,
                sampling: false,
                sampling_context: false,
                sampling_tools: false,
                roots: false,
            },
            responses: None,
            state: None,
            cursor: None,
            traceparent: None,
            tracestate: None,
            live: None,
            forms: None,
            said: None,
        }
    }

    /// The failure of a server's error. Keeps its words where the call has room for them.
    pub(crate) fn failed(&self, error: &RpcError) -> CallError {
        if let Some(said) = self.said {
            said.hear(&error.message);
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
            name: self.name.map(ToolName::as_str),
            state: self.state.filter(|_| modern),
            cursor: self.cursor,
            notifications: (self.method == Method::Listen).then_some(Wanted { tools: true }),
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
        let lines = parts.map(|(name, part)| Some((name, part?.line())));
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
    #[serde(rename = "requestState", skip_serializing_if = "Option::is_none")]
    state: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notifications: Option<Wanted>,
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
struct Wanted {
    #[serde(rename = "toolsListChanged")]
    tools: bool,
}

/// `notifications/initialized`, which ends the handshake of the older era.
pub(crate) const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// `notifications/cancelled` for the request `id`.
pub(crate) fn cancelled(id: u64) -> Vec<u8> {
    let head = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#;
    format!("{head}{id}}}}}").into_bytes()
}

/// Message of a server.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// The end of a request; `id` is absent when it is not one of a kind we give.
    Answer {
        id: Option<u64>,
        outcome: Outcome,
    },
    ToolsChanged,
    /// The progress of the request that has this id.
    Progress {
        token: u64,
        progress: Progress,
    },
    /// Another notification.
    Notification,
    Request(ServerRequest),
}

/// A result or an error.
pub(crate) type Outcome = Result<Reply, RpcError>;

/// A result, which is an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) result: Document,
    /// The names of the definitions of tools that cannot be read and were left out. No result but a
    /// list of tools is of use with them.
    pub(crate) unreadable: Vec<String>,
    /// True if parts of texts were no characters and have become U+FFFD.
    pub(crate) is_mended: bool,
}

impl Reply {
    /// The members as a tree.
    pub(crate) fn members(&self) -> Map<String, Value> {
        match self.result.root().to_value() {
            Value::Object(members) => members,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        }
    }
}

/// Codes that JSON-RPC 2.0 leaves to servers, without those that MCP gives a meaning.
const RESERVED_FOR_SERVERS: RangeInclusive<i64> = -32019..=-32000;

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    /// The server's own words, cut.
    pub(crate) message: String,
    /// `data.supported`: the protocol versions the server would have liked.
    pub(crate) supported: Vec<String>,
    /// `data.requiredCapabilities`: what a client would have to declare.
    pub(crate) required: ClientCapabilities,
}

impl RpcError {
    /// Returns true if servers say so to a client whose session they do not know.
    pub(crate) fn is_about_the_session(&self) -> bool {
        matches!(self.code, INVALID_REQUEST | UNSUPPORTED_VERSION)
            || RESERVED_FOR_SERVERS.contains(&self.code)
    }

    /// Returns true if servers say so to a client whose version they do not speak.
    pub(crate) const fn is_about_the_version(&self) -> bool {
        matches!(self.code, INVALID_PARAMS | UNSUPPORTED_VERSION)
    }

    /// Maps the error to that of a call.
    fn to_call_error(&self) -> CallError {
        use UpstreamReason::{InteractionRequired, JsonrpcError};
        match self.code {
            METHOD_NOT_FOUND | INVALID_PARAMS => CallError::upstream(JsonrpcError, Executed::No),
            MISSING_CAPABILITY if !self.required.is_empty() => CallError {
                kind: CallErrorKind::Unanswerable(self.required),
                executed: Executed::Unknown,
            },
            MISSING_CAPABILITY | URL_ELICITATION => {
                CallError::upstream(InteractionRequired, Executed::Unknown)
            }
            _ => CallError::upstream(JsonrpcError, Executed::Unknown),
        }
    }
}

/// The result of a server of this era. Only since 2026-07-28 a result can ask for input: what an older
/// server means by it needs an open stream.
pub(crate) fn of_era(reply: Reply, era: Era) -> Result<Reply, CallError> {
    let kind = reply.result.root().get("resultType").and_then(Node::text);
    let asks = kind == Some(INPUT_REQUIRED);
    if asks && era != Era::Modern {
        return Err(CallError::upstream(UpstreamReason::InteractionRequired, Executed::Unknown));
    }
    Ok(reply)
}

/// `resultType` of a result that asks for input.
pub(crate) const INPUT_REQUIRED: &str = "input_required";

/// Not a JSON-RPC message, or one that two readers could read differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Path of the list of tools in a response. A definition in it that cannot be read is left out, so
/// that it does not hide the others.
const TOOLS: [&str; 2] = ["result", "tools"];

fn names_in(definitions: &[&[u8]]) -> Vec<String> {
    let name = |definition: &&[u8]| json::text_member(definition, "name").unwrap_or_default();
    definitions.iter().map(name).collect()
}

/// Parses one message. Where parts of its texts are no characters, as in the results of programs that cut
/// through a pair of surrogates, U+FFFD stands for them.
pub(crate) fn parse(bytes: &[u8]) -> Result<Incoming, Malformed> {
    let parsed = parse_strictly(bytes);
    if parsed.is_ok() {
        return parsed;
    }
    let mended = mended(bytes).ok_or(Malformed)?;
    let mut parsed = parse_strictly(&mended)?;
    if let Incoming::Answer { outcome: Ok(reply), .. } = &mut parsed {
        reply.is_mended = true;
    }
    Ok(parsed)
}

fn parse_strictly(bytes: &[u8]) -> Result<Incoming, Malformed> {
    let (message, unreadable) = match Document::parse(bytes, Bounds::UPSTREAM) {
        Ok(message) => (message, Vec::new()),
        Err(_) => json::parse_around(bytes, Bounds::UPSTREAM, &TOOLS).map_err(|_| Malformed)?,
    };
    let root = message.root();
    if root.get("jsonrpc").and_then(Node::text) != Some("2.0") {
        return Err(Malformed);
    }
    let id = root.get("id").map(Node::to_value);
    if let Some(method) = root.get("method") {
        let method = method.text().ok_or(Malformed)?;
        let params = || match root.get("params").map(Node::to_value) {
            Some(Value::Object(params)) => Some(params),
            Some(_) | None => None,
        };
        return Ok(match (id, method) {
            (Some(id), method) => Incoming::Request(ServerRequest {
                id,
                method: method.chars().take(128).collect(),
                params: params().unwrap_or_default(),
                bytes: bytes.len(),
            }),
            (None, "notifications/tools/list_changed") => Incoming::ToolsChanged,
            (None, "notifications/progress") => Progress::read(params().as_ref()).map_or(
                Incoming::Notification,
                |(token, progress)| Incoming::Progress { token, progress },
            ),
            (None, _) => Incoming::Notification,
        });
    }
    let id = id.as_ref().and_then(own_id);
    // Some write out what is absent.
    let given =
        |name| root.get(name).filter(|value: &Node<'_>| !matches!(value.kind(), Kind::Null));
    let result = given("result").map(|result| (result.is_object(), message.part(result)));
    let outcome = match (result, given("error")) {
        (Some((true, result)), None) => {
            Ok(Reply { result, unreadable: names_in(&unreadable), is_mended: false })
        }
        (None, Some(error)) => Err(rpc_error(&error.to_value())?),
        (Some(_) | None, _) => return Err(Malformed),
    };
    Ok(Incoming::Answer { id, outcome })
}

/// An id as we give them; some servers give it back as a text.
fn own_id(id: &Value) -> Option<u64> {
    let Some(digits) = id.as_str() else { return id.as_u64() };
    digits.parse().ok().filter(|id: &u64| id.to_string() == digits)
}

fn rpc_error(error: &Value) -> Result<RpcError, Malformed> {
    let code = error.get("code").and_then(Value::as_i64).ok_or(Malformed)?;
    let supported = error.pointer("/data/supported").and_then(Value::as_array);
    let supported = supported.map(|versions| {
        versions.iter().filter_map(Value::as_str).take(32).map(str::to_owned).collect()
    });
    let required = error.pointer("/data/requiredCapabilities");
    let required = required.map(ClientCapabilities::read).unwrap_or_default();
    let message = error.get("message").and_then(Value::as_str).map(cut).unwrap_or_default();
    Ok(RpcError { code, message, supported: supported.unwrap_or_default(), required })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    #[test]
    fn answers_are_told_from_notifications_and_requests() {
        let read = |text: &str| parse(text.as_bytes());

        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#),
            Ok(Incoming::Answer { id: Some(3), outcome: Ok(_) })
        ));
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#),
            Ok(Incoming::Answer { id: None, outcome: Err(RpcError { code: -32700, .. }) })
        ));
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#),
            Ok(Incoming::Request(_))
        ));
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#),
            Ok(Incoming::ToolsChanged)
        ));
    }

    #[test]
    fn what_can_be_read_in_one_way_only_is_read() {
        let read = |text: &str| match parse(text.as_bytes()) {
            Ok(Incoming::Answer { id: Some(5), outcome }) => outcome.map(|reply| reply.is_mended),
            other => panic!("{text}: {other:?}"),
        };
        for answered in [
            r#"{"jsonrpc":"2.0","id":"5","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":5,"result":{},"error":null}"#,
        ] {
            assert_eq!(read(answered), Ok(false), "{answered}");
        }
        let refused = r#"{"jsonrpc":"2.0","id":5,"result":null,"error":{"code":1,"message":"x"}}"#;
        assert_eq!(read(refused).map_err(|error| error.code), Err(1));
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":5,"result":{"a":"\ud83d"}}"#), Ok(true));
        for other in ["\"05\"", "\"5 \"", "\"x\"", "5.0", "-5"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{other},"result":{{}}}}"#);
            assert!(
                matches!(parse(text.as_bytes()), Ok(Incoming::Answer { id: None, .. })),
                "{other}"
            );
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_malformed() {
        for text in [
            "",
            "[]",
            "hello",
            r#"{"id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"\ud800":1,"\udfff":2}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#,
        ] {
            assert_eq!(parse(text.as_bytes()).err(), Some(Malformed), "{text}");
        }
    }

    #[test]
    fn a_definition_that_cannot_be_read_is_named_and_the_others_stay() {
        let text = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"},{"name":"b","name":"b"},
            {"name":"c","max":1e400},{"name":"d"}]}}"#;

        let Ok(Incoming::Answer { outcome: Ok(result), .. }) = parse(text.as_bytes()) else {
            panic!("it is an answer")
        };

        assert_eq!(result.members()["tools"], json!([{"name": "a"}, {"name": "d"}]));
        assert_eq!(result.unreadable, ["b", "c"]);
        let call = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"a":1e400}}"#;
        assert_eq!(parse(call.as_bytes()).err(), Some(Malformed));
    }
}
