//! A small MCP server of our own, for a first look at Portcullis without any other server.
//!
//! The server speaks both eras over standard input and output, answers many requests at once and
//! stops what is cancelled. Its data is invented.

mod prompts;
mod resources;
mod skills;
mod tasks;
mod tools;

use std::{
    collections::HashMap,
    io,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use self::tasks::Tasks;
use futures_util::StreamExt;
use portcullis_core::{
    clock::Clock,
    json::{self, Bounds},
    mcp::{
        LEGACY, MODERN,
        code::{
            INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, RESOURCE_NOT_FOUND,
            UNSUPPORTED_VERSION,
        },
        meta,
        skills::EXTENSION,
        tasks::EXTENSION as TASKS,
    },
};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    task::JoinSet,
};
use tokio_util::{
    codec::{FramedRead, LinesCodec, LinesCodecError},
    sync::CancellationToken,
};

const MAX_LINE_BYTES: usize = 4 << 20;
const MAX_RUNNING: usize = 256;
/// The time for answers that are under way when the input ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves the sample tools, prompts, resources, skills and tasks until `input` ends. Fails only when `output` cannot be
/// written.
pub async fn serve_stdio<R, W>(input: R, output: W, clock: &dyn Clock) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut lines = FramedRead::new(input, LinesCodec::new_with_max_length(MAX_LINE_BYTES));
    let mut server = Sample {
        output,
        clock,
        running: JoinSet::new(),
        calls: HashMap::new(),
        state: State::default(),
    };
    loop {
        tokio::select! {
            line = lines.next(), if server.running.len() < MAX_RUNNING => match line {
                Some(Ok(line)) => server.take(&line).await?,
                Some(Err(LinesCodecError::MaxLineLengthExceeded)) => {
                    server.send(&failure(&Value::Null, PARSE_ERROR, "the line is too long")).await?;
                }
                Some(Err(LinesCodecError::Io(_))) | None => break,
            },
            Some(done) = server.running.join_next() => server.answer_done(done).await?,
        }
    }
    let finish = async {
        while let Some(done) = server.running.join_next().await {
            server.answer_done(done).await?;
        }
        Ok(())
    };
    tokio::time::timeout(LAST_WORDS, finish).await.unwrap_or(Ok(()))
}

#[derive(Default)]
struct State {
    initialized: bool,
    notes: Arc<AtomicU64>,
    tasks: Tasks,
}

/// A finished call: its id as text and its answer, unless it was cancelled.
type Done = (String, Option<Value>);

struct Sample<'a, W> {
    output: W,
    clock: &'a dyn Clock,
    running: JoinSet<Done>,
    calls: HashMap<String, CancellationToken>,
    state: State,
}

/// A request, and the era it came from.
struct Request {
    id: Value,
    params: Map<String, Value>,
    modern: bool,
}

