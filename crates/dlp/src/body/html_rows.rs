//! Rows of tables in HTML.

use std::ops::Range;

use crate::body::{
    records::{Records, line_end},
    text_tables::{may_head, trimmed},
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
pub(super) fn read(text: &[u8], records: &mut Records) {
    let mut heads = 0..0;
    let mut cells: Vec<(bool, Range<usize>)> = Vec::new();
    let mut open: Option<(bool, usize)> = None;
    let cell = |start: usize, end: usize| without_tags(text, trimmed(text, start..end.max(start)));
    for (tag, range) in tags(text) {
        if let Some((is_head, start)) = open.take() {
            cells.push((is_head, cell(start, range.start)));
        }
        match tag {
            Tag::Head | Tag::Cell => open = Some((tag == Tag::Head, range.end)),
            Tag::Row => add_row(text, &mut cells, &mut heads, records),
            Tag::End => {}
        }
    }
    if let Some((is_head, start)) = open {
        cells.push((is_head, cell(start, line_end(text, start))));
    }
    add_row(text, &mut cells, &mut heads, records);
}

/// Adds the cells of a row.
fn add_row(
    text: &[u8],
    cells: &mut Vec<(bool, Range<usize>)>,
    heads: &mut Range<usize>,
    records: &mut Records,
) {
    let cells = std::mem::take(cells);
    let first = records.values.len();
    let ranges: Vec<Range<usize>> = cells.iter().map(|(_, cell)| cell.clone()).collect();
    let names = cells.iter().filter(|(is_head, _)| *is_head).count();
    let is_name = |cell: &Range<usize>| text.get(cell.clone()).is_some_and(|it| may_head(it, b'|'));
    // Cells may name columns as well, or be a name and a value.
    let are_names =
        heads.start == heads.end && names == 0 && cells.len() > 1 && ranges.iter().all(is_name);
    records.is_read_whole |= are_names;
    if are_names || names == cells.len() && names > 0 {
        *heads = records.names.len()..records.names.len() + cells.len();
        records.doubt(text, &ranges);
        records.names.extend(ranges.iter().cloned());
    } else if let [(true, name), (false, value)] = cells.as_slice() {
        records.doubt(text, std::slice::from_ref(name));
        records.add(name.clone(), value.clone());
    } else if cells.len() == heads.len() {
        records.values.extend(heads.clone().zip(ranges.iter().cloned()));
    }
    if records.values.len() > first {
        for cell in ranges {
            records.cut_out(cell);
        }
    }
}

/// The tags of rows and cells, in order.
fn tags(text: &[u8]) -> impl Iterator<Item = (Tag, Range<usize>)> {
    let mut done = 0;
    memchr::memchr_iter(b'<', text).filter_map(move |at| {
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
        done = at + 2 + memchr::memchr(b'>', rest.get(..rest.len().min(LONGEST_TAG))?)?;
        Some((tag, at..done))
    })
}

/// The part of a cell without tags and space around it.
fn without_tags(text: &[u8], cell: Range<usize>) -> Range<usize> {
    let Range { mut start, mut end } = cell;
    while let Some([b'<', inside @ ..]) = text.get(start..end)
        && let Some(length) = memchr::memchr(b'>', inside)
    {
        start = trimmed(text, start + length + 2..end).start;
    }
    while let Some([inside @ .., b'>']) = text.get(start..end)
        && let Some(open) = memchr::memrchr(b'<', inside)
    {
        end = trimmed(text, start..start + open).end;
    }
    start..end.max(start)
}
