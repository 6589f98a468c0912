//! Tables in texts: lines with the same number of delimiters, the first of which names the columns.
//!
//! Prose has such lines as well. A table is certain if all its columns have names and its cells do not look like
//! clauses; of others only numbers and single words are read below their names, and all of it as prose besides.

use std::ops::Range;

use crate::{
    body::{
        columns::{Columns, caption, is_number},
        lists,
        records::{LONGEST, Records},
        text_lines::{DELIMITERS, Line, Signs, trimmed},
    },
    text::{labels, line_marks::LineMarks},
};

/// Lines that a cell in quotes goes over, at most.
const LINES: usize = 256;

/// Reads tables, in room that is kept for the next one.
pub(super) struct Tables<'t> {
    text: &'t [u8],
    marks: &'t LineMarks,
    heads: Vec<Range<usize>>,
    /// The cells below the heads, row by row.
    cells: Vec<Range<usize>>,
}

/// How the lines of a table are written.
struct Form {
    delimiter: u8,
    /// The sign that lines begin with in a patch.
    mark: Option<u8>,
    /// True if its lines begin and end with a bar.
    is_framed: bool,
    /// True if a space follows a comma, as in prose.
    is_spaced: bool,
    is_certain: bool,
}

/// The delimiters at which a line may name the columns of the one below, which the delimiters in them tell of most;
/// nothing if it names none.
#[inline]
pub(super) fn delimiters(
    text: &[u8],
    marks: &LineMarks,
    line: &Line,
    below: &Line,
) -> Option<[bool; 4]> {
    line.has_signs.then_some(())?;
    let written = |line: &Line| text.get(line.range.clone()).unwrap_or_default();
    let last = |line: &Line| written(line).trim_ascii_end().last().copied();
    let (own_last, last_below) = (last(line), last(below));
    let ends_rule = matches!(last_below, Some(b'-' | b'+' | b'|' | b':' | b'='));
    let signs = Signs::of(text, marks, line);
    let ends = own_last.is_some_and(|last| DELIMITERS.contains(&last));
    (signs.counts != [0; 4]).then_some(())?;
    (below.has_signs || signs.has_quotes || ends || ends_rule).then_some(())?;
    let signs_below = Signs::of(text, marks, below);
    let has_quotes = signs.has_quotes || signs_below.has_quotes;
    let mut may_begin = has_quotes;
    let mut tried = [false; 4];
    let counts = signs.counts.iter().zip(&signs_below.counts);
    for ((delimiter, (own, other)), is_tried) in DELIMITERS.iter().zip(counts).zip(&mut tried) {
        let ends = own_last == Some(*delimiter);
        may_begin |= *own > 0 && (own == other || ends || last_below == Some(*delimiter));
        // One that ends the line parts nothing.
        *is_tried = *own > 0 && !(*own == 1 && ends && *delimiter != b'|' && !ends_rule);
    }
    let is_any =
        tried.contains(&true) && (may_begin || ends_rule && is_rule(without_marks(written(below))));
    is_any.then_some(tried)
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

impl<'t> Tables<'t> {
    pub(super) fn of(text: &'t [u8], marks: &'t LineMarks) -> Self {
        Self { text, marks, heads: Vec::new(), cells: Vec::new() }
    }

    /// Adds the table below a line that names its columns at one of the delimiters. Gives the offset behind it.
    pub(super) fn read(
        &mut self,
        line: &Range<usize>,
        below: &Range<usize>,
        tried: [bool; 4],
        records: &mut Records,
    ) -> Option<usize> {
        let near = self.text.get(line.start..line.end.min(line.start + LONGEST + 2))?;
        let mut near = DELIMITERS.into_iter().zip(tried).filter(|(delimiter, is_tried)| {
            *is_tried && memchr::memchr(*delimiter, near).is_some()
        });
        let (mut form, mut row) =
            near.find_map(|(delimiter, _)| self.begin(line, below, delimiter))?;
        let start = row.start;
        let mut first = 0;
        loop {
            let cells = self.cells.get(first..).unwrap_or_default();
            form.doubt(self.text, cells, records);
            first = self.cells.len();
            match self.marks.next_line(&row).and_then(|next| self.row(&form, next)) {
                Some(next) => row = next,
                None => break,
            }
        }
        let end = row.end + 1;
        if form.is_certain {
            let are_named = self.add_rows(line, records);
            if are_named {
                records.cut_out(start..end.min(self.text.len()));
            }
            records.is_read_again |= !are_named;
        } else {
            records.is_read_again = true;
            self.add_telling(&form, line, records);
        }
        Some(end)
    }

    /// Adds all cells below their names. Returns false if nothing names one of them.
    fn add_rows(&self, line: &Range<usize>, records: &mut Records) -> bool {
        let title = || caption(self.text, line.start);
        let columns = Columns::add(self.text, &self.heads, title, records);
        let mut are_named = true;
        for row in self.cells.chunks(self.heads.len().max(1)) {
            are_named &= columns.add_row(self.text, row, records);
        }
        are_named
    }

    /// Adds the numbers and single words, with the names of these and those that are long numbers or codes themselves.
    fn add_telling(&self, form: &Form, line: &Range<usize>, records: &mut Records) {
        let part = |range: &Range<usize>| self.text.get(range.clone()).unwrap_or_default();
        let is_code = |name: &Range<usize>| lists::is_code(part(name));
        let mut heads = self.heads.iter();
        if !heads.any(is_code) && !self.cells.iter().any(|cell| is_telling(part(cell))) {
            return;
        }
        let (first, known) = (records.names.len(), records.values.len());
        self.add_rows(line, records);
        let names = records.names.split_off(first);
        let mut places = vec![None; names.len()];
        for (name, place) in names.iter().zip(&mut places) {
            if is_code(name) {
                *place = Some(records.names.len());
                records.names.push(name.clone());
            }
        }
        for (name, cell) in records.values.split_off(known) {
            let written = names.get(name - first).filter(|_| is_telling(part(&cell)));
            let Some(written) = written.filter(|it| may_head(part(it), form.delimiter)) else {
                continue;
            };
            let Some(place) = places.get_mut(name - first) else { continue };
            let place = *place.get_or_insert_with(|| {
                records.names.push(written.clone());
                records.names.len() - 1
            });
            records.values.push((place, cell));
        }
    }

    /// The form of the table that begins with a line, and the lines of its first row.
    fn begin(
        &mut self,
        line: &Range<usize>,
        below: &Range<usize>,
        delimiter: u8,
    ) -> Option<(Form, Range<usize>)> {
        let text = self.text;
        let mark = match text.get(line.start..line.start + 2)? {
            [sign @ (b'+' | b'-'), next] if *next == b'|' || next.is_ascii_alphabetic() => {
                Some(*sign)
            }
            [b' ', _] if matches!(text.get(below.start), Some(b'+' | b'-')) => Some(b' '),
            _ => None,
        };
        let mut form =
            Form { delimiter, mark, is_framed: false, is_spaced: false, is_certain: true };
        let written = form.bare(text, line);
        form.is_framed = delimiter == b'|' && written.first() == Some(&b'|');
        self.heads.clear();
        form.cells(text, self.marks, written, true, &mut self.heads);
        // A sign of comments before the heads is no part of the first.
        if let Some(first) = self.heads.first_mut()
            && text.get(first.start) == Some(&b'#')
        {
            *first = trimmed(text, first.start + 1..first.end);
        }
        while self.heads.last().is_some_and(Range::is_empty) {
            self.heads.pop();
        }
        let is_framed = || form.is_framed || is_rule(form.bare(text, below));
        (self.heads.len() > 1 || !self.heads.is_empty() && is_framed()).then_some(())?;
        form.is_certain = self.are_heads(delimiter, is_framed)?;
        form.is_spaced = delimiter == b',' && self.is_spaced(written);
        self.cells.clear();
        self.row(&form, below.clone()).map(|row| (form, row))
    }

    /// Returns true if a space follows one of the commas of a line.
    fn is_spaced(&self, line: &[u8]) -> bool {
        let start = line.as_ptr().addr() - self.text.as_ptr().addr();
        let mut signs = self.marks.signs(start..start + line.len());
        signs.any(|at| self.text.get(at..at + 2) == Some(b", "))
    }

    /// Tells whether the heads of the columns are names for certain; `None` if none of them is one.
    fn are_heads(&self, delimiter: u8, is_framed: impl Fn() -> bool) -> Option<bool> {
        let count = |is_kind: &dyn Fn(&[u8]) -> bool| {
            let heads = self.heads.iter().filter_map(|head| self.text.get(head.clone()));
            heads.filter(|head| is_kind(head)).count()
        };
        let names = count(&|head| may_head(head, delimiter));
        (names > 0).then_some(())?;
        let others = self.heads.len() - names;
        let numbers = if others > 0 { count(&is_number) } else { 0 };
        let empty = if others > 0 { count(&<[u8]>::is_empty) } else { 0 };
        Some(numbers + empty == others && names > numbers && (names > 1 || is_framed()))
    }

    /// Adds the cells of the row that begins with a line, and gives its lines. A rule between rows is passed over.
    fn row(&mut self, form: &Form, line: Range<usize>) -> Option<Range<usize>> {
        let mut lines = line;
        let mut written = form.bare(self.text, &lines);
        if is_rule(written) {
            lines = self.marks.next_line(&lines)?;
            written = form.bare(self.text, &lines);
        }
        if self.take(form, written, true) {
            return Some(lines);
        }
        let quotes = |part: &Range<usize>| {
            let signs = self.marks.signs(part.clone());
            signs.filter(|at| self.text.get(*at) == Some(&b'"')).count()
        };
        let mut count = quotes(&lines);
        if count > 0 && self.take(form, written, false) {
            return Some(lines);
        }
        let end = lines.end;
        // A cell in quotes may hold line feeds.
        for _ in 0..LINES {
            if count % 2 == 0 {
                break;
            }
            let next = self.marks.next_line(&lines)?;
            count = quotes(&next) + 1;
            lines.end = next.end;
        }
        (lines.end > end && self.take(form, form.bare(self.text, &lines), true)).then_some(lines)
    }

    /// Adds the cells of a row, if there are as many as heads.
    fn take(&mut self, form: &Form, written: &[u8], is_quoted: bool) -> bool {
        let known = self.cells.len();
        form.cells(self.text, self.marks, written, is_quoted, &mut self.cells);
        let end = known + self.heads.len();
        let fits = self.cells.get(end..).is_some_and(|more| more.iter().all(Range::is_empty));
        self.cells.truncate(if fits { end } else { known });
        fits
    }
}

impl Form {
    /// Tells whether the cells of a row may be prose, or one of them goes over rows.
    fn doubt(&mut self, text: &[u8], cells: &[Range<usize>], records: &mut Records) {
        let is_lone = || cells.iter().filter(|cell| !cell.is_empty()).count() == 1;
        let goes_on =
            |cell: &Range<usize>| text.get(cell.clone()).is_some_and(|cell| cell.ends_with(b"+"));
        records.is_read_whole |= cells.first().is_some_and(Range::is_empty) && is_lone()
            || self.delimiter == b'|' && cells.iter().any(goes_on);
        self.is_certain = self.is_certain && (!self.is_spaced || are_short(text, cells));
    }

    /// A line without what a mail or a patch has before it, and without space around it.
    fn bare<'t>(&self, text: &'t [u8], line: &Range<usize>) -> &'t [u8] {
        let written = match (self.mark, text.get(line.clone()).unwrap_or_default()) {
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

    /// Adds the cells of a line that is bare. Delimiters in quotes part nothing.
    fn cells(
        &self,
        text: &[u8],
        marks: &LineMarks,
        bare: &[u8],
        is_quoted: bool,
        cells: &mut Vec<Range<usize>>,
    ) {
        let start = bare.as_ptr().addr() - text.as_ptr().addr();
        let is_framed = self.is_framed && bare.first() == Some(&b'|');
        let mut from = start + usize::from(is_framed);
        let is_closed = is_framed && bare.len() > 1 && bare.last() == Some(&b'|');
        let end = start + bare.len() - usize::from(is_closed);
        let mut is_inside = false;
        for at in marks.signs(from..end) {
            match text.get(at) {
                Some(b'"') => is_inside ^= is_quoted,
                Some(sign) if *sign == self.delimiter && !is_inside => {
                    cells.push(trimmed(text, from..at));
                    from = at + 1;
                }
                Some(_) | None => {}
            }
        }
        cells.push(trimmed(text, from..end.max(from)));
    }
}

/// Returns true if all cells are numbers or two words at most, which clauses are not.
fn are_short(text: &[u8], cells: &[Range<usize>]) -> bool {
    let is_word = |word: &&[u8]| word.iter().any(u8::is_ascii_alphabetic);
    let is_number = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
    cells.iter().all(|cell| {
        let parts = || text.get(cell.clone()).unwrap_or_default().split(|byte| *byte == b' ');
        let words = parts().filter(is_word).take(3).count();
        words == 0 || words <= 2 && !parts().any(is_number)
    })
}

/// Returns true if a cell may name a column: some words, the first of which begins with a letter, without a long number.
pub(super) fn may_head(cell: &[u8], delimiter: u8) -> bool {
    const SPACES: usize = 7;
    const DIGITS: usize = 4;
    let is_initial =
        |first: &u8| !first.is_ascii() || first.is_ascii_alphabetic() || *first == b'_';
    if cell.len() > LONGEST || !cell.first().is_some_and(is_initial) {
        return false;
    }
    let (mut spaces, mut digits, mut open, mut closed) = (0, 0, 0, 0);
    for byte in cell {
        match byte {
            b' ' => spaces += 1,
            b'0'..=b'9' => digits += 1,
            b'(' => open += 1,
            b')' => closed += 1,
            b'?' | b':' if !matches!(delimiter, b'|' | b'\t') => return false,
            b'a'..=b'z' | b'A'..=b'Z' | b'\'' | b'&' | b'%' | b'$' | b'[' | b']' | b'+' => {}
            other if labels::is_part(*other) => {}
            _ => return false,
        }
    }
    spaces <= SPACES && digits <= DIGITS && open == closed
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
