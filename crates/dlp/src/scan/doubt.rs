//! Numbers that a detector turned down although the nearest key says that they are of its kind.

use std::{collections::HashSet, ops::Range};

use crate::{
    body::{
        buffer::Body,
        segment::{Segment, SegmentKind},
    },
    catalogue::{checks::varied, detector::Detector},
    scan::{found::Match, scanner::Scanner},
    text::words,
    vocabulary::{Category, Likelihood},
};

/// Fewest digits of a number that may be mistyped.
const LEAST_DIGITS: usize = 7;

/// White space around a number that is all of a text, at most.
const SPACE: usize = 64;

impl Scanner {
    /// Match that a detector makes of a candidate, or a doubt where it turns a number down.
    pub(super) fn weigh_or_doubt(
        &self,
        index: u16,
        body: &Body,
        segment: u32,
        range: Range<usize>,
        more: i32,
    ) -> Option<Match> {
        let active = self.active.get(usize::from(index))?;
        let found = active.weigh(index, body, segment, range.clone(), more);
        if found.is_some() {
            return found;
        }
        let doubt = self.doubt?;
        let is_doubt = active.built_in().is_some_and(|it| is_doubt(it, body, segment, &range));
        let likelihood = Likelihood::Possible;
        is_doubt.then_some(Match { active: doubt, segment, range, likelihood })
    }

    /// Drops doubts about texts in which another detector found something, and all but one of a text.
    pub(crate) fn drop_doubts(&self, matches: &mut Vec<Match>) {
        let Some(doubt) = self.doubt else { return };
        if !matches.iter().any(|found| found.active == doubt) {
            return;
        }
        let others = matches.iter().filter(|found| found.active != doubt);
        let mut known: HashSet<u32> = others.map(|found| found.segment).collect();
        matches.retain(|found| found.active != doubt || known.insert(found.segment));
    }
}

/// Returns true if digits are all of a text whose nearest key ends with a word for them.
fn is_doubt(detector: &Detector, body: &Body, segment: u32, range: &Range<usize>) -> bool {
    let Some(home) = body.segment(segment).filter(|home| is_value(home)) else { return false };
    let is_of_kind = match detector.category {
        Category::Financial | Category::NationalId | Category::Health => true,
        Category::Secret
        | Category::Contact
        | Category::Network
        | Category::Hidden
        | Category::Injection => false,
    };
    is_of_kind
        && home.range().len() <= range.len() + SPACE
        && body.slice(home.range()).trim_ascii().len() == range.len()
        && body.name_of(home.node).is_some_and(|key| words::ends_name(key, &detector.context))
        && {
            let digits = body.slice(range.clone()).iter().filter(|byte| byte.is_ascii_digit());
            let digits: Vec<u8> = digits.copied().collect();
            digits.len() >= LEAST_DIGITS && varied(&digits)
        }
}

/// Returns true for values as they are written.
fn is_value(home: &Segment) -> bool {
    matches!(home.kind, SegmentKind::Text | SegmentKind::Number)
}
