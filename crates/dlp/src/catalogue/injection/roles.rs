//! Turns of a conversation that data pretend to be.

use std::ops::Range;

use super::passage::{Passage, orders};
use crate::{
    catalogue::{detector::Candidate, lists::ROLE_TOKEN},
    text::window::Window,
};

/// Bytes behind a mark in which it is told what to do.
const AHEAD: usize = 320;

/// Turns that begin in the same bytes of a text with the same mark are read as one, so that no byte is read at each.
const NEAR: usize = 64;

pub(crate) fn find(text: &Window<'_>, literal: Range<usize>) -> Option<Range<usize>> {
    is_turn(text, &literal).then_some(())?;
    let start = first(text, &literal)?;
    let end = text.len().min(start + literal.len() + NEAR + AHEAD);
    let rest = text.get(literal.end..end)?;
    let ended = memchr::memmem::find(rest, BREAK).unwrap_or(rest.len());
    let range = start..literal.end + ended;
    weigh(text, &range).map(|_| range)
}

/// Space that ends a turn.
const BREAK: &[u8] = b"\n\n\n";

/// Start of the first of the turns that are read as one.
fn first(text: &Window<'_>, literal: &Range<usize>) -> Option<usize> {
    let floor = literal.start.saturating_sub((text.start() + literal.start) % NEAR);
    let ended = memchr::memmem::rfind(text.get(floor..=literal.start)?, BREAK).unwrap_or(0);
    let mark = text.get(literal.clone())?;
    (floor + ended..=literal.start).find(|start| {
        let place = *start..*start + mark.len();
        let is_same = text.get(place.clone()).is_some_and(|it| it.eq_ignore_ascii_case(mark));
        is_same && is_turn(text, &place)
    })
}

/// Returns false for a mark that is quoted, or that a letter goes on: `### Users` is a heading.
fn is_turn(text: &[u8], literal: &Range<usize>) -> bool {
    let before = text.get(..literal.start).unwrap_or_default();
    let is_letter = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphabetic);
    let is_quoted = matches!(before, [.., b'`' | b'"' | b'\'']);
    let goes_on = literal.end.checked_sub(1).is_some_and(is_letter) && is_letter(literal.end);
    !is_quoted && !goes_on
}

pub(crate) fn check(candidate: &Candidate<'_>) -> Option<i32> {
    weigh(&candidate.text, &candidate.range)
}

fn weigh(text: &Window<'_>, range: &Range<usize>) -> Option<i32> {
    text.once("impersonated_turn", range, || weigh_once(text, range))
}

fn weigh_once(text: &[u8], range: &Range<usize>) -> Option<i32> {
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
