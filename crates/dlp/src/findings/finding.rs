//! Findings of a scan. A finding holds place and kind, never the matched text.

use std::{fmt, ops::Range, sync::Arc};

use crate::{
    catalogue::detector::NormalForm,
    findings::{
        fingerprint::{Fingerprint, Pseudonym},
        subject::Subject,
    },
    vocabulary::{Category, Likelihood},
};

/// All matches of one detector in one key or one value.
#[derive(Clone, PartialEq, Eq)]
pub struct Finding {
    pub(crate) detector: Arc<str>,
    pub(crate) category: Category,
    pub(crate) normal_form: NormalForm,
    pub(crate) pointer: String,
    /// Index among the value's keys, texts and numbers, in document order.
    pub(crate) place: u32,
    pub(crate) in_key: bool,
    pub(crate) count: u32,
    pub(crate) likelihood: Likelihood,
    pub(crate) fingerprints: Vec<Fingerprint>,
    /// Parts of the original string that the matches cover, in order of discovery.
    pub(crate) spans: Vec<Span>,
}

/// A stretch of a string that a match covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    /// Bytes of the string.
    pub(crate) range: Range<u32>,
    /// Of the value's normal form; says whether two are equal within one scan.
    pub(crate) hash: u64,
    pub(crate) how: How,
}

/// Reading in which a match was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// As it stands there.
    Plainly,
    /// Decoded, or as a part of something that neighbours share; the first thousand of a place
    /// with the pseudonym of what was read.
    Otherwise(Option<Pseudonym>),
}

impl Finding {
    /// The detector's name, as policies use it.
    #[must_use]
    pub fn detector(&self) -> &str {
        &self.detector
    }

    /// The detector's category.
    #[must_use]
    pub fn category(&self) -> Category {
        self.category
    }

    /// RFC 6901 JSON Pointer of the value, or of the member whose key matched. A key that
    /// matched stands in it as its placeholder, so that a pointer never holds matched text.
    #[must_use]
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// Returns true if the member's key matched rather than its value.
    #[must_use]
    pub fn is_in_key(&self) -> bool {
        self.in_key
    }

    /// Number of matches of the detector there.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The strongest evidence among the matches.
    #[must_use]
    pub fn likelihood(&self) -> Likelihood {
        self.likelihood
    }

    /// Ranges of the string that the matches cover, in bytes and in order of discovery.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.spans.iter().map(|span| span.range.start as usize..span.range.end as usize)
    }

    /// Keyed fingerprints of the first 16 distinct values that matched, in order of discovery.
    /// None in places beyond the first few thousand of a body.
    #[must_use]
    pub fn fingerprints(&self) -> &[Fingerprint] {
        &self.fingerprints
    }
}

impl fmt::Debug for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finding")
            .field("detector", &self.detector)
            .field("pointer", &self.pointer)
            .field("in_key", &self.in_key)
            .field("count", &self.count)
            .field("likelihood", &self.likelihood)
            .finish_non_exhaustive()
    }
}

/// Findings of one scan, in document order, one entry per detector and place.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    list: Vec<Finding>,
    media: u32,
    /// For whom was scanned; kept for masking, if there is something to mask.
    subject: Option<Subject>,
}

impl Findings {
    pub(crate) fn new(list: Vec<Finding>, subject: &Subject) -> Self {
        let subject = (!list.is_empty()).then(|| subject.clone());
        Self { list, media: 0, subject }
    }

    /// Findings of no value.
    pub(crate) fn nowhere(list: Vec<Finding>) -> Self {
        Self { list, media: 0, subject: None }
    }

    pub(crate) fn with_media(self, media: u32) -> Self {
        Self { media, ..self }
    }

    /// These and more, in document order again.
    pub(crate) fn and(mut self, more: Vec<Finding>, subject: &Subject) -> Self {
        let media = self.media;
        self.list.extend(more);
        self.list.sort_by_key(|finding| finding.place);
        Self::new(self.list, subject).with_media(media)
    }

    pub(crate) fn list_mut(&mut self) -> &mut [Finding] {
        &mut self.list
    }

    pub(crate) fn subject(&self) -> Option<&Subject> {
        self.subject.as_ref()
    }

    /// Number of images, recordings and other media, which are not scanned.
    #[must_use]
    pub fn media(&self) -> u32 {
        self.media
    }

    /// The findings in document order.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.list.iter()
    }

    /// Returns true if nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Number of matches, over all detectors and places.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.list.iter().map(|finding| u64::from(finding.count)).sum()
    }

    /// The names of the detectors that matched, each once, sorted.
    #[must_use]
    pub fn detectors(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.list.iter().map(|finding| &*finding.detector).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The gravest category's [`severity`](Category::severity); 0 when nothing was found.
    #[must_use]
    pub fn max_severity(&self) -> i64 {
        self.list.iter().map(|finding| finding.category.severity()).max().unwrap_or(0)
    }
}

impl<'a> IntoIterator for &'a Findings {
    type Item = &'a Finding;
    type IntoIter = std::slice::Iter<'a, Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
