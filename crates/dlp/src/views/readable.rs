//! Bytes that read like text: telling them from others, and taking them out.

/// Shorter stretches of text in decoded bytes are chance.
pub(super) const SHORTEST_TEXT: usize = 8;

/// Kinds of bytes that text is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bytes {
    /// Readable ASCII, as far apart as UTF-16 writes it: with NUL between.
    Spread,
    /// These, and what may be a part of a character beyond ASCII.
    Wide,
}

impl Bytes {
    /// Returns true if all bytes are of the kind, and not all of them NUL.
    pub(super) fn are_all(self, bytes: &[u8]) -> bool {
        let wanted = match self {
            Bytes::Spread => PLAIN | NUL,
            Bytes::Wide => PLAIN | NUL | BEYOND,
        };
        let mut all = wanted;
        let mut any = 0;
        for byte in bytes {
            let kind = SIMPLE.get(usize::from(*byte)).copied().unwrap_or_default();
            all &= u8::from(kind & wanted != 0).wrapping_neg();
            any |= kind;
        }
        all != 0 && any & !NUL != 0
    }
}

const PLAIN: u8 = 1;
const NUL: u8 = 2;
const BEYOND: u8 = 4;

/// The kind of each byte.
const SIMPLE: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0_usize;
    while byte < 256 {
        #[expect(clippy::indexing_slicing, reason = "checked when compiled")]
        {
            kinds[byte] = match byte {
                0 => NUL,
                0x09 | 0x0A | 0x0D | 0x20..=0x7E => PLAIN,
                0x80.. => BEYOND,
                _ => 0,
            };
        }
        byte += 1;
    }
    kinds
};

/// Calls `take` with the stretches of UTF-8 without control characters. Where every second byte is
/// NUL or nearly so, the text is UTF-16 and read without them.
pub(super) fn each(decoded: &[u8], mut take: impl FnMut(&[u8])) {
    let nuls = memchr::memchr_iter(0, decoded).count();
    let spread: Vec<u8>;
    let bytes = if 3 * nuls >= decoded.len() && nuls > 0 {
        spread = decoded.iter().copied().filter(|byte| *byte != 0).collect();
        &spread
    } else {
        decoded
    };
    let is_control = |char: char| char.is_control() && !char.is_ascii_whitespace();
    for chunk in bytes.utf8_chunks() {
        chunk.valid().split(is_control).for_each(|text| take(text.as_bytes()));
    }
}

/// Returns true if at least three bytes of four are readable: characters of ASCII, and whole ones
/// of UTF-8. Takes little time and has no branch, for most runs are none. Up to twelve bytes.
pub(super) fn reads_like_text(decoded: &[u8]) -> bool {
    let mut kinds = 0;
    for (at, byte) in decoded.iter().enumerate() {
        kinds |= KINDS.get(usize::from(*byte)).copied().unwrap_or_default() << at;
    }
    let lane = |kind: u32| kinds >> (kind * LANE) & ((1 << LANE) - 1);
    let first = lane(1) >> 1;
    let second = lane(1) >> 2;
    let third = lane(1) >> 3;
    let two = lane(2) & first;
    let three = lane(3) & first & second;
    let four = lane(4) & first & second & third;
    let readable = lane(0).count_ones()
        + 2 * two.count_ones()
        + 3 * three.count_ones()
        + 4 * four.count_ones();
    4 * readable as usize >= 3 * decoded.len()
}

/// Bits of a lane of [`KINDS`]: as many as bytes are looked at.
const LANE: u32 = 12;

/// Class of each byte, as one bit in one of five lanes: readable ASCII, a later byte of a character
/// of UTF-8, or the first of a character of two, three or four.
const KINDS: [u64; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0_usize;
    while byte < 256 {
        let kind = match byte {
            0x09 | 0x0A | 0x0D | 0x20..=0x7E => Some(0),
            0x80..=0xBF => Some(1),
            0xC2..=0xDF => Some(2),
            0xE0..=0xEF => Some(3),
            0xF0..=0xF4 => Some(4),
            _ => None,
        };
        if let Some(kind) = kind {
            #[expect(clippy::indexing_slicing, reason = "checked when compiled")]
            {
                kinds[byte] = 1 << (kind * LANE);
            }
        }
        byte += 1;
    }
    kinds
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns true if at least three bytes of four are readable, one after the other.
    fn reads_slowly(decoded: &[u8]) -> bool {
        let mut readable = 0;
        let mut rest = decoded;
        while let [first, after @ ..] = rest {
            let follow = match first {
                0xC2..=0xDF => 1,
                0xE0..=0xEF => 2,
                0xF0..=0xF4 => 3,
                _ => 0,
            };
            let continues = |byte: &u8| matches!(byte, 0x80..=0xBF);
            let is_whole = after.len() >= follow && after[..follow].iter().all(continues);
            let is_plain = matches!(first, b' '..=b'~' | b'\t' | b'\n' | b'\r');
            let taken = if is_whole { 1 + follow } else { 1 };
            readable += if is_plain || follow > 0 && is_whole { taken } else { 0 };
            rest = &rest[taken..];
        }
        4 * readable >= 3 * decoded.len()
    }

    proptest! {
        #[test]
        fn what_reads_like_text_is_told_without_a_branch(
            ascii in prop::collection::vec(any::<u8>(), 0..=12),
            text in "[aé€𝄞]{1,4}",
        ) {
            prop_assert_eq!(reads_like_text(&ascii), reads_slowly(&ascii));
            let mut mixed: Vec<u8> = text.bytes().chain(ascii).collect();
            mixed.truncate(12);
            prop_assert_eq!(reads_like_text(&mixed), reads_slowly(&mixed));
        }
    }

    #[test]
    fn utf_16_is_read_in_either_order_of_bytes() {
        let text = "ada@example.org";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for spread in [little, big] {
            let mut found = Vec::new();
            each(&spread, |text| found.push(String::from_utf8(text.to_vec()).unwrap()));
            assert_eq!(found, [text]);
            assert!(Bytes::Spread.are_all(&spread));
        }
        assert!(!Bytes::Spread.are_all(&[0; 9]) && !Bytes::Spread.are_all(&[b'a', 7]));
    }
}
