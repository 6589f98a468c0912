//! Base64 and hex: finding the runs, and decoding those that hold text.

use std::ops::Range;

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use crate::dlp::text::marks::Marks;

/// Shorter runs hold nothing worth hiding.
pub(in crate::dlp) const SHORTEST: usize = 16;

/// Runs up to this length are decoded only if their beginning or end reads like text; longer
/// ones always, since text may stand anywhere in them.
const PROBED: usize = 96;

/// Shorter stretches of text in decoded bytes are chance.
const SHORTEST_TEXT: usize = 8;

/// A run of base64 characters, and the segment it stands in.
pub(in crate::dlp) struct Run {
    pub(in crate::dlp) segment: u32,
    /// Bytes of the buffer.
    pub(in crate::dlp) range: Range<usize>,
}

/// Result of decoding a run.
#[derive(Default)]
pub(in crate::dlp) struct Encoded {
    /// Bytes that decoding produced, text or not.
    pub(in crate::dlp) work: usize,
    /// The readable stretches.
    pub(in crate::dlp) texts: Vec<Vec<u8>>,
}

/// Calls `each` with every run of at least [`SHORTEST`] base64 characters, in order.
pub(in crate::dlp) fn each(text: &[u8], marks: &Marks, mut each: impl FnMut(Range<usize>)) {
    let mut done = 0_usize;
    for (start, long) in marks.long_base64() {
        let mut long = long & bits_from(done.saturating_sub(start));
        while long != 0 {
            let first = start + long.trailing_zeros() as usize;
            done = first + marks.base64_from(first);
            let padding = text.get(done..text.len().min(done + 2)).unwrap_or_default();
            each(first..done + padding.iter().take_while(|byte| **byte == b'=').count());
            long &= bits_from(done - start);
        }
    }
}

/// All bits but the first so many.
fn bits_from(first: usize) -> u64 {
    u32::try_from(first).ok().and_then(|first| u64::MAX.checked_shl(first)).unwrap_or(0)
}

/// Decodes a run as hex or base64 and keeps what reads like text.
pub(in crate::dlp) fn decode(run: &[u8]) -> Encoded {
    let mut encoded = Encoded::default();
    let padding = run.iter().rev().take_while(|byte| **byte == b'=').count();
    let run = run.get(..run.len() - padding).unwrap_or_default();
    if run.len().is_multiple_of(2) && is_hex(run) {
        if run.len() > PROBED || run.first_chunk().is_some_and(hex_reads_like_text) {
            keep(&hex(run), &mut encoded);
        }
        return encoded;
    }
    if run.len() > PROBED || probe(run) {
        keep(&base64(run), &mut encoded);
    }
    if encoded.texts.is_empty() && run.contains(&b'/') {
        // `/` belongs to the alphabet and also parts the steps of a path.
        let steps = run.split(|byte| *byte == b'/').filter(|step| step.len() >= SHORTEST);
        steps.filter(|step| probe(step)).for_each(|step| keep(&base64(step), &mut encoded));
    }
    encoded
}

/// Looks at many at once.
fn is_hex(run: &[u8]) -> bool {
    let (whole, rest) = run.as_chunks::<SHORTEST>();
    let all = |bytes: &[u8]| bytes.iter().fold(true, |all, byte| all & byte.is_ascii_hexdigit());
    whole.iter().all(|chunk| all(chunk)) && all(rest)
}

fn keep(decoded: &[u8], encoded: &mut Encoded) {
    encoded.work += decoded.len();
    let stretches = readable(decoded).filter(|stretch| stretch.len() >= SHORTEST_TEXT);
    encoded.texts.extend(stretches.map(|stretch| stretch.as_bytes().to_vec()));
}

/// The stretches of UTF-8 without control characters.
fn readable(decoded: &[u8]) -> impl Iterator<Item = &str> {
    let is_control = |char: char| char.is_control() && !char.is_ascii_whitespace();
    decoded.utf8_chunks().flat_map(move |chunk| chunk.valid().split(is_control))
}

/// Returns true if the first or the last sixteen characters decode to text.
fn probe(run: &[u8]) -> bool {
    let aligned = run.get(..run.len() / 4 * 4).unwrap_or_default();
    run.first_chunk().is_some_and(base64_reads_like_text)
        || aligned.last_chunk().is_some_and(base64_reads_like_text)
}

fn base64_reads_like_text(end: &[u8; SHORTEST]) -> bool {
    let mut decoded = [0; SHORTEST / 4 * 3];
    for (three, four) in decoded.chunks_exact_mut(3).zip(end.chunks_exact(4)) {
        let bits = four.iter().fold(0_u32, |bits, letter| bits << 6 | u32::from(six_bits(*letter)));
        let [_, bytes @ ..] = bits.to_be_bytes();
        three.copy_from_slice(&bytes);
    }
    reads_like_text(&decoded)
}

