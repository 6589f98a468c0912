//! The framing of HTTP/1 (RFC 9112): where heads and bodies of requests end.
//!
//! The parser behind it accepts more than the RFC: bare line feeds, lists of transfer codings that end
//! with `chunked`, and several lengths of which it takes one. A proxy that reads such bytes differently
//! sees other requests than the gateway. Here every byte is looked at once, as it arrives, so that only
//! requests reach the parser that can be read in one way.

use memchr::memchr2;

/// Bytes that are kept of a line. The lines that are read, which have to be exact, are shorter.
const KEPT: usize = 64;
/// The largest length of a body that the parser behind takes for one.
const LONGEST_BODY: u64 = u64::MAX - 2;

/// A place in the stream at which no parser may read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Violation {
    /// Number of the bytes that were given that may be parsed.
    pub(super) after: usize,
    /// True for a place in a head, and not in a body.
    pub(super) in_head: bool,
}

/// The place in the stream of requests up to which bytes arrived.
#[derive(Debug)]
pub(super) struct Framing {
    place: Place,
    line: Line,
    /// The length that the head at hand, or the last one, gives its body.
    length: Option<Length>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before a request line, where empty lines may stand.
    Start,
    /// In the fields of a head.
    Fields,
    /// In a body of known length, of which this much is to come.
    Body(u64),
    /// In the line with the size of a chunk.
    ChunkSize,
    /// In a chunk, of which this much is to come.
    Chunk(u64),
    /// At the end of the line behind a chunk.
    ChunkEnd,
    /// In the fields behind the last chunk.
    Trailers,
}

/// The beginning of a line.
#[derive(Debug)]
struct Line {
    kept: [u8; KEPT],
    length: usize,
    /// Its last byte was a carriage return, behind which only a line feed may follow.
    returned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Known(u64),
    Chunked,
}

/// The line breaks the rules.
struct BrokenLine;

impl Framing {
    pub(super) fn new() -> Self {
        let line = Line { kept: [0; KEPT], length: 0, returned: false };
        Self { place: Place::Start, line, length: None }
    }

    /// Reads on. After a violation nothing more may be read.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let before = rest;
            if self.advance(&mut rest).is_err() {
                let in_head = matches!(self.place, Place::Start | Place::Fields);
                return Err(Violation { after: bytes.len() - before.len(), in_head });
            }
        }
        Ok(())
    }

    /// Takes a body, a line, or the part of them that there is.
    fn advance(&mut self, rest: &mut &[u8]) -> Result<(), BrokenLine> {
        match self.place {
            Place::Body(left) => {
                let left = skip(rest, left);
                self.place = if left == 0 { Place::Start } else { Place::Body(left) };
                Ok(())
            }
            Place::Chunk(left) => {
                let left = skip(rest, left);
                self.place = if left == 0 { Place::ChunkEnd } else { Place::Chunk(left) };
                Ok(())
            }
            Place::Start | Place::Fields | Place::ChunkSize | Place::ChunkEnd | Place::Trailers => {
                if self.line.take(rest)? {
                    self.place = self.after_line()?;
                    (self.line.length, self.line.returned) = (0, false);
                }
                Ok(())
            }
        }
    }

    /// The place behind the line that just ended.
    fn after_line(&mut self) -> Result<Place, BrokenLine> {
        let line = self.line.kept.get(..self.line.length).unwrap_or_default();
        match self.place {
            Place::Start | Place::Trailers if line.is_empty() => Ok(Place::Start),
            Place::Start => {
                self.length = None;
                Ok(Place::Fields)
            }
            Place::Fields if line.is_empty() => Ok(match self.length {
                None | Some(Length::Known(0)) => Place::Start,
                Some(Length::Known(length)) => Place::Body(length),
                Some(Length::Chunked) => Place::ChunkSize,
            }),
            Place::Fields => {
                if let Some(length) = body_length(line)?
                    && self.length.replace(length).is_some()
                {
                    return Err(BrokenLine);
                }
                Ok(Place::Fields)
            }
            Place::ChunkSize => match chunk_size(line).ok_or(BrokenLine)? {
                0 => Ok(Place::Trailers),
                size => Ok(Place::Chunk(size)),
            },
            Place::ChunkEnd if line.is_empty() => Ok(Place::ChunkSize),
            Place::Trailers if !is_folded(line) => Ok(Place::Trailers),
            Place::ChunkEnd | Place::Trailers | Place::Body(_) | Place::Chunk(_) => Err(BrokenLine),
        }
    }
}

