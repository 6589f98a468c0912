//! Placeholders of masked values, as they stand in a text.

use std::{collections::BTreeSet, ops::Range};

/// The most characters of a value that a placeholder keeps.
pub(crate) const MAX_KEPT: u8 = 4;

/// Letters of pseudonyms, one for each half of a byte.
pub(crate) const LETTERS: [char; 16] =
    ['b', 'c', 'd', 'f', 'g', 'h', 'j', 'k', 'm', 'n', 'p', 'q', 'r', 's', 't', 'v'];

/// Sign in place of what stands in a placeholder, for a scan.
pub(crate) const BLANK: u8 = b'*';

/// The most and the fewest bytes between the brackets of a placeholder. Detectors of rules have the longest names.
const LONGEST: usize = 128;
const SHORTEST: usize = "REDACTED:".len() + 1;

/// A placeholder that was blanked.
#[derive(Debug)]
pub(crate) struct Placeholder {
    /// Byte of the buffer behind its first bracket.
    pub(crate) at: usize,
    /// Text between the brackets.
    pub(crate) written: Box<[u8]>,
}

impl Placeholder {
    /// Its bytes of the buffer, with the brackets.
    pub(crate) fn range(&self) -> Range<usize> {
        self.at.saturating_sub(1)..self.at + self.written.len() + 1
    }
}

/// Length of what stands between the brackets of a placeholder, if a text goes on with one behind the first bracket.
/// Only the name of a known detector makes one.
pub(crate) fn length_inside(text: &[u8], known: &BTreeSet<String>) -> Option<usize> {
    let length = memchr::memchr(b']', text.get(..text.len().min(LONGEST))?)?;
    let name = name_of(std::str::from_utf8(text.get(..length)?).ok()?)?;
    known.contains(name).then_some(length)
}

/// The same of a placeholder that is blank already.
pub(crate) fn length_blank(text: &[u8]) -> Option<usize> {
    let length = text.iter().take(LONGEST).take_while(|byte| **byte == BLANK).count();
    (length >= SHORTEST && text.get(length) == Some(&b']')).then_some(length)
}

/// The name in `REDACTED:name`, with what was kept or without, in `WITHHELD:name`, or in `name:` and a pseudonym.
fn name_of(inside: &str) -> Option<&str> {
    let (name, is_kept) = match inside.split_once(':')? {
        ("REDACTED", named) => match named.split_once(':') {
            Some((name, kept)) => (name, kept.len() <= usize::from(MAX_KEPT)),
            None => (named, true),
        },
        ("WITHHELD", name) => (name, true),
        (name, pseudonym) => (name, is_pseudonym(pseudonym)),
    };
    is_kept.then_some(name)
}

fn is_pseudonym(text: &str) -> bool {
    text.len() == LETTERS.len() && text.chars().all(|letter| LETTERS.contains(&letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_a_detector_makes_a_placeholder() {
        let known = BTreeSet::from(["us_ssn", "iban", "email"].map(str::to_owned));
        let length = |text: &str| length_inside(text.as_bytes(), &known);

        assert_eq!(length("REDACTED:us_ssn] x"), Some(15));
        assert_eq!(length("REDACTED:iban:3000]"), Some(18));
        assert_eq!(length("WITHHELD:email]"), Some(14));
        assert_eq!(length("email:bcdfghjkmnpqrstv]"), Some(22));
        for other in [
            "REDACTED:4111111111111111]",
            "REDACTED:ghp_a1b2c3d4e5f6]",
            "REDACTED:correct_horse_battery]",
            "REDACTED:ignore_previous_instructions]",
            "REDACTED:iban:30000]",
            "REDACTED:us_ssn",
            "REDACTED]",
            "WITHHELD:hunter2]",
            "hunter:bcdfghjkmnpqrstv]",
            "email:hunter2]",
            "*]",
            "**********]",
        ] {
            assert_eq!(length(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_blank_has_the_length_of_a_placeholder() {
        assert_eq!(length_blank(b"**********] x"), Some(10));
        for other in ["*]", "*********]", "**********", "**********x]"] {
            assert_eq!(length_blank(other.as_bytes()), None, "{other}");
        }
    }
}
