//! The parts of the scan buffer: keys, strings, number literals and decoded views.

use std::ops::Range;

/// One key, string, number literal or decoded view in the buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The place in the value; for a key, that of its member. [`ROOT`] is the whole value.
    pub(crate) node: u32,
    pub(crate) kind: SegmentKind,
}

/// Content of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    Key,
    Text,
    Number,
    /// A decoded view, by its index among the views.
    View(u32),
    /// Neighbours read as one, by the same.
    Joined(u32),
}

/// A value that was laid flat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Laid {
    /// A value without a segment.
    Nothing,
    Text,
    Number,
    Array,
    Object {
        /// True if its member `text` is a text.
        has_text: bool,
    },
}

/// Bytes at the end of a name that are read wherever it counts. A longer one is read again for each value
/// below it.
const LONGEST_NAME: usize = 256;

impl Segment {
    pub(crate) fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The end of a key or a label, as far as it names what is below.
    pub(crate) fn name(&self) -> Range<usize> {
        let Range { start, end } = self.range();
        start.max(end.saturating_sub(LONGEST_NAME))..end
    }
}

/// Lengths stay far below 2³²: `Limits` bounds what is appended.
pub(crate) fn small(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
