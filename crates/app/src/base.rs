//! Clock, random source, store and executors of a node: what every room works with.

pub(crate) mod admission;
pub(crate) mod caches;
pub(crate) mod claim;
pub(crate) mod cluster;
pub(crate) mod contention;
pub(crate) mod long_work;
pub(crate) mod low_priority;
pub(crate) mod tenants;

use std::{fmt, sync::Arc, time::Duration};

use portcullis_core::{
    clock::{Clock, Timestamp},
    id::{Ids, OrgId},
    random::Random,
    refusal::Refusal,
};
use portcullis_lanes::{FairLimits, Workers};
use portcullis_store::Store;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    contention::Contention,
    long_work::{LongWork, WorkOwner},
};

/// Handles that every room of a node shares.
pub struct Base {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) store: Store,
    pub(crate) node: String,
    pub(crate) workers: Workers<OrgId>,
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the node begins to end: long computations stop.
    pub(crate) ending: CancellationToken,
    /// Cancelled when connections are about to be cut: streams tell their clients that they end.
    cut: CancellationToken,
    /// Computations on lists of tools.
    pub(crate) listings: LongWork,
    /// Changes of what several requests may change at once.
    pub(crate) contention: Contention,
}

/// Computations on lists of tools at once: schemas are compiled, and policies bound to them.
const LISTINGS: FairLimits = FairLimits {
    slots: 2,
    reserve: 1,
    // A connection has one list under way at a time.
    waiting: usize::MAX,
    patience: Duration::from_hours(1),
};

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Base").field("node", &self.node).finish_non_exhaustive()
    }
}

impl Base {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        store: Store,
        node: String,
        workers: Workers<OrgId>,
        tasks: TaskTracker,
    ) -> Self {
        let ending = CancellationToken::new();
        let listings = LongWork::new(LISTINGS, ending.clone());
        let cut = CancellationToken::new();
        let contention = Contention::new(Arc::clone(&random));
        Self { clock, random, store, node, workers, tasks, ending, cut, listings, contention }
    }

    /// Does something of `bytes` bytes for an org: off the threads that serve if that is much.
    pub async fn worked<T: Send + 'static>(
        &self,
        org: OrgId,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        self.workers.run(org, bytes, work).await.ok_or_else(panicked)
    }

    /// Does something for an org with a worker, and tells it to end once no one waits for it.
    pub(crate) async fn worked_awaited<T: Send + 'static>(
        &self,
        org: OrgId,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        self.workers.run_awaited(org, work).await.ok_or_else(panicked)
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

    /// Stops the long computations that requests wait for: the node is about to end.
    pub fn end_long_work(&self) {
        self.ending.cancel();
    }

    /// Ends once the node begins to end.
    pub async fn ending(&self) {
        self.ending.cancelled().await;
    }

    /// Ends the streams whose calls have not ended in time: their connections are about to be cut.
    pub fn cut_streams(&self) {
        self.cut.cancel();
    }

    /// Ends once streams have to end.
    pub async fn streams_cut(&self) {
        self.cut.cancelled().await;
    }

    /// Computes something about a list of tools, when it is the turn of `party`, at low priority.
    /// `None` if it panics.
    pub(crate) async fn list_work<T: Send + 'static>(
        &self,
        party: WorkOwner,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        self.listings.to_the_end(party, work).await
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

fn panicked() -> Refusal {
    tracing::error!("work for an answer ended in a panic");
    Refusal::Internal
}
