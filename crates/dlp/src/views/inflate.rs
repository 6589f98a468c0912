//! Compressed text: gzip, zlib and bare deflate.
//!
//! Gzip and zlib are told by how they begin, and read as far as they can be. What comes out counts
//! against the budget of decoding, and no stream is read further than that: a body that is compressed
//! beyond it is refused like any other whose decoding takes too much.
//!
//! Bare deflate has no mark, and many other bytes could be the beginning of some. Only a stream counts
//! that ends where the bytes end, and that grows no more than sixty-four times; others are skipped.

use flate2::{Decompress, FlushDecompress, Status};

use crate::views::{readable::Bytes, sextets};

/// The shortest run that may be bare deflate, in characters of base64.
const SHORTEST_BARE: usize = 20;

/// The most that a byte of bare deflate may grow to.
const MOST_GROWTH: usize = 64;

/// Bytes that are decompressed at once.
const CHUNK: usize = 16 << 10;

/// Format of compressed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packed {
    /// RFC 1952.
    Gzip,
    /// RFC 1950.
    Zlib,
    /// RFC 1951.
    Bare,
}

/// Decompresses one stream after the other.
#[derive(Default)]
pub(crate) struct Inflater {
    state: Option<Decompress>,
}

/// Format of what a run of base64 may hold, by its first characters.
pub(super) fn packed(run: &[u8]) -> Option<Packed> {
    match run {
        [b'H', b'4', b's', b'I', ..] => Some(Packed::Gzip),
        [b'e', b'A' | b'F' | b'J' | b'N', ..] => Some(Packed::Zlib),
        _ if run.len() >= SHORTEST_BARE => {
            let mut first = [0; 16];
            for (three, four) in first.chunks_exact_mut(3).take(4).zip(run.as_chunks().0) {
                three.copy_from_slice(&sextets::three(*four));
            }
            may_be_bare(u128::from_le_bytes(first)).then_some(Packed::Bare)
        }
        _ => None,
    }
}

/// Returns true if bits may begin one last block of deflate (RFC 1951 §3.2) that holds text.
fn may_be_bare(bits: u128) -> bool {
    match bits & 7 {
        3 => begins_with_text(bits >> 3),
        5 => has_whole_code(bits >> 3),
        _ => false,
    }
}

/// Returns true if codes that are fixed begin with a readable character, and go on with more or with a
/// repetition.
fn begins_with_text(bits: u128) -> bool {
    const LITERALS: std::ops::RangeInclusive<u8> = 0x30..=0xBF;
    const REPETITION: u8 = 0x30;
    for index in 0..3 {
        let code = u8::try_from(bits >> (8 * index) & 0xFF).unwrap_or_default().reverse_bits();
        if code < REPETITION {
            return index > 0;
        }
        if !LITERALS.contains(&code) || !Bytes::Spread.are_all(&[code - LITERALS.start()]) {
            return false;
        }
    }
    true
}

/// Returns true if the lengths of the code that the codes are written in make a whole one.
fn has_whole_code(bits: u128) -> bool {
    const WHOLE: u128 = 1 << 7;
    let part = |from: u128, count: u128| bits >> from & ((1 << count) - 1);
    let lengths = (0..part(10, 4) + 4).map(|index| part(14 + 3 * index, 3));
    let sum: u128 = lengths.filter(|length| *length > 0).map(|length| WHOLE >> length).sum();
    part(0, 5) < 30 && part(5, 5) < 30 && sum == WHOLE
}

/// The same for hex digits. Bare deflate in hex is not looked for.
pub(super) fn packed_hex(digits: &[u8]) -> Option<Packed> {
    match digits.first_chunk::<6>()?.to_ascii_lowercase().as_slice() {
        b"1f8b08" => Some(Packed::Gzip),
        [b'7', b'8', b'0', b'1', ..]
        | [b'7', b'8', b'5', b'e', ..]
        | [b'7', b'8', b'9', b'c', ..]
        | [b'7', b'8', b'd', b'a', ..] => Some(Packed::Zlib),
        _ => None,
    }
}

