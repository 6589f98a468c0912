//! Check digits and structure tests that detectors share.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

mod coins;
pub(crate) mod conditions;
pub(crate) mod digits;
mod numbers;
pub(crate) mod sums;

pub(crate) use crate::catalogue::checks::coins::*;
pub(crate) use crate::catalogue::checks::numbers::*;
pub(crate) use crate::catalogue::checks::sums::*;

/// Returns true if the last digit is the Luhn check digit of those before it (ISO/IEC 7812-1).
pub(crate) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, u32::from(*digit)) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => 2 * digit - 9,
            (_, digit) => 2 * digit,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Returns true if letters and digits are ≡ 1 (mod 97) after their first four are moved to the end
/// (ISO 7064, as ISO 13616 uses it).
pub(crate) fn mod_97(text: &[u8]) -> bool {
    let Some((head, rest)) = text.split_at_checked(4) else {
        return false;
    };
    let remainder = rest.iter().chain(head).try_fold(0_u32, |sum, byte| {
        let value = char::from(*byte).to_digit(36)?;
        Some(if value < 10 { (sum * 10 + value) % 97 } else { (sum * 100 + value) % 97 })
    });
    remainder == Some(1)
}

/// Returns true if text is base64url of a JSON object that has one of the members.
pub(crate) fn is_json_object(part: &[u8], members: &[&str]) -> bool {
    let decoded = URL_SAFE_NO_PAD.decode(part).unwrap_or_default();
    match serde_json::from_slice(&decoded) {
        Ok(Value::Object(object)) => members.iter().any(|name| object.contains_key(*name)),
        Ok(_) | Err(_) => false,
    }
}

/// Shannon entropy in bits per byte.
pub(crate) fn entropy(text: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let total = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / total)
        .map(|share| -share * share.log2())
        .sum()
}

/// Returns true if text looks random rather than written: enough entropy, and no repetition that
/// makes up much of it.
pub(crate) fn looks_random(text: &[u8], least_entropy: f64) -> bool {
    const LONG: usize = 8;
    let rows = text.chunk_by(|a, b| a == b).map(<[u8]>::len).filter(|length| *length >= LONG);
    5 * rows.sum::<usize>() < text.len().max(1) && entropy(text) >= least_entropy
}
