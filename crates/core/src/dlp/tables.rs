//! Tables in JSON: rows that are arrays, whose columns are named once and elsewhere. A column's
//! name is to its cells what a key is to a member.
//!
//! Two forms are read: `{"columns": ["id", "ssn"], "rows": [[1, "…"]]}`, where the columns may also
//! be objects with a `name`, and rows of which the first holds the names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::body::{Body, Kind, small};

/// The members that name columns.
const COLUMNS: [&str; 8] =
    ["columns", "cols", "column_names", "columnNames", "fields", "headers", "header", "schema"];
/// What the name of a column is called where a column is an object.
const NAMES: [&str; 5] = ["name", "field", "label", "title", "key"];
/// A longer text is no name of a column.
const LONGEST: usize = 64;

/// The tables of a body.
#[derive(Default)]
pub(super) struct Tables {
    /// By the node of the array that holds the rows, the segments that name the columns.
    heads: BTreeMap<u32, Vec<u32>>,
    names: BTreeSet<u32>,
}

/// What the members of one object bring to a table.
#[derive(Default)]
pub(super) struct Parts {
    heads: Vec<u32>,
    rows: Vec<u32>,
}

impl Tables {
    pub(super) fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.heads.clear();
        self.names.clear();
    }

    /// The segment that names a column of these rows.
    pub(super) fn head(&self, rows: u32, column: u32) -> Option<u32> {
        self.heads.get(&rows)?.get(column as usize).copied()
    }

    /// Whether a segment names a column.
    pub(super) fn is_name(&self, segment: u32) -> bool {
        self.names.contains(&segment)
    }

    fn add(&mut self, rows: u32, heads: Vec<u32>) {
        self.names.extend(&heads);
        self.heads.insert(rows, heads);
    }

    /// Takes the first of some rows for their names, if it can be. Its cells are the segments from
    /// `first` on.
    pub(super) fn add_first_row(&mut self, rows: u32, elements: &[Value], first: usize) {
        let [Value::Array(names), Value::Array(_), ..] = elements else { return };
        let is_name = |it: &Value| it.as_str().is_some_and(may_be_name);
        if !names.is_empty() && names.iter().all(is_name) {
            let heads = (first..first + names.len()).map(small).collect();
            self.add(rows, heads);
        }
    }
}

/// Whether a text may name a column. Values are longer, or begin with a digit.
fn may_be_name(text: &str) -> bool {
    let first = text.chars().next();
    text.len() <= LONGEST && first.is_some_and(|first| !first.is_ascii_digit())
}

impl Parts {
    /// Looks at a member, which is the node `node` and the segments from `first` on.
    pub(super) fn look(&mut self, body: &Body, key: &str, member: &Value, node: u32, first: usize) {
        let Value::Array(elements) = member else { return };
        match elements.first() {
            Some(Value::Array(_)) => self.rows.push(node),
            Some(Value::String(_) | Value::Object(_)) if COLUMNS.contains(&key) => {
                self.heads = heads(body, node, first);
            }
            _ => {}
        }
    }

    /// Notes the tables that there are.
    pub(super) fn note(self, tables: &mut Tables) {
        if self.heads.is_empty() {
            return;
        }
        for rows in self.rows {
            tables.add(rows, self.heads.clone());
        }
    }
}

/// The segments that name the columns in the array `node`: its texts, or the names of its objects,
/// as far as each has one.
fn heads(body: &Body, node: u32, first: usize) -> Vec<u32> {
    let mut heads = Vec::new();
    for (index, segment) in (first..).zip(body.segments.iter().skip(first)) {
        if segment.kind != Kind::Text {
            continue;
        }
        let column = match body.element_of(segment.node, node) {
            Some(column) => Some(column),
            None => body.member_above(segment.node).and_then(|(key, above)| {
                let is_name = NAMES.iter().any(|name| name.as_bytes() == key);
                body.element_of(above, node).filter(|_| is_name)
            }),
        };
        // Of several names in one object the first counts.
        if column.is_some_and(|column| column as usize == heads.len()) {
            heads.push(small(index));
        }
    }
    heads
}
