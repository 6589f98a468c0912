//! Watches what changes about callers, so that a session lives on as long as nothing did.
//!
//! **Invariant:** a change is known, and the sessions of its org are looked up again, before a round
//! that began after it counts. So a session may be trusted as long as such a round began less than
//! five seconds ago, whichever node made the change and whatever push was lost.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use portcullis_store::{AccessChange, AccessMark};
use tokio::{sync::Mutex, time::Instant};

use super::{Access, tokens::TRUSTED_FOR};

/// Time between two rounds.
pub(crate) const EVERY: Duration = Duration::from_secs(1);

/// Rounds so far.
#[derive(Debug)]
pub(crate) struct Watch {
    since: Instant,
    /// Milliseconds from `since` to the beginning of the last round that counts; 0 before the first.
    begun: AtomicU64,
    read: Mutex<Option<WatchRound>>,
}

/// Result of the last round.
#[derive(Debug)]
struct WatchRound {
    mark: AccessMark,
    /// Changes behind the mark before it; they are read again until the mark is beyond them.
    changes: BTreeSet<AccessChange>,
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), begun: AtomicU64::new(0), read: Mutex::default() }
    }

    /// True if no change that is older than [`TRUSTED_FOR`] can be unknown.
    pub(crate) fn is_current(&self) -> bool {
        let begun = self.begun.load(Ordering::Acquire);
        let age = self.since.elapsed().saturating_sub(Duration::from_millis(begun));
        begun > 0 && age < TRUSTED_FOR
    }

    fn counts(&self, begun: Instant) {
        let begun = begun.duration_since(self.since).as_millis();
        self.begun.fetch_max(u64::try_from(begun).unwrap_or(u64::MAX), Ordering::AcqRel);
    }
}

/// One round: reads what changed, and has the sessions of these orgs looked up again.
pub(crate) async fn look(access: &Access) {
    let watch = &access.watch;
    let mut read = watch.read.lock().await;
    let begun = Instant::now();
    let since = read.as_ref().map(|read| read.mark);
    let found = match access.base.store.access_changes(since).await {
        Ok(found) => found,
        Err(error) => return error.log(),
    };
    let tenants = &access.quotas.tenants;
    if !found.is_complete {
        // Whatever is remembered may be older than the mark.
        tenants.revoked_all();
    }
    let changes: BTreeSet<AccessChange> = found.changes.into_iter().collect();
    let is_known =
        |change: &AccessChange| read.as_ref().is_some_and(|read| read.changes.contains(change));
    let orgs: BTreeSet<_> =
        changes.iter().filter(|change| !is_known(change)).map(|(_, org)| *org).collect();
    for org in orgs {
        tenants.revoked(org);
    }
    *read = Some(WatchRound { mark: found.mark, changes });
    watch.counts(begun);
}
