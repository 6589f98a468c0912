//! Words that stand near a match, or in the keys above it.

use std::ops::Range;

use super::body::Body;

/// How far before and after a match a word still counts.
const BEFORE: usize = 64;
const AFTER: usize = 24;

/// How many keys above a value count as its context.
const KEYS: usize = 2;

/// Whether one of the words stands near the range in the text.
pub(super) fn stands_near(text: &[u8], range: &Range<usize>, words: &[&str]) -> bool {
    let before = text.get(range.start.saturating_sub(BEFORE)..range.start).unwrap_or_default();
    let after = text.get(range.end..text.len().min(range.end + AFTER)).unwrap_or_default();
    names(before, words) || names(after, words)
}

/// Whether one of the words stands in one of the nearest keys above a place.
pub(super) fn stands_above(body: &Body, node: u32, words: &[&str]) -> bool {
    body.keys_above(node).take(KEYS).any(|key| names(key, words))
}

/// Whether a text holds one of the words, as a word: `ssn` in `customerSsn` and `ssn_1`, but
/// not in `classname`.
fn names(text: &[u8], words: &[&str]) -> bool {
    let mut before = None;
    (0..text.len()).any(|at| {
        let first = text.get(at);
        let starts = starts_word(before, first);
        before = first;
        starts && words.iter().any(|word| names_at(text, at, word))
    })
}

fn names_at(text: &[u8], at: usize, word: &str) -> bool {
    let end = at + word.len();
    text.get(at..end).is_some_and(|found| {
        found.eq_ignore_ascii_case(word.as_bytes()) && ends_word(found.last(), text.get(end))
    })
}

fn starts_word(before: Option<&u8>, first: Option<&u8>) -> bool {
    let is_letter = first.is_some_and(u8::is_ascii_alphabetic);
    is_letter
        && before.is_none_or(|before| {
            !before.is_ascii_alphabetic()
                || (before.is_ascii_lowercase() && first.is_some_and(u8::is_ascii_uppercase))
        })
}

fn ends_word(last: Option<&u8>, after: Option<&u8>) -> bool {
    after.is_none_or(|after| {
        !after.is_ascii_alphabetic()
            || *after == b's'
            || (last.is_some_and(u8::is_ascii_lowercase) && after.is_ascii_uppercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_by_its_edges() {
        for text in ["ssn", "customerSsn", "ssn_1", "the SSN is", "ssns", "ssnNumber"] {
            assert!(names(text.as_bytes(), &["ssn"]), "{text}");
        }
        for text in ["classname", "ssname", "passnumber", ""] {
            assert!(!names(text.as_bytes(), &["ssn"]), "{text}");
        }
    }
}
