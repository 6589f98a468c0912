//! Words near a value that name it. A word reaches past no placeholder, past no value that other words stand behind,
//! and past no other name: of `ssn 536228726, order 294995462` only the first number is named.

use std::ops::Range;

use crate::text::{
    labels::{self, Names},
    lists,
    window::Window,
    words::{self, AFTER, BEFORE},
};

/// Digits of a value, at least.
const VALUE_DIGITS: usize = 3;

/// Words that join values of the same name.
const JOINTS: [&[u8]; 19] = [
    b"and", b"or", b"und", b"oder", b"et", b"ou", b"y", b"o", b"e", b"en", b"of", b"sowie", b"is",
    b"was", b"are", b"ist", b"war", b"est", b"es",
];

/// Words that say nothing about the number behind them.
const SAY_NOTHING: [&[u8]; 8] =
    [b"no", b"nr", b"num", b"number", b"nummer", b"id", b"is", b"value"];

/// Tags that lay a text out and say nothing about it.
const LAYOUT: Names<19> = Names::new([
    "td", "th", "tr", "dd", "dt", "li", "p", "b", "i", "u", "em", "strong", "span", "div", "code",
    "a", "br", "font", "small",
]);

/// Returns true if one of the words stands near a range of a text and names what is there.
pub(crate) fn stand_near<W: AsRef<str>>(
    text: &Window<'_>,
    range: &Range<usize>,
    named: &[W],
) -> bool {
    let near = text.between_placeholders(range);
    let start = near.start.max(range.start.saturating_sub(BEFORE));
    let end = near.end.min(range.end + BEFORE);
    let before = text.get(start..range.start).unwrap_or_default();
    let after = text.get(range.end..end).unwrap_or_default();
    let is_value_next = end == near.end && end < text.len();
    match line_above(before, after).or_else(|| tag(before)).or_else(|| of_pair(before)) {
        Some(label) => words::names(label, named),
        None => match in_list(before) {
            Some((head, item)) => {
                let line = after.split(|byte| *byte == b'\n').next().unwrap_or_default();
                let is_value_next = is_value_next && line.len() == after.len();
                own_label(item).is_none() && words::names(head, named)
                    || words::names(own_before(item), named)
                    || words::names(own_after(line, is_value_next), named)
            }
            None => {
                words::names(own_before(before), named)
                    || words::names(own_after(after, is_value_next), named)
            }
        },
    }
}

/// The end of what stands before a value, as far as words in it name the value: its own label, or the words behind the
/// value before.
fn own_before(before: &[u8]) -> &[u8] {
    let behind = last_value(before).and_then(|end| before.get(end..));
    let before = behind.filter(|gap| holds_words(gap)).map_or(before, last_clause);
    own_label(before).unwrap_or(before)
}

/// The line with a colon above the list that a value stands in, and what stands before the value in its item: other
/// items do not name it. A line that says nothing and stands apart is no name.
fn in_list(before: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut item = None;
    let mut is_apart = false;
    let mut end = before.len();
    loop {
        let start = memchr::memrchr(b'\n', before.get(..end)?).map_or(0, |at| at + 1);
        let line = before.get(start..end)?;
        let length = lists::bullet(line);
        match item {
            None if length > 0 => item = before.get(start + length..),
            None if line.starts_with(b" ") && lists::goes_on(line) => {}
            None => return None,
            Some(item) => match lists::head(line) {
                Some(head) => return (!is_apart || says_something(head)).then_some((head, item)),
                None if length > 0 || lists::goes_on(line) => {
                    is_apart = line.trim_ascii().is_empty();
                }
                None => return None,
            },
        }
        end = start.checked_sub(1)?;
    }
}

/// The beginning of what stands behind a value, without what belongs to the next one.
fn own_after(after: &[u8], is_value_next: bool) -> &[u8] {
    let mut done = 0;
    while done < after.len().min(AFTER) {
        let rest = after.get(done..).unwrap_or_default();
        let part = rest.get(..clause(rest)).unwrap_or_default();
        let is_given = |byte: &u8| matches!(byte, b':' | b'=') || byte.is_ascii_digit();
        let is_of_next = is_value_next && part.len() == rest.len()
            || last_value(part).is_some()
            || done > 0 && part.iter().any(is_given);
        if is_of_next {
            break;
        }
        done += part.len() + 1;
    }
    after.get(..done.min(AFTER).min(after.len())).unwrap_or_default()
}

/// Length of the first clause of a text.
fn clause(text: &[u8]) -> usize {
    let ends = |at: &usize| match text.get(*at..) {
        Some([b'.', b' ', ..] | [b')', ..]) => true,
        Some([first, ..]) => is_separator(*first),
        Some([]) | None => false,
    };
    (0..text.len()).find(ends).unwrap_or(text.len())
}

