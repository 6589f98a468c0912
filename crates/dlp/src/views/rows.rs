//! Rows: pieces of one kind between which the same separator stands.
//!
//! Three kinds are read: bytes in hex (`67 68 70 5f`, `0x67, 0x68` and `6768 705f`), codes in decimal
//! (`103, 104`, `chr(103)+chr(104)`), and characters or groups of as many characters (`g h p _`,
//! `4111|1111|1111`). Readable bytes begin with a digit, so rows of codes are looked for only where digits
//! are dense; groups are looked for where words begin at one distance from each other.

use std::ops::Range;

use crate::{
    text::marks::{Marks, STRETCH},
    views::encoded::{hex, is_hex},
};

/// Bytes of the shortest row.
const SHORTEST: usize = 8;

/// Fewer digits behind a sign may be an escape.
const LONGEST_ESCAPE: usize = 4;

/// The longest piece of hex: eight digits with `0x`.
const LONGEST_PIECE: usize = 10;

/// Digits of the longest code.
const LONGEST_CODE: usize = 3;

/// Bytes of the longest separator of codes: that of `CHAR(52) || CHAR(49)`.
const LONGEST_SEPARATOR: usize = 12;

/// A row, read as one.
pub(super) struct Row {
    pub(super) text: Vec<u8>,
    pub(super) range: Range<usize>,
    /// Places of the codes in decimal, one for each byte of the text; none of other pieces.
    pub(super) codes: Vec<Range<usize>>,
}

/// The rows of codes in the marked part of a text, in order.
pub(super) fn codes(text: &[u8], marks: &Marks) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut done = marks.start();
    for start in marks.dense_digits() {
        let end = text.len().min(start + 2 * STRETCH);
        let mut at = begin(text, start.max(done), done);
        // A row is read both ways from a piece with a digit. Bytes whose pieces have none are beyond ASCII.
        while let Some(digit) = marks.first_digit(at..end + LONGEST_PIECE) {
            at = begin(text, digit, at);
            if at >= end {
                break;
            }
            let length = marks.word_from(at);
            let before = rows.len();
            let is_marked = length == 3 && text.get(at + 2) == Some(&b'h');
            let may_be_hex = is_marked || matches!(length, 2 | 4 | 6 | 8 | LONGEST_PIECE);
            if may_be_hex && piece(text, at, length).is_some() {
                rows.extend(hex_row(text, marks, at, done));
            }
            if matches!(length, 2 | LONGEST_CODE) && code(text, at, length).is_some() {
                rows.extend(code_row(text, marks, at, done));
            }
            let found = rows.get(before..).unwrap_or_default();
            at = found.iter().map(|row| row.range.end).max().unwrap_or(at + length + 1);
        }
        done = done.max(at).max(end);
    }
    rows
}

/// The rows of groups in the marked part of a text, in order.
pub(super) fn groups(text: &[u8], marks: &Marks) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut done = marks.start();
    marks.each_regular(|at, distance| {
        let found = (at >= done).then(|| Groups::around(text, marks, at, distance, done)).flatten();
        if let Some(found) = found {
            done = found.end();
            found.read(text, &mut rows);
        }
    });
    rows
}

/// The beginning of the word that an offset stands in, or that touches it.
fn begin(text: &[u8], at: usize, floor: usize) -> usize {
    let before = text.get(floor..at).unwrap_or_default();
    let near = before.iter().rev().take(LONGEST_PIECE);
    at - near.take_while(|byte| byte.is_ascii_alphanumeric()).count()
}

/// Returns true if neither a letter nor a digit stands before an offset.
fn begins_word(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    !before.is_some_and(u8::is_ascii_alphanumeric)
}

/// Something if a word is a piece.
fn piece(text: &[u8], at: usize, length: usize) -> Option<()> {
    digits(text.get(at..at + length)?).map(drop)
}

/// The digits of a piece.
fn digits(word: &[u8]) -> Option<&[u8]> {
    let digits = word.strip_prefix(b"0x").or_else(|| word.strip_suffix(b"h")).unwrap_or(word);
    (matches!(digits.len(), 2 | 4 | 8) && is_hex(digits)).then_some(digits)
}

