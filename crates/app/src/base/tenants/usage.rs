//! Usage of an org's plan that this node counted and did not write to the store yet.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use portcullis_core::limits::Resource;
use portcullis_store::Usage;

/// Time between two writes; what a node counted since is lost if it dies.
pub(crate) const EVERY: Duration = Duration::from_secs(10);

/// Requests and invocations since the last write. Counted on the path of every request.
#[derive(Debug, Default)]
pub(crate) struct UsageCounter {
    requests: AtomicU64,
    invocations: AtomicU64,
}

impl UsageCounter {
    /// Counts one.
    pub(crate) fn note(&self, resource: Resource) {
        match resource {
            Resource::Requests => self.requests.fetch_add(1, Ordering::Relaxed),
            Resource::Invocations => self.invocations.fetch_add(1, Ordering::Relaxed),
            Resource::Unauthenticated => 0,
        };
    }

    /// Usage that waits to be written.
    pub(crate) fn waiting(&self) -> Usage {
        Usage {
            requests: self.requests.load(Ordering::Relaxed),
            invocations: self.invocations.load(Ordering::Relaxed),
        }
    }

    /// Takes it out of the counter.
    pub(crate) fn take(&self) -> Usage {
        Usage {
            requests: self.requests.swap(0, Ordering::Relaxed),
            invocations: self.invocations.swap(0, Ordering::Relaxed),
        }
    }

    /// Counts it again, for it could not be written.
    pub(crate) fn give_back(&self, usage: Usage) {
        self.requests.fetch_add(usage.requests, Ordering::Relaxed);
        self.invocations.fetch_add(usage.invocations, Ordering::Relaxed);
    }
}
