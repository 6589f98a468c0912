//! Lines of a text, with the numbers of delimiters in each, in one pass: most lines are told from those of tables by these.

use std::ops::Range;

use crate::text::line_marks::LineMarks;

/// Signs between cells, in the order in which they are tried.
pub(super) const DELIMITERS: [u8; 4] = *b"\t|;,";

/// A line without its line feed.
pub(super) struct Line {
    pub(super) range: Range<usize>,
    /// True if there are delimiters or quotes.
    pub(super) has_signs: bool,
}

/// The signs in a line.
#[derive(Default)]
pub(super) struct Signs {
    /// Numbers of the delimiters, each as those are listed.
    pub(super) counts: [u32; 4],
    pub(super) has_quotes: bool,
}

impl Signs {
    pub(super) fn of(text: &[u8], marks: &LineMarks, line: &Line) -> Self {
        let mut found = Self::default();
        let [tabs, bars, semicolons, commas] = &mut found.counts;
        for at in marks.signs(line.range.clone()) {
            match text.get(at) {
                Some(b'\t') => *tabs += 1,
                Some(b'|') => *bars += 1,
                Some(b';') => *semicolons += 1,
                Some(b',') => *commas += 1,
                Some(_) | None => found.has_quotes = true,
            }
        }
        found
    }
}

/// The lines of a text from an offset on at which one begins, in order.
pub(super) fn lines(marks: &LineMarks, from: usize) -> impl Iterator<Item = Line> {
    let length = marks.length();
    let mut start = from;
    let mut ends = marks.ends(from);
    let mut signs = marks.signs(from..length);
    let mut sign = signs.next().unwrap_or(length);
    std::iter::from_fn(move || {
        (start < length).then_some(())?;
        let end = ends.next().unwrap_or(length);
        let range = start..end;
        start = end + 1;
        let has_signs = sign < end;
        while sign < end {
            sign = signs.next().unwrap_or(length);
        }
        Some(Line { range, has_signs })
    })
}

/// End of the line that an offset stands in.
pub(super) fn line_end(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    memchr::memchr(b'\n', rest).map_or(text.len(), |length| at + length)
}

/// The line behind another.
pub(super) fn next_line(text: &[u8], line: &Range<usize>) -> Option<Range<usize>> {
    let start = line.end + 1;
    (start < text.len()).then(|| start..line_end(text, start))
}

/// The part of a range without space, and without quotes and signs of emphasis around all of it.
pub(super) fn trimmed(text: &[u8], range: Range<usize>) -> Range<usize> {
    let cell = text.get(range.clone()).unwrap_or_default();
    // Most cells begin with a letter or a digit.
    if let [first, .., last] = cell
        && first.is_ascii_alphanumeric()
        && !last.is_ascii_whitespace()
    {
        return range;
    }
    let start = range.start + cell.len() - cell.trim_ascii_start().len();
    let cell = cell.trim_ascii();
    let (width, inside) = match cell {
        [b'*', b'*', inside @ .., b'*', b'*'] => (2, inside),
        [open @ (b'"' | b'\'' | b'`' | b'*'), inside @ .., close] if open == close => (1, inside),
        _ => (0, cell),
    };
    start + width..start + width + inside.len()
}
