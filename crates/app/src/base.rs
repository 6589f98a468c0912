//! Clock, random source, store and executors of a node: what every room works with.

use std::{fmt, sync::Arc};

use portcullis_core::{
    clock::{Clock, Timestamp},
    id::{Ids, OrgId},
    random::Random,
    refusal::Refusal,
};
use portcullis_lanes::Workers;
use portcullis_store::Store;
use tokio_util::task::TaskTracker;

/// Handles that every room of a node shares.
pub struct Base {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) store: Store,
    /// Name of this node.
    pub(crate) node: String,
    pub(crate) workers: Workers<OrgId>,
    pub(crate) tasks: TaskTracker,
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Base").field("node", &self.node).finish_non_exhaustive()
    }
}

impl Base {
    /// Does something of `bytes` bytes for an org: off the threads that serve if that is much.
    pub async fn worked<T: Send + 'static>(
        &self,
        org: OrgId,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        self.workers.run(org, bytes, work).await.ok_or_else(|| {
            tracing::error!("work for an answer ended in a panic");
            Refusal::Internal
        })
    }

    /// Forgets something large of an org, which takes as long as to make it.
    pub fn discard(&self, org: OrgId, large: impl Send + 'static) {
        self.workers.hand(org, move || drop(large));
    }

    /// Begins work on a task of its own, which the process does not end before.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// Does on a task of its own what must not stop halfway because a client hangs up.
    pub(crate) async fn uncancelled<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.tasks.spawn(work).await.map_err(|_| Refusal::Internal)
    }

    /// Makes ids.
    #[must_use]
    pub fn ids(&self) -> Ids<'_> {
        Ids { clock: &*self.clock, random: &*self.random }
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
