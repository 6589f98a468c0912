//! Hex in pieces: `67 68 70 5f`, `67:68:70:5f`, `0x67, 0x68` and `6768 705f`.
//!
//! A row is pieces of one length, of two, four or eight hex digits each, with or without `0x`, between
//! which one or two of the same separators stand. Eight bytes make one. Readable bytes begin with a digit,
//! so rows are looked for only where digits are dense.

use std::ops::Range;

use crate::{
    text::marks::{Marks, STRETCH},
    views::encoded::{hex, is_hex},
};

/// Bytes of the shortest row.
const SHORTEST: usize = 8;

/// The longest piece: eight digits with `0x`.
const LONGEST_PIECE: usize = 10;

/// Calls `take` with every row of the marked part of a text, decoded, and where it stands.
pub(super) fn each(text: &[u8], marks: &Marks, mut take: impl FnMut(Vec<u8>, Range<usize>)) {
    let mut done = marks.start();
    for start in marks.dense_digits() {
        let end = text.len().min(start + 2 * STRETCH);
        let mut at = begin(text, start.max(done), done);
        let mut words = marks.words_ahead(at);
        while at < end {
            let length = words.length().unwrap_or_else(|| marks.word_from(at));
            let found = matches!(length, 2 | 4 | 6 | 8 | LONGEST_PIECE)
                .then(|| piece(text, at, length).and_then(|()| row(text, marks, at)))
                .flatten();
            if let Some((bytes, range)) = found {
                at = range.end;
                take(bytes, range);
                words = marks.words_ahead(at);
            } else {
                at += length + 1;
                if !words.skip(length + 1) {
                    words = marks.words_ahead(at);
                }
            }
        }
        done = done.max(at);
    }
}

/// The beginning of the word that an offset stands in, or that touches it.
fn begin(text: &[u8], at: usize, floor: usize) -> usize {
    let before = text.get(floor..at).unwrap_or_default();
    let near = before.iter().rev().take(LONGEST_PIECE);
    at - near.take_while(|byte| byte.is_ascii_alphanumeric()).count()
}

/// Something if a word is a piece.
fn piece(text: &[u8], at: usize, length: usize) -> Option<()> {
    digits(text.get(at..at + length)?).map(drop)
}

/// The digits of a piece.
fn digits(word: &[u8]) -> Option<&[u8]> {
    let digits = word.strip_prefix(b"0x").unwrap_or(word);
    (matches!(digits.len(), 2 | 4 | 8) && is_hex(digits)).then_some(digits)
}

/// The row that begins with the piece at an offset.
fn row(text: &[u8], marks: &Marks, start: usize) -> Option<(Vec<u8>, Range<usize>)> {
    let length = marks.word_from(start);
    let separator = separator(text.get(start + length..)?)?;
    let mut bytes = Vec::new();
    let mut at = start;
    let end = loop {
        let Some(digits) = text.get(at..at + length).and_then(digits) else { break at };
        if marks.word_from(at) != length {
            break at;
        }
        bytes.extend(hex(digits));
        let end = at + length;
        if !text.get(end..).is_some_and(|rest| rest.starts_with(separator)) {
            break end;
        }
        at = end + separator.len();
    };
    (bytes.len() >= SHORTEST).then_some((bytes, start..end))
}

/// The separator that a text begins with.
fn separator(text: &[u8]) -> Option<&[u8]> {
    let is_one = |byte: &u8| matches!(byte, b' ' | b':' | b',' | b';' | b'-' | b'.' | b'|' | b'\n');
    let first = text.first().filter(|byte| is_one(byte))?;
    let is_two = *first != b' ' && text.get(1) == Some(&b' ');
    text.get(..if is_two { 2 } else { 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::marks::Set;

    fn texts(text: &str) -> Vec<(String, Range<usize>)> {
        let mut marks = Marks::default();
        marks.set(text.as_bytes(), 0, &Set::NONE);
        let mut found = Vec::new();
        each(text.as_bytes(), &marks, |bytes, range| {
            found.push((String::from_utf8_lossy(&bytes).into_owned(), range));
        });
        found
    }

    #[test]
    fn rows_are_read_as_one() {
        let text = "ada@example.org";
        let pieces: Vec<String> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        for spelled in [
            pieces.join(" "),
            pieces.join(":"),
            pieces.join("-"),
            pieces.join(", "),
            pieces.iter().map(|piece| format!("0x{piece}")).collect::<Vec<_>>().join(", "),
            pieces.iter().map(|piece| format!("0x{piece}")).collect::<Vec<_>>().join(","),
        ] {
            let found = texts(&format!("it is [{spelled}], see"));
            assert_eq!(found, [(text.to_owned(), 7..7 + spelled.len())], "{spelled}");
        }
        let found = texts("6164 6140 6578 616d 706c 652e 6f72");
        assert_eq!(found, [("ada@example.or".to_owned(), 0..34)]);
    }

    #[test]
    fn other_numbers_are_no_rows() {
        for text in [
            "12:30:45 and 12-24-36",
            "2026-03-14T09:26:53",
            "1, 2, 3, 4, 5, 6, 7, 8, 9",
            "12 345 67 890 12 345",
        ] {
            assert!(texts(text).is_empty(), "{text}");
        }
    }
}
