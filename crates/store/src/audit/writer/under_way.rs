//! Age of the commit under way, for readiness.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

/// Begin of the commit under way. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct UnderWay {
    base: Instant,
    /// Milliseconds after `base`; 0 while nothing is committed.
    begun: Arc<AtomicU64>,
}

impl UnderWay {
    pub(super) fn new() -> Self {
        Self { base: Instant::now(), begun: Arc::default() }
    }

    pub(super) fn begin(&self) {
        self.begun.store(self.now().max(1), Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.begun.store(0, Ordering::Relaxed);
    }

    /// Time for which the commit under way has been waited for; zero if there is none.
    pub(super) fn age(&self) -> Duration {
        match self.begun.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            begun => Duration::from_millis(self.now().saturating_sub(begun)),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
