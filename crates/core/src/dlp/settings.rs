//! What an operator may set: actions, single detectors, limits.

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;

use super::{
    detector::Detector,
    detectors,
    kinds::{Action, Category, Direction, Likelihood},
};

/// How the engine is set up. The default is what Portcullis ships with: secrets are blocked on
/// input and redacted on output, financial and national ids are flagged on input and redacted
/// on output, everything else is flagged.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Actions per category, for those that should differ from the default.
    pub actions: Actions,
    /// Single detectors by name, for those that should differ from their category.
    pub detectors: BTreeMap<String, DetectorSettings>,
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
    /// Evidence below this is not reported.
    pub min_likelihood: Likelihood,
}

impl Default for DetectorSettings {
    fn default() -> Self {
        Self { enabled: true, input: None, output: None, min_likelihood: Likelihood::Possible }
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
            .unwrap_or_else(|| category.usual_action(direction))
    }

    /// Whether a detector takes part in scans.
    pub(super) fn is_enabled(&self, name: &str) -> bool {
        self.detectors.get(name).is_none_or(|own| own.enabled)
    }

    /// The least evidence a detector reports.
    pub(super) fn min_likelihood(&self, name: &str) -> Likelihood {
        self.detectors.get(name).map_or(Likelihood::Possible, |own| own.min_likelihood)
    }

    /// Everything that is wrong with these settings, each with what to do about it.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for name in self.detectors.keys() {
            if detectors::all().all(|detector| detector.name() != name) {
                problems.push(unknown_detector(name));
            }
        }
        if detectors::all().all(|detector| !self.is_enabled(detector.name())) {
            problems.push("every detector is disabled; enable at least one".to_owned());
        }
        let limits = [
            ("limits.max_bytes", self.limits.max_bytes),
            ("limits.max_nodes", self.limits.max_nodes),
            ("limits.max_depth", self.limits.max_depth),
        ];
        for (name, value) in limits {
            if value == 0 {
                problems.push(format!("`{name}` is 0, which refuses every body; raise it"));
            }
        }
        if self.limits.max_bytes > MAX_BYTES {
            problems.push(format!("`limits.max_bytes` is above {MAX_BYTES}; lower it"));
        }
        problems
    }
}

/// Offsets are kept in 32 bits; decoded views need room beside the body.
const MAX_BYTES: usize = 32 << 20;

fn unknown_detector(name: &str) -> String {
    let known: Vec<&str> = detectors::all().map(Detector::name).collect();
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
