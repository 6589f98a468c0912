//! Nonces that the gateway gives out for proofs (RFC 9449 §8, §9). Nothing of them is kept.
//!
//! One of a node is good at the process that made it, which then knows all proofs that were made
//! with it; a shared one is good at every node, at which proofs have to be remembered together. One that stands for
//! the time is for clients whose clocks are off (RFC 9449 §11.1): proofs with it are remembered for as long as it is good.

use aws_lc_rs::{constant_time::verify_slices_are_equal, hmac};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    clock::Timestamp,
    random::{self, Random},
};

/// Purpose for which the key of nonces is derived.
pub const DPOP_NONCES: &str = "dpop-nonces";
/// Seconds of a window. A nonce is good in the window in which it was made and in the next.
const WINDOW: i64 = 300;
/// In the place of a process: good at every node.
const SHARED: [u8; 8] = [0; 8];
/// The same, whatever the time of a proof.
const ANY_TIME: [u8; 8] = [0xff; 8];
/// Bytes of a MAC that are sent.
const TAG: usize = 16;

/// Processes at which a nonce is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NonceScope {
    /// The process that made it.
    Own,
    /// Every node.
    Shared,
    /// Every node, in place of the time of the proof.
    AnyTime,
    /// Another process.
    Other,
}

/// A nonce of this installation that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadNonce {
    pub scope: NonceScope,
    /// True in its second window: the client should be given another one.
    pub is_aging: bool,
    /// From here on no node takes it.
    pub until: Timestamp,
}

/// Makes and reads nonces of an installation.
#[derive(Debug)]
pub struct DpopNonces {
    key: hmac::Key,
    process: [u8; 8],
}

impl DpopNonces {
    /// From 32 bytes that are used for nothing else.
    #[must_use]
    pub fn new(key: &[u8; 32], source: &dyn Random) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, key), process: random::bytes(source) }
    }

    /// A nonce that is good at this process.
    #[must_use]
    pub fn own(&self, now: Timestamp) -> String {
        self.nonce(self.process, now)
    }

    /// A nonce that is good at every node.
    #[must_use]
    pub fn shared(&self, now: Timestamp) -> String {
        self.nonce(SHARED, now)
    }

    /// A nonce that is good at every node, for proofs of any time.
    #[must_use]
    pub fn any_time(&self, now: Timestamp) -> String {
        self.nonce(ANY_TIME, now)
    }

    /// Reads a nonce; `None` if it was never given out here, or is too old.
    #[must_use]
    pub fn read(&self, nonce: &str, now: Timestamp) -> Option<ReadNonce> {
        if nonce.len() > 64 {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(nonce).ok()?;
        let (signed, tag) = bytes.split_at_checked(16).filter(|(_, tag)| tag.len() == TAG)?;
        verify_slices_are_equal(&self.tag(signed), tag).ok()?;
        let (process, window) = signed.split_at_checked(8)?;
        let window = i64::from_be_bytes(window.try_into().ok()?);
        let age = window_of(now) - window;
        let scope = if process == self.process {
            NonceScope::Own
        } else if process == SHARED {
            NonceScope::Shared
        } else if process == ANY_TIME {
            NonceScope::AnyTime
        } else {
            NonceScope::Other
        };
        // Clocks of nodes differ, by less than a window.
        let until = Timestamp::from_micros(0).plus_seconds((window + 3) * WINDOW);
        (-1..=1).contains(&age).then_some(ReadNonce { scope, is_aging: age == 1, until })
    }

    fn nonce(&self, process: [u8; 8], now: Timestamp) -> String {
        let signed = [process, window_of(now).to_be_bytes()].concat();
        let tag = self.tag(&signed);
        URL_SAFE_NO_PAD.encode([signed, tag].concat())
    }

    fn tag(&self, signed: &[u8]) -> Vec<u8> {
        hmac::sign(&self.key, signed).as_ref().iter().copied().take(TAG).collect()
    }
}

fn window_of(now: Timestamp) -> i64 {
    now.as_seconds().div_euclid(WINDOW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Sevens;

    const NOW: Timestamp = Timestamp::from_micros(1_795_172_400_000_000);

    #[test]
    fn a_nonce_is_good_for_two_windows_at_those_that_it_is_for() {
        let here = DpopNonces::new(&[1; 32], &Sevens);
        let there = DpopNonces { process: [8; 8], ..DpopNonces::new(&[1; 32], &Sevens) };
        let read = |nonces: &DpopNonces, nonce: &str, later| {
            nonces.read(nonce, NOW.plus_seconds(later)).map(|it| (it.scope, it.is_aging))
        };

        let own = here.own(NOW);
        let shared = here.shared(NOW);
        let any_time = here.any_time(NOW);

        assert_eq!(read(&here, &own, 0), Some((NonceScope::Own, false)));
        assert_eq!(read(&here, &own, WINDOW), Some((NonceScope::Own, true)));
        assert_eq!(read(&there, &own, 0), Some((NonceScope::Other, false)));
        assert_eq!(read(&there, &shared, 0), Some((NonceScope::Shared, false)));
        assert_eq!(read(&there, &any_time, WINDOW), Some((NonceScope::AnyTime, true)));
        assert_eq!(here.read(&any_time, NOW).unwrap().until, NOW.plus_seconds(3 * WINDOW));
        assert_eq!(read(&here, &own, 2 * WINDOW), None);
        assert_eq!(read(&here, &own, -2 * WINDOW), None);
    }

    #[test]
    fn a_nonce_that_was_not_made_here_is_none() {
        let here = DpopNonces::new(&[1; 32], &Sevens);
        let own = here.own(NOW);
        let changed = format!("{}A{}", &own[..1], &own[2..]);

        for nonce in ["", "x", &own[..own.len() - 1], &changed, &"A".repeat(43), &"A".repeat(99)] {
            assert_eq!(here.read(nonce, NOW), None, "{nonce}");
        }
        assert_eq!(DpopNonces::new(&[2; 32], &Sevens).read(&own, NOW), None);
    }
}
