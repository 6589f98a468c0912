//! Pace of a bulk read: as fast as it can while the node has nothing else to do, and at a small share
//! of one core while it has.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// Records a second from which on the node counts as busy.
const BUSY: f64 = 20.0;
/// While it is busy, rest so many times as long as a page takes when nothing is in its way.
const REST: u32 = 8;
/// Number of pages among which the quickest is sought: enough that one of them ran undisturbed, few
/// enough that they resemble the present ones.
const RECENT: usize = 64;
/// The longest rest between two pages.
const LONGEST: Duration = Duration::from_millis(500);

/// Watches how much the node records beside a bulk read.
#[derive(Debug)]
pub(crate) struct Pace {
    recorded: u64,
    since: Instant,
    woke: Instant,
    busy: bool,
    /// Durations of the last pages, the oldest first.
    pages: VecDeque<Duration>,
}

impl Pace {
    /// Begins now; `recorded` is how much the node has recorded so far.
    pub(crate) fn new(recorded: u64) -> Self {
        let now = Instant::now();
        Self { recorded, since: now, woke: now, busy: true, pages: VecDeque::with_capacity(RECENT) }
    }

    /// Rests after a page.
    pub(crate) async fn rest(&mut self, recorded: u64) {
        let now = Instant::now();
        let watched = now - self.since;
        if watched >= Duration::from_millis(250) {
            // Counts of a quarter of a second stay far below where a float loses something.
            let fresh = u32::try_from(recorded.saturating_sub(self.recorded)).unwrap_or(u32::MAX);
            self.busy = f64::from(fresh) / watched.as_secs_f64() > BUSY;
            (self.recorded, self.since) = (recorded, now);
        }
        let took = now - self.woke;
        let page = self.unhindered(took);
        if self.busy {
            // Never shorter than what it took: pages of different kinds take turns.
            tokio::time::sleep(page.saturating_mul(REST).max(took).min(LONGEST)).await;
        } else {
            tokio::task::yield_now().await;
        }
        self.woke = Instant::now();
    }

    /// Duration of a page by itself. One that had to wait for others took longer, and to rest for
    /// that as well would make a bulk read the slower the busier the node is, up to never.
    fn unhindered(&mut self, took: Duration) -> Duration {
        if self.pages.len() == RECENT {
            self.pages.pop_front();
        }
        self.pages.push_back(took);
        self.pages.iter().min().copied().unwrap_or(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_rests_while_others_work_and_runs_when_they_do_not() {
        let mut pace = Pace::new(0);

        let begun = Instant::now();
        tokio::time::advance(Duration::from_millis(300)).await;
        pace.rest(1_000).await;
        let busy = begun.elapsed();
        tokio::time::advance(Duration::from_millis(300)).await;
        let begun = Instant::now();
        pace.rest(1_001).await;

        assert_eq!(busy, Duration::from_millis(800));
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_that_had_to_wait_does_not_make_it_rest_longer() {
        let mut pace = Pace::new(0);
        let quick = Duration::from_millis(10);

        tokio::time::advance(quick).await;
        pace.rest(0).await;
        tokio::time::advance(quick * 5).await;
        let begun = Instant::now();
        pace.rest(1_000).await;

        assert_eq!(begun.elapsed(), quick * REST);
    }
}
