//! Rule files of gitleaks as further detectors of secrets.
//!
//! Of a rule count `id`, `regex`, `secretGroup`, `keywords`, `entropy`, and the `regexes` and
//! `stopwords` of its allowlists and of the file's own. What concerns paths and commits has no
//! meaning here: a rule about paths alone is left out, and an allowlist lets nothing pass that it
//! lets pass on some paths or in some commits only. What would have another effect here than in
//! gitleaks is refused.

use std::{collections::HashSet, sync::Arc};

use serde::{Deserialize, de::IgnoredAny};
use toml::Spanned;

use crate::{
    catalogue::{
        checks::conditions::{AllowedValues, Conditions},
        detector::{Detector, Edges},
        entry::{Configured, Entry, Keys, line_of},
        pattern::compile_small,
    },
    nearest::did_you_mean,
    settings::{go_regex::GoRegex, room::Room},
    vocabulary::{Category, Likelihood},
};

/// One rules file.
#[derive(Debug, Clone)]
pub struct Gitleaks {
    /// Name of the file in messages.
    name: String,
    /// Those with a regex, each with its line.
    rules: Vec<(usize, GitleaksRule)>,
    /// Allowlists for all rules or for some, each with its line.
    allowlists: Vec<(usize, GitleaksAllowlist)>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct GitleaksFile {
    #[serde(rename = "title")]
    _title: IgnoredAny,
    #[serde(rename = "description")]
    _description: IgnoredAny,
    #[serde(rename = "minVersion")]
    _min_version: IgnoredAny,
    extend: toml::Table,
    rules: Vec<Spanned<GitleaksRule>>,
    allowlist: Option<Spanned<GitleaksAllowlist>>,
    allowlists: Vec<Spanned<GitleaksAllowlist>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct GitleaksRule {
    id: String,
    #[serde(rename = "description")]
    _description: IgnoredAny,
    #[serde(rename = "tags")]
    _tags: IgnoredAny,
    regex: String,
    path: String,
    #[serde(rename = "secretGroup")]
    secret_group: usize,
    entropy: Option<f64>,
    keywords: Vec<String>,
    allowlist: Option<GitleaksAllowlist>,
    allowlists: Vec<GitleaksAllowlist>,
    required: Vec<IgnoredAny>,
    #[serde(rename = "skipReport")]
    skip_report: bool,
    #[serde(flatten)]
    unknown: toml::Table,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct GitleaksAllowlist {
    #[serde(rename = "description")]
    _description: IgnoredAny,
    /// `AND` lets a match pass only if all that is listed holds.
    condition: String,
    commits: Vec<IgnoredAny>,
    paths: Vec<IgnoredAny>,
    /// The text that the regexes are for: the secret, or the match or the line that it stands in.
    #[serde(rename = "regexTarget")]
    regex_target: String,
    regexes: Vec<String>,
    stopwords: Vec<String>,
    /// Rules that a list of the file is for; all of them when there are none.
    #[serde(rename = "targetRules")]
    target_rules: Vec<String>,
    #[serde(flatten)]
    unknown: toml::Table,
}

/// Keys of a rule, and of an allowlist of one and of a file, for messages.
const RULE_KEYS: [&str; 12] = [
    "id", "description", "tags", "regex", "path", "secretGroup", "entropy", "keywords",
    "allowlist", "allowlists", "required", "skipReport",
];
const ALLOWLIST_KEYS: [&str; 8] = [
    "description", "condition", "commits", "paths", "regexTarget", "regexes", "stopwords",
    "targetRules",
];

/// Prefix of a rule's id in the name of its detector.
const PREFIX: &str = "gitleaks_";

/// Compiled bytes of a regex that one step for each byte of a value pays for.
const BYTES_A_STEP: usize = 1 << 10;

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
        if let Some(key) = file.extend.keys().next() {
            return Err(format!(
                "`{name}`: `[extend]` with `{key}` is not read; name each rule file in `dlp.gitleaks`, \
                 and switch a rule off by `enabled = false` in `[dlp.detectors.{PREFIX}…]`"
            ));
        }
        let allowlists = file.allowlists.into_iter().chain(file.allowlist);
        let mut read = Self {
            rules: file.rules.into_iter().map(|rule| placed(text, rule)).collect(),
            allowlists: allowlists.map(|list| placed(text, list)).collect(),
            name,
        };
        let problems = read.problems();
        if !problems.is_empty() {
            return Err(problems.join("; "));
        }
        read.rules.retain(|(_, rule)| !rule.regex.is_empty());
        Ok(read)
    }

    /// Everything that is wrong with the file besides its regexes.
    fn problems(&self) -> Vec<String> {
        let ids: HashSet<&str> = self.rules.iter().map(|(_, rule)| rule.id.as_str()).collect();
        let mut problems = Vec::new();
        for (line, rule) in &self.rules {
            let label = self.label(*line, rule);
            problems.extend(rule.problems().into_iter().map(|it| format!("{label}: {it}")));
        }
        for (line, list) in &self.allowlists {
            let label = format!("`{}`, allowlist on line {line}", self.name);
            let unknown = list.target_rules.iter().find(|id| !ids.contains(id.as_str()));
            let unknown = unknown.map(|id| format!("`targetRules` names no rule `{id}`"));
            let wrong = list.problems().into_iter().chain(unknown);
            problems.extend(wrong.map(|it| format!("{label}: {it}")));
        }
        problems
    }

    fn label(&self, line: usize, rule: &GitleaksRule) -> String {
        format!("`{}`, rule `{}` on line {line}", self.name, rule.id)
    }

    /// Number of its detectors.
    pub(super) fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// The detectors, or everything that is wrong with the file.
    pub(super) fn detectors(&self, room: &mut Room) -> Result<Vec<Detector>, Vec<String>> {
        if self.rules.is_empty() {
            return Err(vec![format!("`{}` holds no rule with a regex", self.name)]);
        }
        let mut problems = Vec::new();
        let mut shared = Vec::new();
        for (line, list) in &self.allowlists {
            let label = format!("`{}`, allowlist on line {line}", self.name);
            match list.compiled(room) {
                Ok(allowed) => shared.extend(allowed.map(|it| (&list.target_rules, it))),
                Err(problem) => problems.push(format!("{label}: {problem}")),
            }
            if room.is_full() {
                return Err(problems);
            }
        }
        let mut detectors = Vec::new();
        for (line, rule) in &self.rules {
            let label = self.label(*line, rule);
            let is_for = |targets: &[String]| targets.is_empty() || targets.contains(&rule.id);
            let lists = shared.iter().filter(|(targets, _)| is_for(targets));
            let lists = lists.map(|(_, list)| Arc::clone(list)).collect();
            let entry = rule.entry(label.clone(), lists, room);
            let entry = entry.map_err(|problem| vec![format!("{label}: {problem}")]);
            let detector = entry.and_then(|entry| room.compile(entry, Category::Secret));
            match detector {
                Ok(detector) => detectors.push(detector),
                Err(wrong) => problems.extend(wrong),
            }
            if room.is_full() {
                break;
            }
        }
        if problems.is_empty() { Ok(detectors) } else { Err(problems) }
    }
}

impl GitleaksRule {
    fn lists(&self) -> impl Iterator<Item = &GitleaksAllowlist> {
        self.allowlist.iter().chain(&self.allowlists)
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        problems.extend(self.unknown.keys().map(|key| unknown_key(key, &RULE_KEYS)));
        if self.regex.is_empty() && self.path.is_empty() {
            problems.push("it has no `regex`".to_owned());
        }
        if self.skip_report || !self.required.is_empty() {
            let told = "`required` and `skipReport` are not read, for each rule reports by itself; \
                        remove them or the rule";
            problems.push(told.to_owned());
        }
        for list in self.lists() {
            problems.extend(list.problems().into_iter().map(|it| format!("allowlist: {it}")));
            if !list.target_rules.is_empty() {
                problems.push("`targetRules` is for lists outside of rules".to_owned());
            }
        }
        problems
    }

