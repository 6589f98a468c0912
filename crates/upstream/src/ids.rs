//! JSON-RPC request ids.

use std::sync::atomic::{AtomicU64, Ordering};

use portcullis_core::random::{self, Random};

/// Gives every request of one server an id of its own.
///
/// Counts from a random 48-bit number, so that two clients of one server do not use the same ids
/// even where the server mixes its clients up; ids stay below 2⁵³, which every JSON reader keeps.
#[derive(Debug)]
pub(crate) struct Ids(AtomicU64);

impl Ids {
    pub(crate) fn new(random: &dyn Random) -> Self {
        let start = random::bytes::<6>(random);
        let start = start.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        Self(AtomicU64::new(start + 1))
    }

    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}
