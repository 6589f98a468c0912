//! The keys of one issuer, remembered.
//!
//! **Invariant:** however many JWTs come and whatever is in them, at most one fetch is under way,
//! one follows a failed one only after 10 seconds, and an unknown `kid` causes at most one a
//! minute. No caller waits longer than a fetch may take.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use portcullis_core::{
    authorization::MAX_CLIENT_KEYS,
    clock::Timestamp,
    trust::{KeySet, KeySetError, LEEWAY_SECONDS, MAX_KEYS},
};
use portcullis_upstream::{FetchError, KeyLocation, Outbound, jwks::FETCH_TIMEOUT};
use tokio::{sync::watch, time::timeout};
use tokio_util::task::TaskTracker;

use super::KeySource;
use crate::telemetry::counters;

/// Seconds for which fetched keys are taken for the issuer's. A key it withdraws is trusted for
/// no longer than this while the issuer can be reached.
const FRESH_SECONDS: i64 = 5 * 60;
/// Seconds after a failure before the next try.
const RETRY_SECONDS: i64 = 10;
/// Seconds between fetches that an unknown `kid` causes.
const UNKNOWN_KEY_SECONDS: i64 = 60;
/// The longest anybody waits for a fetch; a little longer than that takes itself.
const PATIENCE: Duration = FETCH_TIMEOUT.saturating_add(Duration::from_secs(1));

/// The keys of one issuer.
#[derive(Debug, Clone)]
pub(crate) enum IssuerKeys {
    Static(Arc<KeySet>),
    Published(Arc<Published>),
}

/// Keys that the issuer publishes.
#[derive(Debug)]
pub(crate) struct Published {
    issuer: String,
    location: KeyLocation,
    stale_seconds: i64,
    /// Keys that are kept at most.
    most: usize,
    outbound: Outbound,
    tasks: TaskTracker,
    held: Mutex<HeldKeys>,
    fetched: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct HeldKeys {
    keys: Option<(Arc<KeySet>, Timestamp)>,
    under_way: bool,
    failed_at: Option<Timestamp>,
    unknown_at: Option<Timestamp>,
}

/// True if `at` is less than so many seconds ago. What lies in the future is not, or a clock that
/// was set back would keep old keys for as long as it was ahead.
fn is_within(at: Timestamp, seconds: i64, now: Timestamp) -> bool {
    now < at.plus_seconds(seconds) && at <= now.plus_seconds(LEEWAY_SECONDS)
}

impl HeldKeys {
    fn fresh(&self, now: Timestamp) -> Option<Arc<KeySet>> {
        let (keys, fetched_at) = self.keys.as_ref()?;
        is_within(*fetched_at, FRESH_SECONDS, now).then(|| Arc::clone(keys))
    }

    fn younger_than(&self, seconds: i64, now: Timestamp) -> Option<Arc<KeySet>> {
        let (keys, fetched_at) = self.keys.as_ref()?;
        (now < fetched_at.plus_seconds(seconds)).then(|| Arc::clone(keys))
    }

    fn may_try(&self, now: Timestamp) -> bool {
        !self.failed_at.is_some_and(|at| is_within(at, RETRY_SECONDS, now))
    }

    fn may_ask_for_unknown(&self, now: Timestamp) -> bool {
        !self.unknown_at.is_some_and(|at| is_within(at, UNKNOWN_KEY_SECONDS, now))
    }
}

impl IssuerKeys {
    pub(crate) fn new(
        issuer: String,
        source: KeySource,
        outbound: Outbound,
        tasks: TaskTracker,
    ) -> Self {
        match source {
            KeySource::Static(keys) => Self::Static(Arc::new(keys)),
            KeySource::Published { location, stale_seconds } => {
                Self::published(issuer, location, stale_seconds, MAX_KEYS, outbound, tasks)
            }
        }
    }

    /// The keys of a client that describes itself. Its name is not told: strangers choose it.
    pub(crate) fn of_client(location: KeyLocation, outbound: Outbound, tasks: TaskTracker) -> Self {
        let name = "clients with a metadata document".to_owned();
        Self::published(name, location, 0, MAX_CLIENT_KEYS, outbound, tasks)
    }

    fn published(
        issuer: String,
        location: KeyLocation,
        stale_seconds: i64,
        most: usize,
        outbound: Outbound,
        tasks: TaskTracker,
    ) -> Self {
        Self::Published(Arc::new(Published {
            issuer,
            location,
            stale_seconds,
            most,
            outbound,
            tasks,
            held: Mutex::default(),
            fetched: watch::Sender::new(()),
        }))
    }

    /// Returns true if [`Self::current`] fetches nothing.
    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        match self {
            Self::Static(_) => true,
            Self::Published(published) => published.lock_keys().fresh(now).is_some(),
        }
    }

