//! Large answers of a server that lately sent one that was too large: one at a time, and after
//! another such one a rest.
//!
//! An answer that outgrows the cap was read up to it for nothing, and costs as much processor time
//! as thousands of small ones. That is no reason to keep anybody from the tool: a caller may have
//! asked for too much, and the next asks for less. It is a reason not to let such answers have the
//! processors to themselves.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, sleep_until, timeout},
};

/// From how many bytes on an answer is large.
pub(super) const LARGE: usize = 64 << 10;
/// Time for which an answer that was too large makes others take turns.
const REMEMBERED: Duration = Duration::from_secs(10);
/// The rest after one, as many times as long as it was read.
const REST: u32 = 20;
const LONGEST_REST: Duration = Duration::from_millis(200);
/// No request waits longer for a turn: its holder may be reading slowly.
const PATIENCE: Duration = Duration::from_secs(3);

/// The turns of one server.
#[derive(Debug)]
pub(super) struct LargeAnswers {
    free: Semaphore,
    flood: Mutex<Option<Flood>>,
}

/// The last answer that was too large.
#[derive(Debug, Clone, Copy)]
struct Flood {
    ended: Instant,
    rests_until: Instant,
}

/// Lets one large answer be read, until it is dropped.
#[derive(Debug)]
pub(super) struct LargeAnswerTurn<'a> {
    large_answers: &'a LargeAnswers,
    _permit: Option<SemaphorePermit<'a>>,
    began: Instant,
}

impl Default for LargeAnswers {
    fn default() -> Self {
        Self { free: Semaphore::new(1), flood: Mutex::new(None) }
    }
}

impl LargeAnswers {
    /// Returns true if large answers take turns.
    pub(super) fn are_taken(&self) -> bool {
        self.last_flood().is_some()
    }

    /// Waits for a turn, at most three seconds. Does not wait at all for a server that behaves.
    pub(super) async fn take(&self) -> LargeAnswerTurn<'_> {
        if !self.are_taken() {
            return LargeAnswerTurn { large_answers: self, _permit: None, began: Instant::now() };
        }
        let turn = async {
            let permit = self.free.acquire().await.ok();
            if let Some(flood) = self.last_flood() {
                sleep_until(flood.rests_until).await;
            }
            permit
        };
        let permit = timeout(PATIENCE, turn).await.ok().flatten();
        LargeAnswerTurn { large_answers: self, _permit: permit, began: Instant::now() }
    }

    fn last_flood(&self) -> Option<Flood> {
        let flood = *self.flood.lock().unwrap_or_else(PoisonError::into_inner);
        flood.filter(|flood| flood.ended.elapsed() < REMEMBERED)
    }
}

impl LargeAnswerTurn<'_> {
    /// The answer was too large.
    pub(super) fn overflowed(self) {
        let now = Instant::now();
        let rest = (now - self.began).saturating_mul(REST).min(LONGEST_REST);
        let flood = Flood { ended: now, rests_until: now + rest };
        *self.large_answers.flood.lock().unwrap_or_else(PoisonError::into_inner) = Some(flood);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: Duration = Duration::from_millis(4);

    async fn flood(large_answers: &LargeAnswers) {
        let turn = large_answers.take().await;
        tokio::time::sleep(READING).await;
        turn.overflowed();
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_behaves_is_read_all_at_once() {
        let large_answers = LargeAnswers::default();
        let begun = Instant::now();

        let _held =
            [large_answers.take().await, large_answers.take().await, large_answers.take().await];

        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn floods_come_one_at_a_time_with_rests_between_them() {
        let large_answers = LargeAnswers::default();
        flood(&large_answers).await;
        let begun = Instant::now();

        tokio::join!(flood(&large_answers), flood(&large_answers));

        assert_eq!(begun.elapsed(), READING * 2 * (REST + 1));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_long_for_one_who_reads_slowly_nor_after_a_while() {
        let large_answers = LargeAnswers::default();
        flood(&large_answers).await;
        let slow = large_answers.take().await;
        let begun = Instant::now();

        let other = large_answers.take().await;
        let waited = begun.elapsed();
        tokio::time::sleep(REMEMBERED).await;
        let begun = Instant::now();
        let later = large_answers.take().await;

        assert_eq!((waited, begun.elapsed()), (PATIENCE, Duration::ZERO));
        drop((slow, other, later));
    }
}
