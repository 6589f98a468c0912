//! Turns of a conversation that data pretend to be.

use std::ops::Range;

use super::passage::{Passage, orders};
use crate::{
    catalogue::{detector::Candidate, lists::ROLE_TOKEN},
    text::window::Window,
};

/// Bytes behind a mark in which it is told what to do.
const AHEAD: usize = 320;

pub(crate) fn find(text: &Window<'_>, literal: Range<usize>) -> Option<Range<usize>> {
    let is_letter = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphabetic);
    // `### Users` is a heading.
    if literal.end.checked_sub(1).is_some_and(is_letter) && is_letter(literal.end) {
        return None;
    }
    let end = text.len().min(literal.end + AHEAD);
    let rest = text.get(literal.end..end)?;
    let ended = memchr::memmem::find(rest, b"\n\n\n").unwrap_or(rest.len());
    let range = literal.start..literal.end + ended;
    weigh(text, &range).map(|_| range)
}

pub(crate) fn check(candidate: &Candidate<'_>) -> Option<i32> {
    weigh(&candidate.text, &candidate.range)
}

fn weigh(text: &Window<'_>, range: &Range<usize>) -> Option<i32> {
    text.once("impersonated_turn", range, || weigh_once(text, range))
}

fn weigh_once(text: &[u8], range: &Range<usize>) -> Option<i32> {
    let before = text.get(..range.start)?;
    if matches!(before, [.., b'`' | b'"' | b'\'']) {
        return None;
    }
    let passage = Passage::of(text.get(range.clone())?);
    let words = passage.each_word().take(6).count();
    let is_token = ROLE_TOKEN.iter().any(|token| passage.text().starts_with(token));
    let told = orders(&passage);
    match (is_token, told) {
        (true, 1..) if words > 4 => Some(26),
        (false, 2..) if words > 5 => Some(26),
        (false, 1)
            if words > 5 && passage.has(&["you must", "you should", "do not tell", "ignore"]) =>
        {
            Some(18)
        }
        (true | false, _) => None,
    }
}
