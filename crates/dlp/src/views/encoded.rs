//! Base64, base32 and hex: finding the runs, and decoding those that hold text.

use std::ops::Range;

use crate::{
    text::marks::Marks,
    views::{
        inflate::{self, Inflater},
        readable::{self, Bytes, SHORTEST_TEXT},
        sextets,
    },
};

/// Shorter runs hold nothing worth hiding.
pub(crate) const SHORTEST: usize = 16;

/// Runs up to this length are decoded only if their beginning or end reads like text; longer
/// ones always, since text may stand anywhere in them.
const PROBED: usize = 96;

/// The shortest run of base32 that is decoded: fifteen bytes.
const SHORTEST_BASE32: usize = 24;

/// A run of base64 characters, and the segment it stands in.
pub(crate) struct Run {
    pub(crate) segment: u32,
    /// Bytes of the buffer.
    pub(crate) range: Range<usize>,
}

/// Result of decoding a run.
#[derive(Default)]
pub(crate) struct Encoded {
    /// Bytes that decoding produced, text or not.
    pub(crate) work: usize,
    pub(crate) texts: Vec<Decoded>,
}

/// A readable stretch.
pub(crate) struct Decoded {
    pub(crate) text: Vec<u8>,
    /// The characters that it was read from.
    pub(crate) from: Range<usize>,
}

/// Calls `each` with every run of at least [`SHORTEST`] base64 characters, in order.
pub(crate) fn each(text: &[u8], marks: &Marks, mut each: impl FnMut(Range<usize>)) {
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

/// Decodes a run, which holds no padding, and keeps what reads like text. Of hex the digits in a row
/// are decoded, of base64 the stretches that read like text whatever stands before them, of base32
/// the whole run. What is compressed is decompressed, as far as `most` bytes go.
pub(crate) fn decode(run: &[u8], inflater: &mut Inflater, most: usize) -> Encoded {
    let mut encoded = Encoded::default();
    if is_hex_throughout(run, &mut encoded, inflater, most) || !encoded.texts.is_empty() {
        return encoded;
    }
    // Readable bytes hardly ever encode to so many characters without a capital among them; names,
    // paths and hashes have none.
    if has_capital(run) {
        decode_base64(run, &mut encoded, inflater, most);
    }
    if is_base32(run) {
        keep_all(&base32(run), run, &mut encoded);
    }
    encoded
}

fn decode_base64(run: &[u8], encoded: &mut Encoded, inflater: &mut Inflater, most: usize) {
    if probe(run) {
        keep_all(&sextets::decode(run), run, encoded);
    }
    let is_text = 4 * encoded.texts.iter().map(|it| it.text.len()).sum::<usize>() > 2 * run.len();
    if is_text {
        return;
    }
    sextets::each_text(run, |bytes, from| keep(&bytes, from, encoded));
    if let Some(packed) = inflate::packed(run) {
        keep_inflated(&sextets::decode(run), packed, run, encoded, inflater, most);
    }
}

/// Looks at all, so that many are looked at at once.
fn has_capital(run: &[u8]) -> bool {
    run.iter().fold(false, |any, byte| any | byte.is_ascii_uppercase())
}

/// Decodes the hex digits of a run: all of it, or the parts between its joints. Returns true if there
/// is nothing else in it.
fn is_hex_throughout(
    run: &[u8],
    encoded: &mut Encoded,
    inflater: &mut Inflater,
    most: usize,
) -> bool {
    // A part that is long enough fills one of these.
    const FILLED: usize = SHORTEST / 2;
    if !run.as_chunks::<FILLED>().0.iter().any(|chunk| is_hex(chunk)) {
        return false;
    }
    let mut at = 0;
    let mut is_all = true;
    for part in run.split(|byte| !byte.is_ascii_alphanumeric()) {
        let digits = part.strip_prefix(b"0x").or_else(|| part.strip_prefix(b"0X")).unwrap_or(part);
        let is_hex = is_hex(digits);
        is_all &= is_hex;
        if is_hex && digits.len() >= SHORTEST {
            let range = at..at + part.len();
            for half in 0..=digits.len() % 2 {
                let digits = digits.get(half..).unwrap_or_default();
                decode_hex(digits, &range, encoded, inflater, most);
            }
            keep(&codes(digits), range, encoded);
        }
        at += part.len() + 1;
    }
    is_all
}

/// The bytes whose codes stand in a row without anything between them: eight binary digits each, or three decimal
/// ones. Nothing if one of them is no character.
fn codes(digits: &[u8]) -> Vec<u8> {
    let is_all = |is: fn(&u8) -> bool| digits.iter().all(is);
    let read = |length: usize, base: u32| {
        let value =
            |code: &[u8]| code.iter().fold(0, |sum, digit| sum * base + u32::from(digit & 15));
        let char = |code| u8::try_from(value(code)).ok().filter(|it| matches!(it, b' '..=b'~'));
        let whole = digits.len().is_multiple_of(length).then(|| digits.chunks(length));
        whole.and_then(|codes| codes.map(char).collect()).unwrap_or_default()
    };
    match digits.first() {
        Some(b'0') if is_all(|digit| matches!(digit, b'0' | b'1')) => read(8, 2),
        Some(b'0' | b'1') if is_all(u8::is_ascii_digit) => read(3, 10),
        Some(_) | None => Vec::new(),
    }
}

fn decode_hex(
    digits: &[u8],
    from: &Range<usize>,
    encoded: &mut Encoded,
    inflater: &mut Inflater,
    most: usize,
) {
    let packed = inflate::packed_hex(digits);
    let reads = digits.first_chunk().is_some_and(hex_reads_like_text);
    if digits.len() <= PROBED && !reads && packed.is_none() {
        return;
    }
    let decoded = hex(digits);
    match packed {
        Some(packed) => {
            let (work, text) = inflater.text(&decoded, packed, most);
            encoded.work += work;
            keep(&text, from.clone(), encoded);
        }
        None => keep(&decoded, from.clone(), encoded),
    }
}

fn keep_inflated(
    decoded: &[u8],
    packed: inflate::Packed,
    run: &[u8],
    encoded: &mut Encoded,
    inflater: &mut Inflater,
    most: usize,
) {
    let (work, text) = inflater.text(decoded, packed, most);
    encoded.work += work;
    keep_all(&text, run, encoded);
}

fn keep_all(decoded: &[u8], run: &[u8], encoded: &mut Encoded) {
    keep(decoded, 0..run.len(), encoded);
}

fn keep(decoded: &[u8], from: Range<usize>, encoded: &mut Encoded) {
    encoded.work += decoded.len();
    readable::each(decoded, |text| {
        if text.len() >= SHORTEST_TEXT {
            encoded.texts.push(Decoded { text: text.to_vec(), from: from.clone() });
        }
    });
}

/// Looks at many at once.
pub(super) fn is_hex(run: &[u8]) -> bool {
    let (whole, rest) = run.as_chunks::<8>();
    let all = |bytes: &[u8]| bytes.iter().fold(true, |all, byte| all & byte.is_ascii_hexdigit());
    whole.iter().all(|chunk| all(chunk)) && all(rest)
}

/// Returns true if the first or the last sixteen characters decode to text.
fn probe(run: &[u8]) -> bool {
    let aligned = run.get(..run.len() / 4 * 4).unwrap_or_default();
    run.first_chunk().is_some_and(base64_reads_like_text)
        || aligned.last_chunk().is_some_and(base64_reads_like_text)
}

fn base64_reads_like_text(end: &[u8; SHORTEST]) -> bool {
    let mut decoded = [0; SHORTEST / 4 * 3];
    for (three, four) in decoded.chunks_exact_mut(3).zip(end.as_chunks().0) {
        three.copy_from_slice(&sextets::three(*four));
    }
    readable::reads_like_text(&decoded)
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
    readable::reads_like_text(&decoded) || Bytes::Spread.are_all(&decoded)
}

pub(super) fn hex(run: &[u8]) -> Vec<u8> {
    let value =
        |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(value(high)? << 4 | value(low)?),
        _ => None,
    };
    run.chunks(2).filter_map(byte).collect()
}

