//! Other ways to read a text: with invisible characters gone, or decoded once more.
//!
//! A view is one more segment of the scan buffer. It knows which bytes of which segment it was
//! read from, so that a match in it is a match at its origin.

use std::{collections::BTreeSet, ops::Range};

use crate::{
    body::{
        buffer::Body,
        joins::{Join, JoinPiece, Joiner},
        pairs,
        segment::{Segment, SegmentKind, small},
    },
    limits::{Limits, Unscannable},
    text::marks::Set,
    views::{
        cut,
        encoded::{self, Decoded, Encoded, Run},
        frames::{Frame, Framed},
        inflate::Inflater,
        lines,
        origins::{Origin, Origins, SourcePart, parts_of},
        readable::{self, SHORTEST_TEXT},
        readings::{self, Reading, TextReader},
        recased::{self, Recased},
        rows::{self, Row},
        unescape::Unescaped,
    },
};

/// Encodings are peeled at most this many times.
const DEPTH: usize = 3;

/// Bytes of readings for each byte of a body. Readings of a whole text may take as much as what is decoded; beyond that
/// texts are read where they are written otherwise, with so many bytes on either side.
const READINGS: usize = 8;
const NEAR: usize = 256;

/// The views of one body.
#[derive(Default)]
pub(crate) struct Views {
    list: Vec<View>,
    /// The long runs of the segments that are scanned now.
    runs: Vec<Run>,
    /// Marks of vendors in another case, in those.
    recased: Vec<Recased>,
    joiner: Joiner,
    inflater: Inflater,
    decoded: usize,
    budget: usize,
    limits: Limits,
    /// Bytes of readings so far, and the most of them.
    read: usize,
    readings: usize,
}

/// Origin of the bytes of a view.
enum View {
    /// From a segment's bytes, one by one; one more entry than there are bytes. One reader alone may read it
    /// again.
    Exact { source: u32, from: Vec<u32>, next: Option<TextReader> },
    /// From one run of a segment, as a whole, behind `before` bytes that stand before the run and before
    /// those behind it, from `behind` on.
    Whole { source: u32, run: Range<usize>, before: usize, behind: usize },
    /// From several segments, one after the other.
    Joined { pieces: Vec<JoinPiece> },
    /// From codes in several segments, one for each byte.
    Coded { codes: Vec<SourcePart> },
}

impl View {
    /// The reader that alone reads it again.
    fn next_reader(&self) -> Option<TextReader> {
        match self {
            View::Exact { next, .. } => *next,
            View::Whole { .. } | View::Joined { .. } | View::Coded { .. } => None,
        }
    }
}

impl Views {
    /// No views yet, and a budget that fits the body.
    pub(crate) fn begin(&mut self, body: &Body, limits: &Limits) {
        self.clear();
        let budget =
            |share: usize| limits.max_decoded_bytes.saturating_add(share * body.text.len());
        (self.budget, self.readings) = (budget(4), budget(READINGS));
        self.limits = *limits;
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        for view in self.list.drain(..) {
            if let View::Joined { pieces } = view {
                self.joiner.reuse_pieces(pieces);
            }
        }
        self.runs.clear();
        self.recased.clear();
        (self.decoded, self.read) = (0, 0);
    }

    /// Scans `body` with `scan`, then its views, then theirs, until there are no more. Refuses
    /// when decoding goes over the budget. `rare` is what the scan wants marked, and placeholders of the
    /// `known` detectors are blanked for it.
    pub(crate) fn scan_all(
        &mut self,
        body: &mut Body,
        rare: &Set,
        known: &BTreeSet<String>,
        mut scan: impl FnMut(&Body, usize, &[Run], &mut Vec<Recased>),
    ) -> Result<(), Unscannable> {
        let mut first = 0;
        for depth in 0..=DEPTH {
            let end = body.segments.len();
            if first == end {
                break;
            }
            body.blank_placeholders(first, known);
            body.mark(first, rare);
            find_runs(body, first, &mut self.runs);
            self.recased.clear();
            scan(body, first, &self.runs, &mut self.recased);
            if depth == 0 {
                self.add_joins(body)?;
            }
            if depth < DEPTH {
                self.extend(body, first, end)?;
            }
            first = end;
        }
        Ok(())
    }

