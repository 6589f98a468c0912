//! Detectors that the operator adds: data from the configuration, checked when it is loaded.

use serde::{Deserialize, de::IgnoredAny};
use toml::Spanned;

use crate::{
    catalogue::{
        checks::conditions::{Checksum, Conditions},
        entry::{Configured, Entry, Keys, line_of},
    },
    vocabulary::{Category, Likelihood},
};

/// A detector of one's own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Custom {
    /// The name that policies, settings and findings use: letters, digits and `_`.
    pub name: String,
    /// Place of it in messages: the file and its line.
    #[serde(skip)]
    place: Option<String>,
    /// Kind of harm that a finding stands for.
    pub category: Category,
    /// Description of the matches, in one line.
    #[serde(default)]
    pub description: String,
    /// A regular expression without look-around; its first group, if it has one, is what is found.
    pub pattern: String,
    /// Texts, in any case, without one of which the pattern cannot match within a few hundred
    /// bytes. Without any the pattern runs over every text, which costs time.
    #[serde(default)]
    pub literals: Vec<String>,
    /// Check digits of a match.
    #[serde(default)]
    pub checksum: Option<Checksum>,
    /// The least entropy of a match, in bits per character.
    #[serde(default)]
    pub min_entropy: Option<f64>,
    /// Words near a match, or in a key above it, that make it more likely.
    #[serde(default)]
    pub context: Vec<String>,
    /// True if a match counts only where one of the words stands.
    #[serde(default)]
    pub needs_context: bool,
    /// Likelihood of a match without context.
    #[serde(default = "likely")]
    pub likelihood: Likelihood,
    pub must_match: Vec<String>,
    pub must_not_match: Vec<String>,
}

const fn likely() -> Likelihood {
    Likelihood::Likely
}

/// The part of a configuration that says where its detectors stand.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Placed {
    dlp: PlacedDlp,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PlacedDlp {
    custom: Vec<Spanned<IgnoredAny>>,
}

impl Custom {
    /// Notes where the detectors of a configuration stand in its text.
    pub fn stand_in(detectors: &mut [Self], file: &str, text: &str) {
        let placed: Placed = toml::from_str(text).unwrap_or_default();
        for (detector, table) in detectors.iter_mut().zip(&placed.dlp.custom) {
            detector.place = Some(format!("{file}:{}", line_of(text, table.span().start)));
        }
    }
}

/// Evidence that context adds, in bits.
const CONTEXT_BITS: i32 = 16;

const KEYS: Keys = Keys {
    longest_name: 64,
    wrong_name: "a name is 1 to 64 of a-z, 0-9 and `_`, beginning with a letter",
    pattern: "pattern",
    no_examples: Some("give at least one sample in `must_match` and one in `must_not_match`"),
};

impl From<&Custom> for Entry {
    fn from(custom: &Custom) -> Self {
        let place = custom.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        Self {
            name: custom.name.clone(),
            label: format!("{place}detector `{}`", custom.name),
            keys: &KEYS,
            configured: Some(Configured {
                group: None,
                needs_context: custom.needs_context,
                conditions: Conditions {
                    checksum: custom.checksum,
                    min_entropy: custom.min_entropy,
                    allowed: Vec::new(),
                },
            }),
            category: Some(custom.category),
            finds: custom.description.clone(),
            marks: custom.literals.clone(),
            pattern: Some(custom.pattern.clone()),
            words: Some(custom.context.iter().map(|word| word.to_lowercase()).collect()),
            words_bits: Some(CONTEXT_BITS),
            bits: Some(custom.likelihood.least_bits()),
            fires: custom.must_match.clone(),
            passes: custom.must_not_match.clone(),
            ..Self::default()
        }
    }
}