/// The last clause of a text that holds words.
fn last_clause(text: &[u8]) -> &[u8] {
    let mut last = text;
    let mut rest = text;
    while let Some(next) = rest.get(clause(rest) + 1..) {
        rest = next;
        let is_frame = |byte: &u8| !byte.is_ascii_alphanumeric() && byte.is_ascii();
        let start = rest.iter().position(|byte| !is_frame(byte)).unwrap_or(rest.len());
        let end = rest.iter().rposition(|byte| !is_frame(byte)).map_or(start, |last| last + 1);
        // `Value: ` says nothing about what stands behind it.
        if holds_words(rest) && !is_mute(rest.get(start..end).unwrap_or_default()) {
            last = rest;
        }
    }
    last
}

/// The line above a value that is all of its own, if it is a label.
fn line_above<'t>(before: &'t [u8], after: &[u8]) -> Option<&'t [u8]> {
    const WORDS: usize = 5;
    let is_line_end = matches!(after, [] | [b'\n', ..] | [b'\r', b'\n', ..]);
    let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let indent = before.iter().rev().take_while(is_space).count();
    let above = before.get(..before.len() - indent)?.strip_suffix(b"\n").filter(|_| is_line_end)?;
    let label = above.trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
    let name = label.trim_ascii().strip_suffix(b":").unwrap_or(label).trim_ascii();
    let mut words = name.split(|byte| *byte == b' ');
    let goes_on = words.next().is_some_and(|first| JOINTS.contains(&first));
    let is_label = words.count() < WORDS
        && !goes_on
        && !name.iter().any(u8::is_ascii_digit)
        && says_something(name);
    is_label.then_some(label)
}

/// What names a value right behind a tag: the tag, or the text before tags of layout.
fn tag(before: &[u8]) -> Option<&[u8]> {
    let mut rest = before.trim_ascii_end();
    loop {
        let inside = rest.strip_suffix(b">")?;
        let open = inside.iter().rposition(|byte| *byte == b'<')?;
        let written = inside.get(open + 1..)?;
        let name = written.split(|byte| matches!(byte, b' ' | b'/')).next()?;
        if written == b"/tr" {
            return None;
        }
        // An element beside the value names it as little as what is in it.
        if let Some(closed) = written.strip_prefix(b"/").filter(|closed| !is_layout(closed)) {
            rest = element(inside.get(..open)?, closed)?.trim_ascii_end();
            continue;
        }
        let lays_out = written.starts_with(b"/") || LAYOUT.hold(name);
        if !lays_out && (written.len() > name.len() || says_something(name)) {
            return Some(written);
        }
        rest = inside.get(..open)?.trim_ascii_end();
        if !rest.ends_with(b">") {
            let start = rest.iter().rposition(|byte| *byte == b'>').map_or(0, |at| at + 1);
            let label = rest.get(start..).filter(|label| holds_words(label))?;
            return before.get(start..).filter(|_| last_value(label).is_none());
        }
    }
}

/// Returns true for the inside of a tag that lays a text out, and nothing else.
pub(crate) fn is_layout(tag: &[u8]) -> bool {
    let name = tag.strip_prefix(b"/").unwrap_or(tag);
    LAYOUT.hold(name.strip_suffix(b"/").unwrap_or(name).trim_ascii())
}

/// What stands before the element that a closing tag ends.
fn element<'t>(before: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    let mut rest = before;
    loop {
        let open = memchr::memrchr(b'<', rest)?;
        if rest.get(open + 1..).is_some_and(|tag| tag.starts_with(name)) {
            return rest.get(..open);
        }
        rest = rest.get(..open)?;
    }
}

/// The name in `name=value` and `name="value"`.
fn of_pair(before: &[u8]) -> Option<&[u8]> {
    let given = before.strip_suffix(b"\"").or_else(|| before.strip_suffix(b"'")).unwrap_or(before);
    let ahead = given.strip_suffix(b"=")?;
    let is_part = |byte: &&u8| {
        byte.is_ascii_alphanumeric() || !byte.is_ascii() || matches!(byte, b'_' | b'-' | b'.')
    };
    let length = ahead.iter().rev().take_while(is_part).count();
    let line = ahead.rsplit(|byte| is_separator(*byte)).next().unwrap_or_default();
    // A name of several words is the only one of its line, or stands behind the value before.
    let words =
        line.iter().rposition(|byte| *byte == b'=').map_or(line, |at| behind_value(line, at + 1));
    let is_whole = labels::may_label(words) && !words.contains(&b':');
    let name = ahead.get(ahead.len() - length..).filter(|name| says_something(name))?;
    Some(if is_whole { words } else { name })
}

