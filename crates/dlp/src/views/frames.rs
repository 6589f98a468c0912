//! Frames: what stands around a decoded part of a text in its line. Words there name what is decoded.
//!
//! Frames of one text do not overlap, and hold nothing that is decoded itself, so all of them together are no
//! longer than twice the text.

use std::ops::Range;

use crate::text::words;

/// The parts of a line before and behind a decoded part.
#[derive(Debug, Default, Clone)]
pub(super) struct Frame {
    pub(super) before: Range<usize>,
    pub(super) behind: Range<usize>,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_holds_whole_words_of_the_line() {
        let lead = "x".repeat(70);
        let text = format!("above\n{lead} the card is CODED and so on\nbelow");
        let at = text.find("CODED").unwrap();

        let Frame { before, behind } =
            Frame::around(text.as_bytes(), &(at..at + 5), &(0..text.len()));

        assert_eq!((&text[before], &text[behind]), (" the card is ", " and so on"));
    }
}
