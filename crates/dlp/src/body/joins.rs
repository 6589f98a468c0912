//! Texts that stand side by side, read as one: a secret cut in two is still a secret.

use crate::body::{
    buffer::Body,
    neighbours::Neighbours,
    segment::{Laid, SegmentKind, small},
};

/// A longer text joins its neighbours only with its first and last half of this.
const LONGEST: usize = 1024;

/// Part of a text in a join.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JoinPiece {
    /// Its start in the join.
    pub(crate) at: usize,
    /// The segment it is taken from.
    pub(crate) segment: u32,
    /// Its start in that segment.
    pub(crate) offset: usize,
}

/// Neighbours read as one.
#[derive(Default)]
pub(crate) struct Join {
    pub(crate) text: Vec<u8>,
    pub(crate) pieces: Vec<JoinPiece>,
}

/// Joins in the making, and memory of those that are done with.
#[derive(Default)]
pub(crate) struct Joiner {
    /// The last one first.
    made: Vec<Join>,
    texts: Vec<Vec<u8>>,
    pieces: Vec<Vec<JoinPiece>>,
}

/// Spare joins that are kept.
const SPARE: usize = 64;

impl Joiner {
    /// Makes the joins of some neighbours. Each has at least two pieces. Tags such as `bug` and `needs-triage`
    /// are no pieces of anything.
    pub(crate) fn join(&mut self, body: &Body, neighbours: &[u32]) {
        let is_tag = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_');
        let texts = neighbours.iter().filter_map(|index| body.segment(*index));
        if texts.map(|segment| body.slice(segment.range())).all(|text| text.iter().all(is_tag)) {
            return;
        }
        self.open();
        for index in neighbours {
            let Some(segment) = body.segment(*index) else { continue };
            let text = body.slice(segment.range());
            if text.len() <= LONGEST {
                self.add(*index, 0, text);
            } else {
                let tail = text.len() - LONGEST / 2;
                self.add(*index, 0, text.get(..LONGEST / 2).unwrap_or_default());
                self.open();
                self.add(*index, tail, text.get(tail..).unwrap_or_default());
            }
        }
        self.close();
        self.made.reverse();
    }

    /// Takes the next of the joins.
    pub(crate) fn take(&mut self) -> Option<Join> {
        self.made.pop()
    }

    /// Keeps the memory of a text for another join.
    pub(crate) fn reuse_text(&mut self, mut text: Vec<u8>) {
        if self.texts.len() < SPARE {
            text.clear();
            self.texts.push(text);
        }
    }

    /// Keeps the memory of pieces for another join.
    pub(crate) fn reuse_pieces(&mut self, mut pieces: Vec<JoinPiece>) {
        if self.pieces.len() < SPARE {
            pieces.clear();
            self.pieces.push(pieces);
        }
    }

    /// Ends the last join and begins another one.
    fn open(&mut self) {
        self.close();
        let text = self.texts.pop().unwrap_or_default();
        self.made.push(Join { text, pieces: self.pieces.pop().unwrap_or_default() });
    }

    /// Forgets the last join if it has only one piece.
    fn close(&mut self) {
        if let Some(Join { text, pieces }) = self.made.pop_if(|join| join.pieces.len() < 2) {
            self.reuse_text(text);
            self.reuse_pieces(pieces);
        }
    }

    fn add(&mut self, segment: u32, offset: usize, text: &[u8]) {
        if let Some(join) = self.made.last_mut() {
            join.pieces.push(JoinPiece { at: join.text.len(), segment, offset });
            join.text.extend_from_slice(text);
        }
    }
}

/// The segment that an array's element brings into a join: the element's own if it is a string,
/// that of its `text` member if it is an object.
pub(super) fn joining(body: &Body, laid: Laid, first: usize) -> Option<u32> {
    match laid {
        Laid::Text => Some(small(first)),
        Laid::Object { has_text: true } => {
            let own = body.segments.get(first..)?;
            let of_text = own.array_windows().position(|[key, value]| {
                key.kind == SegmentKind::Key
                    && value.kind == SegmentKind::Text
                    && key.node == value.node
                    && body.slice(key.range()) == b"text"
            })?;
            Some(small(first + of_text + 1))
        }
        Laid::Nothing | Laid::Number | Laid::Array | Laid::Object { has_text: false } => None,
    }
}

/// Members of one object that are texts and numbered: `part1`, `part2`.
#[derive(Default)]
pub(super) struct Numbered<'a>(Vec<(&'a str, u32, u32)>);

impl<'a> Numbered<'a> {
    /// Looks at a member, whose value is the segment `segment`.
    #[inline]
    pub(super) fn look(&mut self, key: &'a str, laid: Laid, segment: usize) {
        let is_numbered = || key.as_bytes().last().is_some_and(u8::is_ascii_digit);
        if laid == Laid::Text && is_numbered() {
            self.add(key, segment);
        }
    }

    #[inline(never)]
    fn add(&mut self, key: &'a str, segment: usize) {
        let stem = key.trim_end_matches(|last: char| last.is_ascii_digit());
        let number = key.strip_prefix(stem).and_then(|number| number.parse().ok());
        self.0.extend(number.map(|number| (stem, number, small(segment))));
    }

    /// Adds the members that are named alike and numbered one after the other to the neighbours in the
    /// object `node`.
    pub(super) fn note(mut self, neighbours: &mut Neighbours, node: u32) {
        if self.0.len() < 2 {
            return;
        }
        self.0.sort_unstable();
        let goes_on = |(stem, number, _): &(&str, u32, u32), next: &(&str, u32, u32)| {
            (*stem, number.checked_add(1)) == (next.0, Some(next.1))
        };
        for row in self.0.chunk_by(goes_on) {
            let begun = neighbours.begin();
            for (_, _, segment) in row {
                neighbours.add(*segment);
            }
            neighbours.end(node, begun);
        }
    }
}
