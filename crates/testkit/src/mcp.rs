//! A real MCP server on a real socket: streamable HTTP of the era with sessions.
#![expect(clippy::indexing_slicing, reason = "an absent member of JSON is null")]

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Map, Value, json};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::DropGuard;

use crate::serving::serve;

/// Tools on one page of `tools/list`.
const PAGE: usize = 2;

/// An MCP server whose tools give back their arguments; with the argument `hold` they tell progress
/// once and never answer. With the argument `forms` they present these, one after the other, in the stream
/// of the answer, and give back the replies, or with `insist` a result that asks for input. A form
/// `{"many": n}` stands for one of so many properties, each with a default.
#[derive(Debug)]
pub struct McpServer {
    address: SocketAddr,
    state: Arc<Shared>,
    _serving: DropGuard,
}

#[derive(Debug)]
struct Shared {
    tools: Mutex<Vec<Value>>,
    fails: Mutex<Option<StatusCode>>,
    lists: Mutex<Lists>,
    seen: Mutex<Vec<(HeaderMap, Value)>>,
    changed: broadcast::Sender<()>,
    replies: watch::Sender<Vec<Value>>,
}

/// Its answers to `tools/list`.
#[derive(Debug, Clone, Copy, Default)]
struct Lists {
    fail: bool,
    ttl_ms: Option<u64>,
}

/// A tool of this name that takes any object.
pub fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "title": format!("The tool {name}"),
        "description": format!("Gives back what {name} was given."),
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": true},
    })
}

