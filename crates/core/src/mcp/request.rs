//! A client's message: one JSON-RPC request or notification, held against the headers that mirror it.

use serde_json::{Value, json};

use super::{
    Era, MODERN, Method, OFFERED, code,
    header::{self, decode},
    meta,
};
use crate::json::{Document, JsonValue as _, Kind, Node};

/// The members of a message.
const MEMBERS: [&str; 4] = ["jsonrpc", "id", "method", "params"];
/// The parameter that holds a call's arguments.
const ARGUMENTS: &str = "arguments";
/// Longest id of a request in bytes: it is echoed.
const LONGEST_ID: usize = 256;
/// Longest excerpt of what a client wrote that is repeated to it.
const LONGEST_ECHO: usize = 64;

/// A header that may mirror a member of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mirror<'a> {
    #[default]
    Absent,
    /// Sent once, as text.
    Once(&'a str),
    /// Sent several times, or as no text: it says nothing that could be compared.
    Unclear,
}

/// The headers that mirror every request.
#[derive(Debug, Clone, Copy, Default)]
pub struct MirroredHeaders<'a> {
    /// `MCP-Protocol-Version`.
    pub version: Mirror<'a>,
    /// `Mcp-Method`.
    pub method: Mirror<'a>,
    /// `Mcp-Name`.
    pub name: Mirror<'a>,
}

/// The id of a request: a text or an integer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct RequestId(Value);

/// Message of a client.
#[derive(Debug)]
pub enum Message {
    /// A request, which is answered.
    Request(Box<Request>),
    /// A notification, which is not.
    Notification,
}

/// A request whose headers, if they say anything, say the same.
#[derive(Debug, Clone)]
pub struct Request {
    /// Given back with the answer.
    pub id: RequestId,
    /// The method, if it is one of ours.
    pub method: Option<Method>,
    /// The parameters; `null` if there are none.
    pub params: Document,
    pub arguments: Option<Document>,
    /// `_meta` of the parameters; `null` if there is none.
    pub meta: Document,
    /// The era of the version that the request names.
    pub era: Era,
}

/// An error in the words of JSON-RPC, with the HTTP status that belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProtocolError {
    /// The id of the request, as far as it could be read.
    pub id: Option<RequestId>,
    pub code: i64,
    pub http_status: u16,
    /// One sentence.
    pub message: String,
    /// Further members, if there are any.
    pub data: Option<Value>,
}

impl ProtocolError {
    /// An error that is answered with 400.
    #[must_use]
    pub fn bad(code: i64, message: impl Into<String>) -> Self {
        Self { id: None, code, http_status: 400, message: message.into(), data: None }
    }

    /// Not a message of JSON-RPC at all.
    #[must_use]
    pub fn unreadable(problem: &impl ToString) -> Self {
        Self::bad(code::PARSE_ERROR, format!("The body is refused: {}.", problem.to_string()))
    }

    /// A method that is not offered. Only since 2026-07-28 the HTTP status says so, too.
    #[must_use]
    pub fn method_not_found(era: Era) -> Self {
        let http_status = if era == Era::Modern { 404 } else { 200 };
        let message =
            "The method is not offered here; `server/discover` and `initialize` tell what is."
                .to_owned();
        Self { id: None, code: code::METHOD_NOT_FOUND, http_status, message, data: None }
    }

    /// Parameters that do not fit their method.
    #[must_use]
    pub fn bad_params(message: impl Into<String>) -> Self {
        Self::bad(code::INVALID_PARAMS, message)
    }

    /// The same error about the request of this id.
    #[must_use]
    pub fn about(self, id: &RequestId) -> Self {
        Self { id: Some(id.clone()), ..self }
    }
}

