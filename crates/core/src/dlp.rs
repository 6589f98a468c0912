//! Data-loss prevention: finds what must not travel in a JSON value, and takes it out.
//!
//! [`Engine::scan`] looks at every key, string and number literal once, and at the texts hidden
//! in them by invisible characters, escapes, base64 or hex. It runs in linear time, holds no
//! clock and no connection, and refuses what is beyond its limits rather than pass it unseen.
//! What it finds are [`Findings`]: where, what kind, how sure; never the text itself.
//!
//! **Invariant:** nothing here prints, stores or returns matched text. Fingerprints are keyed.

use serde_json::Value;

mod body;
mod checks;
mod context;
mod detector;
mod detectors;
mod digits;
mod finding;
mod gather;
mod joins;
mod kinds;
mod layouts;
mod redact;
mod runs;
mod scan;
mod settings;
mod unescape;
mod views;

pub use detector::Detector;
pub use finding::{Finding, Findings, Fingerprint, FingerprintKey};
pub use kinds::{Action, Category, Direction, Likelihood};
pub use settings::{Actions, DetectorSettings, Limits, Settings, SettingsError};

use body::Body;
use redact::Extent;
use scan::Scanner;
use views::Views;

/// The compiled detectors and what is done about their findings. Share it; scanning needs no
/// lock.
pub struct Engine {
    settings: Settings,
    scanner: Scanner,
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
}

impl Engine {
    /// An engine for these settings, or every problem they have.
    pub fn new(settings: &Settings) -> Result<Engine, SettingsError> {
        let problems = settings.problems();
        if !problems.is_empty() {
            return Err(SettingsError::new(problems));
        }
        let scanner = Scanner::new(settings).map_err(SettingsError::new)?;
        Ok(Engine { settings: settings.clone(), scanner })
    }

    /// The detectors that take part in scans, in the order of the documentation.
    pub fn detectors(&self) -> impl Iterator<Item = &Detector> {
        self.scanner.active.iter().map(|active| active.detector)
    }

    /// Every built-in detector, whether enabled or not: the names a policy may use.
    pub fn known_detectors() -> impl Iterator<Item = &'static Detector> {
        detectors::all()
    }

    /// Finds what the enabled detectors know in a value. Refuses a value beyond the limits.
    pub fn scan(&self, value: &Value, key: &FingerprintKey) -> Result<Findings, Unscannable> {
        self.scan_within(value, key, &self.settings.limits).map(|(findings, _)| findings)
    }

    /// What is done about a finding when no policy says otherwise.
    #[must_use]
    pub fn default_action(&self, finding: &Finding, direction: Direction) -> Action {
        self.settings.action(finding.detector, finding.category, direction)
    }

    /// The value with the selected findings replaced by typed placeholders. `findings` must be
    /// those of this value. The result is valid JSON, and a scan of it does not find what was
    /// selected: what is still seen after the matches are masked is masked as a whole.
    #[must_use]
    pub fn redact(
        &self,
        value: Value,
        findings: &Findings,
        select: impl Fn(&Finding) -> bool,
    ) -> Value {
        if !findings.iter().any(&select) {
            return value;
        }
        let mut value = redact::apply(value, findings, Extent::Matches, &select);
        for _ in 0..MAX_ROUNDS {
            match self.rescan(&value) {
                Ok(rest) if !rest.iter().any(&select) => return value,
                Ok(rest) => value = redact::apply(value, &rest, Extent::Everything, &select),
                Err(_) => break,
            }
        }
        redact::apply(value, findings, Extent::Everything, &select)
    }

    /// A scan whose fingerprints nobody reads, with room for placeholders.
    fn rescan(&self, value: &Value) -> Result<Findings, Unscannable> {
        let limits = Limits {
            max_bytes: self.settings.limits.max_bytes.saturating_mul(8),
            max_decoded_bytes: usize::MAX,
            ..self.settings.limits
        };
        let key = FingerprintKey::new([0; 32]);
        self.scan_within(value, &key, &limits).map(|(findings, _)| findings)
    }

    /// Also says how many bytes were looked at beyond the single pass.
    fn scan_within(
        &self,
        value: &Value,
        key: &FingerprintKey,
        limits: &Limits,
    ) -> Result<(Findings, usize), Unscannable> {
        let mut body = Body::flatten(value, limits)?;
        let mut views = Views::new(&body, limits);
        let mut matches = Vec::new();
        let mut work = 0;
        views.scan_all(&mut body, |body, first| {
            work += self.scanner.scan(body, first, &mut matches);
        })?;
        work += views.decoded();
        Ok((gather::findings(&self.scanner, &body, &views, matches, key), work))
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
