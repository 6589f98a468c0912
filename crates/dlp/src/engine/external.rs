//! The seam for a detector outside: what it is shown, and what it reports.

use std::sync::Arc;

use crate::{
    body::{
        buffer::Body,
        segment::{SegmentKind, small},
    },
    catalogue::detector::{Detector, NormalForm},
    engine::{Engine, gather},
    findings::{
        finding::{Finding, Findings, How, Span},
        subject::Subject,
    },
    limits::{Limits, Unscannable},
    vocabulary::{Category, Likelihood},
};
use portcullis_json::JsonValue;

/// A key, a text or a number of a value, as an external detector is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Its number among the keys, texts and numbers of the value.
    pub place: u32,
    pub text: String,
}

/// One thing that an external detector found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// The place of the text it is in.
    pub place: u32,
    /// Kind of the finding: one of the names in the settings.
    pub detector: String,
    /// Characters before it in the text.
    pub start: usize,
    /// Characters up to its end.
    pub end: usize,
    pub likelihood: Likelihood,
}

impl Engine {
    /// The keys, texts and numbers of a value that has been scanned.
    pub fn texts<'a>(&self, value: impl JsonValue<'a>) -> Result<Vec<Text>, Unscannable> {
        let body = self.flat(value)?;
        let segments = (0..).zip(&body.segments);
        let texts = segments.filter(|(_, segment)| match segment.kind {
            SegmentKind::Key | SegmentKind::Text | SegmentKind::Number => {
                segment.start < segment.end
            }
            SegmentKind::View(_) | SegmentKind::Joined(_) => false,
        });
        let text = |segment| String::from_utf8_lossy(body.slice(segment)).into_owned();
        Ok(texts.map(|(place, it)| Text { place, text: text(it.range()) }).collect())
    }

    /// Adds what an external detector found in a value to what the engine found in it. `None` for a
    /// report about an unknown kind or place.
    #[must_use]
    pub fn add_reported<'a>(
        &self,
        value: impl JsonValue<'a>,
        findings: &Findings,
        reported: &[Reported],
        subject: &Subject,
    ) -> Option<Findings> {
        if reported.is_empty() {
            return Some(findings.clone());
        }
        let body = self.flat(value).ok()?;
        let found: Option<Vec<Finding>> =
            reported.iter().map(|report| self.finding(&body, report, subject)).collect();
        let mut all = findings.clone().and(found?, subject);
        gather::point(&body, all.list_mut());
        Some(all)
    }

    /// Findings of these detectors in no particular place, for who asks what if they were there.
    /// Findings that count and are acted upon like others, but there is nothing of them to mask.
    #[must_use]
    pub fn supposed(&self, detectors: &[String]) -> Findings {
        let finding = |name: &String| Finding {
            detector: Arc::from(name.as_str()),
            category: self.category(name),
            normal_form: NormalForm::Verbatim,
            pointer: String::new(),
            place: 0,
            in_key: false,
            count: 1,
            likelihood: Likelihood::Likely,
            fingerprints: Vec::new(),
            spans: Vec::new(),
        };
        Findings::nowhere(detectors.iter().map(finding).collect())
    }

    /// The category of a detector; a name that means nothing counts among the least grave.
    fn category(&self, name: &str) -> Category {
        let active = self.scanner.active.iter().find(|active| active.detector.name() == name);
        let known = || Self::known_detectors().find(|detector| detector.name() == name);
        active
            .map(|active| active.detector.category)
            .or_else(|| known().map(Detector::category))
            .or_else(|| self.settings.external.get(name).copied())
            .unwrap_or(Category::Contact)
    }

    fn flat<'a>(&self, value: impl JsonValue<'a>) -> Result<Body, Unscannable> {
        let limits = Limits { max_bytes: usize::MAX, ..self.settings.limits };
        let mut body = Body::default();
        body.flatten_outside(value, &limits)?;
        Ok(body)
    }

    fn finding(&self, body: &Body, report: &Reported, subject: &Subject) -> Option<Finding> {
        let category = *self.settings.external.get(&report.detector)?;
        let segment = body.segment(report.place)?;
        let text = std::str::from_utf8(body.slice(segment.range())).ok()?;
        let offset = |chars: usize| {
            let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            ends.nth(chars)
        };
        let start = offset(report.start)?;
        let end = offset(report.end)?;
        let matched = text.get(start..end).filter(|matched| !matched.is_empty())?;
        let span = Span { range: small(start)..small(end), hash: 0, how: How::Plainly };
        let fingerprint = subject.key.fingerprint(&report.detector, matched.as_bytes());
        Some(Finding {
            detector: Arc::from(report.detector.as_str()),
            category,
            normal_form: NormalForm::Verbatim,
            pointer: String::new(),
            place: report.place,
            in_key: segment.kind == SegmentKind::Key,
            count: 1,
            likelihood: report.likelihood,
            fingerprints: vec![fingerprint],
            spans: vec![span],
        })
    }
}
