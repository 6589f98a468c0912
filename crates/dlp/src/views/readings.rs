//! Readings of a text: without its escapes, disguises and splices.
//!
//! Each reader reads a text alone. Where several find something, they also read it one after the other, and all
//! of them read only that reading again. A text that is written in several ways at once, as HTML in a mail is,
//! thus has a reading for each of them and one more, however deep views go.

use std::ops::Range;

use crate::{
    body::{buffer::Body, segment::small},
    views::{
        escapes, splices,
        unescape::{self, Unescaped},
    },
};

/// Readers of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextReader {
    Tags,
    Terminal,
    Quoted,
    Doubled,
    Plain,
    Spliced,
}

/// All readers, in the order in which one reads after another.
const READERS: [TextReader; 6] = [
    TextReader::Tags,
    TextReader::Terminal,
    TextReader::Quoted,
    TextReader::Doubled,
    TextReader::Plain,
    TextReader::Spliced,
];

impl TextReader {
    fn read(self, text: &[u8]) -> Option<Unescaped> {
        match self {
            TextReader::Tags => unescape::tags(text),
            TextReader::Terminal => unescape::terminal(text),
            TextReader::Quoted => unescape::quoted(text),
            TextReader::Doubled => unescape::doubled(text),
            TextReader::Plain => unescape::plain(text),
            TextReader::Spliced => splices::whole(text),
        }
    }

    /// The parts of a text in which it finds something.
    fn read_parts(self, text: &[u8]) -> Vec<Unescaped> {
        match self {
            TextReader::Tags
            | TextReader::Terminal
            | TextReader::Quoted
            | TextReader::Doubled
            | TextReader::Plain => self.read(text).into_iter().collect(),
            TextReader::Spliced => splices::parts(text),
        }
    }
}

/// A text read another way.
pub(super) struct Reading {
    pub(super) read: Unescaped,
    /// The reader that alone reads it again; `None` if all do.
    pub(super) next: Option<TextReader>,
}

/// The readings of a text by one reader, or by all of them.
pub(super) fn of(text: &[u8], by: Option<TextReader>) -> Vec<Reading> {
    let readers = if by.is_some() { by.as_slice() } else { &READERS };
    let by_one = |reader: &TextReader| {
        let next = Some(*reader);
        reader.read_parts(text).into_iter().map(move |read| Reading { read, next })
    };
    let mut readings: Vec<Reading> = readers.iter().flat_map(by_one).collect();
    let all = match readings.as_slice() {
        [first, .., last] if first.next != last.next => read_on(first),
        _ => None,
    };
    if all.is_none() {
        for reading in &mut readings {
            reading.next = None;
        }
    }
    readings.extend(all.map(|read| Reading { read, next: None }));
    readings
}

/// The reading of all readers behind the first, one after the other; `None` if they find nothing in the first
/// reading.
fn read_on(first: &Reading) -> Option<Unescaped> {
    let mut last: Option<Unescaped> = None;
    for reader in READERS.iter().skip_while(|reader| first.next != Some(**reader)).skip(1) {
        let before = last.as_ref().unwrap_or(&first.read);
        if let Some(read) = reader.read(&before.text) {
            last = Some(read.behind(before));
        }
    }
    last
}

/// The segments from `first` to `end`, at a range of the buffer, in which a reader may find something.
pub(super) fn segments(body: &Body, first: usize, end: usize, range: &Range<usize>) -> Vec<u32> {
    let text = body.slice(range.clone());
    let escapes = memchr::memchr3_iter(b'%', b'&', b'\\', text);
    let equals = memchr::memchr_iter(b'=', text).filter(|at| escapes::quoted(text, *at).is_some());
    let splices = splices::places(text).filter(|at| splices::begins(text, *at));
    let mut found = Vec::new();
    add_segments_at(body, first, escapes.map(|at| range.start + at), &mut found);
    add_segments_at(body, first, equals.map(|at| range.start + at), &mut found);
    add_segments_at(body, first, splices.map(|at| range.start + at), &mut found);
    if body.has_odd(end - first) {
        let here = (small(first)..).zip(body.segments.get(first..end).unwrap_or_default());
        let foreign = here.filter(|(_, segment)| {
            let text = body.slice(segment.range());
            !text.is_ascii() || unescape::controls(text) > 0
        });
        found.extend(foreign.map(|(index, _)| index));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Adds the segments from `first` on that some offsets of the buffer stand in, in order.
fn add_segments_at(
    body: &Body,
    first: usize,
    offsets: impl Iterator<Item = usize>,
    found: &mut Vec<u32>,
) {
    let mut segments = (small(first)..).zip(body.segments.iter().skip(first)).peekable();
    for offset in offsets {
        while segments.next_if(|(_, segment)| segment.end as usize <= offset).is_some() {}
        let here = segments.next_if(|(_, segment)| segment.start as usize <= offset);
        found.extend(here.map(|(index, _)| index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let readings = of(text.as_bytes(), None).into_iter();
        readings.map(|reading| String::from_utf8(reading.read.text).unwrap()).collect()
    }

    #[test]
    fn several_readers_read_one_after_the_other() {
        let text = "=3D a%26b x<b>y</b>z";

        let expected = ["= a%26b x<b>y</b>z", "=3D a&b x<b>y</b>z", "=3D a%26b xyz", "= a&b xyz"];
        assert_eq!(texts(text), expected);
        let all = of(text.as_bytes(), None).pop().unwrap();
        assert_eq!(all.read.from, [0, 3, 4, 5, 8, 9, 10, 14, 19, 20]);
        assert!(all.next.is_none());
    }

    #[test]
    fn one_reader_has_one_reading() {
        let readings = of(b"a%2540b", None);

        assert!(readings.iter().all(|reading| reading.next.is_none()));
        assert_eq!(texts("a%2540b"), ["a%40b"]);
        assert!(of(b"a&lt;b", Some(TextReader::Quoted)).is_empty());
        assert!(texts("nothing to read").is_empty());
    }
}
