//! Tokens that are cut behind their mark and go on in the next lines or the next members of an object.
//!
//! The mark of a vendor says where a token begins. Its first piece reaches the end of a line or of a text;
//! lines and texts behind it that hold nothing but letters, digits and joints may be the others.

use std::ops::Range;

use crate::{
    body::{
        buffer::Body,
        joins::{Join, JoinPiece},
        segment::{Segment, SegmentKind},
    },
    catalogue::detector::Edges,
    views::lines::next_line,
};

/// Characters of a piece, at most.
const LONGEST: usize = 128;

/// Characters of a piece behind the first, at least.
const SHORTEST: usize = 4;

/// Pieces of a token, at most.
const PIECES: usize = 4;

/// The first piece of a token whose mark stands in a range of the buffer, if it reaches the end of a line
/// behind which another piece begins, or of its text.
pub(super) fn beginning(
    text: &[u8],
    home: &Range<usize>,
    mark: &Range<usize>,
) -> Option<Range<usize>> {
    // In the middle of a word it is none by chance.
    let before = mark.start.checked_sub(1).filter(|before| *before >= home.start);
    if before.and_then(|before| text.get(before)).is_some_and(|byte| !Edges::Token.allow(*byte)) {
        return None;
    }
    let length = piece_length(text.get(mark.end..home.end)?);
    let end = mark.end + length;
    let goes_on = || line_behind(text, home, end).is_some();
    ((1..=LONGEST).contains(&length) && (end == home.end || goes_on())).then_some(mark.start..end)
}

/// The readings of a token with the one, the two and more pieces behind its first one, which is a range of
/// the buffer.
pub(super) fn joins(body: &Body, segment: u32, first: &Range<usize>) -> Vec<Join> {
    let Some(home) = body.segment(segment) else { return Vec::new() };
    let is_read_otherwise = matches!(home.kind, SegmentKind::View(_) | SegmentKind::Joined(_));
    if is_read_otherwise {
        return Vec::new();
    }
    let more = if first.end < home.end as usize {
        lines_behind(body, segment, home, first)
    } else {
        members_behind(body, segment, home)
    };
    let pieces: Vec<_> = std::iter::once((segment, first.clone())).chain(more).collect();
    (2..=pieces.len()).filter_map(|count| Some(joined(body, pieces.get(..count)?))).collect()
}

fn joined(body: &Body, parts: &[(u32, Range<usize>)]) -> Join {
    let mut join = Join::default();
    for (segment, range) in parts {
        let home = body.segment(*segment).map_or(0, |home| home.start as usize);
        let offset = range.start.saturating_sub(home);
        join.pieces.push(JoinPiece { at: join.text.len(), segment: *segment, offset });
        join.text.extend_from_slice(body.slice(range.clone()));
    }
    join
}

/// The lines behind the first piece, as far as each is a piece.
fn lines_behind(
    body: &Body,
    segment: u32,
    home: &Segment,
    first: &Range<usize>,
) -> Vec<(u32, Range<usize>)> {
    let home = home.range();
    let behind = |line: &Range<usize>| line_behind(&body.text, &home, line.end);
    let lines = std::iter::successors(behind(first), behind);
    lines.take(PIECES - 1).map(|line| (segment, line)).collect()
}

/// The line behind an offset, if all of it is a piece.
fn line_behind(text: &[u8], home: &Range<usize>, at: usize) -> Option<Range<usize>> {
    let start = next_line(text, at).filter(|start| *start < home.end)?;
    let rest = text.get(start..home.end)?;
    let length = piece_length(rest);
    let is_alone = matches!(rest.get(length), None | Some(b'\n' | b'\r'));
    (is_alone && (SHORTEST..=LONGEST).contains(&length)).then_some(start..start + length)
}

/// The members behind a text in its object, as far as each is a piece.
fn members_behind(body: &Body, segment: u32, home: &Segment) -> Vec<(u32, Range<usize>)> {
    let Some((_, object)) = body.member_above(home.node) else { return Vec::new() };
    let behind = body.segments.get(segment as usize + 1..).unwrap_or_default();
    let (members, _) = behind.as_chunks::<2>();
    let piece = |[key, value]: &[Segment; 2]| {
        let is_member = (key.kind, value.kind) == (SegmentKind::Key, SegmentKind::Text)
            && key.node == value.node
            && body.member_above(value.node).is_some_and(|(_, parent)| parent == object);
        let text = body.slice(value.range());
        let is_piece =
            (SHORTEST..=LONGEST).contains(&text.len()) && piece_length(text) == text.len();
        (is_member && is_piece).then(|| value.range())
    };
    let values = members.iter().take(PIECES - 1).map_while(piece);
    (segment + 2..).step_by(2).zip(values).collect()
}

/// Number of characters of a token that a text begins with.
fn piece_length(text: &[u8]) -> usize {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'_' | b'-' | b'.');
    text.iter().take(LONGEST + 1).take_while(is_part).count()
}