/// Rejects a header that differs from the body.
pub fn compare(
    name: &str,
    told: Mirror<'_>,
    expected: Option<&str>,
    required: bool,
) -> Result<(), ProtocolError> {
    let problem = match (told, expected) {
        (Mirror::Absent, Some(_)) if required => "is missing",
        (Mirror::Absent, _) => return Ok(()),
        (Mirror::Unclear, _) => "is not one plain text",
        (Mirror::Once(told), Some(expected)) if told == expected => return Ok(()),
        (Mirror::Once(_), _) => "differs from the body",
    };
    Err(mismatch(name, problem))
}

/// A header that is wrong, and how.
#[must_use]
pub fn mismatch(name: &str, problem: &str) -> ProtocolError {
    ProtocolError::bad(
        code::HEADER_MISMATCH,
        format!("Header mismatch: `{name}` {problem}. Send the value that stands in the body."),
    )
}

impl Message {
    /// Reads a message. Nothing of it is copied: what a client adds costs no more than its parsing.
    /// Rejects what is no single request or notification, a version that is not spoken, and headers
    /// that differ from the body.
    pub fn read(body: &Document, headers: &MirroredHeaders<'_>) -> Result<Self, ProtocolError> {
        let root = body.root();
        if !root.is_object() {
            let message = "Send one JSON-RPC message per request; batches are not taken.";
            return Err(ProtocolError::bad(code::INVALID_REQUEST, message));
        }
        let Some(id) = root.get("id").map(request_id).transpose()? else {
            let (method, params) = method_and_params(root)?;
            if era(meta_of(params)?, headers)? == Era::Modern {
                compare(header::METHOD, headers.method, Some(method), false)?;
            }
            return Ok(Self::Notification);
        };
        let read = request(body, headers, &id);
        read.map(|read| Self::Request(Box::new(read))).map_err(|error| error.about(&id))
    }
}

fn request(
    body: &Document,
    headers: &MirroredHeaders<'_>,
    id: &RequestId,
) -> Result<Request, ProtocolError> {
    let (method, params) = method_and_params(body.root())?;
    let meta = meta_of(params)?;
    let era = era(meta, headers)?;
    let modern = era == Era::Modern;
    let declared = meta.and_then(|meta| meta.get(meta::CLIENT_CAPABILITIES));
    if modern && !declared.is_some_and(Node::is_object) {
        return Err(required(meta::CLIENT_CAPABILITIES));
    }
    let found = Method::from_word(method);
    // One that is left over from another request of a client that speaks an older version means nothing.
    if modern {
        compare(header::METHOD, headers.method, Some(method), true)?;
    }
    compare_name(found, params, headers.name, modern)?;
    let part = |node: Option<Node<'_>>| node.map(|node| body.part(node));
    Ok(Request {
        id: id.clone(),
        method: found,
        arguments: part(params.and_then(|params| member_of(params, ARGUMENTS))),
        params: part(params).unwrap_or_default(),
        meta: part(meta).unwrap_or_default(),
        era,
    })
}

/// Rejects a header that does not name what the body names: a proxy on the way may go by it.
fn compare_name(
    method: Option<Method>,
    params: Option<Node<'_>>,
    told: Mirror<'_>,
    required: bool,
) -> Result<(), ProtocolError> {
    let named_by = method.and_then(Method::named_by);
    let required = required && method.is_none_or(Method::needs_name);
    let named = params.zip(named_by).and_then(|(params, name)| params.get(name)?.text());
    match (told, named) {
        // Other methods have names of their own, which are not read here.
        (_, None) => Ok(()),
        (Mirror::Once(told), Some(_)) => {
            let told = decode(told).ok_or_else(|| mismatch(header::NAME, "is not readable"))?;
            compare(header::NAME, Mirror::Once(&told), named, required)
        }
        (told, Some(_)) => compare(header::NAME, told, named, required),
    }
}

/// A member; some clients write `null` where they mean none.
fn member_of<'a>(object: Node<'a>, name: &str) -> Option<Node<'a>> {
    object.get(name).filter(|value| !matches!(value.kind(), Kind::Null))
}

