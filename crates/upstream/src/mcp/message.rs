//! JSON-RPC messages of servers, each parsed once.

use std::ops::RangeInclusive;

use portcullis_core::{
    json::{self, Bounds, Document, JsonValue, Kind, Node},
    mcp::{
        Era,
        code::{
            INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY,
            RESOURCE_NOT_FOUND, UNSUPPORTED_VERSION, URL_ELICITATION,
        },
        interaction::ClientCapabilities,
        meta,
    },
    refusal::{Executed, UpstreamReason},
};
use serde_json::{Map, Value};

use super::{mended::mended, reply::ServerRequest};
use crate::{
    error::{CallError, CallErrorKind},
    live::Progress,
    server_message::cut,
};

/// Message of a server.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// The end of a request; `id` is absent when it is not one of a kind we give.
    Answer {
        id: Option<u64>,
        outcome: Outcome,
    },
    ListChanged,
    /// The resource of this URI changed.
    ResourceChanged(String),
    /// The server tells of what it was asked to tell of by the request of this id: of these resources, if it names any.
    Acknowledged {
        stream: Option<u64>,
        told: Option<Vec<String>>,
    },
    /// The progress of the request that has this id.
    Progress {
        token: u64,
        progress: Progress,
    },
    /// Another notification.
    Notification,
    Request(ServerRequest),
}

pub(crate) type Outcome = Result<Reply, RpcError>;

/// A result, which is an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    pub(crate) result: Document,
    /// The names of the definitions that cannot be read and were left out. No result but a
    /// list is of use with them.
    pub(crate) unreadable: Vec<String>,
    /// True if parts of texts were no characters and have become U+FFFD.
    pub(crate) is_mended: bool,
    /// Number of the process or session that gave it.
    pub(crate) peer: u64,
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

/// Most bytes of the URI of a resource.
const MAX_URI_BYTES: usize = 2_048;
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
            || (RESERVED_FOR_SERVERS.contains(&self.code) && self.code != RESOURCE_NOT_FOUND)
    }

    /// Returns true if servers say so to a client whose version they do not speak.
    pub(crate) const fn is_about_the_version(&self) -> bool {
        matches!(self.code, INVALID_PARAMS | UNSUPPORTED_VERSION)
    }

    /// Returns true if servers say so of a resource that they do not have, in either era.
    pub(crate) const fn is_about_a_resource(&self) -> bool {
        matches!(self.code, INVALID_PARAMS | RESOURCE_NOT_FOUND)
    }

    /// Maps the error to that of a call.
    pub(crate) fn to_call_error(&self) -> CallError {
        use UpstreamReason::{InteractionRequired, JsonrpcError};
        match self.code {
            METHOD_NOT_FOUND | INVALID_PARAMS => CallError::not_offered(),
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

/// The result of a server of this era. Only since 2026-07-28 a result can ask for input, or be a task: what an older
/// server means by it needs an open stream.
pub(crate) fn of_era(reply: Reply, era: Era) -> Result<Reply, CallError> {
    let kind = reply.result.root().get("resultType").and_then(Node::text);
    let asks = matches!(kind, Some(INPUT_REQUIRED | TASK));
    if asks && era != Era::Modern {
        return Err(CallError::upstream(UpstreamReason::InteractionRequired, Executed::Unknown));
    }
    Ok(reply)
}

/// `resultType` of a result that asks for input.
pub(crate) const INPUT_REQUIRED: &str = "input_required";
/// `resultType` of a task in place of a result.
pub(crate) const TASK: &str = "task";

/// Not a JSON-RPC message, or one that two readers could read differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Paths of the lists of definitions in a response. A definition that cannot be read is left out, so that it does
/// not hide the others.
const LISTS: [&[&str]; 5] = [
    &["result", "tools"],
    &["result", "prompts"],
    &["result", "resources"],
    &["result", "resourceTemplates"],
    &["result", "skills"],
];

/// The names of definitions that stand beside this result, by the member that names them in its list.
fn names_in(definitions: &[&[u8]], result: Node<'_>) -> Vec<String> {
    let has = |list| result.get(list).is_some();
    let member = match has("resourceTemplates") {
        _ if has("resources") || has("skills") => "uri",
        true => "uriTemplate",
        false => "name",
    };
    let name = |definition: &&[u8]| json::text_member(definition, member).unwrap_or_default();
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
    let whole = Document::parse(bytes, Bounds::UPSTREAM).map(|message| (message, Vec::new()));
    let mut around =
        LISTS.into_iter().map(|path| json::parse_around(bytes, Bounds::UPSTREAM, path));
    let parsed = whole.or_else(|_| around.find_map(Result::ok).ok_or(Malformed));
    let (message, unreadable) = parsed?;
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
            (
                None,
                "notifications/tools/list_changed"
                | "notifications/prompts/list_changed"
                | "notifications/resources/list_changed",
            ) => Incoming::ListChanged,
            (None, "notifications/resources/updated") => {
                let uri = root.get("params").and_then(|params| params.get("uri")?.text());
                let uri = uri.filter(|uri| uri.len() <= MAX_URI_BYTES);
                uri.map_or(Incoming::Notification, |uri| Incoming::ResourceChanged(uri.to_owned()))
            }
            (None, "notifications/subscriptions/acknowledged") => acknowledged(root),
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
            let unreadable = names_in(&unreadable, result.root());
            Ok(Reply { result, unreadable, is_mended: false, peer: 0 })
        }
        (None, Some(error)) => Err(rpc_error(&error.to_value())?),
        (Some(_) | None, _) => return Err(Malformed),
    };
    Ok(Incoming::Answer { id, outcome })
}

/// The acknowledgement of a stream.
fn acknowledged(message: Node<'_>) -> Incoming {
    let params = message.get("params");
    let stream = params.and_then(|params| params.get(meta::META)?.get(meta::SUBSCRIPTION_ID));
    let stream = stream.map(Node::to_value).as_ref().and_then(own_id);
    let told = params.and_then(|params| params.get("notifications")?.get("resourceSubscriptions"));
    let told = told.and_then(Node::items);
    let told = told.map(|all| all.filter_map(Node::text).map(str::to_owned).collect());
    Incoming::Acknowledged { stream, told }
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
            Ok(Incoming::ListChanged)
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
