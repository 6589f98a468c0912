//! Secrets that several detectors find in one place: the most exact of them reports it. The token of a
//! vendor that is given to `password` is the vendor's token.

use crate::{
    catalogue::detector::{Edges, Shape},
    scan::{active::Active, found::Match, scanner::Scanner},
    vocabulary::Category,
};

/// Number of degrees of exactness.
const DEGREES: usize = 4;

/// Drops matches of secrets that lie within one of a more exact detector. Those of configured detectors
/// stay.
pub(super) fn keep_most_exact(scanner: &Scanner, matches: &mut Vec<Match>) {
    let degree = |found: &Match| scanner.active.get(usize::from(found.active)).and_then(degree);
    let mut secrets: Vec<(usize, usize)> = Vec::new();
    for (at, found) in matches.iter().enumerate() {
        secrets.extend(degree(found).map(|degree| (at, degree)));
    }
    if secrets.len() < 2 {
        return;
    }
    let place = |at: usize| matches.get(at).map(|found| (found.segment, found.range.clone()));
    secrets.sort_by_cached_key(|(at, degree)| {
        let (segment, range) = place(*at).unwrap_or_default();
        (segment, range.start, usize::MAX - range.end, DEGREES - degree)
    });
    let mut dropped = Vec::new();
    // How far the matches so far of each degree reach.
    let mut ends = [0; DEGREES];
    let mut current = None;
    for (at, degree) in secrets {
        let Some((segment, range)) = place(at) else { continue };
        if current.replace(segment) != Some(segment) {
            ends = [0; DEGREES];
        }
        if ends.iter().skip(degree + 1).any(|end| *end >= range.end) {
            dropped.push(at);
        }
        if let Some(end) = ends.get_mut(degree) {
            *end = range.end.max(*end);
        }
    }
    dropped.sort_unstable();
    let mut at = 0;
    matches.retain(|_| {
        at += 1;
        dropped.binary_search(&(at - 1)).is_err()
    });
}

/// Evidence from which on a pattern is as exact as a mark: the form alone says what it is.
const MARKED_BITS: i32 = 32;

/// Exactness of a built-in detector of secrets: marks of vendors and forms, then names of vendors, then
/// names of secrets that want random text, then those that take any.
fn degree(active: &Active) -> Option<usize> {
    let detector = active.built_in().filter(|it| it.category == Category::Secret)?;
    Some(match detector.shape {
        Shape::Pattern { .. }
            if detector.bits >= MARKED_BITS
                || matches!(detector.edges, Edges::Mark | Edges::Token) =>
        {
            3
        }
        Shape::Pattern { .. } | Shape::At(_) => 2,
        Shape::Beside { .. } if !detector.context.is_empty() => 2,
        Shape::Value(_) => 0,
        Shape::Beside { .. }
        | Shape::Digits { .. }
        | Shape::Number { .. }
        | Shape::Configured { .. }
        | Shape::Around(_)
        | Shape::Start(_)
        | Shape::Run(_)
        | Shape::Colons
        | Shape::Hidden => 1,
    })
}