fn request_id(id: Node<'_>) -> Result<RequestId, ProtocolError> {
    let value = match id.kind() {
        Kind::Text(text) if text.len() <= LONGEST_ID => Some(Value::from(text)),
        Kind::Number(_) => Some(id.to_value()).filter(|number| number.is_i64() || number.is_u64()),
        Kind::Text(_) | Kind::Null | Kind::Bool(_) | Kind::Array(_) | Kind::Object(_) => None,
    };
    let message = "`id` has to be an integer or a text of at most 256 bytes.";
    value.map(RequestId).ok_or_else(|| invalid(message))
}

fn invalid(message: &str) -> ProtocolError {
    ProtocolError::bad(code::INVALID_REQUEST, message)
}

fn method_and_params(root: Node<'_>) -> Result<(&str, Option<Node<'_>>), ProtocolError> {
    if root.get("jsonrpc").and_then(Node::text) != Some("2.0") {
        return Err(invalid("`jsonrpc` has to be \"2.0\"."));
    }
    let Some(method) = root.get("method").and_then(Node::text) else {
        return Err(invalid("`method` has to be a text; answers are not expected here."));
    };
    let params = member_of(root, "params");
    if params.is_some_and(|params| !params.is_object()) {
        return Err(ProtocolError::bad_params("`params` has to be an object."));
    }
    let known = |(name, _): (&str, _)| MEMBERS.contains(&name);
    if !root.members().into_iter().flatten().all(known) {
        return Err(invalid("A message holds `jsonrpc`, `id`, `method` and `params` only."));
    }
    Ok((method, params))
}

