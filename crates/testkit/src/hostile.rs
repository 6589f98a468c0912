//! An MCP server over streamable HTTP that meets each of its tools' calls as a script says:
//! answers, fails, floods, hangs or hangs up. It speaks the present era of MCP and closes every
//! connection after one answer.

mod echo;
mod listed;
mod tool;

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tokio_util::sync::DropGuard;

use self::{
    echo::{ask_questions, echo},
    listed::listed,
};
use crate::serving::{listen, until_dropped};

/// The longest a test waits for a call to arrive.
const PATIENCE: Duration = Duration::from_secs(20);

/// Behaviour of a tool when called.
#[derive(Debug, Clone)]
pub enum Script {
    /// The arguments come back as structured content and as the text of a block.
    Echo,
    /// As [`Script::Echo`], but 500 where the arguments hold this text.
    EchoUnless(&'static str),
    /// A result, as JSON text.
    Result(String),
    /// A result until the call brings answers or a state; then these and the arguments come back.
    Asks(String),
    /// One result after another, and the last again and again.
    Steps(Vec<String>),
    /// A result, but only after [`Hostile::release`].
    Held(String),
    /// A JSON-RPC error with this code and a message that must not be passed on.
    Rpc(i64),
    /// An HTTP status with a body that must not be passed on.
    Status(u16),
    /// A body that is declared as JSON, whatever it is.
    Body(String),
    /// The connection is closed before any byte of an answer.
    CloseAtOnce,
    /// The connection is closed within the body.
    CloseInBody,
    /// No answer, ever.
    Silence,
    /// A result of at least so many bytes.
    Large(usize),
    /// A body that goes on for ever.
    Endless,
    /// A body of this media type; `{id}` in it is the id of the call.
    Typed(&'static str, String),
    /// A body that is declared as JSON of so many bytes, of which some are sent.
    Declared(usize),
    /// A result that comes a byte every 50 ms.
    Drip,
    /// Progress with these parameters, where `{token}` is that of the call; then, after
    /// [`Hostile::release`], this result. Notes when the client closes before that.
    Telling(Vec<String>, String),
    /// Events without end, none of which is the answer.
    EndlessEvents,
    /// One event without end.
    EndlessEvent,
}

/// A tool of the server.
#[derive(Debug, Clone)]
pub struct HostileTool {
    name: String,
    description: Option<String>,
    schema: Value,
    output: Option<Value>,
    script: Script,
    /// Arguments of what is a prompt.
    prompt: Option<Value>,
    /// More members of what is a resource, or a template of resources.
    resource: Option<Value>,
    /// More members of the entry of what is a skill.
    skill: Option<Value>,
    /// `_meta` of a tool.
    meta: Option<Value>,
}

/// A `tools/call`, `prompts/get`, `resources/read`, `completion/complete` or request about a task as the server saw it.
/// The last two are those of tools that are not listed: by the argument's name behind `?`, and by the id of the task behind
/// `#`, `update#` or `cancel#`.
#[derive(Debug, Clone)]
pub struct HostileCall {
    pub tool: String,
    /// The headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The message as it came.
    pub body: String,
    pub message: Value,
}

impl HostileCall {
    /// The arguments as JSON text.
    pub fn arguments(&self) -> String {
        at(&self.message, "/params/arguments").to_string()
    }
}

/// The server; it ends when it is dropped.
#[derive(Debug)]
pub struct Hostile {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: Option<DropGuard>,
}

#[derive(Debug)]
struct Shared {
    tools: Mutex<Arc<Vec<HostileTool>>>,
    calls: Mutex<Vec<HostileCall>>,
    count: watch::Sender<usize>,
    released: watch::Sender<bool>,
    closed: watch::Sender<usize>,
    /// Method that is answered with an error of this code.
    broken: Mutex<(&'static str, i64)>,
}

impl Hostile {
    /// A server with these tools on a free port.
    pub async fn start(tools: Vec<HostileTool>) -> Self {
        let (listener, address) = listen().await;
        let shared = Arc::new(Shared {
            tools: Mutex::new(Arc::new(tools)),
            calls: Mutex::default(),
            count: watch::Sender::new(0),
            released: watch::Sender::new(false),
            closed: watch::Sender::new(0),
            broken: Mutex::default(),
        });
        let serving = until_dropped(serve(listener, Arc::clone(&shared)));
        Self { address, shared, serving: Some(serving) }
    }

    /// URL of its endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Forgets the calls so far.
    pub fn forget(&self) {
        self.shared.calls.lock().expect("the calls").clear();
        self.shared.count.send_replace(0);
    }

    /// The calls it has seen so far.
    pub fn calls(&self) -> Vec<HostileCall> {
        self.shared.calls.lock().expect("the calls").clone()
    }

    /// Number of calls of this tool so far.
    pub fn count(&self, tool: &str) -> usize {
        self.calls().iter().filter(|call| call.tool == tool).count()
    }

    /// Waits until it has seen so many calls in all.
    pub async fn wait_for(&self, calls: usize) {
        let mut count = self.shared.count.subscribe();
        let seen = count.wait_for(|seen| *seen >= calls);
        tokio::time::timeout(PATIENCE, seen).await.expect("a call in time").expect("a server");
    }

    /// Waits until clients have closed so many calls of [`Script::Telling`].
    pub async fn wait_for_closed(&self, calls: usize) {
        let mut closed = self.shared.closed.subscribe();
        let seen = closed.wait_for(|seen| *seen >= calls);
        tokio::time::timeout(PATIENCE, seen).await.expect("closed in time").expect("a server");
    }

    /// Lets the calls of [`Script::Held`] and [`Script::Telling`] end, those to come as well.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }

    /// Answers this method with an error of this code from now on.
    pub fn break_method(&self, method: &'static str, code: i64) {
        *self.shared.broken.lock().expect("a method") = (method, code);
    }

    /// Closes its port.
    pub fn stop(&mut self) {
        self.serving = None;
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    // Connections end with the server.
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let shared = Arc::clone(&shared);
        // A client that goes away is none of the server's worries.
        connections.spawn(async move { drop(answer(stream, &shared).await) });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (headers, body) = read(&mut stream).await?;
    let message: Value = serde_json::from_str(&body).unwrap_or_default();
    let id = at(&message, "/id").clone();
    let method = at(&message, "/method").as_str().unwrap_or_default();
    let tools = shared.tools();
    if let Some(list) = tools.iter().find(|it| it.is_list() && it.name == method) {
        let script = list.script.clone();
        let call = HostileCall { tool: method.to_owned(), headers, body, message };
        return play(&mut stream, &script, &call, shared).await;
    }
    let (broken, code) = *shared.broken.lock().expect("a method");
    match method {
        _ if broken == method => send(&mut stream, 200, &failure(&id, code)).await,
        "server/discover" => {
            let result = json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {
                    "prompts": {}, "resources": {}, "tools": {}, "extensions": {"com.example/files": {}},
                },
            });
            send(&mut stream, 200, &success(&id, &result.to_string())).await
        }
        list if list.ends_with("/list") => {
            let (member, listed) = listed(&tools, method);
            let all = json!({"resultType": "complete", (member): listed}).to_string();
            send(&mut stream, 200, &success(&id, &all)).await
        }
        "resources/read" => {
            let tool = param(&message, "uri");
            let exact = tools.iter().find(|it| it.name == tool && it.reads(&tool));
            let script = exact.map(|known| known.script.clone());
            let script = script.unwrap_or_else(|| shared.scripted(-32602, |it| it.reads(&tool)));
            meet(&mut stream, &script, HostileCall { tool, headers, body, message }, shared).await
        }
        "skills/get" => {
            let tool = param(&message, "uri");
            let script = shared.entry_script(&tool);
            meet(&mut stream, &script, HostileCall { tool, headers, body, message }, shared).await
        }
        "completion/complete" | "tasks/get" | "tasks/update" | "tasks/cancel" => {
            let (tool, code) = unlisted(method, &message);
            let script = shared.scripted(code, |it| it.name == tool);
            meet(&mut stream, &script, HostileCall { tool, headers, body, message }, shared).await
        }
        "tools/call" | "prompts/get" => {
            let is_prompt = method == "prompts/get";
            let tool = param(&message, "name");
            let script = shared.scripted(-32602, |known| {
                known.name == tool
                    && known.prompt.is_some() == is_prompt
                    && known.resource.is_none()
            });
            meet(&mut stream, &script, HostileCall { tool, headers, body, message }, shared).await
        }
        _ => send(&mut stream, 404, &failure(&id, -32601)).await,
    }
}

fn at<'a>(message: &'a Value, pointer: &str) -> &'a Value {
    message.pointer(pointer).unwrap_or(&Value::Null)
}

