//! Addresses of machines and numbers of devices.

use std::{net::Ipv6Addr, ops::Range, str::FromStr as _};

use crate::{
    catalogue::{
        checks::{luhn, one_digit, varied},
        detector::Candidate,
        lists::VERSION,
    },
    text::{digits::DigitRun, window::Window, words},
};

/// A number of 15 digits ends with a check digit, a shorter one without it, a longer one with the
/// version of the software.
pub(crate) fn imei(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    if !varied(&digits) {
        return None;
    }
    if digits.len() == 15 { one_digit(luhn(&digits)) } else { Some(0) }
}

/// Four groups joined by dots, and no fifth.
pub(crate) fn dotted(text: &Window<'_>, run: &DigitRun) -> Vec<Range<usize>> {
    if run.groups.len() < 4 {
        return Vec::new();
    }
    let is_dot = |at: usize| text.get(at) == Some(&b'.');
    let mut found = Vec::new();
    let mut rest = run.groups.as_slice();
    while let [first, ..] = rest {
        let joined = rest.windows(2).take_while(|pair| pair.first().is_some_and(|g| is_dot(g.end)));
        let count = joined.count() + 1;
        let goes_on = is_dot(first.start.wrapping_sub(1));
        if count == 4 && !goes_on && rest.iter().take(4).all(|group| group.len() <= 3) {
            found.extend(rest.get(3).map(|last| first.start..last.end));
        }
        rest = rest.get(count..).unwrap_or_default();
    }
    found
}

/// Public addresses speak for themselves unless they are called a version or look like one.
pub(crate) fn ipv4(candidate: &Candidate<'_>) -> Option<i32> {
    let before = candidate.text.get(..candidate.range.start).unwrap_or_default();
    let after = candidate.text.get(candidate.range.end..).unwrap_or_default();
    if is_called_version(before, after) {
        return None;
    }
    let octets: Vec<u8> = std::str::from_utf8(candidate.matched())
        .ok()?
        .split('.')
        .map(|octet| octet.parse().ok().filter(|_| octet == "0" || !octet.starts_with('0')))
        .collect::<Option<_>>()?;
    let [a, b, c, d] = octets.try_into().ok()?;
    let is_reserved = matches!(
        [a, b, c, d],
        [0 | 10 | 127 | 224..=255, ..]
            | [192, 168, ..]
            | [172, 16..=31, ..]
            | [169, 254, ..]
            | [192, 0, 2, _]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            | [100, 64..=127, ..]
    );
    let looks_like_version =
        a < 20 && b < 20 && c < 100 || is_packaged(before, after) && a < 100 && d < 100;
    Some(if is_reserved || looks_like_version { 2 } else { 10 })
}

/// Returns true if a word in the same clause says that what follows is a version, or a sign joins
/// it with a name as in `name-1.2.3.4.tar.gz`, `name==1.2.3.4` and `Name/1.2.3.4`.
fn is_called_version(before: &[u8], after: &[u8]) -> bool {
    const NEAR: usize = 40;
    let near = before.get(before.len().saturating_sub(NEAR)..).unwrap_or_default();
    let starts = |byte: &u8| matches!(byte, b'\n' | b'\r' | b';' | 0);
    let length = near.iter().rev().take_while(|byte| !starts(byte)).count();
    let clause = near.get(near.len() - length..).unwrap_or_default();
    let is_joined = match before {
        [.., b'=' | b'>' | b'<' | b'~' | b'!' | b'^', b'=']
        | [.., b'~', b'>']
        | [.., b'^' | b'~'] => true,
        [.., name, b'-' | b'/'] => name.is_ascii_alphabetic(),
        _ => false,
    };
    let is_file = matches!(after, [b'.' | b'-', letter, ..] if letter.is_ascii_alphabetic());
    is_joined || is_file || words::names(clause, &VERSION)
}

