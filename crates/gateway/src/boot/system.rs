//! The clock and the random source of the machine, the only place that makes real ones; and tasks
//! that live as long as the process.

use std::{cell::RefCell, time::SystemTime};

use aws_lc_rs::{error::Unspecified, rand};
use portcullis_core::{
    clock::{Clock, Timestamp},
    random::Random,
};
use zeroize::Zeroize as _;

/// The clock of the machine.
#[derive(Debug)]
pub(crate) struct SystemClock;

/// The present moment, for commands that end at once.
pub(crate) fn now() -> Timestamp {
    SystemClock.now()
}

/// Runs work that ends with the process, as a watch does.
#[expect(clippy::disallowed_methods, reason = "the work lives as long as the process")]
pub(crate) fn detach(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work);
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one real clock")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// The random source of the machine.
#[derive(Debug)]
pub(crate) struct SystemRandom;

impl Random for SystemRandom {
    #[expect(clippy::expect_used, reason = "without randomness there are no tokens: never go on")]
    fn fill(&self, bytes: &mut [u8]) {
        RANDOM.with_borrow_mut(|drawn| drawn.give(bytes)).expect("the random source works");
    }
}

thread_local! {
    static RANDOM: RefCell<DrawnBytes> = const { RefCell::new(DrawnBytes { bytes: [0; 1024], left: 0 }) };
}

/// Random bytes drawn ahead by one thread: every draw has a price that hardly depends on its
/// length. Nothing stays here that was given away.
struct DrawnBytes {
    bytes: [u8; 1024],
    left: usize,
}

impl DrawnBytes {
    fn give(&mut self, to: &mut [u8]) -> Result<(), Unspecified> {
        if to.len() > self.bytes.len() / 4 {
            return rand::fill(to);
        }
        if to.len() > self.left {
            rand::fill(&mut self.bytes)?;
            self.left = self.bytes.len();
        }
        let rest = self.left - to.len();
        let given = self.bytes.get_mut(rest..self.left).ok_or(Unspecified)?;
        to.copy_from_slice(given);
        given.zeroize();
        self.left = rest;
        Ok(())
    }
}