    /// Bytes decoded and read otherwise so far.
    pub(crate) fn decoded(&self) -> usize {
        self.decoded + self.read
    }

    /// The keys, strings or numbers that a range of the buffer was read from in the end.
    pub(crate) fn origins(&self, body: &Body, segment: u32, range: &Range<usize>) -> Origins {
        let nowhere = || Origins::Parts(Vec::new());
        let Some(home) = body.segment(segment) else { return nowhere() };
        let start = home.start as usize;
        let mut inside = range.start.saturating_sub(start)..range.end.saturating_sub(start);
        let mut segment = segment;
        while let Some(SegmentKind::View(view) | SegmentKind::Joined(view)) =
            body.segment(segment).map(|home| home.kind)
        {
            match self.list.get(view as usize) {
                Some(View::Exact { source, from, .. }) => {
                    let offset = |at: usize| from.get(at).map_or(0, |origin| *origin as usize);
                    inside = offset(inside.start)..offset(inside.end);
                    segment = *source;
                }
                Some(View::Whole { source, run, before, behind }) => {
                    // The frame alone was looked at where it stands.
                    if inside.end <= *before || inside.start >= *behind {
                        return nowhere();
                    }
                    let more = inside.end.saturating_sub(*behind);
                    let less = before.saturating_sub(inside.start);
                    inside = run.start.saturating_sub(less)..run.end + more;
                    segment = *source;
                }
                Some(View::Joined { pieces }) => {
                    return self.origins_of(body, &parts_of(body, pieces, &inside));
                }
                Some(View::Coded { codes }) => {
                    return self.origins_of(body, codes.get(inside).unwrap_or_default());
                }
                None => return nowhere(),
            }
        }
        let leaf = segment;
        let (segment, inside, is_again) = body.outside(segment, inside);
        let is_read_otherwise = is_again || is_view(home) || inside.len() != range.len();
        Origins::One(Origin { segment, leaf, inside, is_read_otherwise })
    }

    /// The same of several parts.
    fn origins_of(&self, body: &Body, parts: &[SourcePart]) -> Origins {
        let each = parts.iter().flat_map(|SourcePart { segment, range }| {
            match self.origins(body, *segment, range) {
                Origins::One(origin) => vec![Origin { is_read_otherwise: true, ..origin }],
                Origins::Parts(parts) => parts,
            }
        });
        Origins::Parts(each.collect())
    }

    /// Adds the views of the segments from `first` to `end`.
    fn extend(&mut self, body: &mut Body, first: usize, end: usize) -> Result<(), Unscannable> {
        let Some(start) = body.segments.get(first).map(|segment| segment.start as usize) else {
            return Ok(());
        };
        let after =
            body.segments.get(end.saturating_sub(1)).map_or(start, |last| last.end as usize);
        let range = start..after;
        let runs = std::mem::take(&mut self.runs);
        let rows = [rows::codes(&body.text, &body.marks), rows::groups(&body.text, &body.marks)];
        for segment in readings::segments(body, first, end, &range) {
            self.add_readings(body, segment)?;
        }
        self.add_recased(body)?;
        for rows in rows {
            self.add_rows(body, first, &rows)?;
        }
        let mut rest = runs.as_slice();
        let mut floor = 0;
        while let Some(count) = lines::count(&body.text, rest) {
            let (group, after) = rest.split_at_checked(count).unwrap_or_default();
            let ceiling = after.first().map_or(usize::MAX, |next| next.range.start);
            self.add_runs(body, group, &(floor..ceiling))?;
            floor = group.last().map_or(floor, |last| last.range.end);
            rest = after;
        }
        self.runs = runs;
        Ok(())
    }

    /// Adds the readings of a segment by all readers, or by the one that alone reads a view again.
    fn add_readings(&mut self, body: &mut Body, segment: u32) -> Result<(), Unscannable> {
        let Some(home) = body.segment(segment).copied() else { return Ok(()) };
        let by = match home.kind {
            SegmentKind::View(view) => self.list.get(view as usize).and_then(View::next_reader),
            SegmentKind::Key | SegmentKind::Text | SegmentKind::Number | SegmentKind::Joined(_) => {
                None
            }
        };
        for Reading { read, next } in readings::of(body.slice(home.range()), by) {
            let fits = self.read + read.text.len() <= self.budget;
            let parts = if fits { vec![read] } else { read.changed_parts(NEAR) };
            for Unescaped { text, from } in parts {
                self.read += text.len();
                if self.read > self.readings {
                    return Err(Unscannable::TooMuchDecoding { limit: self.readings });
                }
                self.append(body, home.node, &text, View::Exact { source: segment, from, next });
                self.add_records(body)?;
            }
        }
        Ok(())
    }