impl<W: AsyncWrite + Unpin> Sample<'_, W> {
    async fn take(&mut self, line: &str) -> io::Result<()> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let Ok(Value::Object(mut message)) = json::parse(line.as_bytes(), Bounds::REQUEST) else {
            return self.send(&failure(&Value::Null, PARSE_ERROR, "this is not JSON-RPC")).await;
        };
        let params = match message.remove("params") {
            Some(Value::Object(params)) => params,
            Some(_) | None => Map::new(),
        };
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        match message.get("id") {
            None | Some(Value::Null) => self.notified(method, &params),
            Some(_) if method.is_empty() => {}
            Some(id) => {
                let request = Request { id: id.clone(), modern: is_modern(&params), params };
                if let Some(answer) = self.answer(method, request) {
                    self.send(&answer).await?;
                }
            }
        }
        Ok(())
    }

    fn notified(&mut self, method: &str, params: &Map<String, Value>) {
        if method == "notifications/cancelled"
            && let Some(call) =
                params.get("requestId").and_then(|id| self.calls.get(&id.to_string()))
        {
            call.cancel();
        }
    }

    /// The answer to a request; `None` when it will come later.
    fn answer(&mut self, method: &str, request: Request) -> Option<Value> {
        let Request { id, params, modern } = request;
        if modern && version(&params) != Some(MODERN) {
            return Some(unsupported(&id, version(&params).unwrap_or_default()));
        }
        match method {
            "initialize" => {
                self.state.initialized = true;
                Some(success(&id, initialize(&params), modern))
            }
            "ping" => Some(success(&id, json!({}), modern)),
            "server/discover" if modern => Some(success(&id, discover(), modern)),
            _ if !modern && !self.state.initialized => {
                Some(failure(&id, INVALID_REQUEST, "`initialize` must come first"))
            }
            "tools/list" => Some(success(&id, json!({"tools": tools::list()}), modern)),
            "tools/call" => self.call(Request { id, params, modern }),
            "prompts/list" => Some(success(&id, json!({"prompts": prompts::list()}), modern)),
            "prompts/get" => Some(match prompts::get(&params) {
                Ok(prompt) => success(&id, prompt, modern),
                Err(message) => failure(&id, INVALID_PARAMS, message),
            }),
            "resources/list" => Some(success(&id, json!({"resources": resources::list()}), modern)),
            "resources/templates/list" => {
                let templates = json!({"resourceTemplates": resources::templates()});
                Some(success(&id, templates, modern))
            }
            "skills/list" if modern => {
                Some(success(&id, json!({"skills": skills::list()}), modern))
            }
            "skills/get" if modern => {
                let entry = skills::get(&params).map(|entry| json!({ "skill": entry }));
                let told = entry.map(|entry| success(&id, entry, modern));
                Some(told.unwrap_or_else(|| failure(&id, INVALID_PARAMS, "there is no such skill")))
            }
            "tasks/get" | "tasks/update" | "tasks/cancel" if modern => {
                let told = self.state.tasks.answer(method, &params, self.clock.now());
                let told = told.map(|told| success(&id, told, modern));
                Some(told.unwrap_or_else(|| failure(&id, INVALID_PARAMS, "there is no such task")))
            }
            "resources/read" => {
                let code = if modern { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
                let found = resources::read(&params);
                let read = found.map(|contents| success(&id, contents, modern));
                Some(read.unwrap_or_else(|| failure(&id, code, "there is no such resource")))
            }
            "completion/complete" => {
                let values = suggested(&params);
                let completion = json!({"values": values, "total": values.len(), "hasMore": false});
                Some(success(&id, json!({"completion": completion}), modern))
            }
            _ => Some(failure(&id, METHOD_NOT_FOUND, "there is no such method")),
        }
    }

    fn call(&mut self, request: Request) -> Option<Value> {
        let Request { id, mut params, modern } = request;
        let tool = params.get("name").and_then(Value::as_str).and_then(tools::find);
        let Some(tool) = tool else {
            return Some(failure(&id, INVALID_PARAMS, "there is no such tool"));
        };
        if modern
            && tool.may_be_task()
            && let Some(task) = self.state.tasks.begin(&params, self.clock.now())
        {
            return Some(success(&id, task, modern));
        }
        let arguments = match params.remove("arguments") {
            Some(Value::Object(arguments)) => arguments,
            None => Map::new(),
            Some(_) => return Some(failure(&id, INVALID_PARAMS, "`arguments` must be an object")),
        };
        let key = id.to_string();
        let cancelled = CancellationToken::new();
        self.calls.insert(key.clone(), cancelled.clone());
        let notes = self.state.notes.clone();
        self.running.spawn(async move {
            let result = tokio::select! {
                () = cancelled.cancelled() => None,
                result = tools::call(tool, &arguments, &notes) => Some(result),
            };
            (key, result.map(|result| success(&id, result, modern)))
        });
        None
    }

    async fn answer_done(&mut self, done: Result<Done, tokio::task::JoinError>) -> io::Result<()> {
        let Ok((key, answer)) = done else { return Ok(()) };
        self.calls.remove(&key);
        match answer {
            Some(answer) => self.send(&answer).await,
            None => Ok(()),
        }
    }

    async fn send(&mut self, message: &Value) -> io::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        self.output.write_all(line.as_bytes()).await?;
        self.output.flush().await
    }
}

fn capabilities(modern: bool) -> Value {
    let mut all = json!({"completions": {}, "prompts": {}, "resources": {}, "tools": {}});
    if let (true, Value::Object(members)) = (modern, &mut all) {
        let extensions = json!({ (EXTENSION): {}, (TASKS): {} });
        members.insert("extensions".to_owned(), extensions);
    }
    all
}

/// Values that an argument of the prompt or the template may have, as far as it is written.
fn suggested(params: &Map<String, Value>) -> Vec<&'static str> {
    let written = |member| params.get("argument")?.get(member)?.as_str();
    let all: &[&str] = match written("name") {
        Some("customer" | "id") => &tools::CUSTOMERS,
        Some("tone") => &["formal", "friendly", "warm"],
        Some(_) | None => &[],
    };
    let begin = written("value").unwrap_or_default();
    all.iter().copied().filter(|value| value.starts_with(begin)).collect()
}

fn version(params: &Map<String, Value>) -> Option<&str> {
    params.get(meta::META)?.get(meta::PROTOCOL_VERSION)?.as_str()
}

fn is_modern(params: &Map<String, Value>) -> bool {
    version(params).is_some()
}

fn server_info() -> Value {
    json!({"name": "portcullis-sample", "version": env!("CARGO_PKG_VERSION")})
}

fn initialize(params: &Map<String, Value>) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let agreed = LEGACY.into_iter().find(|known| asked == Some(*known)).unwrap_or(LEGACY[0]);
    json!({
        "protocolVersion": agreed,
        "capabilities": capabilities(false),
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    })
}

fn discover() -> Value {
    json!({
        "supportedVersions": [MODERN, LEGACY[0], LEGACY[1]],
        "capabilities": capabilities(true),
        "instructions": INSTRUCTIONS,
    })
}

const INSTRUCTIONS: &str = "Invented data of a small shop, to try Portcullis with.";

fn success(id: &Value, mut result: Value, modern: bool) -> Value {
    if modern && let Some(members) = result.as_object_mut() {
        members.entry("resultType").or_insert(json!("complete"));
        let meta = json!({(meta::SERVER_INFO): server_info()});
        members.insert("_meta".to_owned(), meta);
    }
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

fn unsupported(id: &Value, requested: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {
        "code": UNSUPPORTED_VERSION,
        "message": "Unsupported protocol version",
        "data": {"supported": [MODERN, LEGACY[0], LEGACY[1]], "requested": requested},
    }})
}
