//! Tables in texts: lines with the same number of delimiters, the first of which names the columns.
//!
//! Prose has such lines as well. A table is certain if all its columns have names and its cells do not look like
//! clauses; of others only numbers and single words are read below their names, and all of it as prose besides.

use std::ops::Range;

use crate::{
    body::{
        columns::{Columns, caption, is_number},
        records::{LONGEST, Records},
        text_lines::{DELIMITERS, Line, next_line, trimmed},
    },
    text::labels,
};

/// Lines that a cell in quotes goes over, at most.
const LINES: usize = 256;

/// The columns of a table.
struct Table<'t> {
    text: &'t [u8],
    delimiter: u8,
    /// The sign that lines begin with in a patch.
    mark: Option<u8>,
    heads: Vec<Range<usize>>,
    /// True if its lines begin and end with a bar.
    is_framed: bool,
    /// True if a space follows a comma, as in prose.
    is_spaced: bool,
    is_certain: bool,
}

/// The cells of a row, and the lines that it takes.
struct Row {
    cells: Vec<Range<usize>>,
    lines: Range<usize>,
}

/// Returns false if a line names no columns of the one below, which the delimiters in them tell of most.
pub(super) fn may_begin(text: &[u8], line: &Line, below: &Line) -> bool {
    if line.counts == [0; 4] {
        return false;
    }
    let near = |line: &Line| text.get(line.range.clone()).unwrap_or_default();
    let hides = |line: &Line, delimiter: u8| {
        line.has_quotes || near(line).trim_ascii_end().ends_with(&[delimiter])
    };
    let mut counts = DELIMITERS.into_iter().zip(line.counts.iter().zip(&below.counts));
    counts.any(|(delimiter, (own, other))| {
        *own > 0
            && (own == other
                || hides(line, delimiter)
                || hides(below, delimiter)
                || is_rule(without_marks(near(below))))
    })
}

/// Adds the table below a line that names its columns. Gives the offset behind it.
pub(super) fn read(text: &[u8], line: &Range<usize>, records: &mut Records) -> Option<usize> {
    let near = text.get(line.start..line.end.min(line.start + LONGEST + 2))?;
    let below = next_line(text, line)?;
    let mut near = DELIMITERS.into_iter().filter(|it| memchr::memchr(*it, near).is_some());
    let (mut table, mut row) =
        near.find_map(|delimiter| Table::beginning(text, line, &below, delimiter))?;
    let start = row.lines.start;
    let columns = Columns::add(text, &table.heads, || caption(text, line.start), records);
    let known = records.values.len();
    let mut are_named = true;
    let end = loop {
        are_named &= columns.add_row(text, &row.cells, records);
        table.doubt(&row.cells, records);
        match next_line(text, &row.lines).and_then(|next| table.row(next)) {
            Some(next) => row = next,
            None => break row.lines.end + 1,
        }
    };
    if table.is_certain && are_named {
        records.cut_out(start..end.min(text.len()));
    } else {
        records.is_read_again = true;
    }
    if !table.is_certain {
        let names = &records.names;
        let is_name = |name: &Range<usize>| may_head(table.part(name), table.delimiter);
        let may_be = |(name, cell): &(usize, Range<usize>)| {
            is_telling(table.part(cell)) && names.get(*name).is_some_and(is_name)
        };
        let cells = records.values.split_off(known);
        records.values.extend(cells.into_iter().filter(may_be));
    }
    Some(end)
}

/// A line without the signs of a mail that is quoted.
fn without_marks(line: &[u8]) -> &[u8] {
    let is_mark = |byte: &&u8| matches!(byte, b'>' | b' ');
    let depth = match line.first() {
        Some(b'>') => line.iter().take_while(is_mark).count(),
        Some(_) | None => 0,
    };
    line.get(depth..).unwrap_or_default()
}

