//! Words near a value that name it. A word reaches past no placeholder, past no value that other words stand behind,
//! and past no other name: of `ssn 536228726, order 294995462` only the first number is named.

use std::ops::Range;

use crate::text::{
    labels,
    window::Window,
    words::{self, AFTER, BEFORE},
};

/// Digits of a value, at least. Years have fewer.
const VALUE_DIGITS: usize = 5;

/// Words that join values of the same name.
const JOINTS: [&[u8]; 12] =
    [b"and", b"or", b"und", b"oder", b"et", b"ou", b"y", b"o", b"e", b"en", b"of", b"sowie"];

/// Words that say nothing about the number behind them.
const SAY_NOTHING: [&[u8]; 8] =
    [b"no", b"nr", b"num", b"number", b"nummer", b"id", b"is", b"value"];

/// Returns true if one of the words stands near a range of a text and names what is there.
pub(crate) fn stand_near<W: AsRef<str>>(
    text: &Window<'_>,
    range: &Range<usize>,
    named: &[W],
) -> bool {
    let near = text.between_placeholders(range);
    let start = near.start.max(range.start.saturating_sub(BEFORE));
    let before = text.get(start..range.start).unwrap_or_default();
    let after = text.get(range.end..near.end.min(range.end + AFTER)).unwrap_or_default();
    words::names(own_before(before), named) || words::names(own_after(after), named)
}

/// The end of what stands before a value, as far as words in it name the value.
fn own_before(before: &[u8]) -> &[u8] {
    let behind = last_value(before).and_then(|end| before.get(end..));
    let before = behind.filter(|gap| holds_words(gap)).unwrap_or(before);
    own_label(before).unwrap_or(before)
}

/// The beginning of what stands behind a value, without what belongs to the next one.
fn own_after(after: &[u8]) -> &[u8] {
    let mut done = 0;
    loop {
        let rest = after.get(done..).unwrap_or_default();
        let length = rest.iter().position(|byte| is_separator(*byte)).unwrap_or(rest.len());
        let part = rest.get(..length).unwrap_or_default();
        let is_of_next =
            part.iter().any(|byte| matches!(byte, b':' | b'=') || byte.is_ascii_digit());
        if done > 0 && is_of_next {
            return after.get(..done).unwrap_or_default();
        }
        done += length + 1;
        if done >= after.len() {
            return after;
        }
    }
}

/// End of the last value in a text: digits enough, in groups.
fn last_value(text: &[u8]) -> Option<usize> {
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'-' | b'.' | b'/');
    let mut end = text.iter().rposition(u8::is_ascii_digit)? + 1;
    loop {
        let head = text.get(..end)?;
        let length = head.iter().rev().take_while(|byte| is_part(byte)).count();
        let run = head.get(end - length..)?;
        if run.iter().filter(|byte| byte.is_ascii_digit()).count() >= VALUE_DIGITS {
            return Some(end);
        }
        end = head.get(..end - length)?.iter().rposition(u8::is_ascii_digit)? + 1;
    }
}

/// Returns true if words stand in a text that do more than join values, behind what is said in brackets.
fn holds_words(gap: &[u8]) -> bool {
    let rest = match gap.trim_ascii_start() {
        [b'(', inside @ ..] => match memchr::memchr(b')', inside) {
            Some(end) => inside.get(end..).unwrap_or_default(),
            None => inside,
        },
        _ => gap,
    };
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
    let mut found = rest.split(|byte| !is_letter(byte)).filter(|word| !word.is_empty());
    found.any(|word| !JOINTS.iter().any(|joint| word.eq_ignore_ascii_case(joint)))
}

/// The label right before a value with a sign behind it, if it is one of another line, cell or pair than what stands
/// before, and says something.
fn own_label(before: &[u8]) -> Option<&[u8]> {
    let at = before.iter().rposition(|byte| is_separator(*byte))?;
    let (above, label) = before.split_at_checked(at + 1)?;
    let is_frame = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'*');
    let end = label.iter().rposition(|byte| !is_frame(byte))?;
    let start = label.iter().position(|byte| !is_frame(byte))?;
    let (sign, name) = label.get(start..=end)?.split_last()?;
    let name = name.trim_ascii_end();
    let name = name.strip_suffix(b"\"").unwrap_or(name);
    let says_nothing = labels::is_value(name)
        || SAY_NOTHING.iter().any(|word| name.trim_ascii().eq_ignore_ascii_case(word));
    let is_pair = before.get(at) != Some(&b',') || above.iter().any(|it| matches!(it, b':' | b'='));
    let is_label = matches!(sign, b':' | b'=') && labels::may_label(name) && !says_nothing;
    (is_label && is_pair).then_some(label)
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\t' | b',' | b';' | b'|' | b'&' | b'{')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{
        placeholders::Placeholder,
        window::{Notes, Place},
    };

    /// True if `ssn` names the number `9`, where `[~]` is a placeholder.
    fn is_named(text: &str) -> bool {
        let notes = Notes::default();
        let found = text.match_indices("[~]").map(|(at, _)| at + 1);
        let placeholders: Vec<Placeholder> =
            found.map(|at| Placeholder { at, written: Box::from(*b"~") }).collect();
        let at = text.find('9').unwrap();
        let range = at..at + 1;
        let place = Place { at: 0, notes: &notes, placeholders: &placeholders };
        let window = Window::around(text.as_bytes(), &range).placed(place);
        stand_near(&window, &range, &["ssn"])
    }

    #[test]
    fn a_word_names_the_value_beside_it_and_those_listed_with_it() {
        for text in [
            "ssn 9", "SSN: 536-22-8726, 9", "ssn 536-22-8726 and 9", "SSN: 536-22-8726\nSSN: 9",
            "SSN of Ada (since 2024): 9", "SSN: 536-22-8726 (Ada), 9", "ssn\nnumber: 9",
            "my ssn, as you asked: 9", "9 (ssn)", "9, ssn of Ada", "9 is the ssn, not 4",
            "SSN [*]: 9", "9 [*] ssn", "[~] ssn 9 [~]",
        ] {
            assert!(is_named(text), "{text:?}");
        }
    }

    #[test]
    fn a_word_names_nothing_behind_another_name_a_value_or_a_placeholder() {
        for text in [
            "SSN: 536-22-8726\nOrder: 9",
            "ssn 536-22-8726, last visit 9",
            "ssn 536228726 placed order 9",
            "ssn: none, order: 9",
            "ssn=none&order=9",
            "{\"ssn\": \"\", \"order\": \"9",
            "| ssn | none | order: 9",
            "ssn [~] 9",
            "9\nSSN: 536-22-8726",
            "9, ssn 536-22-8726",
            "9 [~] ssn",
        ] {
            assert!(!is_named(text), "{text:?}");
        }
    }
}
