//! Other ways to read a text: with invisible characters gone, or decoded once more.
//!
//! A view is one more segment of the scan buffer. It knows which bytes of which segment it was
//! read from, so that a match in it is a match at its origin.

use std::ops::Range;

use super::{
    Unscannable,
    body::{Body, Kind, small},
    runs::{self, Encoded},
    settings::Limits,
    unescape,
};

/// Encodings are peeled at most this many times.
const DEPTH: usize = 3;

/// The views of one body.
#[derive(Default)]
pub(super) struct Views {
    list: Vec<View>,
    decoded: usize,
    budget: usize,
}

struct View {
    /// The segment it was read from.
    source: u32,
    map: Map,
}

/// Where each byte of a view comes from, as offsets in its source segment.
enum Map {
    /// Byte by byte; one more entry than there are bytes.
    Exact(Vec<u32>),
    /// All of it from one run.
    Whole(Range<u32>),
}

impl Views {
    /// No views yet, and a budget that fits the body.
    pub(super) fn new(body: &Body, limits: &Limits) -> Views {
        let budget = limits.max_decoded_bytes.saturating_add(4 * body.text.len());
        Views { list: Vec::new(), decoded: 0, budget }
    }

    /// Scans `body` with `scan`, then its views, then theirs, until there are no more. Refuses
    /// when decoding goes over the budget.
    pub(super) fn scan_all(
        &mut self,
        body: &mut Body,
        mut scan: impl FnMut(&Body, usize),
    ) -> Result<(), Unscannable> {
        let mut first = 0;
        for depth in 0..=DEPTH {
            let end = body.segments.len();
            scan(body, first);
            if depth < DEPTH {
                self.extend(body, first)?;
            }
            first = end;
        }
        Ok(())
    }

    /// Bytes decoded so far.
    pub(super) fn decoded(&self) -> usize {
        self.decoded
    }

    /// The key, string or number a segment was read from in the end, and which of its bytes
    /// a range of the buffer stands for.
    pub(super) fn origin(&self, body: &Body, segment: u32, range: &Range<usize>) -> Option<Origin> {
        let mut index = segment;
        let mut home = *body.segment(index)?;
        let mut inside = range.start.checked_sub(home.start as usize)?
            ..range.end.checked_sub(home.start as usize)?;
        while let Kind::View(view) = home.kind {
            let view = self.list.get(view as usize)?;
            inside = match &view.map {
                Map::Exact(from) => {
                    *from.get(inside.start)? as usize..*from.get(inside.end)? as usize
                }
                Map::Whole(run) => run.start as usize..run.end as usize,
            };
            index = view.source;
            home = *body.segment(index)?;
        }
        Some(Origin { segment: index, inside })
    }

    /// Adds the views of the segments from `first` on.
    fn extend(&mut self, body: &mut Body, first: usize) -> Result<(), Unscannable> {
        let Some(start) = body.segments.get(first).map(|segment| segment.start as usize) else {
            return Ok(());
        };
        let range = start..body.text.len();
        for segment in escaped_segments(body, first, range.clone()) {
            self.add_unescaped(body, segment)?;
        }
        for (segment, run) in encoded_runs(body, first, range) {
            self.add_decoded(body, segment, &run)?;
        }
        Ok(())
    }

    fn add_unescaped(&mut self, body: &mut Body, segment: u32) -> Result<(), Unscannable> {
        let Some(home) = body.segment(segment).copied() else { return Ok(()) };
        for read in [unescape::plain, unescape::tags] {
            let Some(view) = read(body.slice(home.range())) else { continue };
            self.charge(view.text.len())?;
            self.append(body, segment, home.node, &view.text, Map::Exact(view.from));
        }
        Ok(())
    }

    fn add_decoded(
        &mut self,
        body: &mut Body,
        segment: u32,
        run: &Range<usize>,
    ) -> Result<(), Unscannable> {
        let Some(home) = body.segment(segment).copied() else { return Ok(()) };
        let inside = small(run.start - home.start as usize)..small(run.end - home.start as usize);
        let Encoded { work, texts } = runs::decode(body.slice(run.clone()));
        self.charge(work)?;
        for text in texts {
            self.append(body, segment, home.node, &text, Map::Whole(inside.clone()));
        }
        Ok(())
    }

    fn append(&mut self, body: &mut Body, source: u32, node: u32, text: &[u8], map: Map) {
        let view = small(self.list.len());
        self.list.push(View { source, map });
        body.append(text, node, Kind::View(view));
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Unscannable> {
        self.decoded += bytes;
        if self.decoded > self.budget {
            return Err(Unscannable::TooMuchDecoding { limit: self.budget });
        }
        Ok(())
    }
}

/// Where a match comes from in the end.
pub(super) struct Origin {
    /// A segment that is no view.
    pub(super) segment: u32,
    /// Bytes of that segment.
    pub(super) inside: Range<usize>,
}

/// The segments that hold a character an unescape reader could act on.
fn escaped_segments(body: &Body, first: usize, range: Range<usize>) -> Vec<u32> {
    let text = body.slice(range.clone());
    let mut found: Vec<u32> = Vec::new();
    let mut segments = (small(first)..).zip(body.segments.iter().skip(first)).peekable();
    for at in memchr::memchr3_iter(b'%', b'&', b'\\', text) {
        let offset = range.start + at;
        while segments.next_if(|(_, segment)| segment.end as usize <= offset).is_some() {}
        found.extend(
            segments
                .next_if(|(_, segment)| segment.start as usize <= offset)
                .map(|(index, _)| index),
        );
    }
    if !text.is_ascii() {
        let all = (small(first)..).zip(body.segments.iter().skip(first));
        let foreign = all.filter(|(_, segment)| !body.slice(segment.range()).is_ascii());
        found.extend(foreign.map(|(index, _)| index));
        found.sort_unstable();
        found.dedup();
    }
    found
}

/// Long runs of letters and digits that may be base64 or hex, each with its segment.
fn encoded_runs(body: &Body, first: usize, range: Range<usize>) -> Vec<(u32, Range<usize>)> {
    let mut found = Vec::new();
    let mut segments = (small(first)..).zip(body.segments.iter().skip(first)).peekable();
    runs::each(&body.text, range, |run| {
        while segments.next_if(|(_, segment)| segment.end as usize <= run.start).is_some() {}
        if let Some((index, _)) = segments.peek() {
            found.push((*index, run));
        }
    });
    found
}
