//! Placeholders of masked values. They name nothing and join nothing, so what stands in them is blanked before a scan.

use std::{borrow::Cow, collections::BTreeSet, ops::Range};

use crate::{
    body::buffer::Body,
    text::placeholders::{BLANK, Placeholder, length_blank, length_inside},
};

impl Body {
    /// Blanks what stands between the brackets of placeholders of the known detectors in the segments from `first` on.
    /// Views may hold copies that are blank.
    pub(crate) fn blank_placeholders(&mut self, first: usize, known: &BTreeSet<String>) {
        let Some(mut at) = self.segments.get(first).map(|segment| segment.start as usize) else {
            return;
        };
        let has_copies = !self.placeholders.is_empty();
        while let Some(found) = self.text.get(at..).and_then(|rest| memchr::memchr(b'[', rest)) {
            at += found + 1;
            let rest = self.text.get(at..).unwrap_or_default();
            let copied = if has_copies { length_blank(rest) } else { None };
            let length = copied.or_else(|| length_inside(rest, known));
            let Some(inside) = length.and_then(|length| self.text.get_mut(at..at + length)) else {
                continue;
            };
            self.placeholders.push(Placeholder { at, written: Box::from(&*inside) });
            inside.fill(BLANK);
            at += inside.len();
        }
    }

    /// Text in a range of the buffer, with the placeholders in it as they are written.
    pub(crate) fn written(&self, range: Range<usize>) -> Cow<'_, [u8]> {
        let from = self.placeholders.partition_point(|it| it.at < range.start);
        let inside = self.placeholders.iter().skip(from);
        let inside = inside.take_while(|it| it.at + it.written.len() <= range.end);
        let mut written = Cow::Borrowed(self.slice(range.clone()));
        for Placeholder { at, written: text } in inside {
            let place = at - range.start..at - range.start + text.len();
            if let Some(blank) = written.to_mut().get_mut(place) {
                blank.copy_from_slice(text);
            }
        }
        written
    }
}
