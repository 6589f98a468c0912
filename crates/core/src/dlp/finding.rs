//! What a scan reports. A finding says where and what kind; it never holds the matched text.

use std::{fmt, ops::Range};

use aws_lc_rs::hmac;
use zeroize::Zeroizing;

use super::kinds::{Category, Likelihood};

/// The key under which matched values become fingerprints: one per org, so that equal values
/// correlate inside an org and mean nothing outside it.
#[derive(Clone)]
pub struct FingerprintKey {
    key: hmac::Key,
}

impl FingerprintKey {
    /// A key from 32 secret bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        let bytes = Zeroizing::new(bytes);
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, bytes.as_ref()) }
    }

    /// HMAC-SHA-256 over the detector's name and the normalised value, cut to 16 bytes.
    pub(super) fn fingerprint(&self, detector: &str, value: &[u8]) -> Fingerprint {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(detector.as_bytes());
        context.update(&[0]);
        context.update(value);
        let mut cut = [0; 16];
        for (into, byte) in cut.iter_mut().zip(context.sign().as_ref()) {
            *into = *byte;
        }
        Fingerprint(cut)
    }
}

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FingerprintKey(..)")
    }
}

/// A keyed fingerprint of a matched value; shown as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 16]);

impl Fingerprint {
    /// The bytes, for storing.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// All matches of one detector in one key or one value.
#[derive(Clone, PartialEq, Eq)]
pub struct Finding {
    pub(super) detector: &'static str,
    pub(super) category: Category,
    pub(super) pointer: String,
    /// The pointer with its keys as they are, for finding the place again. Never shown.
    pub(super) target: String,
    pub(super) in_key: bool,
    pub(super) count: u32,
    pub(super) likelihood: Likelihood,
    pub(super) fingerprints: Vec<Fingerprint>,
    /// Bytes of the original string that the matches cover, in order of discovery.
    pub(super) spans: Vec<Range<usize>>,
}

impl Finding {
    /// The detector's name, as policies use it.
    #[must_use]
    pub fn detector(&self) -> &str {
        self.detector
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

    /// Whether the member's key matched rather than its value.
    #[must_use]
    pub fn is_in_key(&self) -> bool {
        self.in_key
    }

    /// How often the detector matched there.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The strongest evidence among the matches.
    #[must_use]
    pub fn likelihood(&self) -> Likelihood {
        self.likelihood
    }

    /// Keyed fingerprints of the distinct values that matched, in order of discovery.
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

/// What one scan found, in document order, one entry per detector and place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
}

impl Findings {
    pub(super) fn new(list: Vec<Finding>) -> Self {
        Self { list }
    }

    /// The findings in document order.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.list.iter()
    }

    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many matches there are, over all detectors and places.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.list.iter().map(|finding| u64::from(finding.count)).sum()
    }

    /// The names of the detectors that matched, each once, sorted.
    #[must_use]
    pub fn detectors(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.list.iter().map(|finding| finding.detector).collect();
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