/// A parameter of a request that is a text.
fn param(message: &Value, name: &str) -> String {
    at(message, &format!("/params/{name}")).as_str().unwrap_or_default().to_owned()
}

/// The name of what is asked about and stands in no list, and the code of the error where there is none.
fn unlisted(method: &str, message: &Value) -> (String, i64) {
    match method.strip_prefix("tasks/") {
        Some("get") => (format!("#{}", param(message, "taskId")), -32602),
        Some(asked) => (format!("{asked}#{}", param(message, "taskId")), -32602),
        None => (format!("?{}", param(message, "argument/name")), -32601),
    }
}

/// Notes a call and plays its script.
async fn meet(
    stream: &mut BufReader<TcpStream>,
    script: &Script,
    call: HostileCall,
    shared: &Shared,
) -> io::Result<()> {
    shared.saw(call.clone());
    play(stream, script, &call, shared).await
}

impl Shared {
    /// The script of the first tool that is meant, or an error of this code.
    fn scripted(&self, code: i64, is_meant: impl Fn(&HostileTool) -> bool) -> Script {
        let tools = self.tools();
        let known = tools.iter().find(|it| is_meant(it));
        known.map_or(Script::Rpc(code), |known| known.script.clone())
    }

    /// The script of the answer to a request for a skill.
    fn entry_script(&self, uri: &str) -> Script {
        let tools = self.tools();
        let known = tools.iter().find(|it| it.name == uri && it.is_skill());
        known.map_or(Script::Rpc(-32602), HostileTool::entry_script)
    }

