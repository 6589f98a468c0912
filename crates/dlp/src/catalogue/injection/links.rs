//! Links and images that carry what a model knows to a stranger.

use std::ops::Range;

use super::passage::{Passage, sentence};
use crate::{
    catalogue::{
        detector::Candidate,
        lists::{EMBEDS, INTO_ADDRESS, KNOWN_DATA, KNOWN_TO_MODEL},
    },
    text::window::Window,
};

/// The longest address that is read.
const LONGEST: usize = 400;

pub(crate) fn find(text: &Window<'_>, literal: Range<usize>) -> Option<Range<usize>> {
    let range = if text.get(literal.clone())?.ends_with(b"http") {
        let rest = text.get(literal.end..text.len().min(literal.end + LONGEST))?;
        let end = rest.iter().position(|byte| matches!(byte, b')' | b'"' | b'\n'))?;
        let before = text.get(literal.start.saturating_sub(80)..literal.start)?;
        let opened = memchr::memrchr(b'[', before).map_or(0, |at| before.len() - at);
        literal.start - opened.max(1).min(literal.start)..literal.end + end
    } else {
        sentence(text, &literal)
    };
    weigh(text, &range).map(|_| range)
}

pub(crate) fn check(candidate: &Candidate<'_>) -> Option<i32> {
    weigh(&candidate.text, &candidate.range)
}

fn weigh(text: &Window<'_>, range: &Range<usize>) -> Option<i32> {
    text.once("exfiltration_link", range, || weigh_once(text, range))
}

fn weigh_once(text: &[u8], range: &Range<usize>) -> Option<i32> {
    let bytes = text.get(range.clone())?;
    let link = memchr::memmem::find(bytes, b"](http")
        .or_else(|| memchr::memmem::find(bytes, b"src=\"http"));
    if let Some(at) = link.filter(|at| *at < 90) {
        let before = range.start.checked_sub(1).and_then(|at| text.get(at));
        let is_image = before == Some(&b'!')
            || bytes.starts_with(b"!")
            || bytes.get(at..)?.starts_with(b"src");
        let query = Passage::of(bytes.get(at..)?);
        let (_, query) = query.text().split_once('?')?;
        let placeholder = ['{', '[', '<'].iter().find_map(|open| query.split_once(*open));
        let inside = placeholder.map(|(_, inside)| Passage::of(inside.as_bytes()));
        return inside
            .filter(|inside| inside.has(&KNOWN_DATA))
            .map(|_| if is_image { 28 } else { 18 });
    }
    let passage = Passage::of(bytes);
    let carried = passage.has(&EMBEDS);
    let known = passage.has(&KNOWN_TO_MODEL);
    let address = passage.has(&["http://", "https://"]);
    let shown = passage.has(&["image", "url", "link", "query", "parameter", "?"]);
    (carried && known && address && shown && passage.has(&INTO_ADDRESS)).then_some(24)
}
