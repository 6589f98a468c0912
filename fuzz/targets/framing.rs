//! The guard before the HTTP parser: its verdict does not depend on how the bytes arrive, and of the requests that it
//! lets through, parsers that accept more find the same ends.

#![no_main]

#[path = "../../crates/gateway/src/serve/framing.rs"]
mod framing;
mod words;

use framing::Framing;
use httparse::{EMPTY_HEADER, Request, Status};
use libfuzzer_sys::fuzz_target;
use memchr::memchr;

const WORDS: [&str; 11] = [
    "GET / HTTP/1.1\r\n",
    "POST /v1 HTTP/1.1\r\nhost: x\r\n",
    "Transfer-Encoding: chunked\r\n",
    "transfer-encoding:",
    "Content-Length: 5\r\n",
    "content-length: ",
    "\r\n\r\n",
    "5\r\nhello\r\n",
    "0\r\n\r\n",
    "chunked",
    "\r\nx: y",
];

/// Parsers that stand for those behind and before the gateway.
#[derive(Clone, Copy)]
enum Parser {
    /// Takes the last of several fields, and the last of several codings.
    Last,
    /// Takes the first of several fields, no coding but a lone `chunked`, and numbers as C does.
    First,
}

impl Parser {
    /// Length of the request at the beginning, if it is whole.
    fn request(self, bytes: &[u8]) -> Option<usize> {
        let mut fields = [EMPTY_HEADER; 64];
        let mut request = Request::new(&mut fields);
        let Ok(Status::Complete(head)) = request.parse(bytes) else { return None };
        let field = |name: &str| {
            let mut all = request.headers.iter().filter(|it| it.name.eq_ignore_ascii_case(name));
            let field = match self {
                Self::Last => all.next_back(),
                Self::First => all.next(),
            };
            field.map(|field| field.value.trim_ascii())
        };
        let codings = field("transfer-encoding").unwrap_or_default();
        let coding = match self {
            Self::Last => codings.rsplit(|byte| *byte == b',').next()?.trim_ascii(),
            Self::First => codings,
        };
        if coding.eq_ignore_ascii_case(b"chunked") {
            return self.chunks(bytes, head);
        }
        let length = field("content-length").map_or(Some(0), |text| match self {
            Self::Last => str::from_utf8(text).ok()?.parse().ok(),
            Self::First => number(text, if text.starts_with(b"0") { 8 } else { 10 }),
        });
        head.checked_add(length?).filter(|end| *end <= bytes.len())
    }

    /// End of a body in chunks.
    fn chunks(self, bytes: &[u8], mut at: usize) -> Option<usize> {
        loop {
            let rest = bytes.get(at..)?;
            let size = match self {
                Self::Last => match httparse::parse_chunk_size(rest) {
                    Ok(Status::Complete((_, size))) => usize::try_from(size).ok()?,
                    Ok(Status::Partial) | Err(_) => return None,
                },
                Self::First => number(rest, 16)?,
            };
            at += memchr(b'\n', rest)? + 1;
            while size == 0 {
                let end = at + memchr(b'\n', bytes.get(at..)?)? + 1;
                if bytes[at..end].trim_ascii().is_empty() {
                    return Some(end);
                }
                at = end;
            }
            at = at.checked_add(size)?.checked_add(2)?;
        }
    }
}

/// The number in the digits that a text begins with.
fn number(text: &[u8], radix: u32) -> Option<usize> {
    let digits = text.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
    usize::from_str_radix(str::from_utf8(&text[..digits]).ok()?, radix).ok()
}

fuzz_target!(|input: &[u8]| {
    let Some((step, input)) = input.split_first() else { return };
    let bytes = words::expanded(input, &WORDS);
    let whole = Framing::new().read(&bytes);
    let mut framing = Framing::new();
    let mut pieces = bytes.chunks(usize::from(*step).max(1));
    let in_pieces = pieces.try_for_each(|piece| framing.read(piece));
    assert_eq!(whole.map_err(|it| it.in_head), in_pieces.map_err(|it| it.in_head));

    let passed = whole.map_or_else(|it| &bytes[..it.after], |()| &bytes[..]);
    for parser in [Parser::Last, Parser::First] {
        let mut at = 0;
        while let Some(length) = passed.get(at..).and_then(|rest| parser.request(rest)) {
            at += length;
            let mut framing = Framing::new();
            framing.read(&passed[..at]).expect("what passed whole passes in part");
            // Only where a head begins, or goes on, a line feed alone breaks it.
            assert!(framing.read(b"\n").is_err_and(|it| it.in_head), "another end at {at}");
        }
    }
});
