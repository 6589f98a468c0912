//! When a child that failed may be started again.

use std::time::Duration;

use tokio::time::Instant;

const FIRST_REST: Duration = Duration::from_millis(250);
const LONGEST_REST: Duration = Duration::from_secs(30);

/// Counts failures in a row. The first death is followed by a start at once, every further one by
/// a rest twice as long as the one before.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    failures_before_start: u32,
    rests_until: Option<Instant>,
}

impl Backoff {
    /// A child ended; `proved` when it had answered calls, which clears what was before it.
    pub(super) fn died(&mut self, now: Instant, proved: bool) {
        self.failures = if proved { 1 } else { self.failures.saturating_add(1) };
        self.rest(now);
    }

    /// A start begins. Unless [`Self::started`] follows, even because nobody waits any longer, it
    /// counts as failed.
    pub(super) fn starting(&mut self, now: Instant) {
        self.failures_before_start = self.failures;
        self.failures = self.failures.saturating_add(1).max(2);
        self.rest(now);
    }

    /// The start that began has succeeded.
    pub(super) fn started(&mut self) {
        self.failures = self.failures_before_start;
        self.rests_until = None;
    }

    /// Returns true if it is too early for another start.
    pub(super) fn is_resting(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| now < until)
    }

    fn rest(&mut self, now: Instant) {
        let doublings = self.failures.saturating_sub(2).min(16);
        let rest = (FIRST_REST * 2_u32.pow(doublings)).min(LONGEST_REST);
        self.rests_until = (self.failures > 1).then(|| now + rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_death_costs_no_rest_and_each_further_one_twice_the_time() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());

        backoff.died(now, true);
        assert!(!backoff.is_resting(now));

        for expected in [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000] {
            backoff.died(now, false);
            let end = now + Duration::from_millis(expected);
            assert!(backoff.is_resting(end - Duration::from_millis(1)), "{expected}");
            assert!(!backoff.is_resting(end), "{expected}");
        }

        backoff.died(now, true);
        assert!(!backoff.is_resting(now));
    }

    #[test]
    fn a_start_that_is_given_up_counts_as_failed_and_one_that_succeeds_does_not() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());

        backoff.starting(now);
        assert!(backoff.is_resting(now));

        backoff.started();
        assert!(!backoff.is_resting(now));
        backoff.died(now, false);
        assert!(!backoff.is_resting(now));
    }
}