    /// The keys to verify with now. While the issuer cannot be reached these may be old ones, up
    /// to the configured age; `None` beyond it, and before they could be fetched at all.
    pub(crate) async fn current(&self, now: Timestamp) -> Option<Arc<KeySet>> {
        match self {
            Self::Static(keys) => Some(Arc::clone(keys)),
            Self::Published(published) => published.current(now).await,
        }
    }

    /// Keys that may hold one that `known` does not. The same ones if it is too early to ask the
    /// issuer again; `None` if the issuer cannot be reached.
    pub(crate) async fn newer_than(
        &self,
        known: &Arc<KeySet>,
        now: Timestamp,
    ) -> Option<Arc<KeySet>> {
        match self {
            Self::Static(keys) => Some(Arc::clone(keys)),
            Self::Published(published) => published.newer_than(known, now).await,
        }
    }

    /// Result of a fetch made now; it is not remembered.
    pub(crate) async fn try_now(&self) -> Result<Arc<KeySet>, FetchError> {
        match self {
            Self::Static(keys) => Ok(Arc::clone(keys)),
            Self::Published(published) => {
                published.outbound.fetch_keys(&published.location).await.map(Arc::new)
            }
        }
    }
}

impl Published {
    async fn current(self: &Arc<Self>, now: Timestamp) -> Option<Arc<KeySet>> {
        let mut news = self.fetched.subscribe();
        {
            let mut held = self.lock_keys();
            if let Some(fresh) = held.fresh(now) {
                return Some(fresh);
            }
            if !held.under_way {
                if !held.may_try(now) {
                    return held.younger_than(self.oldest(), now);
                }
                self.fetch(&mut held, now);
            }
        }
        // Whether it came to an end or not: what is known now has to do.
        let _ = timeout(PATIENCE, news.changed()).await;
        self.lock_keys().younger_than(self.oldest(), now)
    }

    async fn newer_than(
        self: &Arc<Self>,
        known: &Arc<KeySet>,
        now: Timestamp,
    ) -> Option<Arc<KeySet>> {
        let mut news = self.fetched.subscribe();
        {
            let mut held = self.lock_keys();
            if let Some((keys, _)) = &held.keys
                && !Arc::ptr_eq(keys, known)
            {
                return Some(Arc::clone(keys));
            }
            if !held.under_way {
                if !held.may_try(now) || !held.may_ask_for_unknown(now) {
                    return held.failed_at.is_none().then(|| Arc::clone(known));
                }
                held.unknown_at = Some(now);
                self.fetch(&mut held, now);
            }
        }
        let _ = timeout(PATIENCE, news.changed()).await;
        let held = self.lock_keys();
        let (keys, _) = held.keys.as_ref()?;
        (!Arc::ptr_eq(keys, known)).then(|| Arc::clone(keys))
    }

    fn oldest(&self) -> i64 {
        FRESH_SECONDS.saturating_add(self.stale_seconds)
    }

    fn lock_keys(&self) -> MutexGuard<'_, HeldKeys> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a fetch; its waiters are woken when it has ended, whatever the result.
    fn fetch(self: &Arc<Self>, held: &mut HeldKeys, now: Timestamp) {
        held.under_way = true;
        let flight = Flight(Arc::clone(self));
        self.tasks.spawn(async move {
            let published = &flight.0;
            let result = published.outbound.fetch_keys(&published.location).await;
            // A key may be good for two algorithms.
            let fits = |keys: KeySet| {
                let fits = keys.ids().count() <= 2 * published.most;
                if fits { Ok(keys) } else { Err(FetchError::Keys(KeySetError::Many)) }
            };
            published.remember(result.and_then(fits), now);
        });
    }

    fn remember(&self, result: Result<KeySet, FetchError>, now: Timestamp) {
        let issuer = &self.issuer;
        counters::issuer(issuer, result.is_ok());
        let mut held = self.lock_keys();
        match result {
            Ok(keys) => {
                if keys.is_empty() {
                    tracing::warn!(%issuer, "the issuer publishes no key that can be used");
                }
                held.failed_at = None;
                held.keys = Some((Arc::new(keys), now));
            }
            Err(error) => {
                tracing::warn!(%issuer, %error, "the keys of an issuer cannot be fetched");
                held.failed_at = Some(now);
            }
        }
    }
}

/// A fetch under way. Dropped, also by a panic, it lets the next one begin.
struct Flight(Arc<Published>);

impl Drop for Flight {
    fn drop(&mut self) {
        let mut held = self.0.lock_keys();
        held.under_way = false;
        // Told before anybody can begin the next one, whose waiters this is no news for.
        self.0.fetched.send_replace(());
    }
}
