//! A fast MCP server over streamable HTTP, in a process of its own.
//!
//! The upstream speaks both eras of MCP: `server/discover` with stateless requests (2026-07-28), and
//! `initialize` without a session (2025-11-25). Its tool `echo` gives back its arguments as structured
//! content without looking into them, but for a mark of the kill loop, which it counts; its tool `text` and the
//! resources [`TEXTS`] give a text of a size.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    net::{TcpListener, TcpSocket},
    process::{Child, Command},
};

use crate::{Failure, payload, say};

/// The path that answers MCP.
pub(crate) const PATH: &str = "/mcp";
/// The path that answers how often each mark was seen, where that is more than once.
pub(crate) const TWICE: &str = "/twice";
/// URI of a text without its number of bytes; those of powers of two are listed, the rest have a template.
pub(crate) const TEXTS: &str = "bench://text/";
/// Prefix of the mark of a call, which stands in the title of the first row.
pub(crate) const MARK: &str = "call:";
/// The stateless version of MCP that the server speaks.
pub(crate) const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
/// Connections that may wait to be accepted.
const CONNECTIONS: u32 = 4096;

/// A server of this program as a child process; it ends with this value.
#[derive(Debug)]
pub(crate) struct Upstream {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Upstream {
    /// Starts this program once more as the server and waits until it listens.
    pub(crate) async fn start() -> Result<Self, Failure> {
        Self::spawn(&["serve-upstream"]).await
    }

    /// One that hangs, drips and floods.
    pub(crate) async fn hostile() -> Result<Self, Failure> {
        Self::spawn(&["serve-hostile"]).await
    }

    /// One whose schemas are slow to check or large.
    pub(crate) async fn of_traps() -> Result<Self, Failure> {
        Self::spawn(&["serve-traps"]).await
    }

    /// The program once more under a hidden command that prints where it listens.
    pub(crate) async fn spawn(arguments: &[&str]) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the server has no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).await?;
        let address = line.trim().parse().map_err(|_| "the server did not start")?;
        Ok(Self { child, address })
    }

    /// The process id, while it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }
}

/// Serves on loopback, prints where, and returns when standard input ends.
pub(crate) async fn serve() -> Result<(), Failure> {
    let router = Router::new()
        .route(PATH, post(answer))
        .route(&format!("{PATH}/{{more}}"), post(answer_with_more))
        .route(TWICE, get(twice));
    serve_at(ANYWHERE, router.with_state(Arc::<Marks>::default())).await
}

/// Any free port on loopback.
pub(crate) const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Prints where it listens, and serves until standard input ends.
pub(crate) async fn serve_at(address: SocketAddr, router: Router) -> Result<(), Failure> {
    let listener = listen(address)?;
    tokio::select! {
        served = axum::serve(listener, router) => Ok(served?),
        () = parent_is_gone() => Ok(()),
    }
}

/// Listens, and prints where.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    // A gateway that opens many connections together waits for none of them.
    let listener = socket.listen(CONNECTIONS)?;
    say(&format!("{}\n", listener.local_addr()?));
    Ok(listener)
}

/// Waits until standard input ends.
pub(crate) async fn parent_is_gone() {
    let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SizedText {
    bytes: usize,
}

#[derive(Deserialize)]
struct ReadParams<'a> {
    uri: &'a str,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    name: &'a str,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Number of times that each mark was seen.
#[derive(Debug, Default)]
struct Marks(Mutex<HashMap<String, u64>>);

impl Marks {
    fn note(&self, arguments: &str) {
        let Some((_, rest)) = arguments.split_once(MARK) else { return };
        let mark = rest.split('"').next().unwrap_or_default();
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *seen.entry(mark.to_owned()).or_default() += 1;
    }
}

async fn twice(State(marks): State<Arc<Marks>>) -> Response {
    let seen = marks.0.lock().unwrap_or_else(PoisonError::into_inner);
    let twice: HashMap<&String, &u64> = seen.iter().filter(|(_, count)| **count > 1).collect();
    ([(CONTENT_TYPE, "application/json")], json!(twice).to_string()).into_response()
}

async fn answer(marks: State<Arc<Marks>>, body: Bytes) -> Response {
    answer_marked(&marks, &body, 0)
}

/// The same server with as many tools more as its path says.
async fn answer_with_more(
    marks: State<Arc<Marks>>,
    Path(more): Path<usize>,
    body: Bytes,
) -> Response {
    answer_marked(&marks, &body, more)
}

fn answer_marked(marks: &Marks, body: &[u8], more: usize) -> Response {
    let Ok(message) = serde_json::from_slice::<Message<'_>>(body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    match reply(marks, &message, more) {
        Some(body) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

/// Answer to a message; none to a notification.
fn reply(marks: &Marks, message: &Message<'_>, more: usize) -> Option<String> {
    let id = message.id?;
    let result = match message.method {
        "tools/call" => call(message.params, marks),
        "tools/list" => Some(tools(more)),
        "resources/list" => Some(texts()),
        "resources/templates/list" => Some(format!(
            r#"{{"resultType":"complete","resourceTemplates":[{{"uriTemplate":"{TEXTS}{{bytes}}","name":"text"}}],"ttlMs":3600000,"cacheScope":"public"}}"#
        )),
        "resources/read" => read(message.params),
        "server/discover" => Some(discovery()),
        "initialize" => Some(initialization()),
        "ping" => Some("{}".to_owned()),
        _ => None,
    };
    Some(match result {
        Some(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        None => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"Not here"}}}}"#
        ),
    })
}