impl Line {
    /// Takes the rest of the line, or what there is of it. Returns true at its end.
    fn take(&mut self, rest: &mut &[u8]) -> Result<bool, BrokenLine> {
        if self.returned {
            *rest = rest.strip_prefix(b"\n").ok_or(BrokenLine)?;
            return Ok(true);
        }
        let end = memchr2(b'\r', b'\n', rest);
        let (part, after) = rest.split_at_checked(end.unwrap_or(rest.len())).ok_or(BrokenLine)?;
        let room = self.kept.get_mut(self.length..).unwrap_or_default();
        for (place, byte) in room.iter_mut().zip(part) {
            *place = *byte;
        }
        self.length = KEPT.min(self.length + part.len());
        *rest = after;
        if end.is_some() {
            *rest = after.strip_prefix(b"\r").ok_or(BrokenLine)?;
            self.returned = true;
        }
        Ok(false)
    }
}

/// The length that a field gives the body, if it is one that does: said exactly.
fn body_length(line: &[u8]) -> Result<Option<Length>, BrokenLine> {
    if is_folded(line) {
        return Err(BrokenLine);
    }
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
    let value = line.get(name.len() + 1..).unwrap_or_default();
    let value = value.strip_prefix(b" ").unwrap_or(value);
    let length = match name.trim_ascii_end() {
        it if it.eq_ignore_ascii_case(b"transfer-encoding") => {
            value.eq_ignore_ascii_case(b"chunked").then_some(Length::Chunked)
        }
        it if it.eq_ignore_ascii_case(b"content-length") => {
            decimal(value).filter(|length| *length <= LONGEST_BODY).map(Length::Known)
        }
        _ => return Ok(None),
    };
    length.map(Some).ok_or(BrokenLine)
}

/// A line that continues the one before it, which RFC 9112 §5.2 took away.
fn is_folded(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

/// Digits that every reader takes for the same number: without leading zeros, which some read as octal.
fn decimal(text: &[u8]) -> Option<u64> {
    let plain = text.iter().all(u8::is_ascii_digit) && (text == b"0" || !text.starts_with(b"0"));
    std::str::from_utf8(text).ok().filter(|_| plain)?.parse().ok()
}

/// The size before `;` and what extends the chunk.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|byte| *byte == b';').next()?;
    let plain = size.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(size).ok().filter(|_| plain && size.len() <= 16)?;
    u64::from_str_radix(text, 16).ok()
}