/// The row of hex that the piece at an offset stands in, from `floor` on.
fn hex_row(text: &[u8], marks: &Marks, at: usize, floor: usize) -> Option<Row> {
    let length = marks.word_from(at);
    let separator = separator(text.get(at + length..)?)?;
    let piece = |from: usize| {
        let digits = text.get(from..from + length).and_then(digits)?;
        (marks.word_from(from) == length).then_some(digits)
    };
    let distance = length + separator.len();
    let goes_on = |from: usize| {
        text.get(from + length..from + distance) == Some(separator)
            && piece(from + distance).is_some()
    };
    // Most pieces stand alone.
    goes_on(at).then_some(())?;
    let mut start = at;
    while let Some(before) = start.checked_sub(distance).filter(|before| *before >= floor)
        && piece(before).is_some()
        && goes_on(before)
        && begins_word(text, before)
    {
        start = before;
    }
    let mut last = at;
    while goes_on(last) {
        last += distance;
    }
    let count = (last - start) / distance + 1;
    (count * length / 2 >= SHORTEST).then_some(())?;
    let pieces = (start..=last).step_by(distance).filter_map(piece);
    let read: Vec<u8> = pieces.flat_map(bytes).collect();
    let range = start..last + length;
    (read.len() >= SHORTEST).then_some(Row { text: read, range, codes: Vec::new() })
}

/// The bytes that a piece stands for.
fn bytes(digits: &[u8]) -> Vec<u8> {
    binary(digits).map_or_else(|| hex(digits), |byte| vec![byte])
}

/// The byte that eight binary digits are.
fn binary(digits: &[u8]) -> Option<u8> {
    let is_binary = digits.len() == 8 && digits.iter().all(|digit| matches!(digit, b'0' | b'1'));
    is_binary.then(|| digits.iter().fold(0, |byte, digit| byte << 1 | digit & 1))
}

/// The character that a word is the code of, in two or three digits.
fn code(text: &[u8], at: usize, length: usize) -> Option<u8> {
    let add =
        |sum: u32, digit: &u8| digit.is_ascii_digit().then(|| sum * 10 + u32::from(digit & 15));
    let value = text.get(at..at + length)?.iter().try_fold(0, add)?;
    u8::try_from(value).ok().filter(|code| matches!(code, b'\n' | b' '..=b'~'))
}

/// The row of decimal codes that the one at an offset stands in, from `floor` on. Numbers of an array are
/// parted by nothing but the ends of their segments.
fn code_row(text: &[u8], marks: &Marks, at: usize, floor: usize) -> Option<Row> {
    let first = at + marks.word_from(at);
    let behind = text.get(first..text.len().min(first + LONGEST_SEPARATOR + 1))?;
    let length = behind.iter().position(u8::is_ascii_digit).filter(|length| *length > 0)?;
    let separator = behind.get(..length).filter(|it| !it.contains(&0) || it.len() == 1)?;
    let next = first + length;
    let digits = marks.word_from(next);
    // Most numbers stand in no row.
    matches!(digits, 2 | LONGEST_CODE).then(|| code(text, next, digits)).flatten()?;
    let mut start = at;
    while let Some(end) = start.checked_sub(length).filter(|end| *end > floor)
        && text.get(end..start) == Some(separator)
        && let Some(before) = code_before(text, end, floor)
    {
        start = before;
    }
    let mut read = Vec::new();
    let mut codes = Vec::new();
    let mut next = start;
    loop {
        let digits = marks.word_from(next);
        let Some(code) =
            matches!(digits, 2 | LONGEST_CODE).then(|| code(text, next, digits)).flatten()
        else {
            break;
        };
        let end = next + digits;
        read.push(code);
        codes.push(next..end);
        if text.get(end..end + length) != Some(separator) {
            break;
        }
        next = end + length;
    }
    let end = codes.last()?.end;
    (read.len() >= SHORTEST).then_some(Row { text: read, range: start..end, codes })
}

