//! The words of policies: effect, phase, status and severity.

use serde::Serialize;
use utoipa::ToSchema;

/// Effect of a policy when it is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Allows, unless something forbids.
    Permit,
    /// Denies, whatever permits.
    Forbid,
}

/// Before the call or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The call has not been made.
    Request,
    /// The tool has answered; a forbid suppresses the answer.
    Response,
}

crate::words! {
    /// Status of a policy.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    #[schema(as = PolicyStatus)]
    pub enum Status {
        /// The policy decides.
        Active = "active",
        /// The policy is evaluated and reported, and changes nothing.
        Shadow = "shadow",
        /// The policy is not evaluated.
        Disabled = "disabled",
    }
}

/// Severity of a policy in reports; never changes a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// For information.
    Info,
    /// Low.
    Low,
    /// Medium; what a policy has that says nothing.
    Medium,
    /// High.
    High,
    /// Critical.
    Critical,
}
