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
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{
    AuditSettings,
    completions::Completions,
    jobs::{Job, Parts, Work},
    pace::{self, Workers},
    under_way::UnderWay,
};
use crate::{
    db::{Batch, Db, Log, LogWriter, Losers, Store},
    error::StoreError,
};

/// The work of an [`AuditWriter`]; it must be run for anything to be written.
#[derive(Debug)]
pub struct AuditTask {
    pub(super) store: Store,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: AuditSettings,
    pub(super) jobs: mpsc::Receiver<Job>,
    pub(super) commits: Arc<AtomicU64>,
    pub(super) written: Arc<AtomicU64>,
    pub(super) workers: Workers,
    pub(super) completions: Completions<Box<Work>>,
    pub(super) under_way: UnderWay,
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
        let mut waiting = Vec::new();
        while self.receive(&mut waiting, &mut writer).await > 0 {
            let mut parts = Parts::take_from(&mut waiting);
            while let Some(part) = parts.next() {
                let mut batch = Batch::of(&part);
                let committed_at = self.clock.now().as_micros();
                self.under_way.begin();
                let result = writer.commit(&self.settings.node, committed_at, &mut batch).await;
                self.under_way.end();
                let result = result.map(|()| batch.losers);
                self.count(&part, &result);
                parts.settle(part, &result, &self.completions);
            }
        }
    }

    /// Waits for jobs, and meanwhile for the pool to be closed: it waits for its connections.
    async fn receive(&mut self, waiting: &mut Vec<Job>, writer: &mut LogWriter) -> usize {
        let most = self.settings.batch.max(1);
        let closing = writer.closing();
        let received = closing.run_until_cancelled(self.jobs.recv_many(waiting, most)).await;
        if let Some(count) = received {
            return count;
        }
        writer.let_go();
        self.jobs.recv_many(waiting, most).await
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
        let mut waiting = Vec::new();
        let mut took = Duration::ZERO;
        while self.jobs.blocking_recv_many(&mut waiting, self.settings.batch.max(1)) > 0 {
            self.wait_for_more(took, &mut waiting);
            let begun = Instant::now();
            let mut parts = Parts::take_from(&mut waiting);
            while let Some(part) = parts.next() {
                let mut batch = Batch::of(&part);
                self.under_way.begin();
                let result = log.blocking_turn(|connection| {
                    let committed_at = self.clock.now().as_micros();
                    connection.commit(&self.settings.node, committed_at, &mut batch)
                });
                self.under_way.end();
                let result = result.map(|()| batch.losers);
                self.count(&part, &result);
                parts.settle(part, &result, &self.completions);
            }
            took = begun.elapsed();
        }
    }

    /// Waits as long as the last commit took, at most, for those who are at work.
    fn wait_for_more(&mut self, took: Duration, waiting: &mut Vec<Job>) {
        for _ in 0..pace::LOOKS {
            if !self.workers.outnumber(waiting.len()) {
                return;
            }
            thread::sleep(pace::between_looks(took));
            while waiting.len() < self.settings.batch
                && let Ok(job) = self.jobs.try_recv()
            {
                waiting.push(job);
            }
        }
    }

    fn count(&self, jobs: &[Job], result: &Result<Losers, StoreError>) {
        if result.is_ok() {
            self.commits.fetch_add(1, Ordering::Relaxed);
            let jobs = u64::try_from(jobs.len()).unwrap_or(u64::MAX);
            self.written.fetch_add(jobs, Ordering::Relaxed);
        }
    }
}
