//! Both sides of a call that its caller attends: progress goes to the caller, and the caller may give
//! the call up.

use std::sync::Arc;

use portcullis_upstream::{Live, Progress};
use serde_json::Number;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::DropGuard;

/// Notifications that wait for a caller who does not read; later ones are dropped.
const WAITING: usize = 16;

/// Progress of a call as it may leave the gateway.
#[derive(Debug, Clone, PartialEq)]
pub struct ClearedProgress {
    pub progress: Number,
    /// Progress at the end.
    pub total: Option<Number>,
    /// A text for people.
    pub message: Option<String>,
}

/// The call's side of what its caller attends. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Attendance(pub(crate) Arc<Attended>);

#[derive(Debug)]
pub(crate) struct Attended {
    pub(crate) live: Live,
    pub(crate) heard: Mutex<mpsc::Receiver<Progress>>,
    pub(crate) told: mpsc::Sender<ClearedProgress>,
}

/// The caller's side. Dropping it before the tool has answered gives the call up.
#[derive(Debug)]
pub struct Attending {
    live: Live,
    told: mpsc::Receiver<ClearedProgress>,
    _given_up_on_drop: DropGuard,
}

impl Attendance {
    /// Both sides of a call.
    #[must_use]
    pub fn new() -> (Self, Attending) {
        let (live, heard) = Live::new();
        let (told, receiver) = mpsc::channel(WAITING);
        let guard = live.guard();
        let attending = Attending { live: live.clone(), told: receiver, _given_up_on_drop: guard };
        (Self(Arc::new(Attended { live, heard: Mutex::new(heard), told })), attending)
    }

    /// Returns true if the caller gave the call up.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.0.live.is_given_up()
    }

    pub(crate) fn live(&self) -> &Live {
        &self.0.live
    }
}

impl Attending {
    /// Ends once the intent of the call is durable and the call goes out.
    pub async fn dispatched(&self) {
        self.live.dispatched().await;
    }

    /// The next progress; `None` when there will be none.
    pub async fn next(&mut self) -> Option<ClearedProgress> {
        self.told.recv().await
    }
}
