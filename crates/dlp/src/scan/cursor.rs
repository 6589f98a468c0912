//! The segments of ever greater offsets.

use crate::body::{buffer::Body, segment::small};

/// Finds the segment of ever greater offsets.
pub(super) struct Cursor<'a> {
    body: &'a Body,
    index: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(body: &'a Body, first: usize) -> Self {
        Self { body, index: first }
    }

    pub(super) fn seek(&mut self, offset: usize) -> Option<u32> {
        // Overlapping literals may start a little before the last one.
        while self.index > 0
            && self.body.segments.get(self.index).is_none_or(|at| at.start as usize > offset)
        {
            self.index -= 1;
        }
        while self.body.segments.get(self.index)?.end as usize <= offset {
            self.index += 1;
        }
        let found = self.body.segments.get(self.index)?;
        (found.start as usize <= offset).then(|| small(self.index))
    }
}
