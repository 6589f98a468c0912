//! Frames: what stands around a decoded part of a text in its line. Words there name what is decoded.
//!
//! Frames of one text do not overlap, and hold nothing that is decoded itself, so all of them together are no
//! longer than twice the text.

use std::ops::Range;

use crate::text::words;

/// The parts of a line before and behind a decoded part.
pub(super) struct Frame {
    before: Range<usize>,
    behind: Range<usize>,
}

/// A decoded text in its frame.
pub(super) struct Framed {
    pub(super) text: Vec<u8>,
    /// Bytes of the frame before it.
    pub(super) before: usize,
    /// Offset of the frame behind it.
    pub(super) behind: usize,
    /// Bytes of both.
    pub(super) more: usize,
}

impl Frame {
    /// The frame of a part within a range of a text. It begins and ends with whole words.
    pub(super) fn around(text: &[u8], part: &Range<usize>, within: &Range<usize>) -> Frame {
        let floor = part.start.saturating_sub(words::BEFORE).max(within.start);
        let ceiling = part.end.saturating_add(words::AFTER).min(within.end);
        let before = text.get(floor..part.start).unwrap_or_default();
        let behind = text.get(part.end..ceiling).unwrap_or_default();
        let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
        let skipped = match memchr::memrchr(b'\n', before) {
            Some(line) => line + 1,
            None if floor == within.start => 0,
            None => before.iter().take_while(is_word).count(),
        };
        let kept = match memchr::memchr(b'\n', behind) {
            Some(line) => line,
            None if ceiling == within.end => behind.len(),
            None => behind.len() - behind.iter().rev().take_while(is_word).count(),
        };
        Frame { before: floor + skipped..part.start, behind: part.end..part.end + kept }
    }

    /// A decoded text in the frame, which stands in a buffer. A space keeps away a sign that would be taken
    /// for a part of a token.
    pub(super) fn hold(self, buffer: &[u8], decoded: &[u8]) -> Framed {
        let part = |range: Range<usize>| buffer.get(range).unwrap_or_default();
        let gap =
            |beside: Option<&u8>| if beside.is_some_and(|sign| touches(*sign)) { " " } else { "" };
        let before = part(self.before);
        let behind = part(self.behind);
        let mut text = [before, gap(before.last()).as_bytes(), decoded].concat();
        text.extend_from_slice(gap(behind.first()).as_bytes());
        let end = text.len();
        text.extend_from_slice(behind);
        let more = text.len() - decoded.len();
        Framed { text, before: before.len(), behind: end, more }
    }
}

/// Returns true for a sign beside which no token stands free.
fn touches(sign: u8) -> bool {
    !sign.is_ascii_whitespace() && !b"\"'`()[]{}<>".contains(&sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_holds_whole_words_of_the_line() {
        let lead = "x".repeat(70);
        let text = format!("above\n{lead} the card is CODED and so on\nbelow");
        let at = text.find("CODED").unwrap();

        let frame = Frame::around(text.as_bytes(), &(at..at + 5), &(0..text.len()));

        let framed = frame.hold(text.as_bytes(), b"4111");
        assert_eq!(framed.text, b" the card is 4111 and so on");
        assert_eq!((framed.before, framed.behind), (13, 17));
    }

    #[test]
    fn a_frame_touches_no_token() {
        let text = "?s=CODED&t=x";

        let framed = Frame::around(text.as_bytes(), &(3..8), &(0..8)).hold(text.as_bytes(), b"eyJ");

        assert_eq!((framed.text.as_slice(), framed.before, framed.behind), (&b"?s= eyJ"[..], 3, 7));
    }
}
