//! Texts that stand side by side, by their segments.

use std::ops::Range;

/// Neighbours in the arrays and objects of a body, by their segments: strings, the `text` of objects,
/// and numbered members.
#[derive(Default)]
pub(crate) struct Neighbours {
    segments: Vec<u32>,
    /// The node that each row belongs to, and its place among the segments.
    rows: Vec<(u32, Range<usize>)>,
    /// Segments of rows that have not ended.
    open: Vec<u32>,
}

impl Neighbours {
    pub(super) fn clear(&mut self) {
        self.segments.clear();
        self.rows.clear();
        self.open.clear();
    }

    /// Begins a row. Rows that begin in it end before anything more is added to it.
    pub(super) fn begin(&self) -> usize {
        self.open.len()
    }

    /// Adds to the row that began last.
    pub(super) fn add(&mut self, segment: u32) {
        self.open.push(segment);
    }

    /// Ends the row of a node. Neighbours are at least two.
    pub(super) fn end(&mut self, node: u32, begun: usize) {
        let row = self.open.get(begun..).unwrap_or_default();
        if row.len() > 1 {
            let start = self.segments.len();
            self.segments.extend_from_slice(row);
            self.rows.push((node, start..self.segments.len()));
        }
        self.open.truncate(begun);
    }

    /// The rows in the order in which they ended, each with its node.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u32, &[u32])> {
        let row = |range: &Range<usize>| self.segments.get(range.clone()).unwrap_or_default();
        self.rows.iter().map(move |(node, range)| (*node, row(range)))
    }
}