impl<'t> Table<'t> {
    /// The table that begins with a line, and its first row.
    fn beginning(
        text: &'t [u8],
        line: &Range<usize>,
        below: &Range<usize>,
        delimiter: u8,
    ) -> Option<(Self, Row)> {
        let mark = match text.get(line.start..line.start + 2)? {
            [sign @ (b'+' | b'-'), next] if *next == b'|' || next.is_ascii_alphabetic() => {
                Some(*sign)
            }
            [b' ', _] if matches!(text.get(below.start), Some(b'+' | b'-')) => Some(b' '),
            _ => None,
        };
        let mut table = Self {
            text,
            delimiter,
            mark,
            heads: Vec::new(),
            is_framed: false,
            is_spaced: false,
            is_certain: true,
        };
        let written = table.bare(line);
        table.is_spaced = memchr::memmem::find(written, b", ").is_some();
        table.is_framed = delimiter == b'|' && written.first() == Some(&b'|');
        let is_framed = table.is_framed || is_rule(table.bare(below));
        table.heads = table.cells(line, true);
        // A sign of comments before the heads is no part of the first.
        if let Some(first) = table.heads.first_mut()
            && text.get(first.start) == Some(&b'#')
        {
            *first = trimmed(text, first.start + 1..first.end);
        }
        while table.heads.last().is_some_and(Range::is_empty) {
            table.heads.pop();
        }
        (table.heads.len() > usize::from(!is_framed)).then_some(())?;
        let row = table.row(below.clone())?;
        table.tell_heads(is_framed)?;
        Some((table, row))
    }

    /// Tells whether the heads of the columns are names; `None` if none of them is.
    fn tell_heads(&mut self, is_framed: bool) -> Option<()> {
        let heads: Vec<&[u8]> = self.heads.iter().map(|head| self.part(head)).collect();
        let names = heads.iter().filter(|head| may_head(head, self.delimiter)).count();
        let numbers = heads.iter().filter(|head| is_number(head)).count();
        let empty = heads.iter().filter(|head| head.is_empty()).count();
        self.is_certain =
            names + numbers + empty == heads.len() && names > numbers && (is_framed || names > 1);
        (names > 0).then_some(())
    }

    /// The row that begins with a line. A rule between rows is passed over.
    fn row(&self, line: Range<usize>) -> Option<Row> {
        let mut lines = line;
        if is_rule(self.bare(&lines)) {
            lines = next_line(self.text, &lines)?;
        }
        let fits = |cells: &Vec<Range<usize>>| {
            let more = cells.get(self.heads.len()..);
            more.is_some_and(|more| more.iter().all(Range::is_empty))
        };
        let read =
            |lines: &Range<usize>, is_quoted| Some(self.cells(lines, is_quoted)).filter(fits);
        let quotes = |part: &Range<usize>| memchr::memchr_iter(b'"', self.part(part)).count();
        let mut count = quotes(&lines);
        let end = lines.end;
        let one = read(&lines, true).or_else(|| (count > 0).then(|| read(&lines, false))?);
        if let Some(cells) = one {
            return Some(Row { cells, lines });
        }
        // A cell in quotes may hold line feeds.
        for _ in 0..LINES {
            if count % 2 == 0 {
                break;
            }
            let next = next_line(self.text, &lines)?;
            count = quotes(&next) + 1;
            lines.end = next.end;
        }
        (lines.end > end).then(|| read(&lines, true))?.map(|cells| Row { cells, lines })
    }

    /// Tells whether the cells of a row may be prose, or one of them goes over rows.
    fn doubt(&mut self, cells: &[Range<usize>], records: &mut Records) {
        let is_lone = || {
            cells.first().is_some_and(Range::is_empty)
                && cells.iter().filter(|cell| !cell.is_empty()).count() == 1
        };
        let goes_on = |cell: &Range<usize>| {
            let cell = self.part(cell);
            self.delimiter == b'|' && cell.ends_with(b"+")
        };
        records.is_read_whole |= is_lone() || cells.iter().any(goes_on);
        self.is_certain &= self.delimiter != b',' || !self.is_spaced || self.are_short(cells);
    }

