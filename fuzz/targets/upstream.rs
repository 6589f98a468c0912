//! The framing of upstream servers: server-sent events, lines of a child process, and the id in a message that is too
//! large. Each is read the same however its bytes arrive, and as a simpler reading of the whole says.

#![no_main]

#[path = "../../crates/upstream/src/stdio/line.rs"]
mod line;
#[path = "../../crates/upstream/src/mcp/scan.rs"]
mod scan;
#[path = "../../crates/upstream/src/mcp/sse.rs"]
#[expect(dead_code, reason = "connections use more of it")]
mod sse;
mod words;

mod mcp {
    pub(crate) use crate::scan;
}

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use libfuzzer_sys::fuzz_target;
use line::Line;
use portcullis_json::{Bounds, Document, JsonValue as _};
use scan::IdScanner;
use sse::Parser;
use tokio::io::BufReader;

const WORDS: [&str; 10] = [
    "data: ",
    "\r\n\r\n",
    "\n\n",
    "id: 7\n",
    "retry: 20\r",
    "\u{feff}",
    "{\"id\":42,",
    "\"id\":",
    "{\"jsonrpc\":\"2.0\",\"result\":{",
    "\\\"",
];
/// Longest event and line.
const LONGEST: usize = 64;

/// Data of the events of a stream, as far as one is not too large, and the last id.
fn events(text: &[u8], step: usize) -> (Vec<Vec<u8>>, Option<String>) {
    let mut parser = Parser::new(LONGEST);
    let mut found = Vec::new();
    for piece in text.chunks(step) {
        let pushed = parser.push(piece);
        found.extend(std::iter::from_fn(|| parser.next()).map(|event| event.data));
        if pushed.is_err() {
            return (found, None);
        }
    }
    (found, parser.last_id().map(str::to_owned))
}

/// The events of a text whose lines all end with a line feed.
fn simply(text: &str) -> Vec<Vec<u8>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut blocks: Vec<&str> = text.split("\n\n").collect();
    blocks.pop();
    let data = |block: &str| {
        let lines = block.lines().filter_map(|line| match line.strip_prefix("data:") {
            Some(value) => Some(value.strip_prefix(' ').unwrap_or(value)),
            None => (line == "data").then_some(""),
        });
        lines.map(str::to_owned).reduce(|data, line| format!("{data}\n{line}"))
    };
    blocks.into_iter().filter_map(data).map(String::into_bytes).collect()
}

/// The lines of a child's output, to its end or to the first error.
fn lines(text: &[u8], step: usize) -> Vec<Line> {
    let mut input = BufReader::with_capacity(step, text);
    let mut found = Vec::new();
    loop {
        let Poll::Ready(next) =
            pin!(line::next(&mut input, LONGEST)).poll(&mut Context::from_waker(Waker::noop()))
        else {
            panic!("bytes in memory are always ready")
        };
        match next {
            Ok(Some(line)) => found.push(line),
            Ok(None) | Err(_) => return found,
        }
    }
}

/// The number that an object has as its id.
fn id(document: &Document) -> Option<u64> {
    document.root().get("id").filter(|_| document.root().is_object())?.number()?.parse().ok()
}

fuzz_target!(|input: &[u8]| {
    let Some((step, input)) = input.split_first() else { return };
    let step = usize::from(*step).max(1);
    let text = words::expanded(input, &WORDS);

    let (found, last_id) = events(&text, text.len().max(1));
    assert_eq!(events(&text, step), (found.clone(), last_id));
    assert!(found.iter().all(|data| data.len() <= LONGEST + 16));
    if let Ok(text) = std::str::from_utf8(&text)
        && text.len() <= LONGEST
        && !text.contains('\r')
    {
        assert_eq!(found, simply(text), "{text:?}");
    }

    let whole = lines(&text, text.len().max(1));
    assert_eq!(lines(&text, step), whole);
    for (line, wanted) in whole.iter().zip(text.split(|byte| *byte == b'\n')) {
        match line {
            Line::Whole(line) => assert!(line == wanted && line.len() <= LONGEST),
            Line::TooLong(id) => assert!(wanted.len() > LONGEST && *id == IdScanner::find(wanted)),
        }
    }

    if let Ok(document) = Document::parse(&text, Bounds::UPSTREAM) {
        let scanned = IdScanner::find(&text);
        assert!(scanned == id(&document) || (scanned.is_none() && text.contains(&b'\\')));
    }
});
