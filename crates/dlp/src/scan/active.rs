//! A detector made ready to run: compiled, with the evidence it weighs.

use std::{ops::Range, sync::Arc};

use crate::{
    body::{buffer::Body, segment::SegmentKind},
    catalogue::detector::{Candidate, Detector, LOOSE_BITS, Shape},
    scan::{evidence, found::Match, reach::Reach},
    vocabulary::Likelihood,
};

/// One enabled detector.
pub(crate) struct Active {
    pub(crate) detector: Arc<Detector>,
    pub(crate) reach: Reach,
    min_likelihood: Likelihood,
}

impl Active {
    pub(crate) fn new(detector: Arc<Detector>, min_likelihood: Likelihood) -> Active {
        let reach = Reach::of(&detector.shape, detector.edges);
        Active { detector, reach, min_likelihood }
    }

    /// The detector, if it is an entry of the catalogue.
    pub(crate) fn built_in(&self) -> Option<&Detector> {
        Some(&*self.detector).filter(|detector| detector.is_built_in())
    }

    /// Returns true if all of a value below a name is what it may find.
    pub(crate) fn takes_values(&self) -> bool {
        matches!(self.detector.shape, Shape::Value(_))
    }

    /// Returns true if it finds groups of digits.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self.detector.shape, Shape::Digits { .. })
    }

    /// The candidate as a match of the detector `index`, if there is enough evidence, with `more`
    /// bits of what woke it.
    pub(crate) fn weigh(
        &self,
        index: u16,
        body: &Body,
        segment: u32,
        range: Range<usize>,
        more: i32,
    ) -> Option<Match> {
        let likelihood = self.judge(body, segment, &range, more)?;
        Some(Match { active: index, segment, range, likelihood })
    }

    /// Returns true if what it finds there counts. Where neighbours are read as one only what may
    /// be cut does.
    pub(crate) fn looks_at(&self, kind: SegmentKind) -> bool {
        match kind {
            SegmentKind::Joined(_) => self.detector.category.may_be_cut(),
            SegmentKind::Key | SegmentKind::Text | SegmentKind::Number | SegmentKind::View(_) => {
                true
            }
        }
    }

    /// Weighs the evidence for a candidate; `None` when there is too little.
    fn judge(
        &self,
        body: &Body,
        segment: u32,
        range: &Range<usize>,
        more: i32,
    ) -> Option<Likelihood> {
        let home = body.segment(segment)?;
        if !self.looks_at(home.kind) {
            return None;
        }
        let text = body.slice(home.range());
        let start = home.start as usize;
        let inside = range.start.checked_sub(start)?..range.end.checked_sub(start)?;
        let key = body.name_of(home.node);
        let head = body.column_of(home.node);
        if inside.end > text.len() {
            return None;
        }
        let window = body.window(&home.range(), &inside);
        let range = window.inside(&inside);
        let candidate = Candidate { text: window, range, key, head, steps: &body.notes.steps };
        if candidate.is_masked() {
            return None;
        }
        let bits = evidence::bits(&self.detector, body, segment, &candidate, more == LOOSE_BITS)?;
        Likelihood::from_bits(bits + more).filter(|likelihood| *likelihood >= self.min_likelihood)
    }
}
