//! Delivers commit results to waiting tasks, one wake-up per runtime and batch.
//!
//! Waking a task on another thread costs a system call. The writer therefore sends all results for
//! a runtime in one message to a dispatcher task of that runtime, which completes the waiters on its
//! own thread.

use std::sync::Arc;

use portcullis_lanes::Own;
use tokio::{
    runtime::{Handle, Id},
    sync::{mpsc, oneshot},
};

use super::Began;
use crate::error::StoreError;

/// Result of a job.
pub(super) type Outcome = Result<Began, StoreError>;

/// A result on its way to its waiter. The written rows `R` go along, so that they are freed on the
/// thread that allocated them: freeing memory of another thread is expensive.
struct Completion<R> {
    sender: oneshot::Sender<Outcome>,
    outcome: Outcome,
    _rows: R,
}

type CompletionBatch<R> = Vec<Completion<R>>;

/// The dispatchers, one for each runtime with waiters. Clones share them.
#[derive(Debug)]
pub(super) struct Completions<R>(Arc<Own<mpsc::UnboundedSender<CompletionBatch<R>>>>);

impl<R> Default for Completions<R> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<R> Clone for Completions<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// A task that waits for a result, and its runtime.
#[derive(Debug)]
pub(super) struct Waiter {
    runtime: Id,
    sender: oneshot::Sender<Outcome>,
}

impl<R: Send + 'static> Completions<R> {
    /// Registers a waiter on the current runtime, and starts the dispatcher of a new one.
    pub(super) fn register(&self) -> (Waiter, oneshot::Receiver<Outcome>) {
        let runtime = Handle::current();
        if self.0.of(runtime.id()).is_none() {
            self.start_dispatcher(&runtime);
        }
        let (sender, receiver) = oneshot::channel();
        (Waiter { runtime: runtime.id(), sender }, receiver)
    }

    /// Starts a dispatcher. Of two that are started at once, one ends again.
    fn start_dispatcher(&self, runtime: &Handle) {
        let (batches, mut arriving) = mpsc::unbounded_channel::<CompletionBatch<R>>();
        self.0.of_or(runtime.id(), batches);
        runtime.spawn(async move {
            while let Some(batch) = arriving.recv().await {
                for Completion { sender, outcome, _rows } in batch {
                    // The waiter may be gone; what was committed stays.
                    let _ = sender.send(outcome);
                }
            }
        });
    }

    /// Delivers all results. Those for a runtime that has ended are dropped.
    pub(super) fn deliver(&self, results: impl Iterator<Item = (Waiter, Outcome, R)>) {
        let mut batches: Vec<(Id, CompletionBatch<R>)> = Vec::new();
        for (Waiter { runtime, sender }, outcome, rows) in results {
            let completion = Completion { sender, outcome, _rows: rows };
            match batches.iter_mut().find(|(id, _)| *id == runtime) {
                Some((_, batch)) => batch.push(completion),
                None => batches.push((runtime, vec![completion])),
            }
        }
        for (runtime, batch) in batches {
            let _ = self.0.of(runtime).map(|dispatcher| dispatcher.send(batch));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn waiters_of_every_runtime_get_their_results() {
        let completions = Completions::default();
        let (waiters, registered) = std::sync::mpsc::channel();
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let completions = completions.clone();
                let waiters = waiters.clone();
                thread::spawn(move || {
                    let runtime = Builder::new_current_thread().build().unwrap();
                    runtime.block_on(async {
                        let (taken, kept) = completions.register();
                        let (refused, lost) = completions.register();
                        waiters.send((taken, refused)).unwrap();
                        (kept.await.unwrap(), lost.await.unwrap())
                    })
                })
            })
            .collect();

        let all = registered.iter().take(3).flat_map(|(taken, refused)| {
            let reason = StoreError::Unavailable("full".to_owned());
            [(taken, Ok(Began::KeyTaken), "rows"), (refused, Err(reason), "rows")]
        });
        completions.deliver(all);

        for results in threads.into_iter().map(|thread| thread.join().unwrap()) {
            assert!(matches!(results, (Ok(Began::KeyTaken), Err(StoreError::Unavailable(_)))));
        }
    }

    #[test]
    fn results_for_a_runtime_that_has_ended_are_dropped() {
        let completions = Completions::default();
        let runtime = Builder::new_current_thread().build().unwrap();
        let (gone, mut lost) = runtime.block_on(async { completions.register() });
        drop(runtime);

        completions.deliver([(gone, Ok(Began::Begun), "rows")].into_iter());

        assert!(lost.try_recv().is_err());
    }
}
