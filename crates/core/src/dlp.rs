//! Data-loss prevention: finds what must not travel in a JSON value, and takes it out.
//!
//! [`Engine::scan`] looks at every key, string and number literal once, and at the texts hidden
//! in them by invisible characters, escapes, base64 or hex. It runs in linear time, holds no
//! clock and no connection, and refuses what is beyond its limits rather than pass it unseen.
//! What it finds are [`Findings`]: where, what kind, how sure; never the text itself.
//!
//! **Invariant:** nothing here prints, stores or returns matched text. Fingerprints are keyed.

use serde_json::Value;

mod active;
mod allow;
mod body;
mod catalogue;
mod checks;
mod context;
mod custom;
mod definitions;
mod detector;
mod detectors;
mod digits;
mod evidence;
mod external;
mod finding;
mod fit;
mod gather;
mod gitleaks;
mod hidden;
mod joins;
mod kinds;
mod layouts;
mod marks;
mod mask;
mod media;
mod prefixes;
mod redact;
mod runs;
mod samples;
mod scan;
mod settings;
mod sheets;
mod space;
mod tables;
mod unescape;
mod views;

pub use allow::Allow;
pub use catalogue::catalogue;
pub use custom::{Checksum, Custom};
pub use definitions::Unshowable;
pub use detector::Detector;
pub use external::{Reported, Text};
pub use finding::{Finding, Findings, Fingerprint, FingerprintKey};
pub use gitleaks::Gitleaks;
pub use kinds::{Action, Category, Direction, Likelihood};
pub use mask::Mask;
pub use samples::Sample;
pub use settings::{Actions, DetectorSettings, Limits, Settings, SettingsError};

use allow::Allowlist;
use gather::Gather;
use redact::Extent;
use scan::Scanner;
use space::Space;

/// The compiled detectors and what is done about their findings. Share it; scanning needs no
/// lock.
pub struct Engine {
    settings: Settings,
    scanner: Scanner,
    allow: Allowlist,
}

/// For whom a value is scanned: under whose key fingerprints are made, and which tool's
/// exceptions hold.
#[derive(Debug, Clone)]
pub struct Subject {
    key: FingerprintKey,
    tool: Option<Box<str>>,
}

impl Subject {
    /// An org, by its key.
    #[must_use]
    pub const fn of(key: FingerprintKey) -> Self {
        Self { key, tool: None }
    }

    /// The same in a call of this tool.
    #[must_use]
    pub fn calling(self, tool: &str) -> Self {
        Self { tool: Some(tool.into()), ..self }
    }
}

/// Why a value was not scanned. The caller must refuse it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unscannable {
    /// More text than the settings allow.
    #[error("the text is longer than the {limit} bytes DLP scans; send less at once")]
    TooLarge {
        /// `limits.max_bytes`.
        limit: usize,
    },
    /// More members and elements than the settings allow.
    #[error("there are more than the {limit} members and elements DLP scans; send less at once")]
    TooManyNodes {
        /// `limits.max_nodes`.
        limit: usize,
    },
    /// More levels than the settings allow.
    #[error("the nesting is deeper than the {limit} levels DLP scans; send it flatter")]
    TooDeep {
        /// `limits.max_depth`.
        limit: usize,
    },
    /// More encoded text inside encoded text than the body's size allows.
    #[error("decoding takes more than the {limit} bytes DLP spends on this body; send it decoded")]
    TooMuchDecoding {
        /// The budget of this body.
        limit: usize,
    },
    /// A detector outside was to look as well, and did not.
    #[error("the external detector gave no answer; try again later")]
    NoExternalDetector,
}

impl Engine {
    /// An engine for these settings, or every problem they have.
    pub fn new(settings: &Settings) -> Result<Engine, SettingsError> {
        let mut problems = Vec::new();
        let owns = settings.owns(&mut problems);
        let external = settings.external.keys().map(String::as_str);
        let own_names: Vec<String> = owns.iter().map(|own| own.name.clone()).collect();
        let names: Vec<&str> = settings::built_in()
            .chain(own_names.iter().map(String::as_str))
            .chain(external)
            .collect();
        problems.extend(settings.problems(&names));
        let allow = Allowlist::new(&settings.allow, &names);
        let scanner = Scanner::new(settings, owns);
        match (allow, scanner) {
            (Ok(allow), Ok(scanner)) if problems.is_empty() => {
                let engine = Engine { settings: settings.clone(), scanner, allow };
                let problems = engine.samples().into_iter().filter_map(Sample::problem);
                let problems: Vec<String> = problems.collect();
                if problems.is_empty() { Ok(engine) } else { Err(SettingsError::new(problems)) }
            }
            (allow, scanner) => {
                problems.extend(allow.err().into_iter().flatten());
                problems.extend(scanner.err().into_iter().flatten());
                Err(SettingsError::new(problems))
            }
        }
    }

