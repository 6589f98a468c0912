//! The evidence for a candidate: its shape, what its detector checks, and what stands near it.

use std::ops::Range;

use super::{
    body::Body,
    context,
    detector::{Candidate, Detector, Edges},
    prefixes,
};

/// What a key that speaks against a match takes away.
const AGAINST_BITS: i32 = 12;

/// The evidence that a built-in detector has for a candidate.
pub(super) fn bits(
    detector: &'static Detector,
    body: &Body,
    segment: u32,
    candidate: &Candidate<'_>,
) -> Option<i32> {
    if !has_free_edges(detector.edges, candidate.text, &candidate.range) {
        return None;
    }
    let shape = detector.bits + (detector.check)(candidate)?;
    let memo = memo_of(detector, body, segment);
    if memo.above || stands_near(detector, body, memo, candidate) {
        return Some(shape + detector.context_bits);
    }
    let head = head_above(detector, body, segment, candidate);
    let names = |words: &[&str]| head.is_some_and(|head| context::names(head, words));
    let weight = if names(detector.context) {
        detector.context_bits
    } else if memo.against || names(detector.against) {
        -AGAINST_BITS
    } else {
        0
    };
    Some(shape + weight)
}

/// What names the column that a candidate stands in, in a table of text.
fn head_above<'a>(
    detector: &Detector,
    body: &Body,
    segment: u32,
    candidate: &Candidate<'a>,
) -> Option<&'a [u8]> {
    if detector.context.is_empty() && detector.against.is_empty() {
        return None;
    }
    let (text, at) = (candidate.text, candidate.range.start);
    let line = body.line.get().of(segment, text, at)?;
    body.line.set(line);
    line.head_above(text, at)
}

/// What is known of the context of a detector in a segment. Matches come in rows, and most of what
/// stands near one stands near the next.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Memo {
    /// The detector's address and the segment; 0 is none.
    who: usize,
    segment: u32,
    /// Whether a key above names it, or speaks against it.
    above: bool,
    against: bool,
    /// The part of the segment in which no context word begins.
    clear: (usize, usize),
}

fn memo_of(detector: &'static Detector, body: &Body, segment: u32) -> Memo {
    let who = std::ptr::from_ref(detector).addr();
    let known = body.memo.get();
    if (known.who, known.segment) == (who, segment) {
        return known;
    }
    let node = body.segment(segment).map(|segment| segment.node);
    let stands = |words: &[&str]| {
        !words.is_empty() && node.is_some_and(|node| context::stands_above(body, node, words))
    };
    let above = stands(detector.context);
    let against = !above && stands(detector.against);
    let memo = Memo { who, segment, above, against, clear: (0, 0) };
    body.memo.set(memo);
    memo
}

/// Whether a context word stands near. Looks only at what no match before has shown to be clear.
fn stands_near(detector: &Detector, body: &Body, memo: Memo, candidate: &Candidate<'_>) -> bool {
    let Candidate { text, range, key: _ } = candidate;
    let words = detector.context;
    if words.is_empty() {
        return false;
    }
    let start = range.start.saturating_sub(context::BEFORE);
    let end = text.len().min(range.end + context::AFTER);
    let (from, to) = memo.clear;
    let (from, unknown) = if from <= start && start <= to { (from, to) } else { (start, start) };
    if context::might_begin(text, unknown..end, words) {
        return context::stands_near(text, range, words);
    }
    body.memo.set(Memo { clear: (from, end.max(unknown)), ..memo });
    false
}

/// Whether nothing touches a match that may not. A letter that ends an escape such as a
/// literal `\n` is no part of a word.
pub(super) fn has_free_edges(edges: Edges, text: &[u8], inside: &Range<usize>) -> bool {
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