    /// The entry for it, with the lists of the file.
    fn entry(
        &self,
        label: String,
        mut allowed: Vec<Arc<AllowedValues>>,
        room: &mut Room,
    ) -> Result<Entry, String> {
        for list in self.lists() {
            allowed.extend(list.compiled(room)?);
        }
        let pattern =
            GoRegex::read(&self.regex).map_err(|problem| format!("`regex`: {problem}"))?;
        // No keyword wakes it when one is too short to wake by.
        let can_wake = self.keywords.iter().all(|word| word.len() >= 2);
        let keywords = can_wake.then(|| self.keywords.clone());
        Ok(Entry {
            name: name_of(&self.id),
            label,
            keys: &KEYS,
            configured: Some(Configured {
                group: (self.secret_group > 0).then_some(self.secret_group),
                needs_context: false,
                conditions: Conditions {
                    checksum: None,
                    min_entropy: self.entropy.filter(|least| *least > 0.0),
                    allowed,
                },
            }),
            marks: keywords.unwrap_or_default(),
            pattern: Some(pattern.source),
            edges: Some(Edges::Any),
            words: Some(Vec::new()),
            bits: Some(Likelihood::Likely.least_bits()),
            ..Entry::default()
        })
    }
}

impl GitleaksAllowlist {
    fn problems(&self) -> Vec<String> {
        let Self { condition, regex_target, commits, paths, regexes, stopwords, .. } = self;
        let mut problems = Vec::new();
        problems.extend(self.unknown.keys().map(|key| unknown_key(key, &ALLOWLIST_KEYS)));
        if !matches!(condition.to_ascii_uppercase().as_str(), "" | "OR" | "||" | "AND" | "&&") {
            problems.push(format!("`condition` is `AND` or `OR`, and not `{condition}`"));
        }
        if !matches!(regex_target.as_str(), "" | "secret" | "match" | "line") {
            problems.push(format!(
                "`regexTarget` is `secret`, `match` or `line`, and not `{regex_target}`"
            ));
        }
        if regexes.is_empty() && stopwords.is_empty() && commits.is_empty() && paths.is_empty() {
            problems.push("it lists nothing".to_owned());
        }
        if stopwords.iter().any(String::is_empty) {
            problems.push("an empty stop word is in every text; remove it".to_owned());
        }
        problems
    }

