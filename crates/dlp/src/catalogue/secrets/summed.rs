//! Checks of tokens that end with a checksum of themselves.
//!
//! A right checksum is more evidence. A wrong one is none against a token of a vendor who also gives tokens
//! without one; where all tokens of a form have it, a wrong one says that this is none of them.

use crate::catalogue::{
    checks,
    detector::Candidate,
    secrets::randomness::{random, random_with_digits},
};

/// Checksum of the tokens of Portcullis.
pub(crate) fn portcullis(candidate: &Candidate<'_>) -> Option<i32> {
    checks::crc_base62(candidate.matched(), 0).then_some(8)
}

/// Evidence of a right checksum, in bits.
const RIGHT_BITS: i32 = 16;

/// Checksum of GitHub's tokens, behind the mark of four characters; fine-grained tokens have none that
/// is known.
pub(crate) fn github(candidate: &Candidate<'_>) -> Option<i32> {
    if checks::crc_base62(candidate.matched(), 4) { right(candidate) } else { random(candidate) }
}

/// Checksum of npm's tokens, made as GitHub's. Without one the token has to look like one, since names
/// of variables begin in the same way.
pub(crate) fn npm(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let mark = matched.iter().position(|byte| *byte == b'_').map_or(0, |joint| joint + 1);
    if checks::crc_base62(matched, mark) { right(candidate) } else { random_with_digits(candidate) }
}

/// Checksum of GitLab's routable tokens, over all before it. An instance may put a prefix of its own
/// before the mark, which is summed as well and not part of the match.
pub(crate) fn gitlab(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    if !is_routable(matched) {
        return random(candidate);
    }
    if checks::crc_base36(matched) {
        return right(candidate);
    }
    let before = candidate.range.start.checked_sub(1).and_then(|at| candidate.text.get(at));
    let is_prefixed =
        before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte));
    if is_prefixed { random(candidate) } else { None }
}

/// Returns true if a token ends in a dot, two digits for the length of its payload, and a checksum.
fn is_routable(token: &[u8]) -> bool {
    token.iter().rev().position(|byte| *byte == b'.') == Some(9)
}

/// Checksum of Grafana's tokens of service accounts, over all before it; its other tokens have none.
pub(crate) fn grafana(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    if !matched.starts_with(b"glsa_") {
        random(candidate)
    } else if checks::crc_hex(matched) {
        right(candidate)
    } else {
        None
    }
}

fn right(candidate: &Candidate<'_>) -> Option<i32> {
    random(candidate).map(|bits| bits + RIGHT_BITS)
}