    /// Adds the readings of tokens whose mark is in another case, or that are cut.
    fn add_recased(&mut self, body: &mut Body) -> Result<(), Unscannable> {
        for found in std::mem::take(&mut self.recased) {
            if found.is_cut() {
                self.add_cut(body, &found)?;
                continue;
            }
            let Some(home) = body.segment(found.segment).copied() else { continue };
            let text = recased::respelled(&body.text, &found);
            let start = small(found.range.start - home.start as usize);
            self.charge(text.len())?;
            let from = (start..=start + small(text.len())).collect();
            let view = View::Exact { source: found.segment, from, next: None };
            self.append(body, home.node, &text, view);
        }
        Ok(())
    }

    /// Adds the readings of a token that is cut.
    fn add_cut(&mut self, body: &mut Body, found: &Recased) -> Result<(), Unscannable> {
        let Some(home) = body.segment(found.segment).copied() else { return Ok(()) };
        for Join { text, pieces } in cut::joins(body, found.segment, &found.range) {
            self.charge(text.len())?;
            self.append(body, home.node, &text, View::Joined { pieces });
        }
        Ok(())
    }

    /// Adds the texts of rows.
    fn add_rows(&mut self, body: &mut Body, first: usize, rows: &[Row]) -> Result<(), Unscannable> {
        for (at, row) in rows.iter().enumerate() {
            let Row { text, range, .. } = row;
            let (above, below) = rows.split_at_checked(at).unwrap_or_default();
            let last = above.iter().rev().map(|row| row.range.end).find(|end| *end <= range.start);
            let next = below.iter().map(|row| row.range.start).find(|start| *start >= range.end);
            let around = last.unwrap_or(0)..next.unwrap_or(usize::MAX);
            self.charge(text.len())?;
            let Some(segment) = segment_at(body, first, range.start) else { continue };
            if body.segment(segment).is_some_and(|home| (home.end as usize) < range.end) {
                self.add_codes(body, segment, row);
                continue;
            }
            let mut texts = Vec::new();
            readable::each(text, |text| {
                texts.push(Decoded { text: text.to_vec(), from: range.clone() });
            });
            texts.retain(|decoded| decoded.text.len() >= SHORTEST_TEXT);
            self.add_decoded(body, segment, texts, &around)?;
        }
        Ok(())
    }

    /// Adds a text of which each byte is a code in one of several segments, as in an array of bytes.
    fn add_codes(&mut self, body: &mut Body, first: u32, row: &Row) {
        let Some(home) = body.segment(first) else { return };
        let array = body.parent(home.node).unwrap_or(home.node);
        let part = |code: &Range<usize>| {
            let segment = segment_at(body, first as usize, code.start)?;
            Some(SourcePart { segment, range: code.clone() })
        };
        let codes = row.codes.iter().filter_map(part).collect();
        self.append(body, array, &row.text, View::Coded { codes });
    }

    /// Adds what is decoded from a run, or from several that are lines of one text. Others stand around
    /// them.
    fn add_runs(
        &mut self,
        body: &mut Body,
        group: &[Run],
        around: &Range<usize>,
    ) -> Result<(), Unscannable> {
        let Some(Run { segment, .. }) = group.first() else { return Ok(()) };
        let most = self.budget.saturating_sub(self.decoded);
        let joined = lines::join(&body.text, group);
        let Encoded { work, mut texts } =
            encoded::decode(joined.text(&body.text), &mut self.inflater, most);
        self.charge(work)?;
        for decoded in &mut texts {
            decoded.from = joined.source(&decoded.from);
        }
        self.add_decoded(body, *segment, texts, around)
    }

