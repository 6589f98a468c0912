//! Rule files of gitleaks as further detectors of secrets.
//!
//! Of a rule count `id`, `regex`, `secretGroup`, `keywords`, `entropy`, and the `regexes` and
//! `stopwords` of its allowlists and of the file's own. What concerns paths and commits has no
//! meaning here: a rule about paths alone is left out, an allowlist about paths alone too.

use regex::bytes::Regex;
use serde::Deserialize;

use crate::{
    catalogue::detector::Edges,
    settings::{
        custom::Own,
        patterns::{compile, plain},
    },
    vocabulary::{Category, Likelihood},
};

/// One rules file, as it is written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Gitleaks {
    /// Name of the file in messages.
    #[serde(skip)]
    name: String,
    rules: Vec<GitleaksRule>,
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

impl Gitleaks {
    /// The same under the name of its file.
    #[must_use]
    pub fn named(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// Number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.iter().filter(|rule| !rule.regex.is_empty()).count()
    }

    /// Returns true if it brings none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The detectors, or everything that is wrong with the file.
    pub(crate) fn owns(&self) -> Result<Vec<Own>, Vec<String>> {
        if self.is_empty() {
            return Err(vec![format!("`{}` holds no rule with a regex", self.name)]);
        }
        let mut problems = Vec::new();
        let mut owns = Vec::new();
        for rule in self.rules.iter().filter(|rule| !rule.regex.is_empty()) {
            match self.own(rule) {
                Ok(own) => owns.push(own),
                Err(problem) => {
                    problems.push(format!("`{}`, rule `{}`: {problem}", self.name, rule.id));
                }
            }
        }
        if problems.is_empty() { Ok(owns) } else { Err(problems) }
    }

    fn own(&self, rule: &GitleaksRule) -> Result<Own, String> {
        let name = name_of(&rule.id)?;
        let pattern = compile(&rule.regex).map_err(|error| plain(&error))?;
        if pattern.is_match(b"") {
            return Err("the regex matches nothing at all, and so everywhere".to_owned());
        }
        let lists: Vec<&GitleaksAllowlist> = [&self.allowlist, &rule.allowlist]
            .into_iter()
            .chain(&self.allowlists)
            .chain(&rule.allowlists)
            .filter(|list| !list.condition.eq_ignore_ascii_case("and"))
            .collect();
        let nots = lists.iter().flat_map(|list| &list.regexes);
        let not: Result<Vec<Regex>, regex::Error> = nots.map(|source| compile(source)).collect();
        let stop_words = lists.iter().flat_map(|list| &list.stopwords);
        Ok(Own {
            name,
            category: Category::Secret,
            pattern: rule.regex.clone(),
            group: rule.secret_group,
            literals: literals(&rule.keywords),
            edges: Edges::Any,
            checksum: None,
            min_entropy: rule.entropy.filter(|least| *least > 0.0),
            context: Vec::new(),
            needs_context: false,
            likelihood: Likelihood::Likely,
            not: not.map_err(|error| plain(&error))?,
            stop_words: stop_words.map(|word| word.to_ascii_lowercase()).collect(),
            must_match: Vec::new(),
            must_not_match: Vec::new(),
        })
    }
}

/// The keywords in lower case; none when one is too short to wake by.
fn literals(keywords: &[String]) -> Vec<String> {
    if keywords.iter().any(|word| word.len() < 2) {
        return Vec::new();
    }
    keywords.iter().map(|word| word.to_ascii_lowercase()).collect()
}

fn name_of(id: &str) -> Result<String, String> {
    let plain: String = id
        .chars()
        .map(|char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '_' })
        .collect();
    if plain.is_empty() || plain.len() > 100 {
        return Err("give it an `id` of at most 100 characters".to_owned());
    }
    Ok(format!("{PREFIX}{plain}"))
}
