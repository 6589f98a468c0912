//! Keys of Amazon Web Services.

use crate::catalogue::secrets::randomness::{is_row, random};
use crate::catalogue::{checks, detector::Candidate};

/// Name of the signer in an address that is signed.
const SIGNER: &[u8] = b"-credential=";

pub(crate) fn access_key_id(candidate: &Candidate<'_>) -> Option<i32> {
    let before = candidate.text.get(..candidate.range.start)?;
    let ahead = before.get(before.len().saturating_sub(SIGNER.len())..)?;
    if ahead.eq_ignore_ascii_case(SIGNER) {
        return None;
    }
    let body = candidate.matched().get(4..)?;
    if is_row(body) {
        return Some(0);
    }
    if !checks::looks_random(body, 2.5) {
        return None;
    }
    let is_base32 =
        body.iter().all(|byte| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(byte));
    let has_digits = body.iter().any(u8::is_ascii_digit);
    Some(if is_base32 {
        12
    } else if has_digits {
        0
    } else {
        -8
    })
}

pub(crate) fn secret_access_key(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let touches = |byte: Option<&u8>| byte.is_some_and(|byte| matches!(byte, b'/' | b'+'));
    let before = candidate.range.start.checked_sub(1).and_then(|at| candidate.text.get(at));
    let mixed = matched.iter().any(u8::is_ascii_uppercase)
        && matched.iter().any(u8::is_ascii_lowercase)
        && matched.iter().any(u8::is_ascii_digit);
    let alone = !touches(before) && !touches(candidate.text.get(candidate.range.end));
    let is_random = random(candidate).is_some() && checks::entropy(matched) >= 4.0;
    (alone && mixed && is_random).then_some(8)
}
