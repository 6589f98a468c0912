//! Usage of the rates that policies set: on this node since it started, or in the counters that
//! nodes share.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
};

use portcullis_core::{
    call::Limiter,
    clock::Timestamp,
    id::OrgId,
    policy::{Full, Rate},
};
use portcullis_store::{CountersError, SharedCounters};
use tokio_util::task::TaskTracker;

use super::Policies;
use crate::request::Ctx;

/// Many small locks: calls that are not counted together hardly ever wait for each other.
const SHARDS: usize = 32;
/// A shard is swept when it has grown by so many keys.
const SWEEP_AFTER: usize = 1_024;

/// The moments until which rates are spent, by key.
#[derive(Debug)]
pub(crate) struct Rates {
    hasher: RandomState,
    shards: [Mutex<RateShard>; SHARDS],
}

#[derive(Debug, Default)]
struct RateShard {
    spent: HashMap<String, i64>,
    swept_to: usize,
}

impl Rates {
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::new(), shards: Default::default() }
    }

    /// The rates as they are counted for a call that came at `now`.
    pub(crate) const fn at(&self, now: Timestamp) -> RatesAt<'_> {
        RatesAt { rates: self, now }
    }

    fn shard(&self, key: &str) -> Option<MutexGuard<'_, RateShard>> {
        let hash = usize::try_from(self.hasher.hash_one(key) % SHARDS as u64).ok()?;
        let shard = self.shards.get(hash)?;
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl RateShard {
    /// Forgets what is made good again: a key that is not there has nothing spent.
    fn sweep(&mut self, now: Timestamp) {
        if self.spent.len() >= self.swept_to + SWEEP_AFTER {
            self.spent.retain(|_, until| *until > now.as_micros());
            self.swept_to = self.spent.len();
        }
    }
}

/// The rates at one moment.
#[derive(Debug)]
pub(crate) struct RatesAt<'a> {
    rates: &'a Rates,
    now: Timestamp,
}

impl Limiter for RatesAt<'_> {
    fn take(&self, key: &str, rate: Rate) -> Result<(), Full> {
        // There is a shard for every key; without one nothing may pass uncounted.
        let Some(mut shard) = self.rates.shard(key) else { return Err(Full { retry_after_s: 1 }) };
        shard.sweep(self.now);
        let until = shard.spent.get(key).copied().unwrap_or(0);
        let until = rate.take(until, self.now)?;
        shard.spent.insert(key.to_owned(), until);
        Ok(())
    }

    fn give_back(&self, key: &str, rate: Rate) {
        if let Some(mut shard) = self.rates.shard(key)
            && let Some(until) = shard.spent.get_mut(key)
        {
            *until = rate.give_back(*until);
        }
    }
}

/// Limiter of a call that was counted before.
pub(crate) struct Uncounted;

impl Limiter for Uncounted {
    fn take(&self, _: &str, _: Rate) -> Result<(), Full> {
        Ok(())
    }

    fn give_back(&self, _: &str, _: Rate) {}
}

/// Limiter that counts the rates of one call.
pub(crate) enum CallLimiter<'a> {
    /// The node itself.
    Here(RatesAt<'a>),
    /// The shared counters, which were asked already.
    Shared(Prepaid<'a>),
}

impl Limiter for CallLimiter<'_> {
    fn take(&self, key: &str, rate: Rate) -> Result<(), Full> {
        match self {
            Self::Here(rates) => rates.take(key, rate),
            Self::Shared(prepaid) => prepaid.take(key, rate),
        }
    }

    fn give_back(&self, key: &str, rate: Rate) {
        match self {
            Self::Here(rates) => rates.give_back(key, rate),
            Self::Shared(prepaid) => prepaid.give_back(key, rate),
        }
    }
}

/// Reservation of one call in all its rates at once, or in none because one is used up.
pub(crate) struct Prepaid<'a> {
    counters: &'a SharedCounters,
    tasks: &'a TaskTracker,
    org: OrgId,
    rates: Vec<(String, Rate)>,
    full: Option<(usize, Full)>,
    given_back: Mutex<Vec<(String, Rate)>>,
}

impl Prepaid<'_> {
    fn take(&self, key: &str, rate: Rate) -> Result<(), Full> {
        match self.full {
            Some((place, full)) => match self.rates.get(place) {
                Some((used_up, its)) if used_up == key && *its == rate => Err(full),
                // Nothing was taken: the call ends at the one that is used up.
                Some(_) => Ok(()),
                None => Err(full),
            },
            None if self.rates.iter().any(|(known, its)| known == key && *its == rate) => Ok(()),
            // Nothing may pass that was not counted.
            None => Err(Full { retry_after_s: 1 }),
        }
    }

    fn give_back(&self, key: &str, rate: Rate) {
        if self.full.is_none() {
            let mut given = self.given_back.lock().unwrap_or_else(PoisonError::into_inner);
            given.push((key.to_owned(), rate));
        }
    }
}