    /// The values that it lets pass whatever path and commit they stand in, if there are any.
    fn compiled(&self, room: &mut Room) -> Result<Option<Arc<AllowedValues>>, String> {
        let needs_all = matches!(self.condition.to_ascii_uppercase().as_str(), "AND" | "&&");
        if needs_all && !(self.commits.is_empty() && self.paths.is_empty()) {
            return Ok(None);
        }
        let is_of_secret = matches!(self.regex_target.as_str(), "" | "secret");
        let (mut regexes, mut steps) = (Vec::new(), 0);
        for source in &self.regexes {
            let wrong = |problem| format!("`regexes`: `{source}`: {problem}");
            let read = GoRegex::read(source).map_err(wrong)?;
            let (regex, bytes) = compile_small(&read.source).map_err(wrong)?;
            room.take(bytes)?;
            // What is found in a secret is found in the line around it, unless it looks around.
            if is_of_secret || !read.looks_around {
                regexes.push(regex);
                steps += bytes / BYTES_A_STEP;
            }
        }
        let stop_words: Vec<String> =
            self.stopwords.iter().map(|word| word.to_ascii_lowercase()).collect();
        let needs_both = needs_all && !self.regexes.is_empty() && !self.stopwords.is_empty();
        let lists_some = !regexes.is_empty() || !stop_words.is_empty();
        Ok(lists_some.then(|| Arc::new(AllowedValues { regexes, steps, stop_words, needs_both })))
    }
}

/// What was read, with its line.
fn placed<T>(text: &str, spanned: Spanned<T>) -> (usize, T) {
    (line_of(text, spanned.span().start), spanned.into_inner())
}

fn unknown_key(key: &str, known: &[&str]) -> String {
    format!("there is no key `{key}`{}", did_you_mean(key, known.iter().copied()))
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
