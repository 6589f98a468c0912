//! A streamable-HTTP server on a real socket that answers as a test tells it to.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use portcullis_upstream::{Credential, Endpoint, Server, Transport};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::support::{server, settings};

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct FakeRequest {
    pub(crate) verb: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) message: Value,
}

impl FakeRequest {
    pub(crate) fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn id(&self) -> Value {
        self.message["id"].clone()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

type Answer = Arc<dyn Fn(&FakeRequest) -> Response + Send + Sync>;

/// The server; it ends when it is dropped.
pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<FakeRequest>>>,
    _stop: DropGuard,
}

impl Fake {
    /// A server that answers every request with `answer`.
    pub(crate) async fn start(
        answer: impl Fn(&FakeRequest) -> Response + Send + Sync + 'static,
    ) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::default());
        let answer: Answer = Arc::new(answer);
        let router = Router::new().fallback(handle).with_state((answer, Arc::clone(&seen)));
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        tokio_util::task::TaskTracker::new().spawn(async move {
            tokio::select! {
                () = stopped => {}
                _ = axum::serve(listener, router) => {}
            }
        });
        Self { address, seen, _stop: stop.drop_guard() }
    }

    /// A modern server of which only the answer to `tools/call` matters.
    pub(crate) async fn modern(
        call: impl Fn(&FakeRequest) -> Response + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |seen| match seen.method() {
            "server/discover" => discovered(seen),
            "tools/call" => call(seen),
            _ => error(StatusCode::NOT_FOUND, &seen.id(), -32601),
        })
        .await
    }

    pub(crate) fn requests(&self) -> Vec<FakeRequest> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        self.requests().iter().map(|seen| seen.method().to_owned()).collect()
    }

    /// Number of messages of this method.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.methods().iter().filter(|it| *it == method).count()
    }

    pub(crate) fn transport(&self) -> Transport {
        let endpoint = Endpoint::allowed(&format!("http://{}/mcp", self.address)).unwrap();
        let secret = portcullis_core::secret::Secret::new("hunter2".to_owned());
        Transport::Http { endpoint, credential: Some(Credential::bearer(&secret).unwrap()) }
    }

    pub(crate) fn client(&self) -> Server {
        server(settings(self.transport()))
    }
}

async fn handle(
    State((answer, seen)): State<(Answer, Arc<Mutex<Vec<FakeRequest>>>)>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let message = serde_json::from_slice(&body).unwrap_or_default();
    let request = FakeRequest { verb: parts.method, headers: parts.headers, message };
    seen.lock().unwrap().push(request.clone());
    answer(&request)
}

pub(crate) fn typed(kind: &str, body: impl Into<Body>) -> Response {
    ([(CONTENT_TYPE, kind)], body.into()).into_response()
}

pub(crate) fn success(id: &Value, result: &Value) -> Response {
    typed("application/json", message(id, result))
}

pub(crate) fn message(id: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

pub(crate) fn error(status: StatusCode, id: &Value, code: i64) -> Response {
    let error = json!({"code": code, "message": "the secret is hunter2"});
    let body = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
    (status, typed("application/json", body)).into_response()
}

pub(crate) fn discovered(seen: &FakeRequest) -> Response {
    let result = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
    });
    success(&seen.id(), &result)
}

/// The answer of an older server to the beginning of a session.
pub(crate) fn initialized(
    seen: &FakeRequest,
    session: &str,
    version: &str,
    tools: &Value,
) -> Response {
    let result = json!({
        "protocolVersion": version, "capabilities": {"tools": tools},
        "serverInfo": {"name": "old", "version": "1"},
    });
    ([("mcp-session-id", session)], success(&seen.id(), &result)).into_response()
}

pub(crate) fn content(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

pub(crate) fn event(data: &str) -> String {
    format!("event: message\ndata: {data}\n\n")
}

/// A stream of events: first these, then whatever `rest` gives.
pub(crate) fn events(
    first: Vec<String>,
    rest: impl Stream<Item = String> + Send + 'static,
) -> Response {
    let pieces = stream::iter(first).chain(rest);
    let pieces = pieces.map(|piece| Ok::<_, Infallible>(Bytes::from(piece)));
    typed("text/event-stream; charset=utf-8", Body::from_stream(pieces))
}