/// Start of the code that ends at an offset.
fn code_before(text: &[u8], end: usize, floor: usize) -> Option<usize> {
    let near = text.get(floor..end)?.iter().rev().take(LONGEST_CODE + 1);
    let digits = near.take_while(|byte| byte.is_ascii_digit()).count();
    let start = end - digits;
    let is_code = matches!(digits, 2 | LONGEST_CODE) && code(text, start, digits).is_some();
    (is_code && begins_word(text, start)).then_some(start)
}

/// The separator that a text begins with.
fn separator(text: &[u8]) -> Option<&[u8]> {
    let is_one = |byte: &u8| matches!(byte, b' ' | b':' | b',' | b';' | b'-' | b'.' | b'|' | b'\n');
    let first = text.first().filter(|byte| is_one(byte))?;
    if text.starts_with(b" U+") {
        return text.get(..3);
    }
    let is_two = *first != b' ' && text.get(1) == Some(&b' ');
    text.get(..if is_two { 2 } else { 1 })
}

/// Characters of the shortest row of groups, and its groups but for one.
const FEWEST_CHARACTERS: usize = 11;
const FEWEST_GROUPS: usize = 3;

/// Pieces of one length, as far as the same separator stands between them.
struct Groups {
    /// Start of the first, and of the last.
    first: usize,
    last: usize,
    /// Length of each but the last, which may be shorter.
    length: usize,
    rest: usize,
    distance: usize,
}

impl Groups {
    /// The row of which a group begins at an offset and others at such a distance behind it.
    fn around(
        text: &[u8],
        marks: &Marks,
        at: usize,
        distance: usize,
        floor: usize,
    ) -> Option<Self> {
        let length = marks.word_from(at);
        let separator = text.get(at + length..at + distance)?;
        let is_sign = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != 0;
        // Codes behind these are escapes.
        let begins_code = matches!(separator, [.., b'\\' | b'%' | b'='] | [.., b'&', b'#']);
        let is_number = length >= LONGEST_ESCAPE && text.get(at).is_some_and(u8::is_ascii_digit);
        let is_escape = length > 1 && begins_code && !is_number;
        let is_separator = !separator.is_empty() && separator.iter().all(is_sign) && !is_escape;
        is_separator.then_some(())?;
        let is_group = |from: usize| {
            text.get(from..from + length).is_some_and(|it| it.iter().all(u8::is_ascii_graphic))
                && text.get(from + length..from + distance) == Some(separator)
        };
        let mut first = at;
        while let Some(before) = first
            .checked_sub(distance)
            .filter(|it| *it >= floor && is_group(*it) && begins_word(text, *it))
        {
            first = before;
        }
        let mut last = at;
        while is_group(last) {
            last += distance;
        }
        let behind = text.get(last..text.len().min(last + length + 1)).unwrap_or_default();
        let mut rest = behind.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        if rest == 0 || rest > length {
            last -= distance;
            rest = length;
        }
        let is_long = (last - first) / distance >= FEWEST_GROUPS && last > at;
        Some(Self { first, last, length, rest, distance })
            .filter(|row| is_long && row.characters() >= FEWEST_CHARACTERS)
    }

    fn characters(&self) -> usize {
        (self.last - self.first) / self.distance * self.length + self.rest
    }

    fn end(&self) -> usize {
        self.last + self.rest
    }

