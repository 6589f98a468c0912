//! Lines of a text, with the numbers of delimiters in each, in one pass: most lines are told from those of tables by these.

use std::{iter::Peekable, ops::Range};

use memchr::{Memchr, Memchr2, Memchr3};

/// Signs between cells, in the order in which they are tried.
pub(super) const DELIMITERS: [u8; 4] = *b"\t|;,";

/// A line without its line feed.
#[derive(Default)]
pub(super) struct Line {
    pub(super) range: Range<usize>,
    /// Numbers of the delimiters, each as those are listed.
    pub(super) counts: [usize; 4],
    pub(super) has_quotes: bool,
}

/// Reads lines in order.
pub(super) struct Lines<'t> {
    text: &'t [u8],
    start: usize,
    ends: Memchr<'t>,
    /// Tabs, bars and commas ahead.
    common: Peekable<Memchr3<'t>>,
    /// Semicolons and quotes ahead.
    rare: Peekable<Memchr2<'t>>,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t [u8]) -> Self {
        Self {
            text,
            start: 0,
            ends: memchr::memchr_iter(b'\n', text),
            common: memchr::memchr3_iter(b'\t', b'|', b',', text).peekable(),
            rare: memchr::memchr2_iter(b';', b'"', text).peekable(),
        }
    }

    /// The first line that begins at an offset or behind it.
    pub(super) fn skip_to(&mut self, start: usize) -> Option<Line> {
        self.find(|line| line.range.start >= start)
    }
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        (self.start < self.text.len()).then_some(())?;
        let end = self.ends.next().unwrap_or(self.text.len());
        let mut line = Line { range: self.start..end, ..Line::default() };
        self.start = end + 1;
        let [tabs, bars, semicolons, commas] = &mut line.counts;
        while let Some(at) = self.common.next_if(|at| *at < end) {
            match self.text.get(at) {
                Some(b'\t') => *tabs += 1,
                Some(b'|') => *bars += 1,
                Some(_) | None => *commas += 1,
            }
        }
        while let Some(at) = self.rare.next_if(|at| *at < end) {
            let is_quote = self.text.get(at) == Some(&b'"');
            line.has_quotes |= is_quote;
            *semicolons += usize::from(!is_quote);
        }
        Some(line)
    }
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
    let start = range.start + cell.len() - cell.trim_ascii_start().len();
    let cell = cell.trim_ascii();
    let (width, inside) = match cell {
        [b'*', b'*', inside @ .., b'*', b'*'] => (2, inside),
        [open @ (b'"' | b'\'' | b'`' | b'*'), inside @ .., close] if open == close => (1, inside),
        _ => (0, cell),
    };
    start + width..start + width + inside.len()
}
