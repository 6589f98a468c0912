//! Placeholders of masked values. They name nothing and join nothing, so what stands in them is blanked before a scan.

use std::{borrow::Cow, ops::Range};

use crate::{
    body::buffer::Body,
    text::placeholders::{BLANK, length_inside},
};

impl Body {
    /// Blanks what stands between the brackets of placeholders.
    pub(crate) fn blank_placeholders(&mut self) {
        let mut at = 0;
        while let Some(found) = self.text.get(at..).and_then(|rest| memchr::memchr(b'[', rest)) {
            at += found + 1;
            let length = self.text.get(at..).and_then(length_inside);
            let Some(inside) = length.and_then(|length| self.text.get_mut(at..at + length)) else {
                continue;
            };
            self.placeholders.push((at, Box::from(&*inside)));
            inside.fill(BLANK);
            at += inside.len();
        }
    }

    /// Text in a range of the buffer, with the placeholders in it as they are written.
    pub(crate) fn written(&self, range: Range<usize>) -> Cow<'_, [u8]> {
        let from = self.placeholders.partition_point(|(at, _)| *at < range.start);
        let inside = self.placeholders.iter().skip(from);
        let inside = inside.take_while(|(at, text)| at + text.len() <= range.end);
        let mut written = Cow::Borrowed(self.slice(range.clone()));
        for (at, text) in inside {
            let place = at - range.start..at - range.start + text.len();
            if let Some(blank) = written.to_mut().get_mut(place) {
                blank.copy_from_slice(text);
            }
        }
        written
    }
}
