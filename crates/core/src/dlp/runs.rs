//! Base64 and hex: finding the runs, and decoding those that hold text.

use std::ops::Range;

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// Shorter runs hold nothing worth hiding.
pub(super) const SHORTEST: usize = 16;

/// Runs up to this length are decoded only if their beginning or end reads like text; longer
/// ones always, since text may stand anywhere in them.
const PROBED: usize = 96;

/// Shorter stretches of text in decoded bytes are chance.
const SHORTEST_TEXT: usize = 8;

/// A run of base64 characters, and the segment it stands in.
pub(super) struct Run {
    pub(super) segment: u32,
    /// Bytes of the buffer.
    pub(super) range: Range<usize>,
}

/// What came out of a run.
#[derive(Default)]
pub(super) struct Encoded {
    /// Bytes that decoding produced, text or not.
    pub(super) work: usize,
    /// The readable stretches.
    pub(super) texts: Vec<Vec<u8>>,
}

/// Calls `each` with every run of at least [`SHORTEST`] base64 characters, in order. Looks at
/// one byte in [`SHORTEST`] and what is around it unless that is part of such a run.
pub(super) fn each(text: &[u8], range: Range<usize>, mut each: impl FnMut(Range<usize>)) {
    let mut probe = range.start + SHORTEST - 1;
    let mut floor = range.start;
    while probe < range.end {
        if !may_be_long(text, probe) {
            probe += SHORTEST;
            continue;
        }
        let before = text.get(floor..probe).unwrap_or_default();
        let start = probe - before.iter().rev().take_while(|byte| is_base64(**byte)).count();
        let end = probe + length(text.get(probe..range.end).unwrap_or_default());
        if end - start >= SHORTEST {
            let padding = text.get(end..range.end.min(end + 2)).unwrap_or_default();
            each(start..end + padding.iter().take_while(|byte| **byte == b'=').count());
        }
        // A run of one side only may be too short, and none at all.
        floor = end.max(probe);
        probe = floor + SHORTEST;
    }
}

/// How many base64 characters a text begins with.
fn length(text: &[u8]) -> usize {
    let (blocks, _) = text.as_chunks::<SHORTEST>();
    let whole = blocks.iter().take_while(|block| none(&outside(block))).count() * SHORTEST;
    let rest = text.get(whole..).unwrap_or_default();
    whole + rest.iter().take_while(|byte| is_base64(**byte)).count()
}

/// Whether a long run may go through there: half of it stands on one side. Written so that both
/// sides are looked at at once, for how long a word is cannot be foretold.
#[inline]
fn may_be_long(text: &[u8], at: usize) -> bool {
    const HALF: usize = SHORTEST / 2;
    let around = text.get(at.saturating_sub(HALF)..).unwrap_or_default();
    let Some(around) = around.first_chunk::<SHORTEST>() else {
        return text.get(at).is_some_and(|byte| is_base64(*byte));
    };
    let outside = outside(around);
    let (before, after) = outside.split_at(HALF);
    none(before) | none(after)
}

/// Which bytes are no base64 characters, as ones. A loop, for `map` goes byte by byte.
#[inline]
fn outside(block: &[u8; SHORTEST]) -> [u8; SHORTEST] {
    let mut flags = [0; SHORTEST];
    for (flag, byte) in flags.iter_mut().zip(block) {
        *flag = u8::from(!is_base64(*byte));
    }
    flags
}

#[inline]
fn none(flags: &[u8]) -> bool {
    flags.as_chunks().0.iter().all(|eight| u64::from_le_bytes(*eight) == 0)
}

/// Decodes a run as hex or base64 and keeps what reads like text.
pub(super) fn decode(run: &[u8]) -> Encoded {
    let mut encoded = Encoded::default();
    let padding = run.iter().rev().take_while(|byte| **byte == b'=').count();
    let run = run.get(..run.len() - padding).unwrap_or_default();
    if run.len().is_multiple_of(2) && run.iter().all(u8::is_ascii_hexdigit) {
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

/// Whether the first or the last sixteen characters decode to text.
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

/// Whether at least three bytes of four are readable. Takes little time, for most runs are none.
fn reads_like_text(decoded: &[u8]) -> bool {
    // Wrapping, though it never does: a checked sum goes byte by byte.
    let count = |counts: fn(u8) -> bool| {
        decoded.iter().fold(0_u8, |sum, byte| sum.wrapping_add(u8::from(counts(*byte))))
    };
    let plain = usize::from(count(is_plain));
    if 4 * plain >= 3 * decoded.len() {
        return true;
    }
    if count(|byte| byte >= 0xC2) < 2 {
        return false;
    }
    let mut readable = 0;
    let mut rest = decoded;
    while let [first, after @ ..] = rest {
        let follow = match first {
            0xC2..=0xDF => 1,
            0xE0..=0xEF => 2,
            0xF0..=0xF4 => 3,
            _ => 0,
        };
        let is_whole = after.len() >= follow
            && after.iter().take(follow).all(|byte| matches!(byte, 0x80..=0xBF));
        let taken = if is_whole { 1 + follow } else { 1 };
        if is_plain(*first) || follow > 0 && is_whole {
            readable += taken;
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    4 * readable >= 3 * decoded.len()
}

/// A readable character of ASCII.
#[inline]
#[expect(clippy::needless_bitwise_bool, reason = "a branch could not be foretold")]
const fn is_plain(byte: u8) -> bool {
    (byte.wrapping_sub(b' ') < 95) | (byte == b'\t') | (byte == b'\n') | (byte == b'\r')
}

/// By arithmetic instead of a table, so that many are told at once.
#[inline]
#[expect(clippy::needless_bitwise_bool, reason = "a branch could not be foretold")]
const fn is_base64(byte: u8) -> bool {
    let letter = (byte | 0x20).wrapping_sub(b'a') < 26;
    let digit = byte.wrapping_sub(b'0') < 10;
    letter | digit | (byte == b'+') | (byte == b'/') | (byte == b'-') | (byte == b'_')
}

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
    use super::*;

    fn texts(run: &str) -> Vec<String> {
        decode(run.as_bytes()).texts.into_iter().map(|t| String::from_utf8(t).unwrap()).collect()
    }

    #[test]
    fn text_comes_out_of_base64_and_hex() {
        assert_eq!(texts("YWRhQGV4YW1wbGUub3Jn"), ["ada@example.org"]);
        assert_eq!(texts("616461406578616d706c652e6f7267"), ["ada@example.org"]);
        assert_eq!(texts("api/v1/YWRhQGV4YW1wbGUub3Jn"), ["ada@example.org"]);
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
            let mut found = Vec::new();
            each(text.as_bytes(), 0..text.len(), |run| found.push(run));
            assert_eq!((found.len(), found[0].clone()), (1, lead + 1..lead + 17), "{lead}");
        }
    }
}
