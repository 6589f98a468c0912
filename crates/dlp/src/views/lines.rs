//! Runs of base64 that are broken over lines, read as one.
//!
//! A run goes on where nothing but the end of a line and spaces stand between it and the next one, as
//! in mails and keys. The last line may be short.

use std::ops::Range;

use crate::views::encoded::{Run, SHORTEST};

/// Spaces before a line, at most.
const INDENT: usize = 32;

/// Some lines read as one.
pub(super) enum Joined {
    /// One line, where it stands in the buffer, with its padding.
    One(Range<usize>),
    /// Several, as one.
    Several {
        text: Vec<u8>,
        /// Offsets of each in the text, and ranges in the buffer, with the padding.
        lines: Vec<(usize, Range<usize>)>,
    },
}

/// Number of runs at the beginning of some that belong together; `None` when there are none.
pub(super) fn count(text: &[u8], runs: &[Run]) -> Option<usize> {
    let first = runs.first()?;
    let goes_on = |pair: &[Run; 2]| {
        let [this, next] = pair;
        next.segment == first.segment && next_line(text, this.range.end) == Some(next.range.start)
    };
    Some(1 + runs.array_windows().take_while(|pair| goes_on(pair)).count())
}

/// Reads some runs, which belong together, as one.
pub(super) fn join(text: &[u8], runs: &[Run]) -> Joined {
    let last = runs.last().and_then(|run| last_line(text, run.range.end));
    if let ([run], None) = (runs, &last) {
        return Joined::One(run.range.clone());
    }
    let mut joined = Vec::new();
    let mut lines = Vec::new();
    for range in runs.iter().map(|run| run.range.clone()).chain(last) {
        lines.push((joined.len(), range.clone()));
        joined.extend_from_slice(unpadded(text, &range));
    }
    Joined::Several { text: joined, lines }
}

impl Joined {
    /// The characters, without padding.
    pub(super) fn text<'a>(&'a self, buffer: &'a [u8]) -> &'a [u8] {
        match self {
            Joined::One(range) => unpadded(buffer, range),
            Joined::Several { text, .. } => text,
        }
    }

    /// The lines in the buffer that some of the characters stand in.
    pub(super) fn source(&self, from: &Range<usize>) -> Range<usize> {
        let lines = match self {
            Joined::One(range) => return range.clone(),
            Joined::Several { lines, .. } => lines,
        };
        let line = |at: usize| {
            let after = lines.partition_point(|(begin, _)| *begin <= at);
            lines.get(after.saturating_sub(1)).map(|(_, range)| range.clone())
        };
        let first = line(from.start);
        let last = line(from.end.saturating_sub(1));
        first.zip(last).map_or(0..0, |(first, last)| first.start..last.end)
    }
}

fn unpadded<'a>(text: &'a [u8], range: &Range<usize>) -> &'a [u8] {
    let line = text.get(range.clone()).unwrap_or_default();
    let padding = line.iter().rev().take_while(|byte| **byte == b'=').count();
    line.get(..line.len() - padding).unwrap_or_default()
}

/// Offset of the next line, behind the indentation.
pub(super) fn next_line(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let end = match rest {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] => 2,
        _ => return None,
    };
    let spaces = rest.iter().skip(end).take(INDENT);
    Some(at + end + spaces.take_while(|byte| matches!(byte, b' ' | b'\t')).count())
}

/// The line behind an offset, if all of it is one short piece of base64.
fn last_line(text: &[u8], at: usize) -> Option<Range<usize>> {
    let start = next_line(text, at)?;
    let rest = text.get(start..)?;
    let is_letter = |byte: &&u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
    };
    let length = rest.iter().take(SHORTEST + 2).take_while(is_letter).count();
    let is_alone = rest.get(length).is_none_or(|byte| !byte.is_ascii_graphic() && *byte != b' ');
    (length > 0 && is_alone).then_some(start..start + length)
}
