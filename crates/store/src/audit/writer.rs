//! Group commit: one task writes what all are waiting for in one transaction.

mod completions;
mod jobs;
mod pace;
mod task;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::TryFutureExt as _;
use portcullis_core::{
    clock::{Clock, Timestamp},
    id::EventId,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

use self::{
    completions::Completions,
    jobs::{Job, Work},
    pace::{Queue, Workers},
    task::TaskState,
};
pub use self::{pace::AtWork, task::AuditTask};
use crate::{
    approvals::ApprovalChange,
    db::{NewEvent, NewIntent, RowChange, Store},
    error::StoreError,
    idempotency::KeyEnd,
};

/// Permission for a call to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Began {
    /// Its intent is durable, and so are its key and the uses of its approvals.
    Begun,
    /// Its key stands for another call. Nothing was written.
    KeyTaken,
    /// One of its approvals is not approved, used up, over its time or for another digest. Nothing was
    /// written, and its key is free.
    NotApproved,
}

/// Settings of the writer.
#[derive(Debug, Clone)]
pub struct AuditSettings {
    /// The name of this node, written into its intents.
    pub node: String,
    /// Queued jobs from which on callers wait to queue theirs.
    pub queue: usize,
    /// Largest number of jobs in one transaction.
    pub batch: usize,
}

impl AuditSettings {
    /// The defaults for the node of this name: 4096 may wait, 256 make a batch.
    #[must_use]
    pub const fn new(node: String) -> Self {
        Self { node, queue: pace::QUEUE, batch: pace::BATCH }
    }
}

/// Counters of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditProgress {
    pub commits: u64,
    /// Jobs in these transactions.
    pub jobs: u64,
    /// Jobs that wait now.
    pub waiting: usize,
}

/// Hands intents and events to the task that commits them. Clones feed the same task. Records are packed
/// here, on the threads of many, not on that of the task.
///
/// The future of each function is ready when the commit is durable, or at `deadline` (a few seconds ahead) with
/// - [`StoreError::Unavailable`] or [`StoreError::Conflict`]: nothing was written, and nothing
///   will be;
/// - [`StoreError::OutcomeUnknown`]: the writing had begun and its end is not known.
///
/// A future that is dropped before its batch began leaves nothing behind.
#[derive(Debug, Clone)]
pub struct AuditWriter {
    jobs: mpsc::Sender<Job>,
    workers: Workers,
    completions: Completions<Box<Work>>,
    state: Arc<TaskState>,
}

impl AuditWriter {
    /// A writer and the task that does its work, which the caller runs.
    #[must_use]
    pub fn new(store: Store, clock: Arc<dyn Clock>, settings: AuditSettings) -> (Self, AuditTask) {
        let AuditSettings { node, queue, batch } = settings;
        let workers = Workers::default();
        let (jobs, queue) = Queue::new(queue, batch, workers.clone());
        let completions = Completions::default();
        let state = Arc::new(TaskState::new());
        let task = AuditTask {
            store,
            clock,
            node,
            queue,
            completions: completions.clone(),
            state: Arc::clone(&state),
        };
        (Self { jobs, workers, completions, state }, task)
    }

    /// Says that something will have to be committed in a moment, so that commits may wait for it: as
    /// long as the last one took, 1 ms at most.
    #[must_use]
    pub fn at_work(&self) -> AtWork {
        self.workers.begin()
    }

    /// Commits an intent, and with it the idempotency key it names and a use of each approval it names:
    /// after this the effect may begin. Of any number of intents with the same key one begins, and with
    /// the same approval as many as it has uses.
    pub fn intent(
        &self,
        mut intent: NewIntent,
        deadline: Instant,
    ) -> impl Future<Output = Result<Began, StoreError>> + Send {
        intent.record.pack_fast();
        self.commit(Box::new(Work::Intent(intent)), deadline)
    }

    /// Commits an event and removes the intent of the same id, if there is one, with it.
    pub fn finish(
        &self,
        mut event: NewEvent,
        deadline: Instant,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        event.texts.pack();
        self.commit(Box::new(Work::Finish(event)), deadline).map_ok(drop)
    }

    /// Like [`Self::finish`], and ends the idempotency key that the intent came with.
    pub fn finish_keyed(
        &self,
        mut event: NewEvent,
        end: KeyEnd,
        deadline: Instant,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        event.texts.pack();
        self.commit(Box::new(Work::FinishKeyed(event, end)), deadline).map_ok(drop)
    }

    /// Commits an event that had no intent.
    pub fn append(
        &self,
        mut event: NewEvent,
        deadline: Instant,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        event.texts.pack();
        self.commit(Box::new(Work::Append(event)), deadline).map_ok(drop)
    }

    /// Commits an event with the change of an approval that it tells of, or neither: `false` if the
    /// approval was changed or ended meanwhile, or if it is new and an open one of its org and digest
    /// exists, be it over its time. Made again after [`StoreError::OutcomeUnknown`], a change that was
    /// made is `false`.
    pub async fn change_approval(
        &self,
        change: ApprovalChange,
        mut event: NewEvent,
        deadline: Instant,
    ) -> Result<bool, StoreError> {
        event.texts.pack();
        let row = Box::new(RowChange::of(&change)?);
        let made = self.commit(Box::new(Work::Change(event, row)), deadline).await?;
        Ok(made == Began::Begun)
    }

    /// Commits an event with the end of the provider's task that it tells of, or neither: `false` if the task has ended.
    /// `answer` is kept with the task, sealed, `until` then at most.
    pub async fn end_provider_task(
        &self,
        call: EventId,
        answer: Vec<u8>,
        until: Timestamp,
        mut event: NewEvent,
        deadline: Instant,
    ) -> Result<bool, StoreError> {
        event.texts.pack();
        let row = Box::new(RowChange::of_task_end(event.org_id, call, answer, until));
        let made = self.commit(Box::new(Work::Change(event, row)), deadline).await?;
        Ok(made == Began::Begun)
    }

    /// Numbers of written and waiting records.
    #[must_use]
    pub fn progress(&self) -> AuditProgress {
        AuditProgress {
            commits: self.state.commits.load(Ordering::Relaxed),
            jobs: self.state.written.load(Ordering::Relaxed),
            waiting: self.jobs.max_capacity() - self.jobs.capacity(),
        }
    }

    /// Time for which the commit under way has been waited for; zero while there is none.
    #[must_use]
    pub fn stuck_for(&self) -> Duration {
        self.state.age()
    }

    async fn commit(&self, work: Box<Work>, deadline: Instant) -> Result<Began, StoreError> {
        let (waiter, answered) = self.completions.register();
        let (begun, mut beginning) = oneshot::channel();
        match timeout_at(deadline, self.jobs.send(Job { work, begun, waiter })).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(unavailable("the audit writer has stopped")),
            Err(_) => return Err(unavailable("the audit queue is full")),
        }
        let reason = match timeout_at(deadline, answered).await {
            Ok(Ok(result)) => return result,
            Ok(Err(_)) => "the audit writer has stopped",
            Err(_) => "the audit writer did not answer in time",
        };
        // From here on the task cannot begin it any more.
        beginning.close();
        match beginning.try_recv() {
            Ok(()) => Err(StoreError::OutcomeUnknown(reason.to_owned())),
            Err(_) => Err(unavailable(reason)),
        }
    }
}

fn unavailable(reason: &str) -> StoreError {
    StoreError::Unavailable(reason.to_owned())
}
