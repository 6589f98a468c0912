//! Rule files of gitleaks as further detectors of secrets.
//!
//! Of a rule count `id`, `regex`, `secretGroup`, `keywords`, `entropy`, and the `regexes` and
//! `stopwords` of its allowlists and of the file's own. What concerns paths and commits has no
//! meaning here: a rule about paths alone is left out, an allowlist about paths alone too.

use serde::Deserialize;
use toml::Spanned;

use crate::{
    catalogue::{
        checks::conditions::Conditions,
        detector::{Detector, Edges},
        entry::{Configured, Entry, Keys, line_of},
        pattern::compile,
    },
    vocabulary::{Category, Likelihood},
};

/// One rules file.
#[derive(Debug, Clone)]
pub struct Gitleaks {
    /// Name of the file in messages.
    name: String,
    /// Those with a regex, each with its line.
    rules: Vec<(usize, GitleaksRule)>,
    /// Allowlists for all rules.
    allowlists: Vec<GitleaksAllowlist>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GitleaksFile {
    rules: Vec<Spanned<GitleaksRule>>,
    allowlist: GitleaksAllowlist,
    allowlists: Vec<GitleaksAllowlist>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct GitleaksRule {
    id: String,
    regex: String,
    #[serde(rename = "secretGroup")]
    secret_group: Option<usize>,
    entropy: Option<f64>,
    keywords: Vec<String>,
    allowlist: GitleaksAllowlist,
    allowlists: Vec<GitleaksAllowlist>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct GitleaksAllowlist {
    regexes: Vec<String>,
    stopwords: Vec<String>,
    /// `AND` lets a match pass only if all that is listed holds; such a list is left out, for it
    /// would let too much pass.
    condition: String,
}

/// Prefix of a rule's id in the name of its detector.
const PREFIX: &str = "gitleaks_";

const KEYS: Keys = Keys {
    longest_name: PREFIX.len() + 100,
    wrong_name: "give it an `id` of at most 100 characters",
    pattern: "regex",
    no_examples: None,
};

impl Gitleaks {
    /// Reads a file under the name that messages call it by.
    pub fn parse(name: String, text: &str) -> Result<Self, String> {
        let file: GitleaksFile = toml::from_str(text).map_err(|error| {
            format!("`{name}` is no rule file: {}", error.to_string().trim_end())
        })?;
        let rules = file.rules.into_iter();
        let rules = rules.map(|rule| (line_of(text, rule.span().start), rule.into_inner()));
        let allowlists = file.allowlists.into_iter().chain([file.allowlist]).collect();
        Ok(Self {
            name,
            rules: rules.filter(|(_, rule)| !rule.regex.is_empty()).collect(),
            allowlists,
        })
    }

    /// The detectors, or everything that is wrong with the file.
    pub(crate) fn detectors(&self) -> Result<Vec<Detector>, Vec<String>> {
        if self.rules.is_empty() {
            return Err(vec![format!("`{}` holds no rule with a regex", self.name)]);
        }
        let mut problems = Vec::new();
        let mut detectors = Vec::new();
        for (line, rule) in &self.rules {
            let label = format!("`{}`, rule `{}` on line {line}", self.name, rule.id);
            let entry = self.entry(rule, label).map_err(|problem| vec![problem]);
            match entry.and_then(|entry| entry.detector(Category::Secret)) {
                Ok(detector) => detectors.push(detector),
                Err(wrong) => problems.extend(wrong),
            }
        }
        if problems.is_empty() { Ok(detectors) } else { Err(problems) }
    }

    /// The entry for a rule.
    fn entry(&self, rule: &GitleaksRule, label: String) -> Result<Entry, String> {
        let lists = self.allowlists.iter().chain([&rule.allowlist]).chain(&rule.allowlists);
        let lists = lists.filter(|list| !list.condition.eq_ignore_ascii_case("and"));
        let not =
            lists.clone().flat_map(|list| &list.regexes).map(|source| compile(&from_go(source)));
        let stop_words = lists.flat_map(|list| &list.stopwords);
        let conditions = Conditions {
            checksum: None,
            min_entropy: rule.entropy.filter(|least| *least > 0.0),
            not: not.collect::<Result<_, _>>().map_err(|problem| format!("{label}: {problem}"))?,
            stop_words: stop_words.map(|word| word.to_ascii_lowercase()).collect(),
        };
        // No keyword wakes it when one is too short to wake by.
        let can_wake = rule.keywords.iter().all(|word| word.len() >= 2);
        let keywords = can_wake.then(|| rule.keywords.clone());
        Ok(Entry {
            name: name_of(&rule.id),
            label,
            keys: &KEYS,
            configured: Some(Configured {
                group: rule.secret_group,
                needs_context: false,
                conditions,
            }),
            marks: keywords.unwrap_or_default(),
            pattern: Some(from_go(&rule.regex)),
            edges: Some(Edges::Any),
            words: Some(Vec::new()),
            bits: Some(Likelihood::Likely.least_bits()),
            ..Entry::default()
        })
    }
}

/// The regex with a backslash before each `{` that opens no repetition: Go reads it as a character, Rust
/// refuses it. Rules of gitleaks' own file have some.
fn from_go(regex: &str) -> String {
    let mut written = String::with_capacity(regex.len());
    let mut chars = regex.char_indices();
    while let Some((at, char)) = chars.next() {
        let rest = regex.get(at..).unwrap_or_default();
        if char == '{' && !opens_repetition(rest) {
            written.push('\\');
        }
        written.push(char);
        if char == '\\' {
            // `\p{…}` and `\x{…}` have braces of their own.
            let has_braces = ["\\p{", "\\P{", "\\x{"].iter().any(|it| rest.starts_with(it));
            let escaped = chars.by_ref().take(if has_braces { 2 } else { 1 });
            written.extend(escaped.map(|(_, char)| char));
        }
    }
    written
}

/// True for `{2}`, `{2,}` and `{2,5}`.
fn opens_repetition(rest: &str) -> bool {
    fn after_digits(text: &str) -> &str {
        text.trim_start_matches(|it: char| it.is_ascii_digit())
    }
    let bounds = rest.strip_prefix('{').unwrap_or_default();
    let rest = after_digits(bounds);
    let closes = |text: &str| text.starts_with('}');
    rest.len() < bounds.len()
        && (closes(rest) || rest.strip_prefix(',').is_some_and(|most| closes(after_digits(most))))
}

/// Name of the detector; empty for a rule without an id.
fn name_of(id: &str) -> String {
    if id.is_empty() {
        return String::new();
    }
    let plain =
        |char: char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '_' };
    PREFIX.chars().chain(id.chars().map(plain)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_that_repeat_nothing_are_characters() {
        for (go, rust) in [
            (r"^\$(?:\d+|{\d+})$", r"^\$(?:\d+|\{\d+})$"),
            (r"{{ *[a-z]{2,} }}", r"\{\{ *[a-z]{2,} }}"),
            (r"a{2}b{2,5}c{,5}d{e", r"a{2}b{2,5}c\{,5}d\{e"),
            (r"(?u:\p{Lu})\x{1F}\{2}é{", r"(?u:\p{Lu})\x{1F}\{2}é\{"),
        ] {
            assert_eq!(from_go(go), rust);
            compile(rust).unwrap();
        }
    }
}
