//! Sources of unpredictable bytes.

use std::fmt;

/// A cryptographically secure source of random bytes. Only `boot.rs` makes the real one.
pub trait Random: Send + Sync + fmt::Debug {
    /// Fills `bytes` with random bytes. It cannot fail: a source that runs dry ends the process.
    fn fill(&self, bytes: &mut [u8]);
}

/// `N` random bytes from `source`.
pub fn bytes<const N: usize>(source: &dyn Random) -> [u8; N] {
    let mut bytes = [0; N];
    source.fill(&mut bytes);
    bytes
}

/// Sevens instead of random bytes, for results that a test can name.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Sevens;

#[cfg(test)]
impl Random for Sevens {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}