impl Drop for Prepaid<'_> {
    fn drop(&mut self) {
        let given = self.given_back.get_mut().unwrap_or_else(PoisonError::into_inner);
        if given.is_empty() {
            return;
        }
        let given = std::mem::take(given);
        let counters = self.counters.clone();
        let org = self.org;
        self.tasks.spawn(async move {
            // What cannot be given back is spent: a rate is never exceeded.
            if let Err(error) = counters.give_back(org, &given).await {
                tracing::debug!(%error, "the rates taken by a refused call could not be given back");
            }
        });
    }
}

impl Policies {
    /// Limiter of a call that has to take from these rates. Where nodes count together, all of them
    /// are taken here in one round trip.
    pub(crate) async fn limiter<'a>(
        &self,
        ctx: &Ctx,
        rates: impl Iterator<Item = (&'a str, Rate)>,
    ) -> Result<CallLimiter<'_>, CountersError> {
        let here = CallLimiter::Here(self.rates.at(ctx.origin.arrived));
        let Some(counters) = &self.quotas.limits.shared else { return Ok(here) };
        let rates: Vec<_> = rates.map(|(key, rate)| (key.to_owned(), rate)).collect();
        if rates.is_empty() {
            return Ok(here);
        }
        let org = ctx.caller().org_id;
        let tasks = &self.base.tasks;
        let full = counters.take(org, &rates).await?.err();
        let given_back = Mutex::default();
        Ok(CallLimiter::Shared(Prepaid { counters, tasks, org, rates, full, given_back }))
    }

    /// Gives back what was taken from these rates for a call that is not made after all.
    pub(crate) fn give_back<'a>(&self, ctx: &Ctx, rates: impl Iterator<Item = (&'a str, Rate)>) {
        let Some(counters) = &self.quotas.limits.shared else {
            let here = self.rates.at(ctx.origin.arrived);
            rates.for_each(|(key, rate)| here.give_back(key, rate));
            return;
        };
        let org = ctx.caller().org_id;
        let tasks = &self.base.tasks;
        let rates: Vec<_> = rates.map(|(key, rate)| (key.to_owned(), rate)).collect();
        // Dropped, it gives them back.
        let given_back = Mutex::new(rates.clone());
        drop(Prepaid { counters, tasks, org, rates, full: None, given_back });
    }
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU32, thread};

    use portcullis_core::policy::Per;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn rate(count: u32) -> Rate {
        let [count, period_s] = [count, 3_600].map(|n| NonZeroU32::new(n).unwrap());
        Rate { count, period_s, per: Per::Principal }
    }

    #[test]
    fn parallel_takers_never_pass_one_too_many() {
        let rates = Rates::new();

        let passed: usize = thread::scope(|scope| {
            let taker = || (0..100).filter(|_| rates.at(NOW).take("k", rate(300)).is_ok()).count();
            let takers: Vec<_> = (0..8).map(|_| scope.spawn(taker)).collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });

        assert_eq!(passed, 300);
    }

    #[test]
    fn keys_are_counted_apart_and_what_is_given_back_is_there_again() {
        let rates = Rates::new();
        let at = rates.at(NOW);
        assert!(at.take("a", rate(1)).is_ok());
        assert!(at.take("b", rate(1)).is_ok());
        assert!(at.take("a", rate(1)).is_err());

        at.give_back("a", rate(1));

        assert!(at.take("a", rate(1)).is_ok());
    }

    #[test]
    fn what_is_made_good_is_forgotten_and_what_is_spent_is_not() {
        let rates = Rates::new();
        let later = NOW.plus_seconds(7_200);
        for number in 0..SHARDS * SWEEP_AFTER * 2 {
            rates.at(NOW).take(&number.to_string(), rate(1)).unwrap();
        }
        assert!(rates.at(NOW).take("7", rate(1)).is_err());

        for number in 0..SHARDS * SWEEP_AFTER * 2 {
            rates.at(later).take(&format!("later {number}"), rate(1)).unwrap();
        }

        let shards = rates.shards.iter();
        let kept: usize = shards.map(|shard| shard.lock().unwrap().spent.len()).sum();
        assert!(kept < SHARDS * SWEEP_AFTER * 3, "{kept}");
        assert!(rates.at(later).take("later 7", rate(1)).is_err());
    }
}
