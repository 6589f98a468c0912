//! Windows: all that detectors, checks and naming rules see of a text.
//!
//! **Invariant:** a window reaches no further than [`BEFORE`] and [`AFTER`] around the place that woke a
//! detector, so that whatever is done with one costs no more for a longer text.

use std::ops::{Deref, Range};

/// Bytes before and behind a place that are seen.
const BEFORE: usize = 1024;
const AFTER: usize = 2048;

/// Bytes at the beginning of a text that are seen everywhere in it: they tell what kind of text it is.
const BEGINNING: usize = 160;

/// A bounded piece of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'a> {
    piece: &'a [u8],
    start: usize,
    beginning: &'a [u8],
}

impl<'a> Window<'a> {
    /// The window around a range of a text.
    pub(crate) fn around(text: &'a [u8], range: &Range<usize>) -> Self {
        let start = range.start.saturating_sub(BEFORE);
        let end = text.len().min(range.end.saturating_add(AFTER));
        let piece = text.get(start..end).unwrap_or_default();
        let beginning = text.get(..text.len().min(BEGINNING)).unwrap_or_default();
        Self { piece, start, beginning }
    }

    /// Offset of the window in the text.
    pub(crate) fn start(self) -> usize {
        self.start
    }

    /// A range of the text, in the window.
    pub(crate) fn inside(self, range: &Range<usize>) -> Range<usize> {
        range.start.saturating_sub(self.start)..range.end.saturating_sub(self.start)
    }

    /// A range of the window, in the text.
    pub(crate) fn outside(self, range: &Range<usize>) -> Range<usize> {
        range.start + self.start..range.end + self.start
    }

    /// The first bytes of the text.
    pub(crate) fn beginning(self) -> &'a [u8] {
        self.beginning
    }

    /// The bytes of the window.
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.piece
    }
}

impl Deref for Window<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_what_is_near_and_nothing_else() {
        let text = [b'x'; 10_000];
        let range = 5_000..5_010;

        let window = Window::around(&text, &range);

        assert_eq!(window.len(), BEFORE + 10 + AFTER);
        assert_eq!(window.inside(&range), BEFORE..BEFORE + 10);
        assert_eq!(window.outside(&(0..1)), 5_000 - BEFORE..5_001 - BEFORE);
        assert_eq!(Window::around(b"ab", &(0..1)).bytes(), b"ab");
    }
}
