//! Addresses of crypto-currencies, and the keys behind them.

use std::ops::Range;

use crate::{
    catalogue::{
        checks::{base58_check, entropy, is_bech32, is_checksummed},
        detector::Candidate,
    },
    text::window::Window,
};

/// All of a run.
#[expect(clippy::unnecessary_wraps, reason = "others find no more than a part")]
pub(crate) fn whole(_: &Window<'_>, run: Range<usize>) -> Option<Range<usize>> {
    Some(run)
}

/// Version and payload of a match that has the length of an address.
fn address(candidate: &Candidate<'_>) -> Option<Vec<u8>> {
    let length = candidate.matched().len();
    if !(25..=36).contains(&length) {
        return None;
    }
    base58_check(candidate.matched())
}

/// Bech32, of Bitcoin or Litecoin.
pub(crate) fn segwit(candidate: &Candidate<'_>) -> Option<i32> {
    is_bech32(candidate.matched()).then_some(26)
}

/// Extended key of a wallet (BIP-32).
pub(crate) fn extended_key(candidate: &Candidate<'_>) -> Option<i32> {
    base58_check(candidate.matched()).map(|_| 26)
}

pub(crate) fn bitcoin(candidate: &Candidate<'_>) -> Option<i32> {
    if !matches!(candidate.matched().first()?, b'1' | b'3' | b'2' | b'm' | b'n') {
        return None;
    }
    let payload = address(candidate)?;
    (payload.len() == 21 && matches!(payload.first()?, 0 | 5 | 0x6F | 0xC4)).then_some(26)
}

pub(crate) fn other_coin(candidate: &Candidate<'_>) -> Option<i32> {
    if !matches!(
        candidate.matched().first()?,
        b'L' | b'M' | b'D' | b'9' | b'A' | b'X' | b'T' | b't'
    ) {
        return None;
    }
    let payload = address(candidate)?;
    let is_known = match payload.len() {
        21 => matches!(payload.first()?, 0x30 | 0x32 | 0x1E | 0x16 | 0x4C | 0x10 | 0x41),
        22 => matches!(payload.get(..2)?, [0x1C, 0xB8 | 0xBD]),
        _ => false,
    };
    is_known.then_some(26)
}

pub(crate) fn wallet_key(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    if !matches!(matched.len(), 51 | 52) || !matches!(matched.first()?, b'5' | b'K' | b'L') {
        return None;
    }
    let payload = base58_check(matched)?;
    (payload.first() == Some(&0x80) && matches!(payload.len(), 33 | 34)).then_some(26)
}

/// Mixed case is a checksum; without it only context speaks for an address.
pub(crate) fn ethereum(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.matched().get(2..)?;
    let has = |test: fn(&u8) -> bool| digits.iter().any(test);
    if entropy(digits) < 2.5 {
        return None;
    }
    if has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) {
        return is_checksummed(digits).then_some(20);
    }
    Some(4)
}

/// Prose has short words and articles; a list for a wallet has neither.
pub(crate) fn phrase(candidate: &Candidate<'_>) -> Option<i32> {
    const PROSE: &[&[u8]] =
        &[b"the", b"and", b"for", b"you", b"with", b"from", b"are", b"must", b"your"];
    let mut words = candidate.matched().split(|byte| *byte == b' ');
    (!words.any(|word| PROSE.contains(&word))).then_some(10)
}