/// Returns true if only a name stands before it on its line, as in a list of packages.
fn is_packaged(before: &[u8], after: &[u8]) -> bool {
    const LONGEST: usize = 64;
    let near = before.get(before.len().saturating_sub(LONGEST)..).unwrap_or_default();
    let length = near.iter().rev().take_while(|byte| !matches!(byte, b'\n' | b'\r')).count();
    let line = near.get(near.len() - length..).unwrap_or_default().trim_ascii();
    let is_name = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'.' | b'@' | b'/' | b'+' | b':')
    };
    let is_whole = matches!(after, [] | [b'\n' | b'\r' | b' ' | 0, ..]);
    length < LONGEST && !line.is_empty() && line.iter().all(is_name) && is_whole
}

/// Hex digits, colons and dots around a `::`.
pub(crate) fn shortened(text: &Window<'_>, literal: Range<usize>) -> Option<Range<usize>> {
    let is_part = |byte: &&u8| byte.is_ascii_hexdigit() || **byte == b':';
    let is_tail = |byte: &&u8| byte.is_ascii_hexdigit() || matches!(**byte, b':' | b'.');
    let before = text.get(literal.start.saturating_sub(36)..literal.start)?;
    let lead = before.iter().rev().take_while(is_part).count();
    let tail = text.get(literal.end..)?.iter().take(40).take_while(is_tail).count();
    let end = literal.end + tail;
    let dots =
        text.get(literal.end..end)?.iter().rev().take_while(|b| matches!(**b, b'.' | b':')).count();
    let found = literal.start - lead..end - dots;
    let head = text.get(found.clone())?;
    // Most `::` stand in program text; an address begins with a telling group.
    let begins = match head {
        [b':', b':', rest @ ..] => rest.contains(&b'.') || is_network(text, found.end),
        [a, _, _, _, b':', ..] => matches!(a, b'2' | b'3' | b'f' | b'F'),
        _ => false,
    };
    begins.then_some(found)
}

pub(crate) fn ipv6(candidate: &Candidate<'_>) -> Option<i32> {
    let text = std::str::from_utf8(candidate.matched()).ok()?;
    let address = Ipv6Addr::from_str(text).ok()?;
    // Pairs alone are rather a clock, a fingerprint or a device.
    let is_eight = text.contains("::") || text.split(':').any(|group| group.len() > 2);
    let is_own = address.is_loopback() || address.is_unspecified();
    (is_eight && (!is_own || is_network(&candidate.text, candidate.range.end))).then_some(12)
}

/// Returns true if the length of a prefix follows: `/64`.
fn is_network(text: &[u8], at: usize) -> bool {
    let after = text.get(at..).unwrap_or_default();
    let digits = after.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
    after.first() == Some(&b'/') && (1..=3).contains(&digits)
}

pub(crate) fn ipv6_full(candidate: &Candidate<'_>) -> Option<i32> {
    let is_short = candidate.matched().windows(2).any(|pair| pair == b"::");
    (!is_short).then(|| ipv6(candidate))?
}

/// Pairs with colons; those of digits alone are rather a time.
pub(crate) fn mac_with_colons(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let has_colons = memchr::memchr_iter(b':', matched).count() == 5;
    let has_letters = matched.iter().any(u8::is_ascii_alphabetic);
    let bits = mac(candidate).filter(|_| has_colons)?;
    Some(if has_letters { bits } else { 2 })
}

/// Six pairs, neither empty nor the broadcast address.
pub(crate) fn mac(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let digits: Vec<u8> = matched.iter().filter(|b| b.is_ascii_hexdigit()).copied().collect();
    let is_paired = matched.len() != 17
        || matched
            .chunks(3)
            .all(|pair| pair.get(..2).is_some_and(|p| p.iter().all(u8::is_ascii_hexdigit)));
    let fits = digits.len() == 12 && matches!(matched.len(), 12 | 14 | 17) && is_paired;
    (fits && varied(&digits)).then_some(10)
}
