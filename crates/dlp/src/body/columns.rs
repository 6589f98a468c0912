//! What the heads of columns say: a cell below `Field` names the one below `Value` beside it.

use std::ops::Range;

use crate::{
    body::records::{LONGEST, Records},
    text::{
        labels::{self, may_label},
        lists::is_frame,
    },
};

/// Columns of a table.
#[derive(Default)]
pub(super) struct Columns {
    /// Place of the first head among the names.
    first: usize,
    heads: Vec<Head>,
    /// The column whose cells name those of values beside them.
    label: Option<usize>,
    /// Place of the name of the table among the names; it stands for heads that say nothing.
    caption: Option<usize>,
}

/// What the head of a column says about its cells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    Name,
    /// A year or nothing.
    Little,
    /// No more than that a value follows.
    Value,
    /// No more than that a number follows.
    Number,
}

impl Columns {
    /// Adds the heads of columns to the names, and the name of the table if one of them says nothing.
    pub(super) fn add(
        text: &[u8],
        heads: &[Range<usize>],
        caption: impl Fn() -> Option<Range<usize>>,
        records: &mut Records,
    ) -> Self {
        let part = |head: &Range<usize>| text.get(head.clone()).unwrap_or_default();
        let said: Vec<Head> = heads.iter().map(|head| Head::of(part(head))).collect();
        let may_be_labelled = |head: &Head| matches!(head, Head::Little | Head::Value);
        let ranked =
            (0..).zip(heads).filter_map(|(at, head)| Some((labels::rank(part(head))?, at)));
        let begins = said.first().is_some_and(|head| *head != Head::Value).then_some(0);
        let label = ranked.min().map(|(_, at)| at).or(begins).filter(|label| {
            (0..).zip(&said).any(|(at, head)| at != *label && may_be_labelled(head))
        });
        let first = records.names.len();
        records.names.extend(heads.iter().cloned());
        let is_mute = |head: &Head| matches!(head, Head::Value | Head::Number);
        let caption = said.iter().any(is_mute).then(caption).flatten();
        let caption = caption.map(|caption| {
            records.names.push(caption);
            first + heads.len()
        });
        Self { first, heads: said, label, caption }
    }

    /// Number of the columns.
    pub(super) fn count(&self) -> usize {
        self.heads.len()
    }

    /// Adds the cells of a row below their names. Returns false if nothing names one of them.
    pub(super) fn add_row(
        &self,
        text: &[u8],
        cells: &[Range<usize>],
        records: &mut Records,
    ) -> bool {
        let may_name = |label: &usize| {
            let cell = cells.get(*label).and_then(|cell| text.get(cell.clone()));
            cell.is_some_and(may_label)
        };
        let label = self.label.filter(may_name);
        let own = label.and_then(|label| cells.get(label)).map(|cell| {
            records.names.push(cell.clone());
            records.names.len() - 1
        });
        let mut are_named = true;
        for ((column, cell), head) in cells.iter().enumerate().zip(&self.heads) {
            if cell.is_empty() || Some(column) == label {
                continue;
            }
            let name = match head {
                Head::Name => None,
                Head::Little => own,
                Head::Value => own.or(self.caption),
                Head::Number => self.caption,
            };
            are_named &= own.is_some() || *head != Head::Value;
            records.values.push((name.unwrap_or(self.first + column), cell.clone()));
        }
        are_named
    }
}

impl Head {
    fn of(cell: &[u8]) -> Self {
        const NUMBERS: [&[u8]; 6] = [b"number", b"nummer", b"no", b"nr", b"no.", b"nr."];
        if cell.is_empty() || is_number(cell) {
            Self::Little
        } else if labels::is_value(cell) {
            Self::Value
        } else if NUMBERS.iter().any(|it| cell.eq_ignore_ascii_case(it)) {
            Self::Number
        } else {
            Self::Name
        }
    }
}

/// Returns true for the head of a column that is a short number, such as a year.
pub(super) fn is_number(cell: &[u8]) -> bool {
    const LONGEST: usize = 4;
    (1..=LONGEST).contains(&cell.len()) && cell.iter().all(u8::is_ascii_digit)
}

/// The title above a table that begins at an offset: a few words, in the line above or before an empty one.
pub(super) fn caption(text: &[u8], at: usize) -> Option<Range<usize>> {
    const WORDS: usize = 5;
    let above = text.get(..at)?.trim_ascii_end();
    let between = text.get(above.len()..at)?;
    let is_near = memchr::memchr_iter(b'\n', between).count() <= 2;
    let line = above.rsplit(|byte| *byte == b'\n').next().filter(|_| is_near)?;
    let is_around = |byte: u8| is_frame(byte) || matches!(byte, b':' | b',');
    let start = line.iter().position(|byte| !is_around(*byte))?;
    let end = line.iter().rposition(|byte| !is_around(*byte))? + 1;
    let name = line.get(start..end).filter(|name| name.len() <= LONGEST && may_label(name))?;
    let from = above.len() - line.len() + start;
    let is_title = name.split(|byte| *byte == b' ').count() <= WORDS;
    is_title.then_some(from..from + name.len())
}
