//! When to commit: at once, or in a moment and together with more.
//!
//! The cost of a commit depends little on its number of jobs, and a thread that commits whatever
//! has come meanwhile is woken for few of them at a time. So a commit waits while fewer wait for it
//! than are still on their way to it, no longer than the last one took. With all of them in one
//! commit no caller would work while it is made, with half of them the others do. Few callers are
//! never kept waiting: they would gain nothing, and each waits for two commits.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// From how many at work on it is worth to wait.
const MANY: usize = 8;

const LONGEST: Duration = Duration::from_millis(1);

/// Looks at the number of waiting jobs during a wait.
pub(super) const LOOKS: u32 = 8;

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
    pub(super) fn outnumber(&self, waiting: usize) -> bool {
        let at_work = self.0.load(Ordering::Relaxed);
        at_work >= MANY && waiting < at_work / 2
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Pause between two looks, by the duration of the last commit.
pub(super) fn between_looks(took: Duration) -> Duration {
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
