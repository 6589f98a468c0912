//! Lists in texts: the line with a colon above the items names them.

use std::ops::Range;

use crate::{
    body::{
        records::{LONGEST, Records},
        text_lines::{next_line, trimmed},
    },
    text::lists::{bullet, goes_on, head, is_frame},
};

/// Lines that an item goes on in, at most.
const CONTINUED: usize = 4;

/// Digits of a long number, and bytes of a code, at least.
const DIGITS: usize = 6;
const CODE: usize = 16;

/// Returns true if a text holds a long number or a code.
pub(super) fn is_code(text: &[u8]) -> bool {
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    text.iter().filter(is_digit).count() >= DIGITS
        || text.len() >= CODE && text.split(|byte| *byte == b' ').any(|word| word.len() >= CODE)
}

/// Returns true if a line ends with a colon, but for space and signs of emphasis.
#[inline]
pub(super) fn may_begin(text: &[u8], line: &Range<usize>) -> bool {
    let written = text.get(line.clone()).unwrap_or_default();
    let is_around = |byte: &&u8| is_frame(**byte) || byte.is_ascii_whitespace();
    written.iter().rev().find(|byte| !is_around(byte)) == Some(&b':')
}

/// Adds the items below a line that ends with a colon.
pub(super) fn read(text: &[u8], line: &Range<usize>, records: &mut Records) {
    let written = text.get(line.clone()).unwrap_or_default().trim_ascii_end();
    let Some(name) = head(written) else { return };
    let before = name.iter().take_while(|byte| is_frame(**byte)).count();
    let name = trimmed(text, line.start + before..line.start + name.len());
    if !(1..=LONGEST).contains(&name.len()) || bullet(written) > 0 {
        return;
    }
    let known = records.values.len();
    let mut has_items = false;
    let mut others = 0;
    let mut row = next_line(text, line);
    while let Some(line) = row {
        let written = text.get(line.clone()).unwrap_or_default();
        let length = bullet(written);
        has_items |= length > 0;
        others = if length > 0 { 0 } else { others + 1 };
        let may_go_on =
            || if has_items { goes_on(written) } else { written.trim_ascii().is_empty() };
        if others > CONTINUED || others > 0 && !may_go_on() {
            break;
        }
        if length > 0 {
            let item = trimmed(text, line.start + length..line.end);
            add_item(text, &item, records);
        }
        row = next_line(text, &line);
    }
    if records.values.len() > known {
        records.names.push(name);
        records.is_read_again = true;
    }
}

/// Adds the single word of an item, or the long numbers and codes in it, below the next name: it stands for no other
/// words.
fn add_item(text: &[u8], item: &Range<usize>, records: &mut Records) {
    let name = records.names.len();
    let written = text.get(item.clone()).unwrap_or_default();
    if memchr::memchr(b' ', written).is_none() {
        records.values.extend((!written.is_empty()).then(|| (name, item.clone())));
        return;
    }
    if !written.iter().any(u8::is_ascii_digit) {
        return;
    }
    let count = |run: &Range<usize>| {
        let run = text.get(run.clone()).unwrap_or_default();
        run.iter().filter(|byte| byte.is_ascii_digit()).count()
    };
    let mut at = item.start;
    let words = written.split(|byte| *byte == b' ').map(|word| {
        let from = at;
        at += word.len() + 1;
        from..from + word.len()
    });
    let mut words = words.peekable();
    while let Some(mut run) = words.find(|word| count(word) > 0) {
        while let Some(next) = words.next_if(|word| count(word) > 0) {
            run.end = next.end;
        }
        let is_telling = count(&run) >= DIGITS || run.len() >= CODE;
        records.values.extend(is_telling.then_some((name, run)));
    }
}