    fn seen(&self, tool: &str) -> usize {
        self.calls.lock().expect("the calls").iter().filter(|it| it.tool == tool).count()
    }

    fn saw(&self, call: HostileCall) {
        self.calls.lock().expect("the calls").push(call);
        self.count.send_modify(|count| *count += 1);
    }
}

async fn play(
    stream: &mut BufReader<TcpStream>,
    script: &Script,
    call: &HostileCall,
    shared: &Shared,
) -> io::Result<()> {
    let id = at(&call.message, "/id");
    match script {
        Script::EchoUnless(text) if call.body.contains(text) => {
            send(stream, 500, "the password is hunter2").await
        }
        Script::Echo | Script::EchoUnless(_) => send(stream, 200, &success(id, &echo(call))).await,
        Script::Result(result) => send(stream, 200, &success(id, result)).await,
        Script::Steps(results) => {
            let seen = shared.seen(&call.tool);
            let result = results.get(seen - 1).or(results.last()).expect("a result");
            send(stream, 200, &success(id, result)).await
        }
        Script::Asks(result) => send(stream, 200, &success(id, &ask_questions(call, result))).await,
        Script::Held(result) => {
            let mut released = shared.released.subscribe();
            let _ = released.wait_for(|released| *released).await;
            send(stream, 200, &success(id, result)).await
        }
        Script::Rpc(code) => send(stream, 200, &failure(id, *code)).await,
        Script::Status(status) => send(stream, *status, "the password is hunter2").await,
        Script::Body(body) => send(stream, 200, body).await,
        Script::CloseAtOnce => Ok(()),
        Script::CloseInBody => {
            stream.write_all(head(200, 1000).as_bytes()).await?;
            stream.write_all(b"{\"jsonrpc\"").await
        }
        Script::Silence => std::future::pending().await,
        Script::Large(bytes) => {
            let block = json!({"type": "text", "text": "x".repeat(*bytes)});
            send(stream, 200, &success(id, &json!({"content": [block]}).to_string())).await
        }
        Script::Endless => endless(stream, "application/json", "", &" ".repeat(65_536)).await,
        Script::Typed(kind, body) => {
            send_as(stream, 200, kind, &body.replace("{id}", &id.to_string())).await
        }
        Script::Declared(bytes) => {
            stream.write_all(head(200, *bytes).as_bytes()).await?;
            stream.write_all(" ".repeat(65_536).as_bytes()).await?;
            std::future::pending().await
        }
        Script::Drip => {
            let body = success(id, r#"{"content":[]}"#);
            stream.write_all(head(200, body.len()).as_bytes()).await?;
            for byte in body.bytes() {
                stream.write_all(&[byte]).await?;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            stream.shutdown().await
        }
        Script::Telling(notes, result) => telling(stream, notes, result, call, shared).await,
        Script::EndlessEvents => {
            let news = r#"data: {"jsonrpc":"2.0","method":"notifications/message"}"#;
            endless(stream, "text/event-stream", "", &format!("{news}\n\n").repeat(64)).await
        }
        Script::EndlessEvent => {
            endless(stream, "text/event-stream", "data: ", &"x".repeat(65_536)).await
        }
    }
}

async fn telling(
    stream: &mut BufReader<TcpStream>,
    notes: &[String],
    result: &str,
    call: &HostileCall,
    shared: &Shared,
) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let token = at(&call.message, "/params/_meta/progressToken").to_string();
    for note in notes {
        let params = note.replace("{token}", &token);
        let method = "notifications/progress";
        let event = format!(r#"data: {{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        stream.write_all(format!("{event}\n\n").as_bytes()).await?;
    }
    let mut released = shared.released.subscribe();
    let mut byte = [0];
    tokio::select! {
        _ = released.wait_for(|released| *released) => {}
        _ = stream.read(&mut byte) => {
            shared.closed.send_modify(|closed| *closed += 1);
            return Ok(());
        }
    }
    let answer = success(at(&call.message, "/id"), result);
    stream.write_all(format!("data: {answer}\n\n").as_bytes()).await?;
    stream.shutdown().await
}

/// A body that begins somehow and then repeats a piece for ever.
async fn endless(
    stream: &mut BufReader<TcpStream>,
    kind: &str,
    first: &str,
    piece: &str,
) -> io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(first.as_bytes()).await?;
    loop {
        stream.write_all(piece.as_bytes()).await?;
    }
}

fn success(id: &Value, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn failure(id: &Value, code: i64) -> String {
    let error = json!({"code": code, "message": "the disk is full"});
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()
}

fn head(status: u16, length: usize) -> String {
    head_of(status, "application/json", length)
}

fn head_of(status: u16, kind: &str, length: usize) -> String {
    format!(
        "HTTP/1.1 {status} As scripted\r\ncontent-type: {kind}\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n"
    )
}

async fn send(stream: &mut BufReader<TcpStream>, status: u16, body: &str) -> io::Result<()> {
    send_as(stream, status, "application/json", body).await
}

async fn send_as(
    stream: &mut BufReader<TcpStream>,
    status: u16,
    kind: &str,
    body: &str,
) -> io::Result<()> {
    stream.write_all(head_of(status, kind, body.len()).as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// Headers and body of one request.
async fn read(stream: &mut BufReader<TcpStream>) -> io::Result<(BTreeMap<String, String>, String)> {
    let mut headers = BTreeMap::new();
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    loop {
        line.clear();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await?;
    Ok((headers, String::from_utf8_lossy(&body).into_owned()))
}
