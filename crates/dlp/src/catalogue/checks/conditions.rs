//! Conditions of the configuration on a match.

use std::sync::Arc;

use regex::bytes::Regex;
use serde::Deserialize;

use crate::catalogue::checks::{entropy, luhn, mod_97};

/// Check digits that a match of one's own may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checksum {
    /// The last digit is the Luhn digit of those before it.
    Luhn,
    /// ISO 7064 mod 97 over letters and digits, the first four last, as in an IBAN.
    #[serde(rename = "mod_97")]
    Mod97,
}

/// Conditions that all have to hold.
#[derive(Debug)]
pub(crate) struct Conditions {
    pub(crate) checksum: Option<Checksum>,
    /// Bits per character.
    pub(crate) min_entropy: Option<f64>,
    /// Values that are something else; many detectors may have the same.
    pub(crate) allowed: Vec<Arc<AllowedValues>>,
}

/// Values that a list of gitleaks lets pass.
#[derive(Debug)]
pub(crate) struct AllowedValues {
    pub(crate) regexes: Vec<Regex>,
    /// Steps for each byte of a value that the regexes may take.
    pub(crate) steps: usize,
    /// In lower case.
    pub(crate) stop_words: Vec<String>,
    /// True if a value has to hold a stop word and fit a regex.
    pub(crate) needs_both: bool,
}

impl AllowedValues {
    fn contain(&self, matched: &[u8]) -> bool {
        let fits = || self.regexes.iter().any(|regex| regex.is_match(matched));
        let has_stop_word = || {
            let lower = matched.to_ascii_lowercase();
            let is_in = |word: &String| memchr::memmem::find(&lower, word.as_bytes()).is_some();
            self.stop_words.iter().any(is_in)
        };
        if self.needs_both { fits() && has_stop_word() } else { fits() || has_stop_word() }
    }
}

impl Conditions {
    /// Steps for each byte of a match that it may take to say whether they hold.
    pub(crate) fn steps(&self) -> usize {
        let of = |allowed: &Arc<AllowedValues>| allowed.steps + allowed.stop_words.len();
        1 + self.allowed.iter().map(of).sum::<usize>()
    }

    pub(crate) fn hold(&self, matched: &[u8]) -> bool {
        let is_valid = match self.checksum {
            None => true,
            Some(Checksum::Luhn) => {
                let digits = matched.iter().filter(|byte| byte.is_ascii_digit());
                luhn(&digits.map(|digit| digit - b'0').collect::<Vec<_>>())
            }
            Some(Checksum::Mod97) => {
                let kept = matched.iter().copied().filter(u8::is_ascii_alphanumeric);
                mod_97(&kept.collect::<Vec<_>>())
            }
        };
        !matched.is_empty()
            && is_valid
            && self.min_entropy.is_none_or(|least| entropy(matched) >= least)
            && !self.allowed.iter().any(|allowed| allowed.contain(matched))
    }
}
