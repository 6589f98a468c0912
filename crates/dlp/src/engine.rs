//! The engine: scans a value, redacts it, and knows what is done about findings by default.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use super::{
    catalogue::{detector::Detector, load::Catalogue},
    findings::{
        finding::{Finding, Findings},
        fingerprint::FingerprintKey,
        subject::Subject,
    },
    limits::{Limits, Unscannable},
    mask::{redact, replacement::Mask, stretches::Extent},
    pace::{self, Meter, Pace},
    scan::{active::Active, scanner::Scanner},
    settings::{
        allow::Allowlist,
        options::{self, Settings, SettingsError},
    },
    vocabulary::{Action, Direction},
};
use portcullis_json::{Document, JsonValue, Node};

pub(super) mod definitions;
mod exactness;
pub(super) mod external;
mod gather;
pub(super) mod samples;
mod workspace;

use gather::Gather;
use workspace::Workspace;

/// The compiled detectors and what is done about their findings. Share it; scanning needs no
/// lock.
pub struct Engine {
    settings: Settings,
    pub(super) scanner: Scanner,
    allow: Allowlist,
    /// The names of all detectors.
    names: BTreeSet<String>,
}

impl Engine {
    /// An engine for these settings, or every problem they have.
    pub fn new(settings: &Settings) -> Result<Engine, SettingsError> {
        let mut problems = Catalogue::get().problems.clone();
        let configured = settings.configured(&mut problems);
        let external = settings.external.keys().map(String::as_str);
        let own_names = configured.iter().map(|detector| detector.name());
        let names: Vec<&str> = options::built_in().chain(own_names).chain(external).collect();
        problems.extend(settings.problems(&names));
        let allow = Allowlist::new(&settings.allow, &names, settings.floor);
        let allow = allow.map_err(|wrong| problems.extend(wrong)).unwrap_or_default();
        if problems.is_empty() {
            let scanner = Scanner::new(settings, &configured);
            let names = names.into_iter().map(str::to_owned).collect();
            let engine = Engine { settings: settings.clone(), scanner, allow, names };
            problems = engine.sample_problems();
            if problems.is_empty() {
                return Ok(engine);
            }
        }
        Err(SettingsError::new(problems))
    }

    /// An engine that finds nothing and is made at once, for a process that makes no calls.
    #[must_use]
    pub fn idle() -> Engine {
        let names = BTreeSet::new();
        let (settings, allow) = (Settings::default(), Allowlist::default());
        Engine { settings, scanner: Scanner::idle(), allow, names }
    }

    /// The built-in detectors that take part in scans, in the order of the documentation.
    pub fn detectors(&self) -> impl Iterator<Item = &Detector> {
        self.scanner.active.iter().filter_map(Active::built_in)
    }