/// Returns true if a run is of one alphabet of base32 (RFC 4648 §6, in either case) and begins like
/// text.
fn is_base32(run: &[u8]) -> bool {
    const BEGINNING: usize = 16;
    let is_of = |is_letter: fn(&u8) -> bool| {
        run.iter().all(|byte| is_letter(byte) || matches!(byte, b'2'..=b'7'))
    };
    run.len() >= SHORTEST_BASE32
        && (is_of(u8::is_ascii_uppercase) || is_of(u8::is_ascii_lowercase))
        && Bytes::Spread.are_all(&base32(run.get(..BEGINNING).unwrap_or_default()))
}

fn base32(run: &[u8]) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'2'..=b'7' => u64::from(letter - b'2') + 26,
        _ => u64::from((letter | 0x20).wrapping_sub(b'a') & 31),
    };
    let mut bytes = Vec::with_capacity(run.len() * 5 / 8);
    for group in run.chunks(8) {
        let bits = group.iter().fold(0, |bits, letter| bits << 5 | value(*letter));
        let bits = bits << (40 - 5 * group.len());
        let [_, _, _, five @ ..] = bits.to_be_bytes();
        bytes.extend(five.iter().take(group.len() * 5 / 8));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::marks::Set;

    fn texts(run: &str) -> Vec<String> {
        let encoded = decode(run.as_bytes(), &mut Inflater::default(), 1 << 20);
        encoded.texts.into_iter().map(|it| String::from_utf8(it.text).unwrap()).collect()
    }

    #[test]
    fn text_comes_out_of_base64_and_hex() {
        assert_eq!(texts("YWRhQGV4YW1wbGUub3Jn"), ["ada@example.org"]);
        assert_eq!(texts("616461406578616d706c652e6f7267"), ["ada@example.org"]);
        assert_eq!(texts("0x616461406578616d706c652e6f7267"), ["ada@example.org"]);
        assert_eq!(texts("id-616461406578616d706c652e6f7267"), ["ada@example.org"]);
        assert_eq!(texts("MFSGCQDFPBQW24DMMUXG64TH"), ["ada@example.org"]);
        assert_eq!(texts("mfsgcqdfpbqw24dmmuxg64th"), ["ada@example.org"]);
        for lead in ["x/", "api/v1/", "token_", "a", "ab", "abc", "abcd"] {
            let found = texts(&format!("{lead}YWRhQGV4YW1wbGUub3Jn"));
            assert!(found.iter().any(|text| text.contains("ada@example.org")), "{lead}: {found:?}");
        }
    }

    #[test]
    fn codes_in_a_row_are_read() {
        let text = "ada@example.org";
        let spelled = |code: fn(u8) -> String| text.bytes().map(code).collect::<Vec<_>>().concat();

        assert_eq!(texts(&spelled(|byte| format!("{byte:03}"))), [text]);
        assert_eq!(texts(&spelled(|byte| format!("{byte:08b}"))), [text]);
        assert!(texts("0123456789012345678901234567").is_empty());
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