    /// Adds texts that come from ranges of the buffer as wholes, in order. What stands before the first and
    /// behind the last in its line is read with it, as far as nothing else is decoded there.
    fn add_decoded(
        &mut self,
        body: &mut Body,
        segment: u32,
        texts: Vec<Decoded>,
        around: &Range<usize>,
    ) -> Result<(), Unscannable> {
        let Some(home) = body.segment(segment).copied() else { return Ok(()) };
        let start = home.start as usize;
        let around = around.start.max(start)..around.end.min(home.end as usize);
        let last = texts.len().saturating_sub(1);
        for (at, Decoded { text, from }) in texts.into_iter().enumerate() {
            let floor = if at == 0 { around.start } else { from.start };
            let ceiling = if at == last { around.end } else { from.end };
            let frame = Frame::around(&body.text, &from, &(floor..ceiling));
            let Framed { text, before, behind, more } = frame.hold(&body.text, &text);
            self.charge(more)?;
            let run = from.start.saturating_sub(start)..from.end.saturating_sub(start);
            let view = View::Whole { source: segment, run, before, behind };
            self.append(body, home.node, &text, view);
            self.add_records(body)?;
        }
        Ok(())
    }

    /// Adds the names and values in tables and lists of the view that was added last.
    fn add_records(&mut self, body: &mut Body) -> Result<(), Unscannable> {
        let source = small(body.segments.len().saturating_sub(1));
        let Some(home) = body.segment(source).copied() else { return Ok(()) };
        let text = body.slice(home.range());
        let Some(records) = memchr::memchr(b'\n', text).and_then(|_| pairs::in_lines(text)) else {
            return Ok(());
        };
        let text = text.to_owned();
        let limits = self.limits;
        let mut add = |body: &mut Body, node: u32, part: &Range<usize>| {
            let from = (small(part.start)..=small(part.end)).collect();
            let part = text.get(part.clone()).unwrap_or_default();
            self.append(body, node, part, View::Exact { source, from, next: None });
        };
        let mut nodes = Vec::with_capacity(records.names.len());
        for name in &records.names {
            let node = body.named_view(home.node, &limits)?;
            add(body, node, name);
            nodes.push(node);
        }
        for (name, value) in &records.values {
            add(body, nodes.get(*name).copied().unwrap_or(home.node), value);
        }
        Ok(())
    }

    /// Adds the texts of each array, read as one.
    fn add_joins(&mut self, body: &mut Body) -> Result<(), Unscannable> {
        let neighbours = std::mem::take(&mut body.neighbours);
        let mut joiner = std::mem::take(&mut self.joiner);
        for (node, row) in neighbours.rows() {
            joiner.join(body, row);
            while let Some(Join { text, pieces }) = joiner.take() {
                self.charge(text.len())?;
                self.append(body, node, &text, View::Joined { pieces });
                joiner.reuse_text(text);
            }
        }
        (self.joiner, body.neighbours) = (joiner, neighbours);
        Ok(())
    }

    fn append(&mut self, body: &mut Body, node: u32, text: &[u8], view: View) {
        let index = small(self.list.len());
        let kind = match &view {
            View::Exact { .. } | View::Whole { .. } => SegmentKind::View(index),
            View::Joined { .. } | View::Coded { .. } => SegmentKind::Joined(index),
        };
        self.list.push(view);
        body.append(text, node, kind);
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Unscannable> {
        self.decoded += bytes;
        if self.decoded > self.budget {
            return Err(Unscannable::TooMuchDecoding { limit: self.budget });
        }
        Ok(())
    }
}

fn is_view(segment: &Segment) -> bool {
    match segment.kind {
        SegmentKind::View(_) | SegmentKind::Joined(_) => true,
        SegmentKind::Key | SegmentKind::Text | SegmentKind::Number => false,
    }
}

/// The segment from `first` on that an offset stands in.
fn segment_at(body: &Body, first: usize, at: usize) -> Option<u32> {
    let segments = body.segments.get(first..)?;
    let place = segments.partition_point(|segment| segment.end as usize <= at);
    let found = segments.get(place)?;
    (found.start as usize <= at).then(|| small(first + place))
}

/// Long runs of letters and digits that may be base64 or hex, each with its segment.
fn find_runs(body: &Body, first: usize, found: &mut Vec<Run>) {
    found.clear();
    let mut segments = (small(first)..).zip(body.segments.iter().skip(first)).peekable();
    encoded::each(&body.text, &body.marks, |range| {
        while segments.next_if(|(_, segment)| segment.end as usize <= range.start).is_some() {}
        if let Some((segment, _)) = segments.peek() {
            found.push(Run { segment: *segment, range });
        }
    });
}
