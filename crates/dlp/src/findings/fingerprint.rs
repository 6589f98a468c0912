//! Keyed fingerprints and pseudonyms of matched values.

use std::{fmt, str::FromStr, sync::Arc};

use aws_lc_rs::hmac;
use zeroize::Zeroizing;

use crate::text::placeholders::LETTERS;

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
    pub(crate) fn fingerprint(&self, detector: &str, value: &[u8]) -> Fingerprint {
        Fingerprint(self.tag(&[detector.as_bytes(), &[0], value]))
    }

    /// As [`fingerprint`](Self::fingerprint), of another domain and cut to 8 bytes: a reader of
    /// pseudonyms learns no fingerprint.
    pub(crate) fn pseudonym(&self, detector: &str, value: &[u8]) -> Pseudonym {
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
pub(crate) struct Pseudonym([u8; 8]);

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
