//! Tells whether events can be recorded at this moment, within a bounded time.
//!
//! Two things are looked at: whether a commit of the audit writer is stuck, and whether a row can be
//! written now. The row is written by a task of its own, one at a time and at most once a second,
//! since anybody may ask; a database that is locked keeps that task waiting and no client.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use portcullis_core::refusal::{Refusal, Unavailable};
use tokio::{
    sync::watch,
    time::{Instant, timeout, timeout_at},
};

use super::Nodes;

/// Time that a write may take before the database counts as locked. Clients wait no longer.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// Time for which the answer of a probe holds.
const FRESH: Duration = Duration::from_secs(1);

/// The probe that was begun last.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<Probe>>);

#[derive(Debug, Clone)]
struct Probe {
    begun: Instant,
    /// Moment of its end and whether the row was written; `None` while it is under way.
    ended: watch::Receiver<Option<(Instant, bool)>>,
}

impl Probe {
    /// True if another one has to be begun: this one is over for a while, or died.
    fn is_stale(&self) -> bool {
        let ended = *self.ended.borrow();
        ended.map_or(self.ended.has_changed().is_err(), |(when, _)| when.elapsed() > FRESH)
    }

    async fn has_written(&mut self) -> bool {
        let ended = timeout_at(self.begun + PATIENCE, self.ended.wait_for(Option::is_some)).await;
        matches!(ended, Ok(Ok(ended)) if matches!(*ended, Some((_, true))))
    }
}

impl Nodes {
    /// Refuses while calls could not be governed. Answers within two seconds, also if the database
    /// does not.
    pub async fn ready(&self) -> Result<(), Refusal> {
        self.access.in_touch()?;
        self.quotas.limits.ready()?;
        let stuck = self.audit.writer.stuck_for() > PATIENCE;
        if stuck || !self.probe().has_written().await {
            return Err(Refusal::Unavailable { reason: Unavailable::Audit });
        }
        Ok(())
    }

    /// The probe under way, or the last one while its answer is fresh, or a new one.
    fn probe(&self) -> Probe {
        let mut last = self.readiness.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(probe) if !probe.is_stale() => probe.clone(),
            Some(_) | None => last.insert(self.begin_probe()).clone(),
        }
    }

    fn begin_probe(&self) -> Probe {
        let (end, ended) = watch::channel(None);
        let store = self.base.store.clone();
        let now = self.base.clock.now();
        self.base.tasks.spawn(async move {
            let probing = store.probe(now);
            tokio::pin!(probing);
            let probed = if let Ok(probed) = timeout(PATIENCE, &mut probing).await {
                probed
            } else {
                tracing::error!("the database is locked: it has not taken a write for 1.5 s");
                probing.await
            };
            if let Err(error) = &probed {
                tracing::error!(%error, "the store cannot be written");
            }
            end.send_replace(Some((Instant::now(), probed.is_ok())));
        });
        Probe { begun: Instant::now(), ended }
    }
}
