//! Settings of the operator: actions, single detectors, limits.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    sync::Arc,
};

use serde::Deserialize;

use crate::{
    catalogue::{detector::Detector, entry::Entry, load::Catalogue},
    limits::Limits,
    mask::replacement::Mask,
    nearest::unknown_detector,
    settings::{
        allow::Allow,
        custom::Custom,
        floor::Floor,
        gitleaks::Gitleaks,
        room::{MAX_DETECTORS, Room},
    },
    text::hidden,
    vocabulary::{Action, Category, Direction, Likelihood},
};

/// Settings of the engine. The default is what Portcullis ships with: secrets are blocked on input
/// and redacted on output, financial and national ids are flagged on input and redacted on output,
/// everything else is flagged.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Actions per category, for those that should differ from the default.
    pub actions: Actions,
    /// Masks of redacted findings, per category; a placeholder when absent.
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
    /// Categories of the kinds that an external detector may report, by name.
    #[serde(skip)]
    pub external: BTreeMap<String, Category>,
    pub limits: Limits,
    pub floor: Floor,
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

/// Settings of one detector.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DetectorSettings {
    /// `false` takes the detector out of every scan.
    pub enabled: bool,
    /// Action on input, instead of the category's.
    pub input: Option<Action>,
    /// Action on output, instead of the category's.
    pub output: Option<Action>,
    /// Mask of its findings, instead of the category's.
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

impl Settings {
    /// The action for a finding of a detector when no policy speaks.
    pub(crate) fn action(
        &self,
        name: &str,
        category: Category,
        likelihood: Likelihood,
        direction: Direction,
    ) -> Action {
        let chosen = self.chosen(name, category, direction);
        if likelihood < Likelihood::Likely || !self.floor.holds(name) {
            return chosen;
        }
        chosen.max(category.usual_action(direction))
    }

    fn chosen(&self, name: &str, category: Category, direction: Direction) -> Action {
        let own = self.detectors.get(name);
        let (own, of_category) = match direction {
            Direction::Input => (own.and_then(|own| own.input), &self.actions.input),
            Direction::Output => (own.and_then(|own| own.output), &self.actions.output),
        };
        own.or_else(|| of_category.get(&category).copied())
            .or_else(|| Catalogue::get().usual_action(name))
            .unwrap_or_else(|| category.usual_action(direction))
    }

    /// Mask of a finding when no policy says otherwise.
    pub(crate) fn mask(&self, name: &str, category: Category) -> Mask {
        let own = self.detectors.get(name).and_then(|own| own.mask);
        own.or_else(|| self.masks.get(&category).copied()).unwrap_or_default()
    }

    /// Returns true if a detector takes part in scans.
    pub(crate) fn is_enabled(&self, name: &str) -> bool {
        self.floor.holds(name) || !self.is_switched_off(name)
    }

    fn is_switched_off(&self, name: &str) -> bool {
        self.detectors.get(name).is_some_and(|own| !own.enabled)
    }

    /// The least evidence a detector reports.
    pub(crate) fn min_likelihood(&self, name: &str) -> Likelihood {
        let own = self.detectors.get(name).map_or(Likelihood::Possible, |own| own.min_likelihood);
        if self.floor.holds(name) { own.min(Likelihood::Likely) } else { own }
    }

    /// The configured detectors; what is wrong with them is added to the problems.
    pub(crate) fn configured(&self, problems: &mut Vec<String>) -> Vec<Arc<Detector>> {
        let rules = self.gitleaks.iter().map(Gitleaks::rule_count);
        let count = self.custom.len() + rules.sum::<usize>();
        if count > MAX_DETECTORS {
            problems.push(format!(
                "there are {count} custom detectors and rules of gitleaks, of which \
                 {MAX_DETECTORS} may be; remove some"
            ));
            return Vec::new();
        }
        let mut room = Room::default();
        let mut detectors = Vec::new();
        for custom in &self.custom {
            match room.compile(Entry::from(custom), custom.category) {
                Ok(detector) => detectors.push(Arc::new(detector)),
                Err(wrong) => problems.extend(wrong),
            }
        }
        for rules in &self.gitleaks {
            if room.is_full() {
                break;
            }
            match rules.detectors(&mut room) {
                Ok(more) => detectors.extend(more.into_iter().map(Arc::new)),
                Err(wrong) => problems.extend(wrong),
            }
        }
        detectors
    }

    /// Everything that is wrong with these settings, each with what to do about it. `names` are
    /// the detectors there are, in the order of the documentation.
    pub(crate) fn problems(&self, names: &[&str]) -> Vec<String> {
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
        if names.iter().all(|name| self.is_switched_off(name)) {
            problems.push("every detector is disabled; enable at least one".to_owned());
        }
        problems.extend(self.limits.problems());
        problems
    }
}

/// The names of the detectors that are built in, in the order of the documentation.
pub(crate) fn built_in<'a>() -> impl Iterator<Item = &'a str> {
    let hidden: &'a str = hidden::NAME;
    Catalogue::all().map(|detector| -> &'a str { &detector.name }).chain([hidden])
}

/// Reason that settings were not accepted: every problem found, each with what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    problems: Vec<String>,
}

impl SettingsError {
    pub(crate) fn new(problems: Vec<String>) -> Self {
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