    /// Adds the row, and once more without the words at its ends, which may be those of a sentence.
    fn read(&self, text: &[u8], rows: &mut Vec<Row>) {
        let group = |at: usize| {
            let length = if at == self.last { self.rest } else { self.length };
            text.get(at..at + length).unwrap_or_default()
        };
        let places = || (self.first..=self.last).step_by(self.distance);
        let is_word = |at: &usize| group(*at).iter().all(u8::is_ascii_lowercase);
        let joined = |first: usize, last: usize| {
            let kept = places().filter(|at| (first..=last).contains(at));
            let end = last + group(last).len();
            let text = kept.flat_map(group).copied().collect();
            Row { text, range: first..end, codes: Vec::new() }
        };
        let whole = joined(self.first, self.last);
        let digits = whole.text.iter().filter(|byte| byte.is_ascii_digit()).count();
        let has_capital = whole.text.iter().any(u8::is_ascii_uppercase);
        if self.length > 1 && (digits == 0 || digits < FEWEST_DIGITS && !has_capital) {
            return;
        }
        let mut others = places().filter(|at| !is_word(at));
        let first = others.next().unwrap_or(self.first);
        let last = others.last().unwrap_or(first);
        let kept = joined(first, last);
        let separator = text.get(self.first + self.length..self.first + self.distance);
        let is_usual = matches!(separator, Some(b" " | b"-" | b"." | b"/"));
        if is_usual && kept.text.iter().all(u8::is_ascii_digit) {
            // Numbers are read in such groups as they are.
            return;
        }
        let may_be_sentence = self.length > 1 || 4 * digits >= 3 * whole.text.len();
        rows.push(whole);
        if may_be_sentence && (first, last) != (self.first, self.last) {
            rows.push(kept);
        }
    }
}

/// Digits of a row of groups that are longer than a character, without capitals: sentences have fewer.
const FEWEST_DIGITS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::marks::Set;

    fn texts(text: &str) -> Vec<(String, Range<usize>)> {
        let mut marks = Marks::default();
        marks.set(text.as_bytes(), 0, &Set::NONE);
        let rows =
            codes(text.as_bytes(), &marks).into_iter().chain(groups(text.as_bytes(), &marks));
        rows.map(|row| (String::from_utf8_lossy(&row.text).into_owned(), row.range)).collect()
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
            pieces.iter().map(|piece| format!("{piece}h")).collect::<Vec<_>>().join(" "),
            text.bytes().map(|byte| format!("{byte:08b}")).collect::<Vec<_>>().join(" "),
            text.bytes().map(|byte| format!("{byte}")).collect::<Vec<_>>().join(", "),
            text.bytes().map(|byte| format!("{byte:03}")).collect::<Vec<_>>().join(")+chr("),
            text.chars().map(String::from).collect::<Vec<_>>().join(" "),
            text.chars().map(String::from).collect::<Vec<_>>().join("', '"),
        ] {
            let found = texts(&format!("it is [{spelled}], see"));
            let expected = (text.to_owned(), 7..7 + spelled.len());
            assert!(found.contains(&expected), "{spelled}: {found:?}");
        }
        let found = texts("6164 6140 6578 616d 706c 652e 6f72");
        assert_eq!(found.first(), Some(&("ada@example.or".to_owned(), 0..34)));
    }

    #[test]
    fn groups_of_as_many_characters_are_read_as_one() {
        for (text, expected) in [
            ("card 411|111|111|111|111|1.", &["4111111111111111"][..]),
            ("[41][11][11][11][11][11][11][1]", &["411111111111111"]),
            ("is AKIA WROY 4ZMP ENKQ keep it", &["AKIAWROY4ZMPENKQkeepit", "AKIAWROY4ZMPENKQ"]),
            ("a_4_1_1_1_1_1_1_1_1_1_1", &["a41111111111", "41111111111"]),
            ("4 1 1 1 1 1 1 1 1 1 1 1", &[]),
            ("\\x65\\x2d\\x37\\x65\\x2d", &[]),
            ("%65%2d%37%65%2d%65%2d", &[]),
            ("4111=1111=1111=1111", &["4111111111111111"]),
            ("4111 & 1111 & 1111 & 1111", &["4111111111111111"]),
        ] {
            let found: Vec<String> = texts(text).into_iter().map(|(text, _)| text).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn other_numbers_are_no_rows() {
        for text in [
            "12:30:45 and 12-24-36",
            "2026-03-14T09:26:53",
            "1, 2, 3, 4, 5, 6, 7, 8, 9",
            "12 345 67 890 12 345",
            "743b294a-cd03-11ec-9d64-0242ac120002",
            "the cat has one red hat and two big old men saw it in May 2019",
        ] {
            assert!(texts(text).is_empty(), "{text}");
        }
    }
}
