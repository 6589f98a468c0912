//! A real witness of transparency logs (`c2sp.org/tlog-witness`): verifies that each checkpoint
//! continues the one it signed before, and refuses whatever does not.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use portcullis_core::audit::{
    checkpoint::{Checkpoint, decimal, hash_of},
    merkle::{Hash, is_consistent},
    note::{KeyKind, Note, SigningKey, VerifierKey},
};
use tokio_util::sync::DropGuard;

use crate::serving::serve;

/// A witness on a loopback port. It ends when it is dropped.
#[derive(Debug)]
pub struct LogWitness {
    url: String,
    inside: Arc<WitnessState>,
    _serving: DropGuard,
}

#[derive(Debug)]
struct WitnessState {
    key: SigningKey,
    logs: Mutex<Vec<VerifierKey>>,
    seen: Mutex<BTreeMap<String, (u64, Hash)>>,
    silent: AtomicBool,
}

impl LogWitness {
    /// A witness that knows no log yet.
    pub async fn start(name: &str) -> Self {
        let key = SigningKey::new(name, KeyKind::Witness, &[7; 32]).expect("a key");
        let inside = Arc::new(WitnessState {
            key,
            logs: Mutex::default(),
            seen: Mutex::default(),
            silent: AtomicBool::new(false),
        });
        let routes = Router::new().route("/w/add-checkpoint", post(add_checkpoint));
        let (address, serving) = serve(routes.with_state(Arc::clone(&inside))).await;
        Self { url: format!("http://{address}/w"), inside, _serving: serving }
    }

    /// Its submission prefix.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its verifier key.
    pub fn key(&self) -> VerifierKey {
        self.inside.key.verifier().clone()
    }

    /// From now on it signs the log of this key.
    pub fn trust(&self, log: VerifierKey) {
        self.inside.logs.lock().expect("the logs").push(log);
    }

    /// Largest size of a log that it has seen.
    pub fn largest_size(&self, origin: &str) -> Option<u64> {
        self.inside.seen.lock().expect("what was seen").get(origin).map(|(size, _)| *size)
    }

    /// Makes it believe that it saw another tree of the same size.
    pub fn misremember(&self, origin: &str) {
        let mut seen = self.inside.seen.lock().expect("what was seen");
        seen.get_mut(origin).expect("a log").1[0] ^= 1;
    }

    /// Makes it accept requests and never answer them.
    pub fn be_silent(&self, silent: bool) {
        self.inside.silent.store(silent, Ordering::SeqCst);
    }
}

async fn add_checkpoint(State(inside): State<Arc<WitnessState>>, body: String) -> Response {
    if inside.silent.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    inside.judge(&body).unwrap_or_else(IntoResponse::into_response)
}

impl WitnessState {
    fn judge(&self, body: &str) -> Result<Response, StatusCode> {
        let bad = StatusCode::BAD_REQUEST;
        let (head, note) = body.split_once("\n\n").ok_or(bad)?;
        let mut lines = head.lines();
        let old = lines.next().and_then(|line| line.strip_prefix("old "));
        let old = old.and_then(decimal).ok_or(bad)?;
        let proof: Vec<Hash> = lines.map(hash_of).collect::<Option<_>>().ok_or(bad)?;
        let parsed = Note::parse(note).map_err(|_| bad)?;
        let checkpoint = Checkpoint::of(&parsed).map_err(|_| bad)?;
        let logs = self.logs.lock().expect("the logs").clone();
        if !logs.iter().any(|key| key.name() == checkpoint.origin) {
            return Err(StatusCode::NOT_FOUND);
        }
        Checkpoint::open(note, &logs).map_err(|_| StatusCode::FORBIDDEN)?;
        if old > checkpoint.size || proof.len() > 63 {
            return Err(bad);
        }
        let mut seen = self.seen.lock().expect("what was seen");
        let known = seen.get(&checkpoint.origin).copied();
        if old != known.map_or(0, |(size, _)| size) {
            let size = known.map_or(0, |(size, _)| size);
            let kind = [(header::CONTENT_TYPE, "text/x.tlog.size")];
            return Ok((StatusCode::CONFLICT, kind, format!("{size}\n")).into_response());
        }
        if let Some((_, root)) = known {
            if old == checkpoint.size && root != checkpoint.root {
                return Err(StatusCode::CONFLICT);
            }
            if !is_consistent(old, &root, checkpoint.size, &checkpoint.root, &proof) {
                return Err(StatusCode::UNPROCESSABLE_ENTITY);
            }
        } else if !proof.is_empty() {
            return Err(StatusCode::UNPROCESSABLE_ENTITY);
        }
        seen.insert(checkpoint.origin, (checkpoint.size, checkpoint.root));
        let signature = self.key.cosign(parsed.text(), 1_795_172_535);
        Ok(format!("{signature}\n").into_response())
    }
}