impl Inflater {
    /// The unpacked bytes, at most one more than `most`, and how many bytes it took to find out.
    pub(super) fn text(&mut self, bytes: &[u8], packed: Packed, most: usize) -> (usize, Vec<u8>) {
        let stream = match packed {
            Packed::Gzip => behind_gzip_head(bytes),
            Packed::Zlib => bytes.get(2..),
            Packed::Bare => Some(bytes),
        };
        let Some(stream) = stream else { return (0, Vec::new()) };
        let bound = match packed {
            Packed::Gzip | Packed::Zlib => most,
            Packed::Bare => most.min(MOST_GROWTH * bytes.len()),
        };
        let (text, is_whole) = self.inflate(stream, bound);
        match packed {
            Packed::Bare if !is_whole => (0, Vec::new()),
            Packed::Gzip | Packed::Zlib | Packed::Bare => (text.len(), text),
        }
    }

    /// The content of a stream; true if the stream ends where the bytes end.
    fn inflate(&mut self, stream: &[u8], most: usize) -> (Vec<u8>, bool) {
        let state = self.state.get_or_insert_with(|| Decompress::new(false));
        state.reset(false);
        let mut text = Vec::new();
        let mut chunk = vec![0; CHUNK.min(8 * stream.len() + 64)];
        loop {
            let read = state.total_in();
            let written = state.total_out();
            let rest = usize::try_from(read).ok().and_then(|read| stream.get(read..));
            let Ok(status) =
                state.decompress(rest.unwrap_or_default(), &mut chunk, FlushDecompress::None)
            else {
                return (text, false);
            };
            let more = usize::try_from(state.total_out() - written).unwrap_or_default();
            text.extend_from_slice(chunk.get(..more).unwrap_or_default());
            if text.len() > most {
                text.truncate(most.saturating_add(1));
                return (text, false);
            }
            match status {
                Status::StreamEnd => {
                    let left = (stream.len() as u64).saturating_sub(state.total_in());
                    return (text, left <= 2);
                }
                Status::Ok if more > 0 || state.total_in() > read => {}
                Status::Ok | Status::BufError => return (text, false),
            }
        }
    }
}

/// The stream behind the head of gzip (RFC 1952 §2.3).
fn behind_gzip_head(bytes: &[u8]) -> Option<&[u8]> {
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const CHECKSUM: u8 = 2;
    let flags = *bytes.get(3)?;
    let mut rest = bytes.get(10..)?;
    if flags & EXTRA != 0 {
        let length = u16::from_le_bytes(*rest.first_chunk()?);
        rest = rest.get(2 + usize::from(length)..)?;
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            rest = rest.get(memchr::memchr(0, rest)? + 1..)?;
        }
    }
    if flags & CHECKSUM != 0 { rest.get(2..) } else { Some(rest) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
    use flate2::{
        Compression, GzBuilder,
        write::{DeflateEncoder, ZlibEncoder},
    };

    use super::*;

    const TEXT: &[u8] = b"the address of ada is ada@example.org, she says";

    fn gzip(text: &[u8]) -> Vec<u8> {
        let head = GzBuilder::new().filename("a.txt").comment("none").extra(vec![1, 2, 3]);
        let mut encoder = head.write(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn bare(text: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn each_format_is_told_and_read() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(TEXT).unwrap();
        for (bytes, format) in [
            (gzip(TEXT), Packed::Gzip),
            (zlib.finish().unwrap(), Packed::Zlib),
            (bare(TEXT), Packed::Bare),
        ] {
            assert_eq!(packed(STANDARD_NO_PAD.encode(&bytes).as_bytes()), Some(format));
            assert_eq!(Inflater::default().text(&bytes, format, 1000).1, TEXT);
        }
    }

    #[test]
    fn a_bomb_is_read_no_further_than_the_budget() {
        let bomb = vec![b'a'; 10 << 20];
        let mut inflater = Inflater::default();

        assert_eq!(inflater.text(&gzip(&bomb), Packed::Gzip, 1000).0, 1001);
        assert_eq!(inflater.text(&bare(&bomb), Packed::Bare, 1 << 30), (0, Vec::new()));
        assert_eq!(inflater.text(&bare(TEXT), Packed::Bare, 1000).1, TEXT);
    }

    #[test]
    fn a_stream_without_a_mark_counts_only_when_it_is_whole() {
        let bytes = bare(TEXT);
        let cut = &bytes[..bytes.len() - 4];

        assert!(Inflater::default().text(cut, Packed::Bare, 1000).1.is_empty());
        assert!(!Inflater::default().text(&gzip(TEXT)[..50], Packed::Gzip, 1000).1.is_empty());
    }
}
