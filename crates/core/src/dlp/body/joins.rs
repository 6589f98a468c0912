//! Texts that stand side by side, read as one: a secret cut in two is still a secret.

use crate::{
    dlp::body::{
        buffer::{Body, Neighbours},
        segment::{SegmentKind, small},
    },
    json::{JsonValue, Kind},
};

/// A longer text joins its neighbours only with its first and last half of this.
const LONGEST: usize = 1024;

/// Part of a text in a join.
#[derive(Debug, Clone, Copy)]
pub(in crate::dlp) struct JoinPiece {
    /// Where it begins in the join.
    pub(in crate::dlp) at: usize,
    /// The segment it is taken from.
    pub(in crate::dlp) segment: u32,
    /// Where it begins in that segment.
    pub(in crate::dlp) offset: usize,
}

/// Neighbours read as one.
#[derive(Default)]
pub(in crate::dlp) struct Join {
    pub(in crate::dlp) text: Vec<u8>,
    pub(in crate::dlp) pieces: Vec<JoinPiece>,
}

/// The segment that an array's element brings into a join: the element's own if it is a string,
/// that of its `text` member if it is an object.
pub(in crate::dlp) fn joining<'a, T: JsonValue<'a>>(
    body: &Body,
    element: T,
    first: usize,
) -> Option<u32> {
    match element.kind() {
        Kind::Text(_) => Some(small(first)),
        Kind::Object(_) if element.get("text").and_then(T::text).is_some() => {
            let own = body.segments.get(first..)?;
            let of_text = own.windows(2).position(|pair| match pair {
                [key, value] => {
                    key.kind == SegmentKind::Key
                        && value.kind == SegmentKind::Text
                        && key.node == value.node
                        && body.slice(key.range()) == b"text"
                }
                _ => false,
            })?;
            Some(small(first + of_text + 1))
        }
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Array(_) | Kind::Object(_) => None,
    }
}

/// Members of one object that are texts and numbered: `part1`, `part2`.
#[derive(Default)]
pub(in crate::dlp) struct Numbered<'a>(Vec<(&'a str, u32, u32)>);

impl<'a> Numbered<'a> {
    /// Looks at a member, whose value is the segment `segment`.
    pub(in crate::dlp) fn look<T: JsonValue<'a>>(
        &mut self,
        key: &'a str,
        member: T,
        segment: usize,
    ) {
        let is_numbered = key.as_bytes().last().is_some_and(u8::is_ascii_digit);
        if !is_numbered || member.text().is_none() {
            return;
        }
        let stem = key.trim_end_matches(|last: char| last.is_ascii_digit());
        let number = key.strip_prefix(stem).and_then(|number| number.parse().ok());
        self.0.extend(number.map(|number| (stem, number, small(segment))));
    }

    /// The members that are named alike and numbered one after the other, by their segments.
    pub(in crate::dlp) fn rows(mut self) -> Vec<Neighbours> {
        if self.0.len() < 2 {
            return Vec::new();
        }
        self.0.sort_unstable();
        let goes_on = |(stem, number, _): &(&str, u32, u32), next: &(&str, u32, u32)| {
            (*stem, number.checked_add(1)) == (next.0, Some(next.1))
        };
        let rows = self.0.chunk_by(goes_on).filter(|row| row.len() > 1);
        rows.map(|row| row.iter().map(|(_, _, segment)| *segment).collect()).collect()
    }
}

/// The joins of some neighbours. Each has at least two pieces.
pub(in crate::dlp) fn joins(body: &Body, neighbours: &[u32]) -> Vec<Join> {
    let mut joins = vec![Join::default()];
    for index in neighbours {
        let Some(segment) = body.segment(*index) else { continue };
        let text = body.slice(segment.range());
        if text.len() <= LONGEST {
            add(&mut joins, *index, 0, text);
        } else {
            let tail = text.len() - LONGEST / 2;
            add(&mut joins, *index, 0, text.get(..LONGEST / 2).unwrap_or_default());
            joins.push(Join::default());
            add(&mut joins, *index, tail, text.get(tail..).unwrap_or_default());
        }
    }
    joins.retain(|join| join.pieces.len() > 1);
    joins
}

fn add(joins: &mut [Join], segment: u32, offset: usize, text: &[u8]) {
    if let Some(join) = joins.last_mut() {
        join.pieces.push(JoinPiece { at: join.text.len(), segment, offset });
        join.text.extend_from_slice(text);
    }
}