fn meta_of(params: Option<Node<'_>>) -> Result<Option<Node<'_>>, ProtocolError> {
    let meta = params.and_then(|params| member_of(params, meta::META));
    if meta.is_some_and(|meta| !meta.is_object()) {
        return Err(ProtocolError::bad_params("`_meta` has to be an object."));
    }
    Ok(meta)
}

/// The era of the version that is named, in the body or in the header. A request that names none is
/// of the older era, in whose handshake a version is agreed on that its clients need not repeat.
fn era(meta: Option<Node<'_>>, headers: &MirroredHeaders<'_>) -> Result<Era, ProtocolError> {
    let version = meta.and_then(|meta| meta.get(meta::PROTOCOL_VERSION));
    let in_body = version.map(|version| version.text().ok_or(version)).transpose();
    let in_body = in_body.map_err(|_| required(meta::PROTOCOL_VERSION))?;
    let in_header = match headers.version {
        Mirror::Absent => None,
        Mirror::Once(version) => Some(version),
        Mirror::Unclear => return Err(mismatch(header::PROTOCOL_VERSION, "is not one plain text")),
    };
    let named = match (in_body, in_header) {
        (None, None) => return Ok(Era::Legacy(Era::agreed(""))),
        (Some(one), Some(other)) if one != other => {
            return Err(mismatch(header::PROTOCOL_VERSION, "differs from the body"));
        }
        (Some(version), _) | (None, Some(version)) => version,
    };
    let era = Era::offered(named).ok_or_else(|| unsupported(named))?;
    match (era, in_body, in_header) {
        (Era::Modern, None, _) => Err(required(meta::PROTOCOL_VERSION)),
        (Era::Modern, _, None) => Err(mismatch(header::PROTOCOL_VERSION, "is missing")),
        (Era::Modern | Era::Legacy(_), _, _) => Ok(era),
    }
}

fn required(name: &str) -> ProtocolError {
    ProtocolError::bad_params(format!("Requests of {MODERN} need `_meta[\"{name}\"]`."))
}

fn unsupported(version: &str) -> ProtocolError {
    let requested: String = version.chars().take(LONGEST_ECHO).collect();
    let message = "Unsupported protocol version".to_owned();
    let data = Some(json!({"supported": OFFERED, "requested": requested}));
    ProtocolError { id: None, code: code::UNSUPPORTED_VERSION, http_status: 400, message, data }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modern(method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    }

    fn headers<'a>(version: &'a str, method: &'a str, name: &'a str) -> MirroredHeaders<'a> {
        let once =
            |text: &'a str| if text.is_empty() { Mirror::Absent } else { Mirror::Once(text) };
        MirroredHeaders { version: once(version), method: once(method), name: once(name) }
    }

    #[expect(clippy::needless_pass_by_value, reason = "messages are written in place")]
    fn refused(value: Value, headers: &MirroredHeaders<'_>) -> (i64, u16) {
        let error = Message::read(&Document::of(&value), headers).unwrap_err();
        (error.code, error.http_status)
    }

    #[expect(clippy::needless_pass_by_value, reason = "messages are written in place")]
    fn read(value: Value, headers: &MirroredHeaders<'_>) -> Request {
        match Message::read(&Document::of(&value), headers).unwrap() {
            Message::Request(request) => *request,
            Message::Notification => panic!("it is a request"),
        }
    }

    #[test]
    fn a_modern_request_says_all_that_is_needed() {
        let call = modern("tools/call", json!({"name": "add", "arguments": {}}));

        let request = read(call, &headers("2026-07-28", "tools/call", "add"));

        assert_eq!((request.method, request.era), (Some(Method::CallTool), Era::Modern));
        assert_eq!(request.params.root().get("name").and_then(Node::text), Some("add"));
        assert!(request.meta.root().get(meta::CLIENT_CAPABILITIES).is_some());
        assert_eq!(request.arguments, Some(Document::of(&json!({}))));
        assert_eq!(serde_json::to_string(&request.id).unwrap(), "1");
    }

    #[test]
    fn headers_that_differ_from_the_body_or_are_missing_are_refused() {
        let call = || modern("tools/call", json!({"name": "add"}));

        for headers in [
            headers("", "tools/call", "add"),
            headers("2025-11-25", "tools/call", "add"),
            headers("2026-07-28", "", "add"),
            headers("2026-07-28", "tools/list", "add"),
            headers("2026-07-28", "Tools/Call", "add"),
            headers("2026-07-28", "tools/call", ""),
            headers("2026-07-28", "tools/call", "Add"),
            headers("2026-07-28", "tools/call", "=?base64?!?="),
            MirroredHeaders { method: Mirror::Unclear, ..headers("2026-07-28", "", "add") },
            MirroredHeaders { version: Mirror::Unclear, ..headers("", "tools/call", "add") },
        ] {
            assert_eq!(refused(call(), &headers), (code::HEADER_MISMATCH, 400), "{headers:?}");
        }
        let get = || modern("tasks/get", json!({"taskId": "tsk_1"}));
        for name in ["", "tsk_2"] {
            let headers = headers("2026-07-28", "tasks/get", name);
            assert_eq!(refused(get(), &headers), (code::HEADER_MISMATCH, 400), "{name}");
        }
        assert!(
            Message::read(&Document::of(&get()), &headers("2026-07-28", "tasks/get", "tsk_1"))
                .is_ok()
        );
        let encoded = headers("2026-07-28", "tools/call", "=?base64?YWRk?=");
        assert!(Message::read(&Document::of(&call()), &encoded).is_ok());
        // An older request need not have them, but no proxy on the way may be told another thing.
        let legacy = || json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "add"}});
        assert_eq!(refused(legacy(), &headers("2025-11-25", "", "other")).0, code::HEADER_MISMATCH);
        let legacy = Document::of(&legacy());
        assert!(Message::read(&legacy, &headers("2025-11-25", "", "")).is_ok());
        assert!(Message::read(&legacy, &headers("2025-11-25", "tools/list", "add")).is_ok());
    }

    #[test]
    fn the_era_is_that_of_the_version_which_is_named() {
        let bare = |method: &str| json!({"jsonrpc": "2.0", "id": 1, "method": method});

        assert_eq!(read(bare("ping"), &headers("", "", "")).era, Era::Legacy("2025-11-25"));
        assert_eq!(
            read(bare("ping"), &headers("2025-06-18", "", "")).era,
            Era::Legacy("2025-06-18")
        );
        for method in ["ping", "tools/list", "initialize", "no/such"] {
            let headers = headers("2026-07-28", method, "");
            assert_eq!(refused(bare(method), &headers), (code::INVALID_PARAMS, 400), "{method}");
        }
        let mut without = modern("tools/list", json!({}));
        without["params"]["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": MODERN});
        let headers = headers(MODERN, "tools/list", "");
        assert_eq!(refused(without, &headers), (code::INVALID_PARAMS, 400));
    }

    #[test]
    fn a_version_that_is_not_spoken_is_answered_with_those_that_are() {
        let mut list = modern("tools/list", json!({}));
        list["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("1900-01-01");

        let list = Document::of(&list);
        let error = Message::read(&list, &headers("1900-01-01", "tools/list", "")).unwrap_err();

        assert_eq!((error.code, error.http_status), (code::UNSUPPORTED_VERSION, 400));
        assert_eq!(error.data.unwrap(), json!({"supported": OFFERED, "requested": "1900-01-01"}));
    }

    #[test]
    fn what_is_no_single_message_is_refused() {
        let none = headers("", "", "");
        for (value, code) in [
            (json!([]), code::INVALID_REQUEST),
            (json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]), code::INVALID_REQUEST),
            (json!("ping"), code::INVALID_REQUEST),
            (json!({"id": 1, "method": "ping"}), code::INVALID_REQUEST),
            (json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}), code::INVALID_REQUEST),
            (json!({"jsonrpc": "2.0", "id": null, "method": "ping"}), code::INVALID_REQUEST),
            (json!({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}), code::INVALID_REQUEST),
            (json!({"jsonrpc": "2.0", "id": {}, "method": "ping"}), code::INVALID_REQUEST),
            (
                json!({"jsonrpc": "2.0", "id": "x".repeat(257), "method": "ping"}),
                code::INVALID_REQUEST,
            ),
            (json!({"jsonrpc": "2.0", "id": 1, "result": {}}), code::INVALID_REQUEST),
            (json!({"jsonrpc": "2.0", "id": 1, "method": 7}), code::INVALID_REQUEST),
            (json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "x": 1}), code::INVALID_REQUEST),
            (
                json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}),
                code::INVALID_PARAMS,
            ),
            (
                json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": 1}}),
                code::INVALID_PARAMS,
            ),
        ] {
            assert_eq!(refused(value.clone(), &none), (code, 400), "{value}");
        }
    }

    #[test]
    fn what_a_client_adds_is_not_copied() {
        let mut list = modern("tools/call", json!({"name": "add", "arguments": {"a": 1}}));
        let many = (0..10_000).map(|n| (format!("example/{n}"), json!({"n": n})));
        list["params"]["_meta"].as_object_mut().unwrap().extend(many);
        let body = Document::of(&list);

        let read = Message::read(&body, &headers("2026-07-28", "tools/call", "add")).unwrap();

        let Message::Request(request) = read else { panic!("it is a request") };
        let text = body.root().raw().as_bytes().as_ptr_range();
        for part in [Some(&request.params), Some(&request.meta), request.arguments.as_ref()] {
            assert!(text.contains(&part.unwrap().root().raw().as_ptr()), "it is a copy");
        }
        let added = request.meta.root().get("example/9999").unwrap();
        assert_eq!(added.get("n").and_then(Node::number), Some("9999"));
    }

    #[test]
    fn a_notification_has_no_id() {
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});

        assert!(matches!(
            Message::read(&Document::of(&note), &headers("2025-11-25", "", "")),
            Ok(Message::Notification)
        ));
    }
}
