//! When a child that failed may be started again.

use std::time::Duration;

use tokio::time::Instant;

const FIRST_REST: Duration = Duration::from_millis(250);
const LONGEST_REST: Duration = Duration::from_secs(30);

/// Counts failures in a row. The first death is followed by a start at once, every further one by
/// a rest twice as long as the one before, and a part of that longer by which programs differ.
#[derive(Debug)]
pub(super) struct Backoff {
    jitter: f64,
    failures: u32,
    rests_until: Option<Instant>,
}

impl Backoff {
    pub(super) const fn new(jitter: f64) -> Self {
        Self { jitter, failures: 0, rests_until: None }
    }

    /// A child ended; `proved` when it had answered calls, which clears what was before it.
    pub(super) fn died(&mut self, now: Instant, proved: bool) {
        self.failures = if proved { 1 } else { self.failures.saturating_add(1) };
        self.rest(now);
    }

    /// A start came to nothing.
    pub(super) fn start_failed(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1).max(2);
        self.rest(now);
    }

    /// A start has succeeded. What failed before it counts until the child has answered calls.
    pub(super) fn started(&mut self) {
        self.rests_until = None;
    }

    /// Returns true if it is too early for another start.
    pub(super) fn is_resting(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| now < until)
    }

    fn rest(&mut self, now: Instant) {
        let doublings = self.failures.saturating_sub(2).min(16);
        let rest = (FIRST_REST * 2_u32.pow(doublings)).min(LONGEST_REST);
        let rest = rest + rest.mul_f64(self.jitter);
        self.rests_until = (self.failures > 1).then(|| now + rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_death_costs_no_rest_and_each_further_one_twice_the_time() {
        let mut backoff = Backoff::new(0.0);
        let now = Instant::now();

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
    fn a_start_that_fails_is_followed_by_a_rest_and_one_that_succeeds_is_not() {
        let mut backoff = Backoff::new(0.0);
        let now = Instant::now();

        backoff.start_failed(now);
        assert!(backoff.is_resting(now));

        backoff.started();
        assert!(!backoff.is_resting(now));
    }

    #[test]
    fn programs_that_failed_together_do_not_come_back_together() {
        let now = Instant::now();
        let rests = [0.0, 0.25, 0.5].map(|jitter| {
            let mut backoff = Backoff::new(jitter);
            for _ in 0..12 {
                backoff.start_failed(now);
            }
            [30, 37, 45].into_iter().find(|seconds| {
                !backoff.is_resting(now + Duration::from_millis(seconds * 1_000 + 500))
            })
        });

        assert_eq!(rests, [Some(30), Some(37), Some(45)]);
    }
}
