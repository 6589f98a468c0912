//! JSON that stands in texts, laid flat behind the value itself.
//!
//! A text that holds JSON is an empty segment. Behind all segments of the value stand those of the JSON and
//! of the prose around it, each of which knows where in the text it was read. Names, labels, columns and
//! neighbours in it are those of any other JSON.

use std::ops::Range;

use portcullis_json::Document;

use crate::{
    body::{
        buffer::{Body, PathStep},
        embedded::{self, Part},
        folded::{Folded, Folding, InnerOrigin, InnerPlace, Piece},
        pairs,
        records::{self, Records},
        segment::{SegmentKind, small},
        yaml::{self, Outline},
    },
    limits::{Limits, Unscannable},
};

impl Body {
    #[inline]
    pub(super) fn may_fold(&self, text: &str) -> bool {
        (embedded::may_hold(text) || records::may_hold(text))
            && self.inner.folding == Folding::Unfolded
            && self.inner.level < embedded::DEPTH
    }

    /// Keeps the JSON of a text for later, in place of which nothing is laid flat now. Gives the text back
    /// if it holds none.
    #[inline(never)]
    pub(super) fn fold<'t>(
        &mut self,
        text: &'t str,
        node: u32,
        limits: &Limits,
    ) -> Result<&'t str, Unscannable> {
        if self.text.len() + self.inner.waiting + text.len() > limits.max_bytes {
            return Err(Unscannable::TooLarge { limit: limits.max_bytes });
        }
        let room = limits.max_nodes.saturating_sub(self.nodes.len() + self.inner.entries);
        let mut pieces = pieces(text, limits.max_depth);
        let (mut entries, mut bytes) = size(&pieces);
        if entries > room || self.text.len() + self.inner.waiting + bytes > limits.max_bytes {
            // JSON beyond the limits is prose; tables are not.
            pieces = Vec::new();
            push_prose(text, 0..text.len(), &mut pieces);
            (entries, bytes) = size(&pieces);
            let has_records = pieces.iter().any(|piece| matches!(piece, Piece::Records(..)));
            if has_records && entries > room {
                return Err(Unscannable::TooManyNodes { limit: limits.max_nodes });
            }
            pieces = if has_records { pieces } else { Vec::new() };
        }
        if pieces.is_empty() {
            return Ok(text);
        }
        let written = if pieces.iter().any(Piece::is_written) { text } else { "" };
        self.inner.entries += entries;
        self.inner.waiting += bytes;
        self.inner.folded.push_back(Folded {
            segment: small(self.segments.len()),
            node,
            level: self.inner.level + 1,
            bytes,
            entries,
            pieces,
            text: written.into(),
        });
        Ok("")
    }

    /// Lays flat what was kept.
    pub(super) fn unfold(&mut self, limits: &Limits) -> Result<(), Unscannable> {
        self.inner.first = self.segments.len();
        while let Some(folded) = self.inner.folded.pop_front() {
            let Folded { segment, node, level, bytes, entries, pieces, text } = folded;
            self.inner.waiting -= bytes;
            self.inner.entries -= entries;
            self.inner.level = level;
            let is_list = pieces.len() > 1;
            for (index, piece) in (0..).zip(pieces) {
                match piece {
                    Piece::Prose(range) => {
                        let place = InnerPlace::Slice(range.start);
                        let origin = InnerOrigin { source: segment, place };
                        let prose = text.get(range).unwrap_or_default();
                        self.lay_slice(origin, prose, node, SegmentKind::Text, limits)?;
                    }
                    Piece::Records(start, records) => {
                        let part = text.get(start..).unwrap_or_default();
                        self.lay_records(segment, start, &records, part, node, limits)?;
                    }
                    Piece::Outline(Outline { document, leaves, is_flat }) => {
                        self.walk(document.root(), node, 0, limits)?;
                        let place: fn(usize) -> InnerPlace =
                            if is_flat { InnerPlace::Again } else { InnerPlace::Slice };
                        self.inner.origins.extend(
                            leaves.iter().map(|leaf| InnerOrigin {
                                source: segment,
                                place: place(leaf.start),
                            }),
                        );
                    }
                    Piece::Json(start, document) => {
                        let step = PathStep::Element { index };
                        let node = if is_list { self.node(node, step, limits)? } else { node };
                        self.lay_inside(segment, start, &document, node, limits)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Lays a part of a text flat as it stands there.
    fn lay_slice(
        &mut self,
        origin: InnerOrigin,
        text: &str,
        node: u32,
        kind: SegmentKind,
        limits: &Limits,
    ) -> Result<(), Unscannable> {
        self.push(text.as_bytes(), node, kind, limits)?;
        self.inner.origins.push(origin);
        Ok(())
    }

    fn lay_records(
        &mut self,
        source: u32,
        start: usize,
        records: &Records,
        text: &str,
        node: u32,
        limits: &Limits,
    ) -> Result<(), Unscannable> {
        let part = |range: &Range<usize>| text.get(range.clone()).unwrap_or_default();
        let place: fn(usize) -> InnerPlace =
            if records.is_read_again { InnerPlace::Again } else { InnerPlace::Slice };
        let origin =
            |range: &Range<usize>| InnerOrigin { source, place: place(start + range.start) };
        let mut nodes = Vec::with_capacity(records.names.len());
        for name in &records.names {
            let step = PathStep::Member { key: small(self.segments.len()) };
            let child = self.node(node, step, limits)?;
            // No more than the text has, which fits.
            self.append(part(name).as_bytes(), child, SegmentKind::Key);
            self.inner.origins.push(origin(name));
            nodes.push(child);
        }
        for (name, value) in &records.values {
            let child = nodes.get(*name).copied().unwrap_or(node);
            self.append(part(value).as_bytes(), child, SegmentKind::Text);
            self.inner.origins.push(origin(value));
        }
        Ok(())
    }

    /// A place below a name, which is the next segment, in a text that was read from another one.
    pub(crate) fn named_view(&mut self, node: u32, limits: &Limits) -> Result<u32, Unscannable> {
        let key = small(self.segments.len());
        self.tables.add_name(key);
        self.node(node, PathStep::Member { key }, limits)
    }

    fn lay_inside(
        &mut self,
        source: u32,
        start: usize,
        document: &Document,
        node: u32,
        limits: &Limits,
    ) -> Result<(), Unscannable> {
        self.walk(document.root(), node, 0, limits)?;
        let raw = document.root().raw().as_bytes();
        for leaf in document.leaves() {
            let Range { start: from, end } = leaf.range;
            let place = if leaf.is_number {
                InnerPlace::Whole(start + from..start + end)
            } else if leaf.is_escaped {
                let written = raw.get(from..end).unwrap_or_default();
                let offsets = embedded::offsets(written).into_iter();
                InnerPlace::Mapped(offsets.map(|at| small(start + from + at)).collect())
            } else {
                InnerPlace::Slice(start + from)
            };
            self.inner.origins.push(InnerOrigin { source, place });
        }
        Ok(())
    }

    /// The key, text or number of the value itself that a range of a segment was read from, and whether it
    /// may have been read twice.
    pub(crate) fn outside(&self, segment: u32, inside: Range<usize>) -> (u32, Range<usize>, bool) {
        let mut segment = segment;
        let mut inside = inside;
        let mut is_again = false;
        while let Some(InnerOrigin { source, place }) = self.inner.origin(segment) {
            is_again |= matches!(place, InnerPlace::Again(_));
            inside = match place {
                InnerPlace::Slice(start) | InnerPlace::Again(start) => {
                    start + inside.start..start + inside.end
                }
                InnerPlace::Whole(range) => range.clone(),
                InnerPlace::Mapped(from) => {
                    let last = from.last().copied().unwrap_or_default();
                    let offset = |at: usize| from.get(at).copied().unwrap_or(last) as usize;
                    offset(inside.start)..offset(inside.end)
                }
            };
            segment = *source;
        }
        (segment, inside, is_again)
    }
}

/// Values and names in pieces, and their bytes, but for what is read again.
fn size(pieces: &[Piece]) -> (usize, usize) {
    (pieces.iter().map(Piece::entries).sum(), pieces.iter().map(Piece::bytes).sum())
}

/// A text cut into JSON, records or YAML and the prose around; nothing where it is prose throughout. JSON and
/// YAML are nested no deeper.
fn pieces(text: &str, depth: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let parts = embedded::parts(text, depth);
    if !parts.is_empty() {
        let mut done = 0;
        for Part { range, document } in parts {
            push_prose(text, done..range.start, &mut pieces);
            pieces.push(Piece::Json(range.start, document));
            done = range.end;
        }
        push_prose(text, done..text.len(), &mut pieces);
    } else if let Some(records) = records::read(text) {
        push_records(text, 0, records, &mut pieces);
    } else if let Some(outline) = yaml::read(text, embedded::bounds(depth)) {
        let read: &[Range<usize>] = if outline.is_flat { &[] } else { &outline.leaves };
        push_around(text, 0, read, &mut pieces);
        pieces.push(Piece::Outline(outline));
    } else if let Some(records) = pairs::in_lines(text.as_bytes()) {
        push_records(text, 0, records, &mut pieces);
    }
    pieces
}

/// Adds a part of a text that is no JSON: the tables and lists in it, and the prose around them.
fn push_prose(text: &str, range: Range<usize>, pieces: &mut Vec<Piece>) {
    let part = text.get(range.clone()).unwrap_or_default();
    match pairs::in_lines(part.as_bytes()) {
        Some(records) => push_records(part, range.start, records, pieces),
        None => push_around(part, range.start, &[], pieces),
    }
}

/// Adds the names and values of a text that begins at an offset, and the prose between them.
fn push_records(text: &str, start: usize, records: Records, pieces: &mut Vec<Piece>) {
    push_around(text, start, records.cut(), pieces);
    pieces.push(Piece::Records(start, records));
}

/// Adds the prose between the names and values of a text that begins at an offset.
fn push_around(text: &str, start: usize, read: &[Range<usize>], pieces: &mut Vec<Piece>) {
    let mut done = 0;
    for range in read.iter().chain([&(text.len()..text.len())]) {
        let between = text.as_bytes().get(done..range.start).unwrap_or_default();
        if says_something(between) {
            pieces.push(Piece::Prose(start + done..start + range.start));
        }
        done = done.max(range.end);
    }
}

/// Returns false for space and signs, and for tags around the cells of a table that say nothing else.
fn says_something(text: &[u8]) -> bool {
    let says_nothing = |byte: &u8| matches!(byte, b' '..=b'/' | b':'..=b'@' | b'['..=b'`' | b'{'..=b'~' | b'\t' | b'\n' | 12 | b'\r');
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| !says_nothing(byte)) {
        let is_tag = matches!(rest.get(..at), Some([.., b'<'] | [.., b'<', b'/']))
            && matches!(rest.get(at..at + 3), Some([b't', b'd' | b'h' | b'r', b'>']));
        if !is_tag {
            return true;
        }
        rest = rest.get(at + 3..).unwrap_or_default();
    }
    false
}