fn call(params: Option<&RawValue>, marks: &Marks) -> Option<String> {
    let CallParams { name, arguments } = serde_json::from_str(params?.get()).ok()?;
    match name {
        "echo" => Some(echo(arguments?, marks)),
        "text" => {
            let SizedText { bytes } = serde_json::from_str(arguments?.get()).ok()?;
            let content = json!([{ "type": "text", "text": payload::of_size(bytes).to_string() }]);
            Some(format!(r#"{{"resultType":"complete","content":{content},"isError":false}}"#))
        }
        _ => None,
    }
}

fn read(params: Option<&RawValue>) -> Option<String> {
    let ReadParams { uri } = serde_json::from_str(params?.get()).ok()?;
    let text = payload::of_size(uri.strip_prefix(TEXTS)?.parse().ok()?).to_string();
    let contents = json!([{ "uri": uri, "mimeType": "application/json", "text": text }]);
    Some(format!(r#"{{"resultType":"complete","contents":{contents}}}"#))
}

fn echo(arguments: &RawValue, marks: &Marks) -> String {
    marks.note(arguments.get());
    format!(
        r#"{{"resultType":"complete","content":[],"structuredContent":{arguments},"isError":false}}"#
    )
}

fn tools(more: usize) -> String {
    let echo = json!({
        "name": "echo",
        "title": "Echo",
        "description": "Gives back its arguments.",
        "inputSchema": payload::schema(),
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    });
    let other = |number: usize| {
        json!({
            "name": format!("other-{number}"),
            "description": format!("Takes the number of a thing, as {number} others do."),
            "inputSchema": {
                "type": "object",
                "properties": { "number": { "type": "integer" }, "why": { "type": "string" } },
                "required": ["number"],
            },
            "annotations": { "readOnlyHint": number.is_multiple_of(2) },
        })
    };
    let text = json!({
        "name": "text",
        "description": "Gives a text of a size.",
        "inputSchema": { "type": "object", "properties": { "bytes": { "type": "integer" } }, "required": ["bytes"] },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    });
    let tools: Vec<_> = [echo, text].into_iter().chain((0..more).map(other)).collect();
    json!({
        "resultType": "complete",
        "tools": tools,
        "ttlMs": 3_600_000,
        "cacheScope": "public",
    })
    .to_string()
}

fn texts() -> String {
    let text = |power: u32| {
        let bytes = 1_u32 << power;
        json!({ "uri": format!("{TEXTS}{bytes}"), "name": format!("text-{bytes}"), "mimeType": "application/json" })
    };
    json!({
        "resultType": "complete",
        "resources": (0..=20).map(text).collect::<Vec<_>>(),
        "ttlMs": 3_600_000,
        "cacheScope": "public",
    })
    .to_string()
}

fn discovery() -> String {
    json!({
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": { "tools": {}, "resources": {} },
        "_meta": { "io.modelcontextprotocol/serverInfo": server_info() },
        "ttlMs": 3_600_000,
        "cacheScope": "public",
    })
    .to_string()
}

fn initialization() -> String {
    json!({
        "protocolVersion": LEGACY,
        "capabilities": { "tools": {}, "resources": {} },
        "serverInfo": server_info(),
    })
    .to_string()
}

fn server_info() -> serde_json::Value {
    json!({ "name": "portcullis-bench", "version": env!("CARGO_PKG_VERSION") })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    async fn answer_to(message: Value) -> Value {
        let response = answer(State(Arc::default()), Bytes::from(message.to_string())).await;
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    #[tokio::test]
    async fn echo_gives_back_its_arguments_unchanged() {
        let arguments = payload::of_size(1024);
        let params = json!({ "name": "echo", "arguments": arguments });

        let answer = answer_to(
            json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }),
        )
        .await;

        assert_eq!(answer["id"], 7);
        assert_eq!(answer["result"]["structuredContent"], arguments);
    }

    #[test]
    fn the_payload_is_as_long_as_asked_for_and_little_longer() {
        for bytes in [1, 256, 1024, 65_536] {
            let length = payload::of_size(bytes).to_string().len();

            assert!(length >= bytes && length < bytes + 300, "{length} for {bytes}");
        }
    }

    #[test]
    fn a_mark_that_was_seen_twice_is_counted() {
        let marks = Marks::default();

        for arguments in [r#"{"title":"call:a"}"#, r#"{"title":"call:b"}"#, r#"{"t":"call:a"}"#] {
            marks.note(arguments);
        }

        let seen = marks.0.into_inner().unwrap();
        assert_eq!(seen, HashMap::from([("a".to_owned(), 2), ("b".to_owned(), 1)]));
    }

    #[tokio::test]
    async fn both_eras_are_greeted_and_other_methods_refused() {
        let ask = |method: &str| json!({ "jsonrpc": "2.0", "id": "a", "method": method });

        let modern = answer_to(ask("server/discover")).await;
        let legacy = answer_to(ask("initialize")).await;
        let unknown = answer_to(ask("prompts/list")).await;

        assert_eq!(modern["result"]["supportedVersions"][0], MODERN);
        assert_eq!(legacy["result"]["protocolVersion"], LEGACY);
        assert_eq!(unknown["error"]["code"], -32601);
    }
}
