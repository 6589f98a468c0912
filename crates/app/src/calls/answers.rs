//! Answers of an invocation, and the records of each ending.

use portcullis_core::{
    audit::{DlpResult, Governance, RecordedDecision},
    id::EventId,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The `governance` member of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Governance)]
pub struct GovernanceView {
    /// `allow` or `deny`.
    pub decision: RecordedDecision,
    /// The policy that decided.
    #[schema(example = "no-prod-writes")]
    pub policy: String,
    /// Worst DLP outcome over input and output.
    pub dlp_result: DlpResult,
    /// The recorded event.
    pub audit_event_id: EventId,
}

impl GovernanceView {
    /// Present exactly when a decision was reached.
    pub(crate) fn of(governance: Option<&Governance>, event: EventId) -> Option<Self> {
        let governance = governance?;
        Some(Self {
            decision: governance.decision?,
            policy: governance.policy.clone()?,
            dlp_result: governance.dlp_result,
            audit_event_id: event,
        })
    }
}
