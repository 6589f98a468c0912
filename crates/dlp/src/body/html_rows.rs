//! Rows of tables in HTML.

use std::ops::Range;

use crate::{
    body::{
        columns::{Columns, is_number},
        records::Records,
        text_lines::{line_end, trimmed},
        text_tables::may_head,
    },
    text::{labels, line_marks::LineMarks, own_words},
};

/// A longer tag is none.
const LONGEST_TAG: usize = 512;

/// Tags that begin and end rows and cells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tag {
    Row,
    Head,
    Cell,
    End,
}

/// Adds the rows of tables: the cells of a row of `<th>` name those below, and a `<th>` the `<td>` behind it.
pub(super) fn read(text: &[u8], marks: &LineMarks, records: &mut Records) {
    let mut rows = Rows { text, columns: Columns::default(), label: None };
    let mut row = Row::default();
    let mut open: Option<(bool, usize)> = None;
    let cell = |start: usize, end: usize| without_tags(text, trimmed(text, start..end.max(start)));
    for (tag, range) in tags(text, marks) {
        if let Some((is_head, start)) = open.take() {
            row.push(is_head, cell(start, range.start));
        }
        match tag {
            Tag::Head | Tag::Cell => open = Some((tag == Tag::Head, range.end)),
            Tag::Row => {
                rows.add(&row, records);
                row.clear();
            }
            Tag::End => {}
        }
    }
    if let Some((is_head, start)) = open {
        row.push(is_head, cell(start, line_end(text, start)));
    }
    rows.add(&row, records);
}

/// The cells of a row.
#[derive(Default)]
struct Row {
    cells: Vec<Range<usize>>,
    /// Number of those that are heads.
    heads: usize,
    begins_with_head: bool,
}

impl Row {
    fn push(&mut self, is_head: bool, cell: Range<usize>) {
        self.begins_with_head |= is_head && self.cells.is_empty();
        self.heads += usize::from(is_head);
        self.cells.push(cell);
    }

    fn clear(&mut self) {
        self.cells.clear();
        (self.heads, self.begins_with_head) = (0, false);
    }
}

/// Rows so far.
struct Rows<'t> {
    text: &'t [u8],
    columns: Columns,
    /// What stands beside `Field` in the row before.
    label: Option<Range<usize>>,
}

impl Rows<'_> {
    /// Adds the cells of a row.
    fn add(&mut self, row: &Row, records: &mut Records) {
        let text = self.text;
        let Row { cells, heads, begins_with_head } = row;
        let first = records.values.len();
        // Cells may name columns as well, or be a name and a value.
        let are_names = *heads == 0 && self.columns.count() == 0 && may_be_heads(text, cells);
        records.is_read_whole |= are_names;
        if are_names || *heads == cells.len() && *heads > 0 {
            self.columns = Columns::add(text, cells, || None, records);
        } else if let [name, value] = cells.as_slice()
            && *heads == 1
            && *begins_with_head
        {
            self.add_pair(name, value, records);
        } else if cells.len() == self.columns.count() {
            records.is_read_whole |= !self.columns.add_row(text, cells, records);
        }
        if records.values.len() > first {
            for cell in cells {
                records.cut_out(cell.clone());
            }
        }
    }

    /// Adds a name and a value: the value beside `Field` names the one beside `Value` in the next row.
    fn add_pair(&mut self, name: &Range<usize>, value: &Range<usize>, records: &mut Records) {
        let [said, given] = [name, value].map(|it| self.text.get(it.clone()).unwrap_or_default());
        let label = self.label.take().filter(|_| labels::is_value(said));
        let label = label.unwrap_or_else(|| name.clone());
        records.doubt(self.text, &label);
        records.add(label, value.clone());
        if labels::rank(said).is_some() && labels::may_label(given) {
            self.label = Some(value.clone());
        }
    }
}

/// Returns true if the cells of a row may name columns.
fn may_be_heads(text: &[u8], cells: &[Range<usize>]) -> bool {
    let count = |is_kind: fn(&[u8]) -> bool| {
        cells.iter().filter(|cell| text.get((*cell).clone()).is_some_and(is_kind)).count()
    };
    let (names, numbers) = (count(|cell| may_head(cell, b'|')), count(is_number));
    cells.len() > 1 && names + numbers == cells.len() && names > numbers
}

/// The tags of rows and cells, in order.
fn tags(text: &[u8], marks: &LineMarks) -> impl Iterator<Item = (Tag, Range<usize>)> {
    let mut done = 0;
    marks.tags().filter_map(move |at| {
        let rest = text.get(at + 1..)?;
        let (tag, length) = match rest {
            [b'/', b't' | b'T', b'r' | b'R' | b'd' | b'D' | b'h' | b'H', ..] => (Tag::End, 3),
            [b't' | b'T', b'r' | b'R', ..] => (Tag::Row, 2),
            [b't' | b'T', b'h' | b'H', ..] => (Tag::Head, 2),
            [b't' | b'T', b'd' | b'D', ..] => (Tag::Cell, 2),
            [b'/', b't' | b'T', ..] if rest.get(1..6)?.eq_ignore_ascii_case(b"table") => {
                (Tag::End, 6)
            }
            _ => return None,
        };
        let is_whole = matches!(rest.get(length), Some(b'>' | b'/' | b' ' | b'\t' | b'\n' | b'\r'));
        (is_whole && at >= done).then_some(())?;
        done = if rest.get(length) == Some(&b'>') {
            at + length + 2
        } else {
            at + 2 + memchr::memchr(b'>', rest.get(..rest.len().min(LONGEST_TAG))?)?
        };
        Some((tag, at..done))
    })
}

/// The part of a cell without space around it and tags that lay it out; others may hide what they hold.
fn without_tags(text: &[u8], cell: Range<usize>) -> Range<usize> {
    if text.get(cell.start) != Some(&b'<') {
        return cell;
    }
    let Range { mut start, mut end } = cell;
    let first = start;
    while let Some([b'<', inside @ ..]) = text.get(start..end)
        && let Some(length) = memchr::memchr(b'>', inside)
        && inside.get(..length).is_some_and(own_words::is_layout)
    {
        start = trimmed(text, start + length + 2..end).start;
    }
    while let Some([inside @ .., b'>']) = text.get(start..end)
        && let Some(open) = memchr::memrchr(b'<', inside).filter(|_| start > first)
        && inside.get(open + 1..).is_some_and(own_words::is_layout)
    {
        end = trimmed(text, start..start + open).end;
    }
    start..end.max(start)
}