/// Goes on by up to `count` bytes; gives how many are left to go.
fn skip(rest: &mut &[u8], count: u64) -> u64 {
    let here = usize::try_from(count).unwrap_or(usize::MAX).min(rest.len());
    *rest = rest.get(here..).unwrap_or_default();
    count - here as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The violation, which is the same however the bytes come.
    fn read(text: &str) -> Option<bool> {
        let bytes = text.as_bytes();
        let whole = Framing::new().read(bytes).err().map(|it| it.in_head);
        for split in 0..bytes.len() {
            let (first, second) = bytes.split_at(split);
            let mut framing = Framing::new();
            let parts = framing.read(first).and_then(|()| framing.read(second));
            assert_eq!(parts.err().map(|it| it.in_head), whole, "{text:?} split at {split}");
        }
        let mut framing = Framing::new();
        let bytewise = bytes.chunks(1).try_for_each(|byte| framing.read(byte));
        assert_eq!(bytewise.err().map(|it| it.in_head), whole, "{text:?}");
        whole
    }

    #[test]
    fn requests_that_are_framed_by_the_rules_pass_one_after_the_other() {
        let long = format!("GET /{} HTTP/1.1\r\nx: {0}\r\n\r\n", "x".repeat(500));
        let good = [
            "GET / HTTP/1.1\r\n\r\n",
            "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
            &long,
            "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length:5\r\n\r\n\n\r\0 \n",
            "POST / HTTP/1.1\r\nTRANSFER-encoding: Chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\n\n\r\0 \n\r\n0A;x=\"y\"\r\n0123456789\r\n000\r\nx: y\r\n\r\n",
        ];
        let mut all = String::new();
        for text in good {
            assert_eq!(read(text), None, "{text:?}");
            all.push_str(text);
        }

        assert_eq!(read(&all), None);
        assert_eq!(read(&format!("{all}\n")), Some(true), "it is known where the last one ends");
    }

    #[test]
    fn heads_that_can_be_read_in_two_ways_are_violations() {
        for fields in [
            "Transfer-Encoding: identity",
            "Transfer-Encoding: xchunked",
            "Transfer-Encoding: chunked ",
            "Transfer-Encoding:  chunked",
            "Transfer-Encoding:\tchunked",
            "Transfer-Encoding: \u{b}chunked",
            "Transfer-Encoding: chunked;q=1",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: chunked, chunked",
            "Transfer-Encoding: chunked, identity",
            "Transfer-Encoding:",
            "Transfer-Encoding",
            "Transfer-Encoding : chunked\r\nContent-Length: 3",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nContent-Length: 3",
            "Content-Length: 3\r\nTransfer-Encoding: chunked",
            "Content-Length: 3\r\nContent-Length: 3",
            "Content-Length: 0\r\ncontent-length: 3",
            "Content-Length: 3, 3",
            "Content-Length: +3",
            "Content-Length: -3",
            "Content-Length: 03",
            "Content-Length: 3 ",
            "Content-Length:  3",
            "Content-Length: 0x3",
            "Content-Length: ٣",
            "Content-Length:",
            "Content-Length: 18446744073709551614",
            "Content-Length: 18446744073709551615",
            "Content-Length: 18446744073709551616",
            "Content-Length: 3\nX: y",
            "X: y\nContent-Length: 3",
            "X: y\rContent-Length: 3",
            "X: y\r\r",
            "X: y\r\n z",
            "X: y\r\n\tContent-Length: 3",
        ] {
            let text = format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n");
            assert_eq!(read(&text), Some(true), "{text:?}");
        }
        for text in ["GET / HTTP/1.1\nHost: x\r\n\r\n", "\nGET / HTTP/1.1\r\n\r\n", "\rG"] {
            assert_eq!(read(text), Some(true), "{text:?}");
        }
        let padded = format!("POST / HTTP/1.1\r\nContent-Length: {}3\r\n\r\n", " ".repeat(100));
        assert_eq!(read(&padded), Some(true));
    }

    #[test]
    fn chunks_that_can_be_read_in_two_ways_are_violations() {
        for body in [
            "5\nhello\r\n0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "5\r\nhelloX\r\n0\r\n\r\n",
            "5 \r\nhello\r\n0\r\n\r\n",
            "5 ;x\r\nhello\r\n0\r\n\r\n",
            "+5\r\nhello\r\n0\r\n\r\n",
            "0x5\r\nhello\r\n0\r\n\r\n",
            "5;a\nb\r\nhello\r\n0\r\n\r\n",
            "5;a\rb\r\nhello\r\n0\r\n\r\n",
            "\r\n5\r\nhello\r\n0\r\n\r\n",
            "00000000000000005\r\nhello\r\n0\r\n\r\n",
            "10000000000000005\r\nhello\r\n0\r\n\r\n",
            "0\r\nx: y\n\r\n",
            "0\r\nx: y\r\n z\r\n\r\n",
            "0\n\n",
        ] {
            let text = format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
            assert_eq!(read(&text), Some(false), "{text:?}");
        }
    }

    #[test]
    fn what_stands_before_a_violation_is_told() {
        let good = "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n";
        let bad = format!("{good}Content-Length: 1, 1\r\n\r\nG");

        let violation = Framing::new().read(bad.as_bytes()).unwrap_err();

        assert!(bad.as_bytes()[..violation.after].ends_with(b"1, 1\r"));
    }
}
