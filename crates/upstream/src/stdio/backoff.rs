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
    pub(super) fn died(&mut self, proved: bool) {
        self.failures = if proved { 1 } else { self.failures.saturating_add(1) };
        self.rest();
    }

    /// A start begins. Unless [`Self::started`] follows, even because nobody waits any longer, it
    /// counts as failed.
    pub(super) fn starting(&mut self) {
        self.failures_before_start = self.failures;
        self.failures = self.failures.saturating_add(1).max(2);
        self.rest();
    }

    /// The start that began has succeeded.
    pub(super) fn started(&mut self) {
        self.failures = self.failures_before_start;
        self.rests_until = None;
    }

    /// Whether it is too early for another start.
    pub(super) fn is_resting(&self) -> bool {
        self.rests_until.is_some_and(|until| Instant::now() < until)
    }

    fn rest(&mut self) {
        let doublings = self.failures.saturating_sub(2).min(16);
        let rest = (FIRST_REST * 2_u32.pow(doublings)).min(LONGEST_REST);
        self.rests_until = (self.failures > 1).then(|| Instant::now() + rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_death_costs_no_rest_and_each_further_one_twice_the_time() {
        let mut backoff = Backoff::default();

        backoff.died(true);
        assert!(!backoff.is_resting());

        let mut rests = Vec::new();
        for _ in 0..9 {
            backoff.died(false);
            let start = Instant::now();
            while backoff.is_resting() {
                tokio::time::advance(Duration::from_millis(250)).await;
            }
            rests.push((Instant::now() - start).as_millis());
        }
        assert_eq!(rests, [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);

        backoff.died(true);
        assert!(!backoff.is_resting());
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_that_is_given_up_counts_as_failed() {
        let mut backoff = Backoff::default();

        backoff.starting();

        assert!(backoff.is_resting());
    }
}
