//! Origins of matches: the places in what was sent, of what was found in a view.

use std::ops::Range;

use crate::body::{buffer::Body, joins::JoinPiece};

/// Final origin of a match.
pub(crate) enum Origins {
    /// All of it from one place.
    One(Origin),
    /// Parts of it from neighbours.
    Parts(Vec<Origin>),
}

/// Final origin of a match, or of a part of it.
pub(crate) struct Origin {
    /// A segment that is no view, outside of JSON in texts.
    pub(crate) segment: u32,
    /// The segment that it was found in or decoded from, which may stand in such JSON.
    pub(crate) leaf: u32,
    /// Bytes of that segment.
    pub(crate) inside: Range<usize>,
    /// True if it was found in a view, and so may have been found before.
    pub(crate) is_read_otherwise: bool,
}

/// A part of a segment, by its range in the buffer.
pub(super) struct SourcePart {
    pub(super) segment: u32,
    pub(super) range: Range<usize>,
}

/// The parts of a range of a join. None when it lies in one piece, where it was seen already.
pub(super) fn parts_of(
    body: &Body,
    pieces: &[JoinPiece],
    inside: &Range<usize>,
) -> Vec<SourcePart> {
    let first = pieces.partition_point(|piece| piece.at <= inside.start).saturating_sub(1);
    let touched = pieces.get(first..).unwrap_or_default();
    if touched.get(1).is_none_or(|next| inside.end <= next.at) {
        return Vec::new();
    }
    let ends = touched.iter().skip(1).map(|next| next.at).chain([usize::MAX]);
    let mut parts = Vec::new();
    for (piece, end) in touched.iter().zip(ends).take_while(|(piece, _)| piece.at < inside.end) {
        let from = inside.start.max(piece.at) - piece.at;
        let to = inside.end.min(end).saturating_sub(piece.at);
        let Some(home) = body.segment(piece.segment) else { continue };
        let start = home.range().start + piece.offset;
        if from < to {
            parts.push(SourcePart { segment: piece.segment, range: start + from..start + to });
        }
    }
    if parts.len() > 1 { parts } else { Vec::new() }
}
