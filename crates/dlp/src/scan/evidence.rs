//! The evidence for a candidate: its shape, what its detector checks, and what stands near it.

use std::ops::Range;

use crate::{
    body::{buffer::Body, memo::ContextMemo},
    catalogue::detector::{Candidate, Detector, Edges, NormalForm, Shape},
    text::{
        log_lines::{self, Naming},
        own_words, prefixes,
        window::Window,
        words,
    },
    vocabulary::Category,
};

/// Evidence that a key against a match takes away, in bits.
const AGAINST_BITS: i32 = 12;

/// The evidence that a detector has for a candidate; `None` when it is something else.
pub(crate) fn bits(
    detector: &Detector,
    body: &Body,
    segment: u32,
    candidate: &Candidate<'_>,
    is_loose: bool,
) -> Option<i32> {
    if !has_free_edges(detector.edges, &candidate.text, &candidate.range) {
        return None;
    }
    let checked =
        if is_loose { check_loosely(detector, candidate) } else { detector.check.bits(candidate) };
    let shape = detector.bits + checked?;
    if let Shape::Configured { needs_context } = detector.shape {
        let is_named = names_configured(detector, body, segment, candidate);
        let context = if is_named { detector.context_bits } else { 0 };
        return (is_named || !needs_context).then_some(shape + context);
    }
    let memo = memo_of(detector, body, segment);
    if memo.above {
        return Some(shape + detector.context_bits);
    }
    let weight = if stands_near(detector, body, memo, candidate) {
        detector.context_bits
    } else if memo.against || is_counter(detector, candidate) {
        -AGAINST_BITS
    } else {
        0
    };
    Some(shape + weight)
}

/// Returns true if one of the words of a configured detector stands near a candidate or in a key above it.
fn names_configured(
    detector: &Detector,
    body: &Body,
    segment: u32,
    candidate: &Candidate<'_>,
) -> bool {
    let words = &detector.context;
    !words.is_empty()
        && (own_words::stand_near(&candidate.text, &candidate.range, words)
            || body.segment(segment).is_some_and(|home| stands_above(body, home.node, words)))
}

/// Evidence of a number in other groups than those of its kind: its letters and digits are checked.
fn check_loosely(detector: &Detector, candidate: &Candidate<'_>) -> Option<i32> {
    let text = NormalForm::Alphanumeric.apply(candidate.matched());
    let is_upper = !candidate.matched().iter().any(u8::is_ascii_lowercase);
    let text = if is_upper { text.to_ascii_uppercase() } else { text };
    let range = 0..text.len();
    let text = Window::around(&text, &range);
    let plain = Candidate { text, range, ..*candidate };
    detector.check.bits(&plain)
}

fn memo_of(detector: &Detector, body: &Body, segment: u32) -> ContextMemo {
    let who = std::ptr::from_ref(detector).addr();
    let known = body.memo.get();
    if (known.who, known.segment) == (who, segment) {
        return known;
    }
    let node = body.segment(segment).map(|segment| segment.node);
    let place = node.map(|node| body.named_place(node));
    let memo = if known.who == who && known.place == place {
        ContextMemo { segment, clear: (0, 0), ..known }
    } else {
        let stands = |words: &[String]| {
            !words.is_empty() && place.is_some_and(|place| stands_above(body, place, words))
        };
        let above =
            stands(&detector.context) && !place.is_some_and(|it| is_other(detector, body, it));
        let against = !above && stands(&detector.against);
        ContextMemo { who, segment, place, above, against, clear: (0, 0) }
    };
    body.memo.set(memo);
    memo
}

/// Returns true for digits in the line of a log that look like a telephone number, with no word for one.
fn is_counter(detector: &Detector, candidate: &Candidate<'_>) -> bool {
    let Candidate { text, range, .. } = candidate;
    detector.category == Category::Contact
        && matches!(detector.shape, Shape::Number { .. })
        && log_lines::start_of_line(text, range.start).is_some()
}

/// Returns true if the nearest key says with its last word that its value is another: `server_version`.
fn is_other(detector: &Detector, body: &Body, place: u32) -> bool {
    let mut keys = body.keys_above(place);
    !detector.against.is_empty()
        && keys.next().is_some_and(|key| {
            words::ends_name(key, &detector.against) && !words::ends_name(key, &detector.context)
        })
}

/// Returns true if a context word stands near. Looks only at what no match before has shown to be
/// clear.
fn stands_near(
    detector: &Detector,
    body: &Body,
    memo: ContextMemo,
    candidate: &Candidate<'_>,
) -> bool {
    let Candidate { text, range, .. } = candidate;
    let words = &detector.context;
    if words.is_empty() || *range == (0..text.len()) {
        return false;
    }
    let first = text.start();
    let start = first + range.start.saturating_sub(words::BEFORE);
    let end = first + text.len().min(range.end + words::AFTER);
    let (from, to) = memo.clear;
    let (from, unknown) = if from <= start && start <= to { (from, to) } else { (start, start) };
    if words::might_begin(text, text.inside(&(unknown..end)), words) {
        return match log_lines::start_of_line(text, range.start) {
            Some(line) => {
                let near = text.between_placeholders(range).start;
                let before = text.get(near.max(range.start - line.len())..range.start);
                let naming = match detector.category {
                    Category::Contact => Naming::Sign,
                    Category::Secret
                    | Category::Financial
                    | Category::NationalId
                    | Category::Network
                    | Category::Health
                    | Category::Hidden
                    | Category::Injection => Naming::Word,
                };
                log_lines::names(before.unwrap_or_default(), candidate.matched(), words, naming)
            }
            None => own_words::stand_near(text, range, words),
        };
    }
    body.memo.set(ContextMemo { clear: (from, end.max(unknown)), ..memo });
    false
}

/// Returns true if one of the words stands in one of the nearest keys above a place.
pub(crate) fn stands_above(body: &Body, node: u32, named: &[String]) -> bool {
    body.keys_above(node).take(words::KEYS).any(|key| words::names(key, named))
}

/// Returns true if nothing touches a match that may not. A letter that ends an escape such as a
/// literal `\n` is no part of a word.
pub(crate) fn has_free_edges(edges: Edges, text: &[u8], inside: &Range<usize>) -> bool {
    let before = text.get(..inside.start).unwrap_or_default();
    let matched = || text.get(inside.clone()).unwrap_or_default();
    let free_before = match before {
        [.., b'\\', b'n' | b'r' | b't'] | [] => true,
        [.., last] => {
            edges.allow(*last) || edges == Edges::Mark && prefixes::is_clear(*last, matched())
        }
    };
    free_before && text.get(inside.end).is_none_or(|next| edges.allow(*next))
}
