//! Time and randomness of the machine, for the parts that are given theirs.

use std::time::SystemTime;

use aws_lc_rs::rand;
use portcullis_core::{
    clock::{Clock, Timestamp},
    random::Random,
};

#[derive(Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "a benchmark runs on the time of the machine")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

#[derive(Debug)]
pub(crate) struct SystemRandom;

impl Random for SystemRandom {
    #[expect(clippy::expect_used, reason = "without randomness there is nothing to measure")]
    fn fill(&self, bytes: &mut [u8]) {
        rand::fill(bytes).expect("the random source of the operating system works");
    }
}
