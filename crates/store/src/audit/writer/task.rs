//! The task that writes.
//!
//! SQLite blocks its writer, so there it is a thread of its own, which takes the jobs from the
//! queue, commits them and wakes who waits for them: no other thread has part in it.

use async_recursion::async_recursion as boxed;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use portcullis_core::clock::Clock;
use tokio::{sync::oneshot, time::Instant};

use super::{
    completions::Completions,
    jobs::{BegunJob, Job, Parts, Work},
    pace::Queue,
};
use crate::{
    db::{Batch, Db, Log, LogWriter, Store},
    error::StoreError,
};

/// The work of an [`AuditWriter`]; it must be run for anything to be written.
#[derive(Debug)]
pub struct AuditTask {
    pub(super) store: Store,
    pub(super) clock: Arc<dyn Clock>,
    /// The name of this node, written into its intents.
    pub(super) node: String,
    pub(super) queue: Queue<Job>,
    pub(super) completions: Completions<Box<Work>>,
    pub(super) state: Arc<TaskState>,
}

/// State of the task, for those who watch it.
#[derive(Debug)]
pub(super) struct TaskState {
    pub(super) commits: AtomicU64,
    pub(super) written: AtomicU64,
    started: Instant,
    /// Begin of the commit under way, in milliseconds after the start; 0 while nothing is committed.
    begun: AtomicU64,
}

impl TaskState {
    pub(super) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self { commits: zero(), written: zero(), started: Instant::now(), begun: zero() }
    }

    fn begin(&self) {
        self.begun.store(self.now().max(1), Ordering::Relaxed);
    }

    fn end(&self, jobs: &[BegunJob], result: &Result<(), StoreError>) {
        self.begun.store(0, Ordering::Relaxed);
        if result.is_ok() {
            self.commits.fetch_add(1, Ordering::Relaxed);
            let jobs = u64::try_from(jobs.len()).unwrap_or(u64::MAX);
            self.written.fetch_add(jobs, Ordering::Relaxed);
        }
    }

    /// Time for which the commit under way has been waited for; zero if there is none.
    pub(super) fn age(&self) -> Duration {
        match self.begun.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            begun => Duration::from_millis(self.now().saturating_sub(begun)),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl AuditTask {
    /// Commits jobs until every [`super::AuditWriter`] is gone and the last job is done.
    #[boxed]
    pub async fn run(self) {
        match self.store.db.clone() {
            Db::Sqlite { log, .. } => self.run_on_thread(log).await,
            Db::Postgres(pool) => {
                let writer = LogWriter::new(pool, self.store.row_key.clone());
                self.run_as_task(writer).await;
            }
        }
    }

    async fn run_as_task(mut self, mut writer: LogWriter) {
        loop {
            let waiting = self.receive(&mut writer).await;
            if waiting.is_empty() {
                return;
            }
            let mut parts = Parts::begin(waiting);
            while let Some(part) = parts.next() {
                let mut batch = Batch::of(&part);
                let committed_at = self.clock.now().as_micros();
                self.state.begin();
                let result = writer.commit(&self.node, committed_at, &mut batch).await;
                self.state.end(&part, &result);
                let result = result.map(|()| batch.losers);
                parts.settle(part, &result, &self.completions);
            }
        }
    }

    /// Waits for jobs, and meanwhile for the pool to be closed: it waits for its connections.
    async fn receive(&mut self, writer: &mut LogWriter) -> Vec<Job> {
        let closing = writer.closing();
        let received = closing.run_until_cancelled(self.queue.take()).await;
        if let Some(waiting) = received {
            return waiting;
        }
        writer.let_go();
        self.queue.take().await
    }

    /// Returns when the thread has ended. Where none can be started the jobs are dropped, which
    /// tells who waits for them that the writer has stopped.
    async fn run_on_thread(self, log: Log) {
        let (ending, ended) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("audit-writer".to_owned());
        let started = thread.spawn(move || {
            self.write(&log);
            drop(ending);
        });
        if started.is_ok() {
            // The other end only ever goes away.
            let _ = ended.await;
        }
    }

    fn write(mut self, log: &Log) {
        let mut took = Duration::ZERO;
        loop {
            let waiting = self.queue.take_blocking(took);
            if waiting.is_empty() {
                return;
            }
            let begun = Instant::now();
            let mut parts = Parts::begin(waiting);
            while let Some(part) = parts.next() {
                let mut batch = Batch::of(&part);
                self.state.begin();
                let result = log.blocking_turn(|connection| {
                    let committed_at = self.clock.now().as_micros();
                    connection.commit(&self.node, committed_at, &mut batch)
                });
                self.state.end(&part, &result);
                let result = result.map(|()| batch.losers);
                parts.settle(part, &result, &self.completions);
            }
            took = begun.elapsed();
        }
    }
}
