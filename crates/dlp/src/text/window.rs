//! Windows: all that detectors, checks and naming rules see of a text.
//!
//! **Invariant:** a window reaches no further than [`BEFORE`] and [`AFTER`] around the place that woke a
//! detector, so that whatever is done with one costs no more for a longer text.

use std::{
    cell::Cell,
    ops::{Deref, Range},
};

use crate::{
    pace::{READ, READ_A_BYTE, READ_BEYOND_ASCII},
    text::placeholders::Placeholder,
};

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
    place: Option<Place<'a>>,
}

/// Place of a text in the scan buffer, and what is known there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Byte of the buffer that the text begins at.
    pub(crate) at: usize,
    pub(crate) notes: &'a Notes,
    /// The placeholders of the buffer, in order.
    pub(crate) placeholders: &'a [Placeholder],
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
    /// Byte of the buffer that it begins at.
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
        Self { piece, start, beginning, place: None }
    }

    /// The same of a text of the buffer.
    pub(crate) fn placed(self, place: Place<'a>) -> Self {
        Self { place: Some(place), ..self }
    }

    /// Returns true if a placeholder, or a part of one, stands in a range of the window.
    pub(crate) fn holds_placeholder(self, range: &Range<usize>) -> bool {
        let [_, here, _] = self.placeholders(range);
        !here.is_empty()
    }

    /// The window around a range of it, as far as the placeholders before and behind.
    pub(crate) fn between_placeholders(self, range: &Range<usize>) -> Range<usize> {
        let [before, _, behind] = self.placeholders(range);
        let first = self.place.map_or(0, |place| place.at) + self.start;
        let start = before.last().map_or(0, |last| last.range().end.saturating_sub(first));
        let end = behind.first().map_or(self.len(), |next| next.range().start - first);
        start..end.min(self.len())
    }

    /// The placeholders of the buffer before a range of the window, in it, and behind it.
    fn placeholders(self, range: &Range<usize>) -> [&'a [Placeholder]; 3] {
        let Some(Place { at, placeholders, .. }) = self.place else { return [&[]; 3] };
        let first = at + self.start;
        let done = placeholders.partition_point(|it| it.range().end <= first + range.start);
        let (before, rest) = placeholders.split_at_checked(done).unwrap_or_default();
        let count = rest.partition_point(|it| it.range().start < first + range.end);
        let (here, behind) = rest.split_at_checked(count).unwrap_or_default();
        [before, here, behind]
    }

    /// The weight of a passage, which is not weighed again by the same detector if it was one of the last. `range` is
    /// one of the window.
    pub(crate) fn once(
        &self,
        who: &'static str,
        range: &Range<usize>,
        weigh: impl FnOnce() -> Option<i32>,
    ) -> Option<i32> {
        let Some(Place { at, notes, .. }) = self.place else { return weigh() };
        let who = who.as_ptr().addr();
        let at = at + self.start + range.start;
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

    #[test]
    fn a_passage_is_known_by_its_place_in_the_buffer() {
        let notes = Notes::default();
        let weighed = |at: usize, bits: i32| {
            let place = Place { at, notes: &notes, placeholders: &[] };
            let window = Window::around(b"one text", &(0..3)).placed(place);
            window.once("who", &(0..3), || Some(bits))
        };

        assert_eq!([weighed(0, 1), weighed(9, 2)], [Some(1), Some(2)]);
        assert_eq!([weighed(0, 3), weighed(9, 4)], [Some(1), Some(2)]);
    }

    #[test]
    fn a_window_reaches_from_placeholder_to_placeholder() {
        let notes = Notes::default();
        let placeholders = [21, 25, 29].map(|at| Placeholder { at, written: Box::from(*b"*") });
        let place = Place { at: 20, notes: &notes, placeholders: &placeholders };
        let window = |range: Range<usize>| Window::around(b"[*]a[*]b[*]c", &range).placed(place);

        for (range, around, holds) in
            [(3..4, 3..4, false), (3..8, 3..8, true), (5..6, 3..8, true), (11..12, 11..12, false)]
        {
            let window = window(range.clone());

            assert_eq!(window.between_placeholders(&range), around, "{range:?}");
            assert_eq!(window.holds_placeholder(&range), holds, "{range:?}");
        }
    }
}
