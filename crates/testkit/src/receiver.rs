//! A receiver of OTLP logs and traces that takes them, refuses them or never answers, as it is told.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::DropGuard;

use crate::serving::serve;

/// The longest a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// Behaviour towards a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Takes,
    /// The request is taken, and answered with this status and body.
    Answers(u16, &'static str),
    /// The request is refused with this status, unread.
    Refuses(u16),
    /// A request that holds this text is refused with this status; others are taken.
    RefusesWith(u16, &'static str),
    /// The request is taken, but the connection ends before the answer.
    TakesAndHangsUp,
    /// There is never an answer, and nothing is taken.
    Hangs,
}

/// The receiver; it ends when it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    _serving: DropGuard,
}

#[derive(Debug)]
struct Shared {
    manner: watch::Sender<Manner>,
    taken: Mutex<Vec<Value>>,
    authorization: Mutex<Vec<String>>,
    asked: watch::Sender<usize>,
}

impl Receiver {
    /// A receiver on a free port that takes what it gets.
    pub async fn start() -> Self {
        let shared = Arc::new(Shared {
            manner: watch::Sender::new(Manner::Takes),
            taken: Mutex::default(),
            authorization: Mutex::default(),
            asked: watch::Sender::new(0),
        });
        let router = Router::new()
            .route("/v1/logs", post(receive))
            .route("/v1/traces", post(receive))
            .with_state(Arc::clone(&shared));
        let (address, serving) = serve(router).await;
        Self { address, shared, _serving: serving }
    }

    /// The address of its logs.
    pub fn url(&self) -> String {
        format!("http://{}/v1/logs", self.address)
    }

    /// The address of its traces.
    pub fn traces_url(&self) -> String {
        format!("http://{}/v1/traces", self.address)
    }

    /// From now on batches meet this.
    pub fn be(&self, manner: Manner) {
        self.shared.manner.send_replace(manner);
    }

    /// Every log record or span it has taken, in the order in which they came.
    pub fn records(&self) -> Vec<Value> {
        self.shared.taken.lock().expect("the records").clone()
    }

    /// The `Authorization` of each batch.
    pub fn authorizations(&self) -> Vec<String> {
        self.shared.authorization.lock().expect("the headers").clone()
    }

    /// Number of batches sent to it.
    pub fn batches(&self) -> usize {
        *self.shared.asked.borrow()
    }

    /// Waits until so many batches were sent to it.
    pub async fn wait_for_batches(&self, batches: usize) {
        let mut asked = self.shared.asked.subscribe();
        let seen = asked.wait_for(|asked| *asked >= batches);
        tokio::time::timeout(PATIENCE, seen).await.expect("a batch in time").expect("a server");
    }
}

async fn receive(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let mut manner = shared.manner.subscribe();
    let mut now = *manner.borrow_and_update();
    if let Manner::RefusesWith(status, text) = now {
        now = if holds(&body, text) { Manner::Refuses(status) } else { Manner::Takes };
    }
    let shown = headers.get("authorization").and_then(|value| value.to_str().ok());
    shared.authorization.lock().expect("the headers").push(shown.unwrap_or_default().to_owned());
    if matches!(now, Manner::Takes | Manner::Answers(..) | Manner::TakesAndHangsUp) {
        let request: Value = serde_json::from_slice(&body).expect("an OTLP request in JSON");
        let records = request.pointer("/resourceLogs/0/scopeLogs/0/logRecords");
        let spans = request.pointer("/resourceSpans/0/scopeSpans/0/spans");
        let records = records.or(spans).and_then(Value::as_array).expect("records").clone();
        shared.taken.lock().expect("the records").extend(records);
    }
    shared.asked.send_modify(|asked| *asked += 1);
    match now {
        Manner::Takes | Manner::RefusesWith(..) => answer(200, "{}"),
        Manner::Answers(status, body) => answer(status, body),
        Manner::Refuses(status) => answer(status, ""),
        Manner::Hangs | Manner::TakesAndHangsUp => {
            // Until it is told to be otherwise; by then the client is gone.
            let _ = manner.changed().await;
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
    }
}

fn answer(status: u16, body: &'static str) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    (status, [("content-type", "application/json")], body).into_response()
}

fn holds(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|window| window == text.as_bytes())
}