    /// Returns true if all cells are numbers or two words at most, which clauses are not.
    fn are_short(&self, cells: &[Range<usize>]) -> bool {
        let is_word = |word: &&[u8]| word.iter().any(u8::is_ascii_alphabetic);
        let is_number = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
        cells.iter().all(|cell| {
            let parts = || self.part(cell).split(|byte| *byte == b' ');
            let words = parts().filter(is_word).count();
            words == 0 || words <= 2 && !parts().any(is_number)
        })
    }

    fn part(&self, range: &Range<usize>) -> &'t [u8] {
        self.text.get(range.clone()).unwrap_or_default()
    }

    /// A line without what a mail or a patch has before it, and without space around it.
    fn bare(&self, line: &Range<usize>) -> &'t [u8] {
        let written = match (self.mark, self.part(line)) {
            (Some(_), [b'+' | b'-' | b' ', rest @ ..]) => rest,
            (_, written) => written,
        };
        let written = without_marks(written);
        // A tab at an end stands beside an empty cell.
        if self.delimiter == b'\t' {
            return written.strip_suffix(b"\r").unwrap_or(written);
        }
        written.trim_ascii()
    }

    /// The cells of a line. Delimiters in quotes part nothing.
    fn cells(&self, line: &Range<usize>, is_quoted: bool) -> Vec<Range<usize>> {
        let bare = self.bare(line);
        let start = bare.as_ptr().addr() - self.text.as_ptr().addr();
        let is_framed = self.is_framed && bare.first() == Some(&b'|');
        let mut from = start + usize::from(is_framed);
        let is_closed = is_framed && bare.len() > 1 && bare.last() == Some(&b'|');
        let end = start + bare.len() - usize::from(is_closed);
        let inside = self.text.get(from..end).unwrap_or_default();
        let offset = from;
        let quote = if is_quoted { b'"' } else { self.delimiter };
        let mut is_inside = false;
        let ends = memchr::memchr2_iter(quote, self.delimiter, inside).filter(|at| {
            let is_quote = is_quoted && inside.get(*at) == Some(&b'"');
            is_inside ^= is_quote;
            !is_quote && !is_inside
        });
        ends.map(|at| offset + at)
            .chain([end.max(offset)])
            .map(|end| trimmed(self.text, std::mem::replace(&mut from, end + 1)..end))
            .collect()
    }
}

/// Returns true if a cell may name a column: some words, the first of which begins with a letter, without a long number.
pub(super) fn may_head(cell: &[u8], delimiter: u8) -> bool {
    const WORDS: usize = 8;
    const DIGITS: usize = 4;
    let is_initial =
        |first: &u8| !first.is_ascii() || first.is_ascii_alphabetic() || *first == b'_';
    let is_part = |byte: &u8| labels::is_part(*byte) || b"'&%$[]+".contains(byte);
    let is_prose = |byte: &u8| matches!(byte, b'?' | b':');
    let count = |sign: u8| memchr::memchr_iter(sign, cell).count();
    cell.len() <= LONGEST
        && cell.first().is_some_and(is_initial)
        && cell.iter().all(is_part)
        && cell.iter().filter(|byte| byte.is_ascii_digit()).count() <= DIGITS
        && cell.split(|byte| *byte == b' ').count() <= WORDS
        && count(b'(') == count(b')')
        && (matches!(delimiter, b'|' | b'\t') || !cell.iter().any(is_prose))
}

/// Returns true for a number or a single word, which a name may stand for where it is not certain.
fn is_telling(cell: &[u8]) -> bool {
    !cell.contains(&b' ') || cell.iter().any(u8::is_ascii_digit)
}

/// Returns true for a line between the names and the rows of a table.
fn is_rule(line: &[u8]) -> bool {
    const SHORTEST: usize = 3;
    line.len() >= SHORTEST
        && line.iter().all(|byte| b"-+|:= \r".contains(byte))
        && line.iter().any(|byte| matches!(byte, b'-' | b'='))
}
