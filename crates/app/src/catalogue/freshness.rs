//! The age of lists of tools: calls go by young ones only.
//!
//! A server may change a tool without a word. So a call that finds the list older than
//! [`OLDEST_SECONDS`] waits until the server was asked again, and one that finds it due for a look
//! has the server asked in the background and goes on. Without calls, [`MOST_TTL_SECONDS`] count.
//!
//! A new process or session of a server may have other tools than the one before: its list is [`Age::Old`].
//!
//! **Invariant:** no call goes by a list that is older than [`OLDEST_SECONDS`], also when the server
//! does not answer: it is refused then. Otherwise a server would change a tool and fail each look.

use std::{
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
    time::Duration,
};

use portcullis_core::{clock::Timestamp, refusal::Refusal};
use portcullis_upstream::{CallError, Server};

/// The oldest list that a call goes by, in seconds.
const OLDEST_SECONDS: i64 = 60;
/// From this age on calls have the server asked ahead of that.
const AHEAD_SECONDS: i64 = 40;
/// Bounds of what a server says of its list (`ttlMs`), in seconds.
const LEAST_TTL_SECONDS: i64 = 5;
const MOST_TTL_SECONDS: i64 = 5 * 60;
/// Seconds between two looks in the background while looks fail.
const RETRY_SECONDS: i64 = 5;
/// A second in microseconds. Calls that come so soon after a failed look are told the same.
const SECOND: i64 = 1_000_000;

/// Reason that there is no list.
#[derive(Debug, Clone)]
pub(crate) enum Unlisted {
    /// The upstream did not give one.
    Call(CallError),
    /// The pins of the connection cannot be read.
    Store(Refusal),
}

impl Unlisted {
    /// Refusal to answer with; `failed` makes that of a failed upstream.
    pub(crate) fn refusal(self, failed: impl FnOnce(&CallError) -> Refusal) -> Refusal {
        match self {
            Self::Call(error) => failed(&error),
            Self::Store(refusal) => refusal,
        }
    }
}

/// Age of a list as a call sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// The call goes on.
    Fresh,
    /// The call goes on, and the server is to be asked.
    Due,
    /// The call has to wait.
    Old,
}

/// The age of one list. All times are microseconds.
#[derive(Debug, Default)]
pub(crate) struct Freshness {
    /// When the look began that gave it.
    looked_at: AtomicI64,
    /// The age from which on it is not fresh any more.
    ahead: AtomicI64,
    /// The age at which it has to be looked at even without calls.
    stale: AtomicI64,
    /// Number of the process or session that gave it; 0 for a list from the store.
    peer: AtomicU64,
    /// When a look was begun in the background.
    asked_at: AtomicI64,
    /// Held by the look under way, so that lists are taken over in the order they were asked for.
    pub(crate) turn: tokio::sync::Mutex<LastLook>,
}

/// The end of the last look.
#[derive(Debug, Default)]
pub(crate) struct LastLook(Option<(Timestamp, Unlisted)>);

impl LastLook {
    /// Remembers how a look ended.
    pub(crate) fn ended(&mut self, at: Timestamp, how: &Result<(), Unlisted>) {
        self.0 = how.as_ref().err().map(|why| (at, why.clone()));
    }

    /// The failure of a look that ended a moment before `asked_at`, or after it.
    pub(crate) fn failed_since(&self, asked_at: Timestamp) -> Option<Unlisted> {
        let (at, why) = self.0.as_ref()?;
        (at.as_micros() + SECOND > asked_at.as_micros()).then(|| why.clone())
    }
}

impl Freshness {
    /// A look that began then gave a list of this process or session, which its server calls fresh for
    /// this long.
    pub(crate) fn took(&self, began: Timestamp, fresh_for: Option<Duration>, peer: u64) {
        let told = fresh_for.map(|it| i64::try_from(it.as_secs()).unwrap_or(i64::MAX));
        let ttl = told.map(|it| it.clamp(LEAST_TTL_SECONDS, MOST_TTL_SECONDS));
        let ahead = ttl.unwrap_or(AHEAD_SECONDS).min(AHEAD_SECONDS);
        let stale = ttl.unwrap_or(MOST_TTL_SECONDS).max(OLDEST_SECONDS);
        self.ahead.store(ahead * SECOND, Ordering::Release);
        self.stale.store(stale * SECOND, Ordering::Release);
        self.peer.store(peer, Ordering::Release);
        self.looked_at.store(began.as_micros(), Ordering::Release);
    }

    /// Number of the process or session that gave the list.
    pub(crate) fn peer(&self) -> u64 {
        self.peer.load(Ordering::Acquire)
    }

