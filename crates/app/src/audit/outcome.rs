//! Outcome of a refused request, as its event records it.

use portcullis_core::{
    approval::Status as ApprovalStatus,
    audit::{Outcome, OutcomeStatus},
    refusal::{Executed, Refusal},
};

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
        | Refusal::ApprovalSettled { .. }
        | Refusal::Conflict { .. }
        | Refusal::PreconditionFailed
        | Refusal::InvalidInput { .. }
        | Refusal::InvalidScope { .. }
        | Refusal::IdempotencyKeyReused { .. }
        | Refusal::MethodNotAllowed { .. }
        | Refusal::PayloadTooLarge { .. }
        | Refusal::RangeNotSatisfiable { .. }
        | Refusal::UnsupportedMediaType { .. } => OutcomeStatus::Invalid,
        Refusal::MissingToken
        | Refusal::InvalidToken
        | Refusal::WrongTokenKind { .. }
        | Refusal::TokenExpired { .. }
        | Refusal::TokenRevoked
        | Refusal::TokenReused
        | Refusal::InvalidCredential { .. }
        | Refusal::InvalidProof { .. }
        | Refusal::PolicyDenied { .. }
        | Refusal::InsufficientScope { .. }
        | Refusal::ReadOnly
        | Refusal::DelegationNotTrusted => OutcomeStatus::Denied,
        Refusal::AwaitsApproval { approval, .. } => match approval.status {
            ApprovalStatus::Pending => OutcomeStatus::ApprovalPending,
            ApprovalStatus::Approved
            | ApprovalStatus::Denied
            | ApprovalStatus::Expired
            | ApprovalStatus::Consumed => OutcomeStatus::Denied,
        },
        Refusal::NotFound { .. } | Refusal::NoSuchProvider { .. } => OutcomeStatus::NotFound,
        Refusal::RateLimited { .. }
        | Refusal::TooManyExports { .. }
        | Refusal::ExportsFull { .. } => OutcomeStatus::RateLimited,
        Refusal::UpstreamError { .. }
        | Refusal::Unanswerable { .. }
        | Refusal::UpstreamResting { .. } => OutcomeStatus::UpstreamError,
        Refusal::UpstreamTimeout { .. } | Refusal::Interrupted { .. } => {
            OutcomeStatus::UpstreamTimeout
        }
        Refusal::ProviderAuthRequired { .. }
        | Refusal::IdempotencyInProgress { .. }
        | Refusal::Unavailable { .. } => OutcomeStatus::Unavailable,
        Refusal::Internal => OutcomeStatus::Unknown,
    }
}
