//! What an operator may set: actions, single detectors, limits.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
};

use serde::Deserialize;

use super::{
    allow::Allow,
    custom::{Custom, Own},
    detectors,
    gitleaks::Gitleaks,
    hidden,
    kinds::{Action, Category, Direction, Likelihood},
    mask::Mask,
};

/// How the engine is set up. The default is what Portcullis ships with: secrets are blocked on
/// input and redacted on output, financial and national ids are flagged on input and redacted
/// on output, everything else is flagged.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Actions per category, for those that should differ from the default.
    pub actions: Actions,
    /// How findings are masked that are redacted, per category; a placeholder when absent.
    pub masks: BTreeMap<Category, Mask>,
    /// Single detectors by name, for those that should differ from their category.
    pub detectors: BTreeMap<String, DetectorSettings>,
    /// Detectors of one's own.
    pub custom: Vec<Custom>,
    /// Findings that are known to be false alarms.
    pub allow: Vec<Allow>,
    /// Rule files that were read, for more detectors of secrets.
    #[serde(skip)]
    pub gitleaks: Vec<Gitleaks>,
    /// What an external detector may report, by the names of its kinds.
    #[serde(skip)]
    pub external: BTreeMap<String, Category>,
    /// How much the engine is willing to scan before it refuses.
    pub limits: Limits,
}

/// Actions per category and direction. A category that is not named keeps its default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Actions {
    /// For arguments on their way to a tool.
    pub input: BTreeMap<Category, Action>,
    /// For answers on their way to the caller.
    pub output: BTreeMap<Category, Action>,
}

/// What differs for one detector.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DetectorSettings {
    /// `false` takes the detector out of every scan.
    pub enabled: bool,
    /// Action on input, instead of the category's.
    pub input: Option<Action>,
    /// Action on output, instead of the category's.
    pub output: Option<Action>,
    /// How its findings are masked, instead of the category's way.
    pub mask: Option<Mask>,
    /// Evidence below this is not reported.
    pub min_likelihood: Likelihood,
}

impl Default for DetectorSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            input: None,
            output: None,
            mask: None,
            min_likelihood: Likelihood::Possible,
        }
    }
}

/// What the engine refuses to go beyond. Past any of these a body is
/// [`Unscannable`](super::Unscannable), never silently passed.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of keys, strings and number literals in one body.
    pub max_bytes: usize,
    /// Objects, arrays, members and elements in one body.
    pub max_nodes: usize,
    /// Levels of nesting.
    pub max_depth: usize,
    /// Bytes of decoded text (base64, percent, …) per body, on top of four times its own size.
    pub max_decoded_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 4 << 20, max_nodes: 200_000, max_depth: 128, max_decoded_bytes: 64 << 10 }
    }
}

impl Settings {
    /// The action for a detector of a category when no policy speaks.
    pub(super) fn action(&self, name: &str, category: Category, direction: Direction) -> Action {
        let own = self.detectors.get(name);
        let (own, of_category) = match direction {
            Direction::Input => (own.and_then(|own| own.input), &self.actions.input),
            Direction::Output => (own.and_then(|own| own.output), &self.actions.output),
        };
        own.or_else(|| of_category.get(&category).copied())
            .or_else(|| detectors::usual_action(name))
            .unwrap_or_else(|| category.usual_action(direction))
    }

    /// How a finding is masked when no policy says otherwise.
    pub(super) fn mask(&self, name: &str, category: Category) -> Mask {
        let own = self.detectors.get(name).and_then(|own| own.mask);
        own.or_else(|| self.masks.get(&category).copied()).unwrap_or_default()
    }

    /// Whether a detector takes part in scans.
    pub(super) fn is_enabled(&self, name: &str) -> bool {
        self.detectors.get(name).is_none_or(|own| own.enabled)
    }

    /// The least evidence a detector reports.
    pub(super) fn min_likelihood(&self, name: &str) -> Likelihood {
        self.detectors.get(name).map_or(Likelihood::Possible, |own| own.min_likelihood)
    }

    /// The configured detectors; what is wrong with them is added to the problems.
    pub(super) fn owns(&self, problems: &mut Vec<String>) -> Vec<Own> {
        let custom = self.custom.iter().map(|custom| custom.own().map(|own| vec![own]));
        let rules = self.gitleaks.iter().map(Gitleaks::owns);
        let mut owns: Vec<Own> = Vec::new();
        for own in custom.chain(rules) {
            match own {
                Ok(more) => owns.extend(more),
                Err(wrong) => problems.extend(wrong),
            }
        }
        owns
    }

    /// Everything that is wrong with these settings, each with what to do about it. `names` are
    /// the detectors there are, in the order of the documentation.
    pub(super) fn problems(&self, names: &[&str]) -> Vec<String> {
        let mut problems = Vec::new();
        let mut seen = HashSet::new();
        for name in names {
            if !seen.insert(name) {
                problems.push(format!("there are two detectors `{name}`; rename yours"));
            }
        }
        for name in self.detectors.keys().filter(|name| !seen.contains(&name.as_str())) {
            problems.push(unknown_detector(name, names));
        }
        if names.iter().all(|name| !self.is_enabled(name)) {
            problems.push("every detector is disabled; enable at least one".to_owned());
        }
        problems.extend(self.limits.problems());
        problems
    }
}

/// The names of the detectors that are built in, in the order of the documentation.
pub(super) fn built_in<'a>() -> impl Iterator<Item = &'a str> {
    let hidden: &'a str = hidden::NAME;
    detectors::all().map(|detector| -> &'a str { detector.name }).chain([hidden])
}

impl Limits {
    fn problems(&self) -> Vec<String> {
        let limits = [
            ("limits.max_bytes", self.max_bytes),
            ("limits.max_nodes", self.max_nodes),
            ("limits.max_depth", self.max_depth),
        ];
        let zero = limits.into_iter().filter(|(_, value)| *value == 0);
        let mut problems: Vec<String> = zero
            .map(|(name, _)| format!("`{name}` is 0, which refuses every body; raise it"))
            .collect();
        if self.max_bytes > MAX_BYTES {
            problems.push(format!("`limits.max_bytes` is above {MAX_BYTES}; lower it"));
        }
        if self.max_depth > MAX_DEPTH {
            problems.push(format!("`limits.max_depth` is above {MAX_DEPTH}; lower it"));
        }
        problems
    }
}

/// Offsets are kept in 32 bits; decoded views need room beside the body.
const MAX_BYTES: usize = 32 << 20;

/// Values are walked level by level on the stack.
const MAX_DEPTH: usize = 512;

fn unknown_detector(name: &str, known: &[&str]) -> String {
    format!("there is no detector `{name}`; the detectors are {}", known.join(", "))
}

/// Why settings were not accepted: every problem found, each with what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    problems: Vec<String>,
}

impl SettingsError {
    pub(super) fn new(problems: Vec<String>) -> Self {
        Self { problems }
    }

    /// One sentence a problem.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("; "))
    }
}

impl std::error::Error for SettingsError {}
