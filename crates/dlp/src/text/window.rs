//! Windows: all that detectors, checks and naming rules see of a text.
//!
//! **Invariant:** a window reaches no further than [`BEFORE`] and [`AFTER`] around the place that woke a
//! detector, so that whatever is done with one costs no more for a longer text.

use std::{
    cell::Cell,
    ops::{Deref, Range},
};

use crate::pace::{READ, READ_A_BYTE, READ_BEYOND_ASCII};

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
    notes: Option<&'a Notes>,
}

/// Passages that were weighed last, and the steps that checks took and the scan has yet to count.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) steps: Cell<usize>,
    weighed: Cell<[Weighed; KEPT]>,
}

/// Passages that are kept: two of each detector that reads some.
const KEPT: usize = 12;

/// A passage, who weighed it, and the outcome.
#[derive(Debug, Clone, Copy, Default)]
struct Weighed {
    who: usize,
    at: usize,
    length: usize,
    bits: Option<i32>,
}

impl Notes {
    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.steps.take();
        self.weighed.take();
    }
}

impl<'a> Window<'a> {
    /// The window around a range of a text.
    pub(crate) fn around(text: &'a [u8], range: &Range<usize>) -> Self {
        let start = range.start.saturating_sub(BEFORE);
        let end = text.len().min(range.end.saturating_add(AFTER));
        let piece = text.get(start..end).unwrap_or_default();
        let beginning = text.get(..text.len().min(BEGINNING)).unwrap_or_default();
        Self { piece, start, beginning, notes: None }
    }

    /// The same with notes of what is read in its text.
    pub(crate) fn noted(self, notes: &'a Notes) -> Self {
        Self { notes: Some(notes), ..self }
    }

    /// The weight of a passage, which is not weighed again by the same detector if it was one of the last. `range` is
    /// one of the window.
    pub(crate) fn once(
        &self,
        who: &'static str,
        range: &Range<usize>,
        weigh: impl FnOnce() -> Option<i32>,
    ) -> Option<i32> {
        let Some(notes) = self.notes else { return weigh() };
        let who = who.as_ptr().addr();
        let at = self.piece.as_ptr().addr() + range.start;
        let length = range.len();
        let mut weighed = notes.weighed.get();
        let is_same = |it: &&Weighed| (it.who, it.at, it.length) == (who, at, length);
        if let Some(known) = weighed.iter().find(is_same) {
            return known.bits;
        }
        let is_ascii = self.piece.get(range.clone()).is_some_and(<[u8]>::is_ascii);
        let a_byte = if is_ascii { READ_A_BYTE } else { READ_BEYOND_ASCII };
        notes.steps.set(notes.steps.get() + READ + a_byte * length);
        let bits = weigh();
        weighed.rotate_right(1);
        let [first, ..] = &mut weighed;
        *first = Weighed { who, at, length, bits };
        notes.weighed.set(weighed);
        bits
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