/// The value of a letter in either alphabet.
fn six_bits(letter: u8) -> u8 {
    const TABLE: [u8; 256] = {
        let mut table = [0; 256];
        let mut letter = 0_u8;
        while letter < 128 {
            #[expect(clippy::indexing_slicing, reason = "checked when compiled")]
            {
                table[letter as usize] = match letter {
                    b'A'..=b'Z' => letter - b'A',
                    b'a'..=b'z' => letter - b'a' + 26,
                    b'0'..=b'9' => letter - b'0' + 52,
                    b'+' | b'-' => 62,
                    _ => 63,
                };
            }
            letter += 1;
        }
        table
    };
    TABLE.get(usize::from(letter)).copied().unwrap_or_default()
}

fn hex_reads_like_text(end: &[u8; SHORTEST]) -> bool {
    let half = |digit: u8| match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20).wrapping_sub(b'a' - 10),
    };
    let mut decoded = [0; SHORTEST / 2];
    for (byte, pair) in decoded.iter_mut().zip(end.chunks_exact(2)) {
        *byte = pair.iter().fold(0, |byte, digit| byte << 4 | half(*digit) & 15);
    }
    reads_like_text(&decoded)
}

/// Returns true if at least three bytes of four are readable: characters of ASCII, and whole ones
/// of UTF-8. Takes little time and has no branch, for most runs are none. Up to twelve bytes.
fn reads_like_text(decoded: &[u8]) -> bool {
    let mut kinds = 0;
    for (at, byte) in decoded.iter().enumerate() {
        kinds |= KINDS.get(usize::from(*byte)).copied().unwrap_or_default() << at;
    }
    let lane = |kind: u32| kinds >> (kind * LANE) & ((1 << LANE) - 1);
    let (first, second, third) = (lane(1) >> 1, lane(1) >> 2, lane(1) >> 3);
    let two = lane(2) & first;
    let three = lane(3) & first & second;
    let four = lane(4) & first & second & third;
    let readable = lane(0).count_ones()
        + 2 * two.count_ones()
        + 3 * three.count_ones()
        + 4 * four.count_ones();
    4 * readable as usize >= 3 * decoded.len()
}

/// Bits of a lane of [`KINDS`]: as many as bytes come out of [`SHORTEST`] characters at most.
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

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
static PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
static URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

fn alphabet(run: &[u8]) -> &'static GeneralPurpose {
    if run.iter().any(|byte| matches!(byte, b'-' | b'_')) { &URL } else { &PLAIN }
}

fn base64(run: &[u8]) -> Vec<u8> {
    let whole = match run.len() % 4 {
        1 => run.get(..run.len() - 1).unwrap_or_default(),
        _ => run,
    };
    alphabet(run).decode(whole).unwrap_or_default()
}

fn hex(run: &[u8]) -> Vec<u8> {
    let value =
        |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(value(high)? << 4 | value(low)?),
        _ => None,
    };
    run.chunks(2).filter_map(byte).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dlp::text::marks::Set;

    fn texts(run: &str) -> Vec<String> {
        decode(run.as_bytes()).texts.into_iter().map(|t| String::from_utf8(t).unwrap()).collect()
    }

    #[test]
    fn text_comes_out_of_base64_and_hex() {
        assert_eq!(texts("YWRhQGV4YW1wbGUub3Jn"), ["ada@example.org"]);
        assert_eq!(texts("616461406578616d706c652e6f7267"), ["ada@example.org"]);
        assert_eq!(texts("api/v1/YWRhQGV4YW1wbGUub3Jn"), ["ada@example.org"]);
    }

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
    fn names_and_hashes_hold_no_text() {
        assert!(texts("organization_memberships").is_empty());
        assert!(texts("2fd4e1c67a2d28fced849ee1bb76e7391b93eb12").is_empty());
    }

    #[test]
    fn every_long_run_is_seen_and_no_short_one() {
        for lead in 0..40 {
            let text = format!("{} {} tail of words", " ".repeat(lead), "Q".repeat(16));
            let mut marks = Marks::default();
            marks.set(text.as_bytes(), 0, &Set::NONE);
            let mut found = Vec::new();
            each(text.as_bytes(), &marks, |run| found.push(run));
            assert_eq!((found.len(), found[0].clone()), (1, lead + 1..lead + 17), "{lead}");
        }
    }
}
