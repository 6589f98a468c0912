//! Events that could not be recorded in time: tried again until the store takes them, so that a
//! call that was answered 503 has its event once the log can be written again.
//!
//! A crash loses what waits here; a call that was dispatched still has its intent, which the next
//! start closes as `unknown`.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use portcullis_store::{KeyEnd, NewEvent, StoreError};

use super::{Audit, events::patience};

pub(crate) const EVERY: Duration = Duration::from_secs(1);

/// The most events that wait; beyond them the oldest goes.
const MOST: usize = 10_000;

/// An event that waits, and how the idempotency key of its call ends with it.
type Late = (NewEvent, Option<KeyEnd>);

/// Events that wait for a store that can be written.
#[derive(Debug, Default)]
pub(crate) struct LateEvents(Mutex<VecDeque<Late>>);

impl LateEvents {
    /// Keeps an event to be recorded later, with the end of its call's idempotency key.
    pub(crate) fn keep(&self, event: NewEvent, key: Option<KeyEnd>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() == MOST {
            waiting.pop_front();
            tracing::error!(kept = MOST, "too many events wait for the store: the oldest is lost");
        }
        waiting.push_back((event, key));
    }

    fn next(&self) -> Option<Late> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn back(&self, late: Late) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_front(late);
    }
}

/// Records what waits, oldest first, until the store refuses.
pub(crate) async fn write(audit: &Audit) {
    let mut recorded = 0_u32;
    while let Some((event, key)) = audit.late_events.next() {
        let written = match key.clone() {
            None => audit.writer.finish(event.clone(), patience()).await,
            Some(end) => audit.writer.finish_keyed(event.clone(), end, patience()).await,
        };
        match written {
            // A conflict: it had been written after all, and only the word of it was lost.
            Ok(()) | Err(StoreError::Conflict(_)) => recorded += 1,
            Err(error) => {
                tracing::debug!(%error, "late events cannot be recorded yet");
                audit.late_events.back((event, key));
                break;
            }
        }
    }
    if recorded > 0 {
        tracing::warn!(recorded, "events were recorded late");
    }
}
