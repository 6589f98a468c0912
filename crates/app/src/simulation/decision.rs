//! A decision in short, its cause, and its change under other policies.

use std::sync::Arc;

use portcullis_core::{
    audit::{DlpResult, RecordedDecision},
    call::{Denial, Grounds},
    policy::Cause,
};
use serde::Serialize;
use utoipa::ToSchema;

/// A decision in short.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, ToSchema)]
pub struct SimulatedDecision {
    /// `null` when there is none.
    pub decision: Option<RecordedDecision>,
    /// Absent of a recorded decision, which does not tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<SimulatedCause>,
    /// The policy that decided.
    #[schema(value_type = Option<String>)]
    pub policy: Option<Arc<str>>,
    /// The reason of a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

portcullis_core::words! {
    /// Kind of reason for a decision.
    // In the order of the names, by which reports are sorted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum SimulatedCause {
        /// No permit is true.
        DefaultDeny = "default_deny",
        /// DLP blocks, or could not scan.
        Dlp = "dlp",
        /// A forbid is true.
        ExplicitDeny = "explicit_deny",
        /// The input does not fit the tool's schema.
        InvalidInput = "invalid_input",
        /// An obligation of a policy cannot be fulfilled.
        Obligation = "obligation",
        /// A permit is true.
        Permit = "permit",
        /// A policy could not be evaluated.
        PolicyError = "policy_error",
    }
}

impl SimulatedCause {
    /// Cause of a denial, or of passing without one.
    pub(crate) const fn of(denial: Option<&Denial>) -> Self {
        let Some(denial) = denial else { return Self::Permit };
        match denial.grounds() {
            Grounds::Scope(_) | Grounds::Quarantine | Grounds::Policy(Cause::ExplicitDeny) => {
                Self::ExplicitDeny
            }
            Grounds::Schema { .. } => Self::InvalidInput,
            Grounds::Policy(Cause::DefaultDeny) => Self::DefaultDeny,
            Grounds::Policy(Cause::PolicyError) => Self::PolicyError,
            Grounds::Dlp => Self::Dlp,
            Grounds::Limit(_) | Grounds::Approval(_) | Grounds::Masking => Self::Obligation,
        }
    }
}

/// Action of DLP on a simulated call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SimulatedDlpAction {
    /// DLP was not asked, or another reason denied the call.
    None,
    /// Nothing was found.
    Allow,
    /// Found, and nothing acts on it.
    Flag,
    /// Found and masked.
    Redact,
    /// Found, and the call or its result is stopped.
    Block,
}

impl SimulatedDlpAction {
    /// Action on a call that passes.
    pub(crate) const fn passing(result: DlpResult) -> Self {
        match result {
            DlpResult::Skipped => Self::None,
            DlpResult::Passed => Self::Allow,
            DlpResult::Flagged => Self::Flag,
            DlpResult::Redacted => Self::Redact,
            DlpResult::Blocked => Self::Block,
        }
    }

    /// Action on a call that is denied.
    pub(crate) const fn denying(grounds: &Grounds, found: bool) -> Self {
        match grounds {
            Grounds::Policy(_) if !found => Self::Allow,
            Grounds::Dlp | Grounds::Masking if found => Self::Block,
            Grounds::Scope(_)
            | Grounds::Quarantine
            | Grounds::Schema { .. }
            | Grounds::Policy(_)
            | Grounds::Dlp
            | Grounds::Limit(_)
            | Grounds::Approval(_)
            | Grounds::Masking => Self::None,
        }
    }
}

/// Difference of a decision under other policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SimulatedChange {
    /// Nothing.
    None,
    /// Allowed before, denied now.
    NewlyDenied,
    /// Denied before, allowed now.
    NewlyAllowed,
    /// The same decision by another policy.
    PolicyChanged,
    /// The same decision with other obligations.
    ObligationsChanged,
    /// Allowed before; what the event does not tell could deny it.
    MaybeDenied,
    /// Denied before; what the event does not tell could allow it.
    MaybeAllowed,
    /// Not known from what the event tells.
    Indeterminate,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CAUSES: [SimulatedCause; 7] = [
        SimulatedCause::DefaultDeny,
        SimulatedCause::Dlp,
        SimulatedCause::ExplicitDeny,
        SimulatedCause::InvalidInput,
        SimulatedCause::Obligation,
        SimulatedCause::Permit,
        SimulatedCause::PolicyError,
    ];

    #[test]
    fn causes_are_sent_by_their_names_and_sorted_by_them() {
        for cause in CAUSES {
            assert_eq!(json!(cause), cause.as_str());
        }

        assert!(CAUSES.is_sorted());
        assert!(CAUSES.is_sorted_by_key(|cause| cause.as_str()));
    }
}