    /// Every built-in detector, whether enabled or not.
    pub fn known_detectors() -> impl Iterator<Item = &'static Detector> {
        Catalogue::all().map(Arc::as_ref)
    }

    /// The names a policy may use: every detector, whether enabled or not, built in, configured
    /// or external.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    /// Told if the configured detectors that look at every text take more steps than the largest body may.
    #[must_use]
    pub fn cost_warning(&self) -> Option<String> {
        let bytes = self.settings.limits.max_bytes;
        let restless = self.scanner.active.iter().filter(|it| it.detector.is_restless()).count();
        let steps = restless.saturating_mul(bytes).saturating_mul(pace::STEPS_TO_SEARCH_A_BYTE);
        (steps > pace::budget(bytes)).then(|| {
            format!(
                "{restless} custom detectors and rules of gitleaks have no literal or keyword that can \
                 wake them and look at every text; a body of {bytes} bytes, the most that \
                 `dlp.limits.max_bytes` allows, is refused for the work; give them literals or keywords"
            )
        })
    }

    /// Finds what the enabled detectors know in a value. Refuses a value beyond the limits.
    pub fn scan<'a>(
        &self,
        value: impl JsonValue<'a>,
        key: &FingerprintKey,
    ) -> Result<Findings, Unscannable> {
        self.scan_for(value, &Subject::of(key.clone()))
    }

    /// The same, with the exceptions that hold for a tool.
    pub fn scan_for<'a>(
        &self,
        value: impl JsonValue<'a>,
        subject: &Subject,
    ) -> Result<Findings, Unscannable> {
        self.scan_within(value, subject, &self.settings.limits).map(|(findings, _)| findings)
    }

    /// The same at a pace: `None` when the pace ended the scan.
    pub fn scan_at<'a>(
        &self,
        value: impl JsonValue<'a>,
        subject: &Subject,
        pace: Pace,
    ) -> Result<Option<Findings>, Unscannable> {
        let scanned = self.scan_metered(value, subject, &self.settings.limits, pace)?;
        Ok(scanned.map(|(findings, _)| findings))
    }

    /// Action for a finding when no policy says otherwise.
    #[must_use]
    pub fn default_action(&self, finding: &Finding, direction: Direction) -> Action {
        let Finding { detector, category, likelihood, .. } = finding;
        self.settings.action(detector, *category, *likelihood, direction)
    }

    /// Mask of a finding when no policy says otherwise.
    #[must_use]
    pub fn default_mask(&self, finding: &Finding) -> Mask {
        self.settings.mask(finding.detector(), finding.category)
    }

    /// The document with those findings masked for which `choose` names a way to. `findings` must
    /// be those of this document. A scan of the result does not find what was chosen: what is still
    /// seen after the matches are masked is masked as well, in the end as a whole. Where `schema` speaks about a place,
    /// what is put there has a type and a length that fit.
    #[must_use]
    pub fn redact(
        &self,
        document: &Document,
        findings: &Findings,
        schema: Option<&Value>,
        choose: impl Fn(&Finding) -> Option<Mask>,
    ) -> Document {
        let Some(subject) = findings.subject() else { return document.clone() };
        if !findings.iter().any(|finding| choose(finding).is_some()) {
            return document.clone();
        }
        let mut masked = redact::apply(document, findings, schema, Extent::Matches, &choose);
        for round in 0..MAX_ROUNDS {
            let extent = match round {
                0 => Extent::Matches,
                1 => Extent::Leaves,
                _ => Extent::Everything,
            };
            match self.rescan(masked.root(), subject) {
                Ok(rest) if !rest.iter().any(|finding| choose(finding).is_some()) => return masked,
                Ok(rest) => {
                    masked = redact::apply(&masked, &rest, schema, extent, &choose);
                }
                Err(_) => break,
            }
        }
        redact::apply(&masked, findings, schema, Extent::Everything, &choose)
    }

    /// The same of a tree.
    #[must_use]
    pub fn redact_value(
        &self,
        value: &Value,
        findings: &Findings,
        choose: impl Fn(&Finding) -> Option<Mask>,
    ) -> Value {
        self.redact(&Document::of(value), findings, None, choose).root().to_value()
    }

    /// A scan with room for placeholders.
    fn rescan(&self, value: Node<'_>, subject: &Subject) -> Result<Findings, Unscannable> {
        let limits = Limits {
            max_bytes: self.settings.limits.max_bytes.saturating_mul(8),
            max_decoded_bytes: usize::MAX,
            ..self.settings.limits
        };
        self.scan_within(value, subject, &limits).map(|(findings, _)| findings)
    }

    /// Steps of a scan.
    #[cfg(test)]
    pub(super) fn steps<'a>(&self, value: impl JsonValue<'a>) -> Result<usize, Unscannable> {
        let Engine { scanner, names, .. } = self;
        workspace::with(|Workspace { body, views, scratch, .. }| {
            let limits = &self.settings.limits;
            body.flatten(value, limits)?;
            scratch.meter = Meter::new(pace::without_rest, usize::MAX);
            views.begin(body, limits);
            views.scan_all(body, scanner.rare(), names, |body, first, runs, recased| {
                let _work = scanner.scan(body, first, runs, scratch, recased);
            })?;
            Ok(scratch.meter.steps() + views.decoded())
        })
    }

    /// Also says how many bytes were looked at beyond the single pass.
    pub(super) fn scan_within<'a>(
        &self,
        value: impl JsonValue<'a>,
        subject: &Subject,
        limits: &Limits,
    ) -> Result<(Findings, usize), Unscannable> {
        Ok(self.scan_metered(value, subject, limits, pace::without_rest)?.unwrap_or_default())
    }

    fn scan_metered<'a>(
        &self,
        value: impl JsonValue<'a>,
        subject: &Subject,
        limits: &Limits,
        pace: Pace,
    ) -> Result<Option<(Findings, usize)>, Unscannable> {
        let Engine { scanner, allow, names, .. } = self;
        workspace::with(|Workspace { body, views, scratch, groups }| {
            body.flatten(value, limits)?;
            scratch.meter = Meter::new(pace, pace::budget(body.text.len()));
            views.begin(body, limits);
            let mut work = 0;
            views.scan_all(body, scanner.rare(), names, |body, first, runs, recased| {
                work += scanner.scan(body, first, runs, scratch, recased);
            })?;
            if let Some(limit) = scratch.meter.exceeded() {
                return Err(Unscannable::TooCostly { limit });
            }
            if scratch.meter.is_over() {
                return Ok(None);
            }
            work += views.decoded();
            let gather = Gather { scanner, allow, body, views, subject };
            let findings = gather.findings(&mut scratch.matches, groups);
            Ok(Some((findings.with_media(body.media), work)))
        })
    }
}

/// Masking whole strings in the second round settles it; the others are for masks that together make
/// something new.
const MAX_ROUNDS: usize = 6;

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("detectors", &self.scanner.active.len())
            .finish_non_exhaustive()
    }
}
