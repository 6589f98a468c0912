//! DLP's report on a value that is part of no call.

use std::sync::Arc;

use portcullis_core::{
    audit::DlpResult,
    call::{ScanAttempt, Scanned, Specimen},
    dlp::{Action, Direction, Engine, Finding, FingerprintKey, Subject},
    id::OrgId,
    random,
    refusal::Refusal,
};
use portcullis_lanes::goes_on;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::Screening;

/// The most findings of a report.
const MAX_LISTED: usize = 200;
/// Characters of a path that are told, as in events.
const PATH_LENGTH: usize = 200;

/// Findings in a value, and what DLP does to it. The matched text is in none of the findings.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DlpScan)]
pub struct SpecimenReport {
    /// The worst action: `blocked` stands for a call that is refused or a result that is withheld.
    pub dlp_result: DlpResult,
    /// In the order of the value.
    pub findings: Vec<SpecimenFinding>,
    /// Number of findings beyond those that are listed.
    pub findings_left_out: usize,
    /// The value with its findings masked, but for those that are only flagged; `null` if it was not
    /// scanned.
    #[schema(value_type = Value, nullable)]
    pub masked: Option<Value>,
    pub unscanned: Unscanned,
}

/// Kind and place of matches in a value.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DlpScanFinding)]
pub struct SpecimenFinding {
    pub detector: String,
    pub category: &'static str,
    /// Strength of the evidence.
    pub likelihood: &'static str,
    /// `flag`, `redact` or `block`.
    pub action: &'static str,
    /// Number of matches.
    pub count: u32,
    /// JSON Pointer; empty for a text.
    pub path: String,
    /// True if the name of a member matched, and not its value.
    pub in_key: bool,
}

/// Parts of a value that no detector looked at.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = DlpUnscanned)]
pub struct Unscanned {
    /// Number of images, recordings and other media.
    pub media: u32,
    /// Reason for which nothing was scanned. A call or a result like it is stopped.
    pub reason: Option<String>,
}

impl Screening {
    /// Scans a value as if it travelled in a call of any tool that no policy speaks about, with a worker and
    /// for as long as this is awaited. Nothing is recorded, counted or kept.
    ///
    /// The key of its fingerprints and pseudonyms is of this scan alone: they cannot be compared with those
    /// of events and results, whose values could be guessed with them.
    pub async fn inspect(&self, org: OrgId, specimen: Specimen) -> Result<SpecimenReport, Refusal> {
        let dlp = self.dlp();
        let direction = specimen.direction();
        let subject = Subject::of(FingerprintKey::new(random::bytes(&*self.base.random)));
        let scan = {
            let dlp = Arc::clone(&dlp);
            let subject = subject.clone();
            move || specimen.scan_at(dlp.engine(), &subject, goes_on)
        };
        let scanned = match self.base.worked_awaited(org, scan).await? {
            ScanAttempt::Done(Ok(scanned)) => dlp.completed(scanned, direction, &subject).await,
            ScanAttempt::Done(Err(denial)) => Err(denial),
            // No one waits for the answer.
            ScanAttempt::Unfinished(_) => return Err(Refusal::Internal),
        };
        match scanned {
            Ok(scanned) => {
                let report = move || SpecimenReport::of(dlp.engine(), &scanned, direction);
                self.base.worked_awaited(org, report).await
            }
            Err(denial) => Ok(SpecimenReport::unscanned(denial.reason)),
        }
    }
}

impl SpecimenReport {
    fn of(engine: &Engine, scanned: &Scanned<Specimen>, direction: Direction) -> Self {
        let findings = scanned.findings();
        let action = |finding: &Finding| engine.default_action(finding, direction);
        let mask = |finding: &Finding| {
            (action(finding) != Action::Flag).then(|| engine.default_mask(finding))
        };
        let masked = engine.redact(scanned.value(), findings, None, mask);
        let listed: Vec<_> = findings
            .iter()
            .take(MAX_LISTED)
            .map(|finding| SpecimenFinding::of(finding, action(finding)))
            .collect();
        Self {
            dlp_result: findings.iter().map(action).max().map_or(DlpResult::Passed, result),
            findings_left_out: findings.iter().count() - listed.len(),
            findings: listed,
            masked: Some(masked.root().to_value()),
            unscanned: Unscanned { media: findings.media(), reason: None },
        }
    }

    fn unscanned(reason: String) -> Self {
        Self {
            dlp_result: DlpResult::Blocked,
            findings: Vec::new(),
            findings_left_out: 0,
            masked: None,
            unscanned: Unscanned { media: 0, reason: Some(reason) },
        }
    }
}

impl SpecimenFinding {
    fn of(finding: &Finding, action: Action) -> Self {
        Self {
            detector: finding.detector().to_owned(),
            category: finding.category().as_str(),
            likelihood: finding.likelihood().as_str(),
            action: action.as_str(),
            count: finding.count(),
            path: finding.pointer().chars().take(PATH_LENGTH).collect(),
            in_key: finding.is_in_key(),
        }
    }
}

/// Outcome of a scan whose worst action is this.
const fn result(worst: Action) -> DlpResult {
    match worst {
        Action::Flag => DlpResult::Flagged,
        Action::Redact => DlpResult::Redacted,
        Action::Block => DlpResult::Blocked,
    }
}
