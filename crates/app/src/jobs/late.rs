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

use portcullis_store::{NewEvent, StoreError};

use crate::{App, audit::patience};

pub(super) const EVERY: Duration = Duration::from_secs(1);

/// The most events that wait; beyond them the oldest goes.
const MOST: usize = 10_000;

/// Events that wait for a store that can be written.
#[derive(Debug, Default)]
pub(crate) struct LateEvents(Mutex<VecDeque<NewEvent>>);

impl LateEvents {
    /// Keeps an event to be recorded later.
    pub(crate) fn keep(&self, event: NewEvent) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() == MOST {
            waiting.pop_front();
            tracing::error!(kept = MOST, "too many events wait for the store: the oldest is lost");
        }
        waiting.push_back(event);
    }

    fn next(&self) -> Option<NewEvent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn back(&self, event: NewEvent) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_front(event);
    }
}

/// Records what waits, oldest first, until the store says no.
pub(super) async fn write(app: &App) {
    let mut recorded = 0_u32;
    while let Some(event) = app.late_events.next() {
        match app.writer.finish(event.clone(), patience()).await {
            // A conflict: it had been written after all, and only the word of it was lost.
            Ok(()) | Err(StoreError::Conflict(_)) => recorded += 1,
            Err(error) => {
                tracing::debug!(%error, "late events wait on");
                app.late_events.back(event);
                break;
            }
        }
    }
    if recorded > 0 {
        tracing::warn!(recorded, "events were recorded late");
    }
}