    /// Age of the list for a call of the server's at this moment.
    pub(crate) fn age_at(&self, server: &Server, now: Timestamp) -> Age {
        if server.is_peer(self.peer()) { self.age(now) } else { Age::Old }
    }

    /// Microseconds since the look. A clock that was set back tells nothing: the list is old then.
    fn elapsed(&self, now: Timestamp) -> i64 {
        let elapsed = now.as_micros() - self.looked_at.load(Ordering::Acquire);
        if elapsed < -SECOND { i64::MAX } else { elapsed }
    }

    /// Returns true if the list is of a look that began a moment before `asked_at`, or after it.
    pub(crate) fn looked_since(&self, asked_at: Timestamp) -> bool {
        self.looked_at.load(Ordering::Acquire) + SECOND > asked_at.as_micros()
    }

    fn age(&self, now: Timestamp) -> Age {
        let elapsed = self.elapsed(now);
        if elapsed < self.ahead.load(Ordering::Acquire) {
            Age::Fresh
        } else if elapsed < OLDEST_SECONDS * SECOND {
            Age::Due
        } else {
            Age::Old
        }
    }

    /// The time after which it has to be looked at even without calls.
    pub(crate) fn stale_in(&self, now: Timestamp) -> Duration {
        let left = self.stale.load(Ordering::Acquire).saturating_sub(self.elapsed(now));
        Duration::from_micros(u64::try_from(left).unwrap_or_default())
    }

    /// `true` for one caller in some seconds, which is then to begin a look in the background.
    pub(crate) fn claim(&self, now: Timestamp) -> bool {
        let asked_at = self.asked_at.load(Ordering::Acquire);
        let early = now < Timestamp::from_micros(asked_at).plus_seconds(RETRY_SECONDS);
        let micros = now.as_micros();
        let order = Ordering::AcqRel;
        !early && self.asked_at.compare_exchange(asked_at, micros, order, Ordering::Acquire).is_ok()
    }

    /// The same for a list that no call uses.
    pub(crate) fn claim_stale(&self, now: Timestamp) -> bool {
        self.stale_in(now).is_zero() && self.claim(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGAN: Timestamp = Timestamp::from_micros(1_000_000_000);

    fn age(freshness: &Freshness, seconds: i64) -> Age {
        freshness.age(BEGAN.plus_seconds(seconds))
    }

    #[test]
    fn a_list_is_looked_at_ahead_and_no_call_goes_by_one_that_is_older_than_a_minute() {
        let freshness = Freshness::default();
        assert_eq!(age(&freshness, 0), Age::Old, "nobody knows");

        for (ttl, due) in [(None, 40), (Some(0), 5), (Some(20), 20), (Some(86_400), 40)] {
            freshness.took(BEGAN, ttl.map(Duration::from_secs), 1);
            assert_eq!(age(&freshness, due - 1), Age::Fresh, "{ttl:?}");
            assert_eq!(age(&freshness, due), Age::Due, "{ttl:?}");
            assert_eq!(age(&freshness, 59), Age::Due, "{ttl:?}");
            assert_eq!(age(&freshness, 60), Age::Old, "{ttl:?}");
            assert_eq!(age(&freshness, -3_600), Age::Old, "a clock that was set back");
        }
    }

    #[test]
    fn without_calls_the_servers_word_counts_between_one_and_five_minutes() {
        let freshness = Freshness::default();
        assert!(freshness.stale_in(BEGAN).is_zero());

        for (ttl, wanted) in [(None, 300), (Some(0), 60), (Some(100), 100), (Some(86_400), 300)] {
            freshness.took(BEGAN, ttl.map(Duration::from_secs), 1);
            assert_eq!(freshness.stale_in(BEGAN), Duration::from_secs(wanted), "{ttl:?}");
        }
    }

    #[test]
    fn a_test_shares_a_look_of_the_same_moment() {
        let freshness = Freshness::default();
        assert!(!freshness.looked_since(BEGAN));
        freshness.took(BEGAN, None, 1);

        assert!(freshness.looked_since(BEGAN) && freshness.looked_since(BEGAN.plus_seconds(-5)));
        assert!(!freshness.looked_since(BEGAN.plus_seconds(1)));
    }

    #[test]
    fn one_of_many_begins_a_look() {
        let freshness = Freshness::default();
        let late = BEGAN.plus_seconds(RETRY_SECONDS);

        assert!(freshness.claim(BEGAN) && !freshness.claim(BEGAN));
        assert!(freshness.claim(late) && !freshness.claim(late));
    }
}
