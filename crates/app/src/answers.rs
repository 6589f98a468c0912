//! What an invocation answers, and what is recorded of each ending.

use portcullis_core::{
    audit::{DlpResult, Governance, Outcome, OutcomeStatus, RecordedDecision},
    id::EventId,
    refusal::{Executed, Refusal},
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

/// The recorded outcome of a refusal.
pub(crate) fn outcome_of(refusal: &Refusal, executed: Executed) -> Outcome {
    let status = outcome_status(refusal);
    Outcome {
        error_code: Some(refusal.code()),
        executed,
        http_status: refusal.http_status(),
        status,
    }
}

const fn outcome_status(refusal: &Refusal) -> OutcomeStatus {
    match refusal {
        Refusal::InvalidRequest { .. }
        | Refusal::RejectedByProvider { .. }
        | Refusal::NotRefreshable { .. }
        | Refusal::InvalidInput { .. }
        | Refusal::InvalidScope { .. }
        | Refusal::IdempotencyKeyReused { .. }
        | Refusal::MethodNotAllowed { .. }
        | Refusal::PayloadTooLarge { .. }
        | Refusal::RangeNotSatisfiable { .. }
        | Refusal::UnsupportedMediaType => OutcomeStatus::Invalid,
        Refusal::MissingToken
        | Refusal::InvalidToken
        | Refusal::WrongTokenKind { .. }
        | Refusal::TokenExpired { .. }
        | Refusal::TokenRevoked
        | Refusal::TokenReused
        | Refusal::InvalidCredential { .. }
        | Refusal::PolicyDenied { .. }
        | Refusal::InsufficientScope { .. }
        | Refusal::DelegationNotTrusted => OutcomeStatus::Denied,
        Refusal::NotFound { .. } | Refusal::NoSuchProvider { .. } => OutcomeStatus::NotFound,
        Refusal::RateLimited { .. }
        | Refusal::TooManyExports { .. }
        | Refusal::ExportsFull { .. } => OutcomeStatus::RateLimited,
        Refusal::UpstreamError { .. } | Refusal::UpstreamResting { .. } => {
            OutcomeStatus::UpstreamError
        }
        Refusal::UpstreamTimeout { .. } | Refusal::Interrupted { .. } => {
            OutcomeStatus::UpstreamTimeout
        }
        Refusal::ProviderAuthRequired { .. }
        | Refusal::IdempotencyInProgress { .. }
        | Refusal::Unavailable { .. } => OutcomeStatus::Unavailable,
        Refusal::Internal => OutcomeStatus::Unknown,
    }
}
