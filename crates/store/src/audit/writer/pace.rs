//! When to commit, and how much together: at once, or in a moment and together with more.
//!
//! The cost of a commit depends little on its number of jobs, and a thread that commits whatever
//! has come meanwhile is woken for few of them at a time. So a commit waits while fewer wait for it
//! than are still on their way to it, no longer than the last one took. With all of them in one
//! commit no caller would work while it is made, with half of them the others do. Few callers are
//! never kept waiting: they would gain nothing, and each waits for two commits.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::sync::mpsc;

/// Queued jobs from which on callers wait to queue theirs.
pub(super) const QUEUE: usize = 4096;
/// Largest number of jobs in one transaction.
pub(super) const BATCH: usize = 256;
/// From how many at work on it is worth to wait.
const MANY: usize = 8;

const LONGEST: Duration = Duration::from_millis(1);

/// Looks at the number of waiting jobs during a wait.
const LOOKS: u32 = 8;

/// Number of callers at work. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Workers(Arc<AtomicUsize>);

/// A caller that works on what will be committed, or waits for it, until it is dropped.
#[derive(Debug)]
pub struct AtWork(Workers);

impl Workers {
    pub(super) fn begin(&self) -> AtWork {
        self.0.fetch_add(1, Ordering::Relaxed);
        AtWork(self.clone())
    }

    /// Returns true if the commit should wait for more jobs.
    fn outnumber(&self, waiting: usize) -> bool {
        let at_work = self.0.load(Ordering::Relaxed);
        at_work >= MANY && waiting < at_work / 2
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Jobs that wait for a commit, and who still works on further ones.
#[derive(Debug)]
pub(super) struct Queue<J> {
    jobs: mpsc::Receiver<J>,
    waiting: Vec<J>,
    batch: usize,
    workers: Workers,
}

impl<J> Queue<J> {
    /// A queue of `most` jobs, of which `batch` are committed together, and its end for callers.
    pub(super) fn new(most: usize, batch: usize, workers: Workers) -> (mpsc::Sender<J>, Self) {
        let (sender, jobs) = mpsc::channel(most.max(1));
        (sender, Self { jobs, waiting: Vec::new(), batch: batch.max(1), workers })
    }

    /// The jobs of the next commit, as soon as there is one; none once all callers are gone.
    pub(super) async fn take(&mut self) -> Vec<J> {
        self.jobs.recv_many(&mut self.waiting, self.batch).await;
        mem::take(&mut self.waiting)
    }

    /// The same on a thread of its own, which waits for those at work as long as the last commit `took`, at most.
    pub(super) fn take_blocking(&mut self, took: Duration) -> Vec<J> {
        self.jobs.blocking_recv_many(&mut self.waiting, self.batch);
        for _ in 0..LOOKS {
            if !self.workers.outnumber(self.waiting.len()) {
                break;
            }
            thread::sleep(between_looks(took));
            while self.waiting.len() < self.batch
                && let Ok(job) = self.jobs.try_recv()
            {
                self.waiting.push(job);
            }
        }
        mem::take(&mut self.waiting)
    }
}

/// Pause between two looks, by the duration of the last commit.
fn between_looks(took: Duration) -> Duration {
    took.min(LONGEST) / LOOKS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_never_kept_waiting() {
        let workers = Workers::default();
        let _seven = [(); MANY - 1].map(|()| workers.begin());

        assert!(!workers.outnumber(1));
    }

    #[test]
    fn less_than_half_waits_for_more() {
        let workers = Workers::default();
        let ten = [(); 10].map(|()| workers.begin());

        assert_eq!([4, 5].map(|waiting| workers.outnumber(waiting)), [true, false]);
        drop(ten);
        assert!(!workers.outnumber(1), "they have what they wanted");
    }

    #[test]
    fn nobody_waits_for_a_disk_that_was_slow_once() {
        assert_eq!(between_looks(Duration::from_secs(3)) * LOOKS, LONGEST);
        assert_eq!(between_looks(Duration::from_micros(320)), Duration::from_micros(40));
    }
}