impl McpServer {
    /// Starts it with these tools on a free port.
    pub async fn start(tools: Vec<Value>) -> Self {
        let state = Arc::new(Shared {
            tools: Mutex::new(tools),
            fails: Mutex::default(),
            lists: Mutex::default(),
            seen: Mutex::default(),
            changed: broadcast::channel(16).0,
            replies: watch::Sender::default(),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&state));
        let (address, serving) = serve(router).await;
        Self { address, state, _serving: serving }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Has other tools from now on and announces it.
    pub fn change_tools(&self, tools: Vec<Value>) {
        self.change_tools_silently(tools);
        let _ = self.state.changed.send(());
    }

    /// Has other tools from now on and says nothing.
    pub fn change_tools_silently(&self, tools: Vec<Value>) {
        *self.state.tools.lock().expect("tools") = tools;
    }

    /// Says of its list from now on that it stays true for so long.
    pub fn set_ttl_ms(&self, ttl_ms: u64) {
        self.state.lists.lock().expect("lists").ttl_ms = Some(ttl_ms);
    }

    /// Refuses to list its tools from now on, or ends that; calls are answered nevertheless.
    pub fn fail_lists(&self, fail: bool) {
        self.state.lists.lock().expect("lists").fail = fail;
    }

    /// Number of requests of this method so far.
    pub fn count(&self, method: &str) -> usize {
        let seen = self.state.seen.lock().expect("requests");
        seen.iter().filter(|(_, message)| message["method"] == method).count()
    }

    /// Answers everything with this status from now on; `None` ends that.
    pub fn fail(&self, status: Option<StatusCode>) {
        *self.state.fails.lock().expect("a status") = status;
        let _ = self.state.changed.send(());
    }

    /// Headers and message of every request so far.
    pub fn requests(&self) -> Vec<(HeaderMap, Value)> {
        self.state.seen.lock().expect("requests").clone()
    }
}

async fn answer(State(state): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 4 << 20).await.expect("a body");
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    state.seen.lock().expect("requests").push((parts.headers, message.clone()));
    if let Some(status) = *state.fails.lock().expect("a status") {
        return status.into_response();
    }
    if parts.method == Method::GET {
        return announcements(&state);
    }
    if message.get("id").is_some() && message.get("method").is_none() {
        state.replies.send_modify(|replies| replies.push(message.clone()));
        return StatusCode::ACCEPTED.into_response();
    }
    let result = match message.pointer("/method").and_then(Value::as_str) {
        Some("initialize") => initialized(&message),
        Some("tools/list") => {
            let lists = *state.lists.lock().expect("lists");
            if lists.fail {
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
            let mut page = page(&state, &message);
            if let Some(ttl_ms) = lists.ttl_ms {
                page["ttlMs"] = json!(ttl_ms);
            }
            page
        }
        Some("tools/call") if message.pointer("/params/arguments/hold").is_some() => {
            return hold_call(&message);
        }
        Some("tools/call") if message.pointer("/params/arguments/forms").is_some() => {
            return presenting(&state, &message);
        }
        Some("tools/call") => {
            let arguments = message.pointer("/params/arguments").cloned().unwrap_or_default();
            let text = arguments.to_string();
            json!({"content": [{"type": "text", "text": text}], "structuredContent": arguments})
        }
        Some("ping") => json!({}),
        Some(_) | None => return StatusCode::ACCEPTED.into_response(),
    };
    let id = message.pointer("/id").cloned();
    let text = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    ([("content-type", "application/json"), ("mcp-session-id", "session-1")], text).into_response()
}

/// Progress, and then nothing: a call with the argument `hold` never ends.
fn hold_call(message: &Value) -> Response {
    let token = message.pointer("/params/_meta/progressToken");
    let params = json!({"progressToken": token, "progress": 1, "message": "begun"});
    let news = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
    events(stream::iter([news]).chain(stream::pending()))
}

/// A form each time the one before was replied to, then the replies to these.
fn presenting(state: &Shared, message: &Value) -> Response {
    let forms = message.pointer("/params/arguments/forms").and_then(Value::as_array);
    let forms: Vec<Value> = forms.into_iter().flatten().map(written_out).collect();
    let insists = message.pointer("/params/arguments/insist").is_some();
    let id = message["id"].clone();
    let heard = state.replies.subscribe();
    let before = heard.borrow().len();
    let messages = stream::unfold((0, heard), move |(step, mut heard)| {
        let form = forms.get(step).cloned();
        let id = id.clone();
        let rest = forms.len().checked_sub(step);
        async move {
            rest?;
            let all = heard.wait_for(|all| all.len() >= before + step).await.ok()?.clone();
            let news = if let Some(params) = form {
                let method = "elicitation/create";
                json!({"jsonrpc": "2.0", "id": step, "method": method, "params": params})
            } else {
                let replies = all.get(before..).unwrap_or_default();
                let told = json!({"content": [], "structuredContent": {"replies": replies}});
                let result = if insists { json!({"resultType": "input_required"}) } else { told };
                json!({"jsonrpc": "2.0", "id": id, "result": result})
            };
            Some((news, (step + 1, heard)))
        }
    });
    events(messages)
}

fn written_out(form: &Value) -> Value {
    let Some(many) = form.get("many").and_then(Value::as_u64) else { return form.clone() };
    let property = |n| (format!("p{n}"), json!({"type": "boolean", "default": true}));
    let properties: Map<String, Value> = (0..many).map(property).collect();
    json!({"message": "?", "requestedSchema": {"type": "object", "properties": properties}})
}

fn initialized(message: &Value) -> Value {
    json!({
        "protocolVersion": message.pointer("/params/protocolVersion"),
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "testkit", "version": "1"},
    })
}

fn page(state: &Shared, message: &Value) -> Value {
    let cursor = message.pointer("/params/cursor").and_then(Value::as_str);
    let from: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let tools = state.tools.lock().expect("tools");
    let some: Vec<&Value> = tools.iter().skip(from).take(PAGE).collect();
    if from + PAGE < tools.len() {
        json!({"tools": some, "nextCursor": (from + PAGE).to_string()})
    } else {
        json!({"tools": some})
    }
}

fn announcements(state: &Shared) -> Response {
    let changed = state.changed.subscribe();
    events(stream::unfold(changed, |mut changed| async {
        changed.recv().await.ok()?;
        let news = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        Some((news, changed))
    }))
}

/// An answer of these messages, each of them an event.
fn events(messages: impl Stream<Item = Value> + Send + 'static) -> Response {
    let events = messages.map(|message| {
        Ok::<_, Infallible>(Bytes::from(format!("event: message\ndata: {message}\n\n")))
    });
    ([("content-type", "text/event-stream")], Body::from_stream(events)).into_response()
}
