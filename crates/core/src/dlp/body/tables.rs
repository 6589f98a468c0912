//! Tables in JSON: rows that are arrays, whose columns are named once and elsewhere. A column's
//! name is to its cells what a key is to a member.
//!
//! Two forms are read: `{"columns": ["id", "ssn"], "rows": [[1, "…"]]}`, where the columns may also
//! be objects with a `name`, and rows of which the first holds the names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::dlp::body::segment::small;

/// A longer text is no name of a column.
const LONGEST: usize = 64;

/// The tables of a body.
#[derive(Default)]
pub(in crate::dlp) struct Tables {
    /// By the node of the array that holds the rows, the segments that name the columns.
    heads: BTreeMap<u32, Vec<u32>>,
    names: BTreeSet<u32>,
}

impl Tables {
    pub(in crate::dlp) fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    pub(in crate::dlp) fn clear(&mut self) {
        self.heads.clear();
        self.names.clear();
    }

    /// The segment that names a column of these rows.
    pub(in crate::dlp) fn head(&self, rows: u32, column: u32) -> Option<u32> {
        self.heads.get(&rows)?.get(column as usize).copied()
    }

    /// Returns true if a segment names a column.
    pub(in crate::dlp) fn is_name(&self, segment: u32) -> bool {
        self.names.contains(&segment)
    }

    pub(super) fn add(&mut self, rows: u32, heads: Vec<u32>) {
        self.names.extend(&heads);
        self.heads.insert(rows, heads);
    }

    /// Takes the first of some rows for their names, if it can be. Its cells are the segments from
    /// `first` on.
    pub(in crate::dlp) fn add_first_row(&mut self, rows: u32, elements: &[Value], first: usize) {
        let [Value::Array(names), Value::Array(_), ..] = elements else { return };
        let is_name = |it: &Value| it.as_str().is_some_and(may_be_name);
        if !names.is_empty() && names.iter().all(is_name) {
            let heads = (first..first + names.len()).map(small).collect();
            self.add(rows, heads);
        }
    }
}

/// Returns true if a text may name a column. Values are longer, or begin with a digit.
fn may_be_name(text: &str) -> bool {
    let first = text.chars().next();
    text.len() <= LONGEST && first.is_some_and(|first| !first.is_ascii_digit())
}
