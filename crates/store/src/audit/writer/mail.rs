//! How answers reach those who wait for them.
//!
//! To wake a task on another thread costs a system call, so the answers to a batch are handed over
//! together: one task of each runtime takes them and passes them on, which costs next to nothing
//! on the same thread.

use std::sync::Arc;

use portcullis_lanes::Own;
use tokio::{
    runtime::{Handle, Id},
    sync::{mpsc, oneshot},
};

use super::Began;
use crate::error::StoreError;

/// What became of a job.
pub(super) type Outcome = Result<Began, StoreError>;

/// With the rows `R` that were written, which are let go of where they were made: memory that one
/// thread takes and another gives back is dear.
type Letters<R> = Vec<(oneshot::Sender<Outcome>, Outcome, R)>;

/// A box for each runtime on which somebody waited. Clones are the same.
#[derive(Debug)]
pub(super) struct Mail<R>(Arc<Own<mpsc::UnboundedSender<Letters<R>>>>);

impl<R> Default for Mail<R> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<R> Clone for Mail<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Whoever waits for an answer, and where.
#[derive(Debug)]
pub(super) struct Addressee {
    runtime: Id,
    answer: oneshot::Sender<Outcome>,
}

impl<R: Send + 'static> Mail<R> {
    /// An address on the runtime that this is called on.
    pub(super) fn address(&self) -> (Addressee, oneshot::Receiver<Outcome>) {
        let runtime = Handle::current();
        if self.0.of(runtime.id()).is_none() {
            self.open(&runtime);
        }
        let (answer, answered) = oneshot::channel();
        (Addressee { runtime: runtime.id(), answer }, answered)
    }

    /// Of two that are opened at once, one is closed again.
    fn open(&self, runtime: &Handle) {
        let (letters, mut arriving) = mpsc::unbounded_channel::<Letters<R>>();
        self.0.of_or(runtime.id(), letters);
        runtime.spawn(async move {
            while let Some(letters) = arriving.recv().await {
                for (answer, outcome, _rows) in letters {
                    // Who asked may be gone; what was committed stays.
                    let _ = answer.send(outcome);
                }
            }
        });
    }

    /// Answers them all. Nobody waits any more on a runtime that has ended.
    pub(super) fn deliver(&self, answers: impl Iterator<Item = (Addressee, Outcome, R)>) {
        let mut sacks: Vec<(Id, Letters<R>)> = Vec::new();
        for (Addressee { runtime, answer }, outcome, rows) in answers {
            match sacks.iter_mut().find(|(id, _)| *id == runtime) {
                Some((_, letters)) => letters.push((answer, outcome, rows)),
                None => sacks.push((runtime, vec![(answer, outcome, rows)])),
            }
        }
        for (runtime, letters) in sacks {
            let _ = self.0.of(runtime).map(|letterbox| letterbox.send(letters));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn everybody_is_answered_wherever_they_wait() {
        let mail = Mail::default();
        let (addresses, taken) = std::sync::mpsc::channel();
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let (mail, addresses) = (mail.clone(), addresses.clone());
                thread::spawn(move || {
                    let runtime = Builder::new_current_thread().build().unwrap();
                    runtime.block_on(async {
                        let (taken, kept) = mail.address();
                        let (refused, lost) = mail.address();
                        addresses.send((taken, refused)).unwrap();
                        (kept.await.unwrap(), lost.await.unwrap())
                    })
                })
            })
            .collect();

        let all = taken.iter().take(3).flat_map(|(taken, refused)| {
            let reason = StoreError::Unavailable("full".to_owned());
            [(taken, Ok(Began::KeyTaken), "rows"), (refused, Err(reason), "rows")]
        });
        mail.deliver(all);

        for answered in waiting.into_iter().map(|thread| thread.join().unwrap()) {
            assert!(matches!(answered, (Ok(Began::KeyTaken), Err(StoreError::Unavailable(_)))));
        }
    }

    #[test]
    fn a_runtime_that_has_ended_is_passed_over() {
        let mail = Mail::default();
        let runtime = Builder::new_current_thread().build().unwrap();
        let (gone, mut lost) = runtime.block_on(async { mail.address() });
        drop(runtime);

        mail.deliver([(gone, Ok(Began::Begun), "rows")].into_iter());

        assert!(lost.try_recv().is_err());
    }
}