    /// The built-in detectors that take part in scans, in the order of the documentation.
    pub fn detectors(&self) -> impl Iterator<Item = &'static Detector> {
        self.scanner.active.iter().filter_map(active::Active::detector)
    }

    /// Every built-in detector, whether enabled or not.
    pub fn known_detectors() -> impl Iterator<Item = &'static Detector> {
        detectors::all()
    }

    /// The names a policy may use: every detector, whether enabled or not, built in, configured
    /// or external.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let active = self.scanner.active.iter().map(|active| &*active.name);
        let own = self.settings.custom.iter().map(|custom| custom.name.as_str());
        let external = self.settings.external.keys().map(String::as_str);
        let mut names: Vec<&str> =
            settings::built_in().chain(active).chain(own).chain(external).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Finds what the enabled detectors know in a value. Refuses a value beyond the limits.
    pub fn scan(&self, value: &Value, key: &FingerprintKey) -> Result<Findings, Unscannable> {
        self.scan_for(value, &Subject::of(key.clone()))
    }

    /// The same, with the exceptions that hold for a tool.
    pub fn scan_for(&self, value: &Value, subject: &Subject) -> Result<Findings, Unscannable> {
        self.scan_within(value, subject, &self.settings.limits).map(|(findings, _)| findings)
    }

    /// What is done about a finding when no policy says otherwise.
    #[must_use]
    pub fn default_action(&self, finding: &Finding, direction: Direction) -> Action {
        self.settings.action(finding.detector(), finding.category, direction)
    }

    /// How a finding is masked when no policy says otherwise.
    #[must_use]
    pub fn default_mask(&self, finding: &Finding) -> Mask {
        self.settings.mask(finding.detector(), finding.category)
    }

    /// The value with those findings masked for which `choose` names a way to. `findings` must
    /// be those of this value. The result is valid JSON, and a scan of it does not find what was
    /// chosen: what is still seen after the matches are masked is masked as a whole. Where
    /// `schema` speaks about a place, what is put there has a type and a length that fit.
    #[must_use]
    pub fn redact(
        &self,
        mut value: Value,
        findings: &Findings,
        schema: Option<&Value>,
        choose: impl Fn(&Finding) -> Option<Mask>,
    ) -> Value {
        let Some(subject) = findings.subject() else { return value };
        if !findings.iter().any(|finding| choose(finding).is_some()) {
            return value;
        }
        redact::apply(&mut value, findings, schema, Extent::Matches, &choose);
        for _ in 0..MAX_ROUNDS {
            match self.rescan(&value, subject) {
                Ok(rest) if !rest.iter().any(|finding| choose(finding).is_some()) => return value,
                Ok(rest) => {
                    redact::apply(&mut value, &rest, schema, Extent::Everything, &choose);
                }
                Err(_) => break,
            }
        }
        redact::apply(&mut value, findings, schema, Extent::Everything, &choose);
        value
    }

    /// A scan with room for placeholders.
    fn rescan(&self, value: &Value, subject: &Subject) -> Result<Findings, Unscannable> {
        let limits = Limits {
            max_bytes: self.settings.limits.max_bytes.saturating_mul(8),
            max_decoded_bytes: usize::MAX,
            ..self.settings.limits
        };
        self.scan_within(value, subject, &limits).map(|(findings, _)| findings)
    }

    /// Also says how many bytes were looked at beyond the single pass.
    fn scan_within(
        &self,
        value: &Value,
        subject: &Subject,
        limits: &Limits,
    ) -> Result<(Findings, usize), Unscannable> {
        space::with(|Space { body, views, desk }| {
            body.flatten(value, limits)?;
            views.begin(body, limits);
            let mut work = 0;
            views.scan_all(body, self.scanner.rare(), |body, first, runs| {
                work += self.scanner.scan(body, first, runs, desk);
            })?;
            work += views.decoded();
            let Engine { scanner, allow, .. } = self;
            let gather = Gather { scanner, allow, body, views, subject };
            Ok((gather.findings(&mut desk.matches).with_media(body.media), work))
        })
    }
}

/// Masking whole strings settles it in one round; the others are for masks that together make
/// something new.
const MAX_ROUNDS: usize = 4;

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("detectors", &self.scanner.active.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
