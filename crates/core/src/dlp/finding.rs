//! What a scan reports. A finding says where and what kind; it never holds the matched text.

use std::{fmt, ops::Range, str::FromStr, sync::Arc};

use aws_lc_rs::hmac;
use zeroize::Zeroizing;

use super::{
    Subject,
    detector::NormalForm,
    kinds::{Category, Likelihood},
};

/// The key under which matched values become fingerprints: one per org, so that equal values
/// correlate inside an org and mean nothing outside it.
#[derive(Clone)]
pub struct FingerprintKey {
    key: Arc<hmac::Key>,
}

impl FingerprintKey {
    /// A key from 32 secret bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        let bytes = Zeroizing::new(bytes);
        Self { key: Arc::new(hmac::Key::new(hmac::HMAC_SHA256, bytes.as_ref())) }
    }

    /// HMAC-SHA-256 over the detector's name and the normalised value, cut to 16 bytes.
    pub(super) fn fingerprint(&self, detector: &str, value: &[u8]) -> Fingerprint {
        Fingerprint(self.tag(&[detector.as_bytes(), &[0], value]))
    }

    /// As [`fingerprint`](Self::fingerprint), of another domain and cut to 8 bytes: whoever sees
    /// pseudonyms learns no fingerprint.
    pub(super) fn pseudonym(&self, detector: &str, value: &[u8]) -> Pseudonym {
        Pseudonym(self.tag(&[b"pseudonym", &[0], detector.as_bytes(), &[0], value]))
    }

    fn tag<const N: usize>(&self, parts: &[&[u8]]) -> [u8; N] {
        let mut context = hmac::Context::with_key(&self.key);
        for part in parts {
            context.update(part);
        }
        let mut cut = [0; N];
        for (into, byte) in cut.iter_mut().zip(context.sign().as_ref()) {
            *into = *byte;
        }
        cut
    }
}

/// Stands for a value: the same within an org, meaningless outside it. Sixteen letters that make
/// neither words nor numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pseudonym([u8; 8]);

/// One letter for each half of a byte.
const LETTERS: [char; 16] =
    ['b', 'c', 'd', 'f', 'g', 'h', 'j', 'k', 'm', 'n', 'p', 'q', 'r', 's', 't', 'v'];

impl Pseudonym {
    /// Whether a text is a pseudonym.
    pub(super) fn is_one(text: &str) -> bool {
        text.len() == 16 && text.chars().all(|letter| LETTERS.contains(&letter))
    }
}

impl fmt::Display for Pseudonym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let halves = self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let letters: String = halves.filter_map(|half| LETTERS.get(usize::from(half))).collect();
        f.write_str(&letters)
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

impl FromStr for Fingerprint {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut bytes = [0; 16];
        if text.len() != 2 * bytes.len() || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(());
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            let pair = text.get(2 * index..2 * index + 2).ok_or(())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| ())?;
        }
        Ok(Self(bytes))
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
    pub(super) detector: Arc<str>,
    pub(super) category: Category,
    pub(super) normal_form: NormalForm,
    pub(super) pointer: String,
    /// Which of the value's keys, texts and numbers it is, in document order.
    pub(super) place: u32,
    pub(super) in_key: bool,
    pub(super) count: u32,
    pub(super) likelihood: Likelihood,
    pub(super) fingerprints: Vec<Fingerprint>,
    /// What of the original string the matches cover, in order of discovery.
    pub(super) spans: Vec<Span>,
}

/// A stretch of a string that a match covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    /// Bytes of the string.
    pub(super) range: Range<u32>,
    /// Of the value's normal form; says whether two are equal within one scan.
    pub(super) hash: u64,
    pub(super) how: How,
}

/// How a match was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
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

    /// What of the string the matches cover, in bytes and in order of discovery.
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

/// What one scan found, in document order, one entry per detector and place.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    list: Vec<Finding>,
    media: u32,
    /// For whom was scanned; kept for masking, if there is something to mask.
    subject: Option<Subject>,
}

impl Findings {
    pub(super) fn new(list: Vec<Finding>, subject: &Subject) -> Self {
        let subject = (!list.is_empty()).then(|| subject.clone());
        Self { list, media: 0, subject }
    }

    /// Findings of no value.
    pub(super) fn nowhere(list: Vec<Finding>) -> Self {
        Self { list, media: 0, subject: None }
    }

    pub(super) fn with_media(self, media: u32) -> Self {
        Self { media, ..self }
    }

    /// These and more, in document order again.
    pub(super) fn and(mut self, more: Vec<Finding>, subject: &Subject) -> Self {
        let media = self.media;
        self.list.extend(more);
        self.list.sort_by_key(|finding| finding.place);
        Self::new(self.list, subject).with_media(media)
    }

    pub(super) fn list_mut(&mut self) -> &mut [Finding] {
        &mut self.list
    }

    pub(super) fn subject(&self) -> Option<&Subject> {
        self.subject.as_ref()
    }

    /// How many images, recordings and other media there are, which nothing looks into.
    #[must_use]
    pub fn media(&self) -> u32 {
        self.media
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
