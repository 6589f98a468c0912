//! The words of policies: effect, phase, status and severity.

use serde::Serialize;
use utoipa::ToSchema;

crate::words! {
    /// Effect of a policy when it is true.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Effect {
        /// Allows, unless something forbids.
        Permit = "permit",
        /// Denies, whatever permits.
        Forbid = "forbid",
    }
}

crate::words! { listed
    /// Before the call or after it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Phase {
        /// The call has not been made.
        Request = "request",
        /// The tool has answered; a forbid suppresses the answer.
        Response = "response",
    }
}

crate::words! { listed
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

crate::words! { listed
    /// Severity of a policy in reports; never changes a decision.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Severity {
        /// For information.
        Info = "info",
        /// Low.
        Low = "low",
        /// Medium; what a policy has that says nothing.
        Medium = "medium",
        /// High.
        High = "high",
        /// Critical.
        Critical = "critical",
    }
}
