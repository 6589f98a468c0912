//! Detectors that the operator adds: data from the configuration, checked when it is loaded.

use regex::bytes::Regex;
use serde::Deserialize;

use crate::{
    catalogue::detector::Edges,
    settings::patterns::{compile, plain},
    vocabulary::{Category, Likelihood},
};

/// A detector of one's own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Custom {
    /// The name that policies, settings and findings use: letters, digits and `_`.
    pub name: String,
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

/// A configured detector, ready to weigh candidates.
pub(crate) struct Own {
    pub(crate) name: String,
    pub(crate) category: Category,
    pub(crate) pattern: String,
    /// The group that is what is found; the first one when absent.
    pub(crate) group: Option<usize>,
    pub(crate) literals: Vec<String>,
    pub(crate) edges: Edges,
    pub(crate) checksum: Option<Checksum>,
    pub(crate) min_entropy: Option<f64>,
    pub(crate) context: Vec<String>,
    pub(crate) needs_context: bool,
    pub(crate) likelihood: Likelihood,
    /// A match that holds one of these is something else.
    pub(crate) not: Vec<Regex>,
    /// Lower case; a match that holds one of these is something else.
    pub(crate) stop_words: Vec<String>,
    pub(crate) must_match: Vec<String>,
    pub(crate) must_not_match: Vec<String>,
}

impl Custom {
    /// The detector, or everything that is wrong with it.
    pub(crate) fn own(&self) -> Result<Own, Vec<String>> {
        let mut problems = Vec::new();
        let mut wrong = |what: &str| problems.push(format!("detector `{}`: {what}", self.name));
        if !is_name(&self.name) {
            wrong("a name is 1 to 64 of a-z, 0-9 and `_`, beginning with a letter");
        }
        let mut edges = Edges::Word;
        match compile(&self.pattern) {
            Err(error) => wrong(&format!("`pattern`: {}", plain(&error))),
            Ok(pattern) if pattern.is_match(b"") => {
                wrong("`pattern` matches nothing at all, and so everywhere; make it longer");
            }
            // A group is cut out of what the pattern itself puts around it.
            Ok(pattern) if pattern.captures_len() > 1 => edges = Edges::Any,
            Ok(_) => {}
        }
        if self.literals.iter().any(|literal| literal.len() < 2) {
            wrong("a literal has at least 2 characters");
        }
        if self.needs_context && self.context.is_empty() {
            wrong("`needs_context` without words in `context` never fires; name some");
        }
        if self.must_match.is_empty() || self.must_not_match.is_empty() {
            wrong("give at least one sample in `must_match` and one in `must_not_match`");
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Own {
            name: self.name.clone(),
            category: self.category,
            pattern: self.pattern.clone(),
            group: None,
            literals: self.literals.iter().map(|literal| literal.to_ascii_lowercase()).collect(),
            edges,
            checksum: self.checksum,
            min_entropy: self.min_entropy,
            context: self.context.iter().map(|word| word.to_lowercase()).collect(),
            needs_context: self.needs_context,
            likelihood: self.likelihood,
            not: Vec::new(),
            stop_words: Vec::new(),
            must_match: self.must_match.clone(),
            must_not_match: self.must_not_match.clone(),
        })
    }
}

pub(crate) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && name.starts_with(|first: char| first.is_ascii_lowercase())
}
