//! Finding out that a child hangs: a request ran out of time, and then it answers nothing at all.
//!
//! A child that answers one request at a time is of no use to anybody while it hangs. One that does
//! several things at a time, or was only late, gives a sign of life and goes on.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::sync::Notify;

/// The time for a sign of life.
const GRACE: Duration = Duration::from_secs(3);

/// Signs of life of one child, and doubts in it.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    answers: AtomicU64,
    doubted: Notify,
}

impl Liveness {
    /// The child answered something, whatever it was.
    pub(super) fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    /// A request that was sent ran out of time.
    pub(super) fn health(&self) {
        self.doubted.notify_one();
    }

    /// Returns once the child gave no sign of life after a doubt. `ask` is to make it give one.
    pub(super) async fn wait_until_lost(&self, ask: impl Fn()) {
        loop {
            self.doubted.notified().await;
            let before = self.answers.load(Ordering::Relaxed);
            ask();
            tokio::time::sleep(GRACE).await;
            if self.answers.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_sign_of_life_in_time_ends_a_doubt_and_silence_does_not() {
        let liveness = Liveness::default();
        let asked = Cell::new(0);
        let mut lost = Box::pin(liveness.wait_until_lost(|| asked.set(asked.get() + 1)));

        liveness.answered();
        tokio::time::advance(GRACE * 9).await;
        assert!(lost.as_mut().now_or_never().is_none(), "nobody doubts a silent child");
        liveness.health();
        assert!(lost.as_mut().now_or_never().is_none());
        liveness.answered();
        tokio::time::advance(GRACE * 2).await;
        assert!(lost.as_mut().now_or_never().is_none(), "it was late");
        liveness.health();
        assert!(lost.as_mut().now_or_never().is_none());
        tokio::time::advance(GRACE * 2).await;

        assert!(lost.as_mut().now_or_never().is_some());
        drop(lost);
        assert_eq!(asked.get(), 2);
    }
}