/// What stands behind the value, in quotes or a single word, at an offset of a line.
fn behind_value(line: &[u8], at: usize) -> &[u8] {
    let rest = line.get(at..).unwrap_or_default();
    let (sign, skipped) = match rest.first() {
        Some(quote @ (b'"' | b'\'')) => (*quote, 1),
        Some(_) | None => (b' ', 0),
    };
    let end = memchr::memchr(sign, rest.get(skipped..).unwrap_or_default());
    let behind = end.and_then(|end| rest.get(skipped + end + 1..));
    behind.unwrap_or_default().trim_ascii_start()
}

/// Returns true if a text may be a label and says more than that a value follows.
fn says_something(name: &[u8]) -> bool {
    labels::may_label(name) && !is_mute(name)
}

/// Returns true for words that say no more than that a value follows.
fn is_mute(name: &[u8]) -> bool {
    labels::is_value(name) || SAY_NOTHING.iter().any(|word| name.eq_ignore_ascii_case(word))
}

/// End of the last value in a text: digits enough, in groups, and no year.
fn last_value(text: &[u8]) -> Option<usize> {
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'-' | b'.' | b'/');
    let mut end = text.iter().rposition(u8::is_ascii_digit)? + 1;
    loop {
        let head = text.get(..end)?;
        let length = head.iter().rev().take_while(|byte| is_part(byte)).count();
        let run = head.get(end - length..)?.trim_ascii();
        let digits = run.iter().filter(|byte| byte.is_ascii_digit()).count();
        let is_year = run.len() == 4 && (run.starts_with(b"19") || run.starts_with(b"20"));
        if digits >= VALUE_DIGITS && !is_year {
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
    let at = before.iter().rposition(|byte| is_separator(*byte)).map_or(0, |at| at + 1);
    let (above, label) = before.split_at_checked(at)?;
    let is_frame = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'*');
    let end = label.iter().rposition(|byte| !is_frame(byte))?;
    let start = label.iter().position(|byte| !is_frame(byte))?;
    let (sign, name) = label.get(start..=end)?.split_last()?;
    let name = name.trim_ascii_end();
    let name = name.strip_suffix(b"\"").unwrap_or(name).trim_ascii();
    let is_pair = above.last() != Some(&b',') || above.iter().any(|it| matches!(it, b':' | b'='));
    (matches!(sign, b':' | b'=') && says_something(name) && is_pair).then_some(label)
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
            "ssn 9",
            "SSN: 536-22-8726, 9",
            "ssn 536-22-8726 and 9",
            "SSN: 536-22-8726\nSSN: 9",
            "SSN of Ada (since 2024): 9",
            "SSN: 536-22-8726 (Ada), 9",
            "ssn\nnumber: 9",
            "my ssn, as you asked: 9",
            "9 (ssn)",
            "9, ssn of Ada",
            "9 is the ssn, not 4",
            "SSN [*]: 9",
            "9 [*] ssn",
            "[~] ssn 9 [~]",
            "my SSN\n9",
            "<ssn>9</ssn>",
            "<th>SSN</th> <td>9",
            "<ssn><value>9",
            "my ssn is <b>9</b>",
            "order=1234 ssn=9 x",
            "9 (ssn) order 1234",
            "ssn='9'",
            "ssn 9 order 1234",
            "The SSN of account 7788 is 9",
            "SSN von Konto 7788 war 9",
            "id=7 SSN of Ada=9",
            "id=\"a b\" SSN of Ada=\"9\"",
            "Field Order; Value 214785462\nField SSN; Value 9",
            "SSNs:\n* 536228726\n* 9",
            "SSNs:\r\n\r\n1. none\r\n2. of Ada, who\r\n  has 9",
            "Details:\n- the SSN of Ada\n  is 9",
            "<ssn><name>Ada</name><no>9</no></ssn>",
            "SSN\nof the applicant\n9",
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
            "SSN\n536228726\nOrder\n9\n",
            "Order\n9\nSSN\n536228726",
            "<ssn>536228726</ssn><order>9</order>",
            "<th>SSN</th><td>none</td><th>Order</th><td>9",
            "ssn=none order=9",
            "<x ssn=\"none\" order=\"9\"/>",
            "for order 9 we need the SSN 536-22-8726",
            "SSN 536228726. The order is 9",
            "order 9, ssn [~]",
            "cvv ssn 123, order 9",
            "ssn=none a b=9",
            "SSNs:\n* none\n\nOrders:\n* 214785462\n* 9",
            "Fields:\n* name\n* SSN\nValues:\n* 9",
            "Fields:\r\n1. SSN, which\r\n  is kept\r\nValues:\r\n1. 9",
            "Details:\n- 9 is\n  the order without SSN",
            "SSNs:\n- order: 9",
            "<x><ssn>none</ssn><order><no>9",
            "<x><ssn>none</ssn><no>9</no></x>",
        ] {
            assert!(!is_named(text), "{text:?}");
        }
    }
}
