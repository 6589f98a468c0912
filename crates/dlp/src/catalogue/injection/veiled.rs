//! Orders where a reader does not see them: in comments, in styles that hide, in tag characters.

use std::ops::Range;

use super::passage::{Passage, orders, phrases};
use crate::{
    catalogue::{detector::Candidate, lists::SMUGGLED},
    text::window::Window,
};

phrases! {
    MODELS
}

/// Bytes of a hidden text that are read.
const AHEAD: usize = 700;

pub(crate) fn find(text: &Window<'_>, literal: Range<usize>) -> Option<Range<usize>> {
    let range = hidden(text, &literal)?;
    weigh(text, &range).map(|_| range)
}

pub(crate) fn check(candidate: &Candidate<'_>) -> Option<i32> {
    weigh(&candidate.text, &candidate.range)
}

/// Range of the text that a mark hides.
fn hidden(text: &Window<'_>, literal: &Range<usize>) -> Option<Range<usize>> {
    let rest = text.get(literal.end..text.len().min(literal.end + AHEAD))?;
    let mark = text.get(literal.clone())?;
    if mark.starts_with(&TAG) {
        return tags(text, literal);
    }
    match mark {
        b"<!--" => return commented(text, literal, b"-->"),
        [b'[', ..] => return commented(text, literal, b"\n"),
        _ => {}
    }
    let opened = memchr::memchr(b'>', rest.get(..rest.len().min(160))?)?;
    let closed = memchr::memmem::find(rest, b"</").filter(|end| *end > opened);
    Some(literal.start..literal.end + closed.unwrap_or(rest.len()))
}

/// Range of a comment, from the first on of those that begin in the same bytes of the text and do not end before it: they
/// are read as one.
fn commented(text: &Window<'_>, literal: &Range<usize>, end: &[u8]) -> Option<Range<usize>> {
    const NEAR: usize = 128;
    let floor = literal.start.saturating_sub((text.start() + literal.start) % NEAR);
    let near = text.get(floor..literal.start)?;
    let ended = memchr::memmem::rfind(near, end).unwrap_or(0);
    let first = memchr::memmem::find(near.get(ended..)?, text.get(literal.clone())?);
    let start = first.map_or(literal.start, |first| floor + ended + first);
    let most = text.len().min(start + NEAR + AHEAD);
    let closed = memchr::memmem::find(text.get(literal.end..most)?, end);
    Some(start..closed.map_or(most, |closed| literal.end + closed))
}

/// Bytes that every tag character begins with.
const TAG: [u8; 2] = [0xF3, 0xA0];

/// The most tag characters that are read on either side.
const TAGS: usize = 200;

/// Range of the tag characters around one of them.
fn tags(text: &[u8], literal: &Range<usize>) -> Option<Range<usize>> {
    let before = text.get(..literal.start)?.rchunks_exact(4).take(TAGS);
    let after = text.get(literal.end..)?.chunks_exact(4).take(TAGS);
    let before = before.take_while(|char| char.starts_with(&TAG)).count();
    let after = after.take_while(|char| char.starts_with(&TAG)).count();
    (before + after > 6).then(|| literal.start - 4 * before..literal.end + 4 * after)
}

fn weigh(text: &Window<'_>, range: &Range<usize>) -> Option<i32> {
    let bytes = text.get(range.clone())?;
    if bytes.starts_with(&TAG) {
        return Some(34);
    }
    text.once("hidden_instruction", range, || weigh_once(bytes))
}

fn weigh_once(bytes: &[u8]) -> Option<i32> {
    let passage = Passage::of(bytes);
    let told = orders(&passage);
    let meant = passage.holds(&MODELS);
    match (meant, told) {
        (true, 2..) => Some(30),
        (true, 1) => Some(26),
        (false, 3..) if passage.has(&["you ", "your ", "user"]) && passage.has(&SMUGGLED) => {
            Some(24)
        }
        (true | false, _) => None,
    }
}
