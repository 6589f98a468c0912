//! What the heads of columns say: a cell below `Field` names the one below `Value` beside it.

use std::ops::Range;

use crate::{
    body::records::Records,
    text::labels::{self, may_label},
};

/// Columns of a table.
#[derive(Default)]
pub(super) struct Columns {
    /// Place of the first head among the names.
    first: usize,
    /// True for columns whose heads say only that a value follows.
    values: Vec<bool>,
    /// The column whose cells name those.
    label: Option<usize>,
}

impl Columns {
    /// Adds the heads of columns to the names.
    pub(super) fn add(text: &[u8], heads: &[Range<usize>], records: &mut Records) -> Self {
        let part = |head: &Range<usize>| text.get(head.clone()).unwrap_or_default();
        let says_little =
            |head: &[u8]| head.is_empty() || is_number(head) || labels::is_value(head);
        let values = (0..).zip(heads).map(|(column, head)| column > 0 && says_little(part(head)));
        let values: Vec<bool> = values.collect();
        let label = heads.iter().position(|head| labels::rank(part(head)).is_some()).unwrap_or(0);
        let value = values.iter().position(|is_value| *is_value);
        let label = Some(label).filter(|label| value.is_some_and(|value| *label < value));
        let first = records.names.len();
        records.names.extend(heads.iter().cloned());
        Self { first, values, label }
    }

    /// Number of the columns.
    pub(super) fn count(&self) -> usize {
        self.values.len()
    }

    /// Adds the cells of a row below their names.
    pub(super) fn add_row(&self, text: &[u8], cells: &[Range<usize>], records: &mut Records) {
        let may_name = |label: &usize| {
            let cell = cells.get(*label).and_then(|cell| text.get(cell.clone()));
            cell.is_some_and(may_label)
        };
        let label = self.label.filter(may_name);
        let mut own = None;
        for ((column, cell), is_value) in cells.iter().enumerate().zip(&self.values) {
            if Some(column) == label {
                own = Some(records.names.len());
                records.names.push(cell.clone());
            } else if !cell.is_empty() {
                let name = own.filter(|_| *is_value).unwrap_or(self.first + column);
                records.values.push((name, cell.clone()));
            }
        }
    }
}

/// Returns true for the head of a column that is a short number, such as a year.
pub(super) fn is_number(cell: &[u8]) -> bool {
    const LONGEST: usize = 4;
    (1..=LONGEST).contains(&cell.len()) && cell.iter().all(u8::is_ascii_digit)
}
