//! Rates: the generic cell rate algorithm, as arithmetic alone.

use std::{fmt, num::NonZeroU32};

use serde::Serialize;

use crate::clock::Timestamp;

/// So many times in so long, for each of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    /// Number of calls; also the burst after a pause.
    pub count: NonZeroU32,
    /// In how many seconds.
    pub period_s: NonZeroU32,
    /// Calls that are counted together, within one org.
    pub per: Per,
}

crate::words! {
    /// Calls that are counted together.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Per {
        /// Calls of one user or service.
        Principal = "principal",
        /// Calls of one agent, for any principal; without an agent, those of the principal.
        Agent = "agent",
        Org = "org",
        Tool = "tool",
    }
}

/// There is no room now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full {
    /// When there will be, in whole seconds, at least 1.
    pub retry_after_s: u64,
}

const MICROS: i64 = 1_000_000;

impl Full {
    /// There will be room in so many microseconds.
    #[must_use]
    pub fn for_micros(wait: i64) -> Self {
        let seconds = wait.saturating_add(MICROS - 1) / MICROS;
        Self { retry_after_s: u64::try_from(seconds).unwrap_or(1).max(1) }
    }
}

impl Rate {
    const fn period(self) -> i64 {
        self.period_s.get() as i64 * MICROS
    }

    /// Interval between evenly spaced calls, in microseconds.
    #[must_use]
    pub const fn interval(self) -> i64 {
        let apart = self.period() / self.count.get() as i64;
        if apart == 0 { 1 } else { apart }
    }

    /// Microseconds by which the calls that were taken may reach ahead of the present when one more
    /// is taken.
    #[must_use]
    pub const fn slack(self) -> i64 {
        self.period() - self.interval()
    }

    /// Takes one at `now`. `spent_until` is what was given the last time, or 0: the moment, in
    /// microseconds since 1970, at which all that was taken is made good.
    pub fn take(self, spent_until: i64, now: Timestamp) -> Result<i64, Full> {
        let opens = spent_until.saturating_sub(self.slack());
        let wait = opens.saturating_sub(now.as_micros());
        if wait > 0 {
            return Err(Full::for_micros(wait));
        }
        Ok(spent_until.max(now.as_micros()).saturating_add(self.interval()))
    }

    /// Returns `spent_until` after one call that was taken is given back.
    #[must_use]
    pub const fn give_back(self, spent_until: i64) -> i64 {
        spent_until.saturating_sub(self.interval())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, period_s, per } = self;
        write!(f, "At most {count} calls in {period_s} seconds for each {}", per.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(count: u32, period_s: u32) -> Rate {
        let [count, period_s] = [count, period_s].map(|n| NonZeroU32::new(n).unwrap());
        Rate { count, period_s, per: Per::Principal }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000 + seconds * MICROS)
    }

    #[test]
    fn as_many_as_stated_pass_at_once_and_then_one_each_interval() {
        let rate = rate(3, 60);
        let mut spent = 0;
        for _ in 0..3 {
            spent = rate.take(spent, at(0)).unwrap();
        }

        assert_eq!(rate.take(spent, at(0)), Err(Full { retry_after_s: 20 }));
        assert_eq!(rate.take(spent, at(19)), Err(Full { retry_after_s: 1 }));
        spent = rate.take(spent, at(20)).unwrap();
        assert_eq!(rate.take(spent, at(20)), Err(Full { retry_after_s: 20 }));
        assert!(rate.take(spent, at(40)).is_ok());
    }

    #[test]
    fn no_span_of_the_period_after_a_burst_holds_more_than_twice_the_count() {
        let rate = rate(5, 10);
        let mut spent = 0;
        let mut passed = 0;
        for tenth in 0..100 {
            let now = Timestamp::from_micros(at(0).as_micros() + tenth * MICROS / 10);
            if let Ok(next) = rate.take(spent, now) {
                (spent, passed) = (next, passed + 1);
            }
        }

        assert_eq!(passed, 9, "five at once, then one each two seconds");
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let rate = rate(1, 60);
        let spent = rate.take(0, at(0)).unwrap();
        assert!(rate.take(spent, at(1)).is_err());

        assert!(rate.take(rate.give_back(spent), at(1)).is_ok());
    }

    #[test]
    fn more_than_one_each_microsecond_is_one_each_microsecond() {
        let rate = rate(u32::MAX, 1);

        assert!(rate.take(0, at(0)).unwrap() > at(0).as_micros());
    }
}
