//! Tables in JSON: rows that are arrays, whose columns are named once and elsewhere. A column's
//! name is to its cells what a key is to a member.
//!
//! Two forms are read: `{"columns": ["id", "ssn"], "rows": [[1, "…"]]}`, where the columns may also
//! be objects with a `name`, and rows of which the first holds the names.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_json::{JsonValue, Kind};

use crate::body::segment::{Laid, small};

/// A longer text is no name of a column.
const LONGEST: usize = 64;

/// The tables of a body.
#[derive(Default)]
pub(crate) struct Tables {
    /// By the node of the array that holds the rows, the segments that name the columns.
    heads: BTreeMap<u32, Vec<u32>>,
    names: BTreeSet<u32>,
}

impl Tables {
    pub(crate) fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.heads.clear();
        self.names.clear();
    }

    /// The segment that names a column of these rows.
    pub(crate) fn head(&self, rows: u32, column: u32) -> Option<u32> {
        self.heads.get(&rows)?.get(column as usize).copied()
    }

    /// Notes a text that names what stands beside it.
    pub(super) fn add_name(&mut self, segment: u32) {
        self.names.insert(segment);
    }

    /// Returns true if a segment names a column, or what stands beside it.
    pub(crate) fn is_name(&self, segment: u32) -> bool {
        self.names.contains(&segment)
    }

    pub(super) fn add(&mut self, rows: u32, heads: Vec<u32>) {
        self.names.extend(&heads);
        self.heads.insert(rows, heads);
    }
}

/// The first two elements of an array, which may be rows of which the first names the columns.
#[derive(Default)]
pub(super) struct FirstRows {
    /// Number of names in the first, if there is nothing else in it.
    names: usize,
    /// The second is a row as well.
    are_rows: bool,
}

impl FirstRows {
    pub(super) fn look<'a, T: JsonValue<'a>>(&mut self, index: u32, laid: Laid, element: T) {
        if laid != Laid::Array || index > 1 || (index == 1 && self.names == 0) {
            return;
        }
        let Kind::Array(mut cells) = element.kind() else { return };
        if index == 1 {
            self.are_rows = true;
            return;
        }
        let names = cells.try_fold(0, |count, cell: T| {
            cell.text().filter(|text| may_be_name(text)).map(|_| count + 1)
        });
        self.names = names.unwrap_or(0);
    }

    /// Takes the first row for the names of the columns, if it can be. Its cells are the segments from
    /// `first` on.
    pub(super) fn note(self, tables: &mut Tables, rows: u32, first: usize) {
        if self.are_rows {
            tables.add(rows, (first..first + self.names).map(small).collect());
        }
    }
}

/// Returns true if a text may name a column. Values are longer, or begin with a digit.
fn may_be_name(text: &str) -> bool {
    let first = text.chars().next();
    text.len() <= LONGEST && first.is_some_and(|first| !first.is_ascii_digit())
}
