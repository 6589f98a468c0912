//! Rate limits as obligations: taken before the call, given back when it is refused all the same.

use serde_json::{Map, Value, json};

use super::ruling::{Denial, Ruling};
use crate::policy::{Full, Obligation, Rate};

/// Counts what has been taken from rates. A rate that nobody counts would be no limit, so there is
/// no call without one of these.
pub trait Limiter {
    /// Takes one from the rate of this key, or says when there will be room.
    fn take(&self, key: &str, rate: Rate) -> Result<(), Full>;

    /// Gives one back.
    fn give_back(&self, key: &str, rate: Rate);
}

/// What was taken for one call. Given back when it is dropped, unless it is kept.
pub(super) struct Taken<'a> {
    limiter: &'a dyn Limiter,
    taken: Vec<(String, Rate)>,
}

impl<'a> Taken<'a> {
    /// Takes from every rate that the obligations name. Says no by the policy of the first that is
    /// used up.
    pub(super) fn all(
        obligations: &[Obligation],
        limiter: &'a dyn Limiter,
        ruling: &Ruling,
    ) -> Result<Self, Denial> {
        let mut taken = Self { limiter, taken: Vec::new() };
        for obligation in obligations {
            let Obligation::RateLimit { key, rate, reason, .. } = obligation else { continue };
            match limiter.take(key, *rate) {
                Ok(()) => taken.taken.push((key.clone(), *rate)),
                Err(full) => {
                    let mut ruling = ruling.clone();
                    ruling.decided_by_obligation(obligation);
                    let denial = Denial::new(ruling, reason.clone());
                    return Err(denial.telling(used_up(obligation, full)));
                }
            }
        }
        Ok(taken)
    }

    /// The call is made.
    pub(super) fn keep(mut self) {
        self.taken.clear();
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        for (key, rate) in self.taken.drain(..) {
            self.limiter.give_back(&key, rate);
        }
    }
}

fn used_up(obligation: &Obligation, full: Full) -> Map<String, Value> {
    let mut shown = obligation.to_json();
    if let Some(Value::Object(properties)) = shown.get_mut("properties") {
        properties.insert("retry_after".to_owned(), full.retry_after_s.into());
    }
    Map::from_iter([
        ("obligation".to_owned(), shown),
        ("retry_after".to_owned(), json!(full.retry_after_s)),
    ])
}
