//! Matches of the detector of hidden characters.

use crate::{
    body::{buffer::Body, segment::SegmentKind},
    scan::found::Match,
    text::hidden,
    vocabulary::Likelihood,
};

/// Finds runs of hidden characters in keys and texts. `active` is the index of the detector.
pub(super) fn scan(body: &Body, active: u16, matches: &mut Vec<Match>) {
    if !body.has_odd(body.segments.len()) {
        return;
    }
    for (index, segment) in (0..).zip(&body.segments) {
        match segment.kind {
            SegmentKind::Key | SegmentKind::Text => {}
            SegmentKind::Number | SegmentKind::View(_) | SegmentKind::Joined(_) => continue,
        }
        let bytes = body.slice(segment.range());
        if !hidden::has_suspect(bytes) {
            continue;
        }
        let start = segment.start as usize;
        let Ok(text) = std::str::from_utf8(bytes) else { continue };
        matches.extend(hidden::runs(text).into_iter().map(|run| Match {
            active,
            segment: index,
            range: start + run.start..start + run.end,
            likelihood: Likelihood::VeryLikely,
        }));
    }
}
