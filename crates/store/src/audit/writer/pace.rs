//! When to commit: at once, or in a moment and together with more.
//!
//! What a commit costs depends little on how many jobs are in it, and a thread that commits whatever
//! has come meanwhile is woken for few of them at a time. So a busy writer waits as long as its last
//! commit took, when there is less to do than then. Few callers are never kept waiting: they
//! would gain nothing, and each waits for two commits.

use std::time::Duration;

/// Whether so many jobs are many.
const MANY: usize = 12;

const LONGEST: Duration = Duration::from_millis(1);

/// What the last commit was like.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    pub(super) jobs: usize,
    pub(super) took: Duration,
}

impl Pace {
    /// How long to wait for more when so many jobs are there.
    pub(super) fn rest(self, waiting: usize) -> Option<Duration> {
        (self.jobs >= MANY && waiting < self.jobs).then(|| self.took.min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: Duration = Duration::from_micros(300);

    #[test]
    fn few_are_never_kept_waiting() {
        let pace = Pace { jobs: 11, took: COMMIT };

        assert_eq!(pace.rest(1), None);
        assert_eq!(Pace::default().rest(1), None);
    }

    #[test]
    fn less_than_last_time_waits_as_long_as_that_took() {
        let pace = Pace { jobs: 12, took: COMMIT };

        assert_eq!(pace.rest(11), Some(COMMIT));
        assert_eq!(pace.rest(12), None);
    }

    #[test]
    fn nobody_waits_for_a_disk_that_was_slow_once() {
        let pace = Pace { jobs: 200, took: Duration::from_secs(3) };

        assert_eq!(pace.rest(1), Some(LONGEST));
    }
}
