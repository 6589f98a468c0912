//! Everything Portcullis may answer instead of a result: the error catalogue.
//!
//! A refusal is not a failure: most of these are the product working. This is the one place that
//! knows codes and statuses, with their messages and details below it; the event of a call records
//! the same status that the caller is answered with.

mod details;
mod message;
mod reasons;

pub use self::{
    details::ErrorDetails,
    reasons::{AskedApproval, Conflict, Executed, Remedy, Unavailable, UpstreamReason},
};
pub use crate::capability::Violation;

use serde_json::{Map, Value};

use crate::{
    approval::Status,
    capability::{CapabilityId, ProviderSlug},
    clock::Timestamp,
    id::{ApprovalId, ProviderId, RequestId},
    limits::Resource,
    mcp::interaction::ClientCapabilities,
    principal::{Scope, ScopeSet},
    trust::{CredentialCheck, ProofFault, TargetUri},
};

/// An answer from the error catalogue.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// Not JSON, a duplicate or unknown member, a wrong type, a bad parameter.
    InvalidRequest {
        /// The problem and its remedy, in words.
        message: String,
        /// The query parameter or header at fault, if one is.
        parameter: Option<String>,
        violations: Vec<Violation>,
    },
    /// `input` breaks the tool's schema.
    InvalidInput {
        tool: CapabilityId,
        violations: Vec<Violation>,
    },
    /// A scope that does not exist, or more than the credential may have.
    InvalidScope {
        /// The scopes asked for that are too much, bounded.
        scope: String,
        /// The scopes that may be asked for.
        allowed: ScopeSet,
    },
    /// The idempotency key stands for another request.
    IdempotencyKeyReused {
        /// The request that it stands for.
        first: RequestId,
    },
    MissingToken,
    /// Unknown, malformed, or of the wrong kind for this endpoint.
    InvalidToken,
    /// One of ours, but of a kind that this endpoint does not take.
    WrongTokenKind {
        hint: &'static str,
    },
    /// Known, but past its expiry.
    TokenExpired {
        expired_at: Timestamp,
    },
    /// Known, but it or an ancestor was revoked.
    TokenRevoked,
    /// A refresh token that was spent before; its grant has ended.
    TokenReused,
    /// A JWT that is not accepted at the exchange.
    InvalidCredential {
        check: CredentialCheck,
    },
    /// The sender does not prove that it holds the key that a token is bound to, or is to be
    /// (RFC 9449).
    InvalidProof {
        fault: ProofFault,
        /// The address that it has to be made for, if that is its fault.
        address: Option<TargetUri>,
    },
    /// Denied by a policy, its DLP rule, or its failure.
    PolicyDenied {
        policy: String,
        reason: String,
        /// Findings of DLP, if they are the reason.
        dlp: Option<Value>,
        /// Further members of `details`.
        more: Map<String, Value>,
    },
    /// A policy asks that people approve the call first.
    AwaitsApproval {
        policy: String,
        reason: String,
        approval: AskedApproval,
    },
    /// The approval cannot be decided any more, or this person decided already.
    ApprovalSettled {
        id: ApprovalId,
        /// Its status; `pending` if it waits for others.
        status: Status,
    },
    InsufficientScope {
        required: Scope,
    },
    /// Administration over the API is switched off by the operator.
    ReadOnly,
    /// The resource is not in the state that `If-Match` names (RFC 9110 §13.1.1).
    PreconditionFailed,
    /// A change that the state of the org does not permit.
    Conflict {
        reason: Conflict,
    },
    /// No trust rule lets the Bearer act for the subject.
    DelegationNotTrusted,
    /// No provider of this name can be connected here.
    NoSuchProvider {
        /// The slug as asked for, bounded.
        slug: String,
        available: Vec<ProviderSlug>,
    },
    /// The provider does not take the credential that it was given.
    RejectedByProvider {
        provider: ProviderSlug,
    },
    /// Not there, or not visible to this caller.
    NotFound {
        resource: &'static str,
        /// The id as asked for, bounded.
        id: String,
        /// A sentence on what there is instead.
        hint: Option<String>,
    },
    MethodNotAllowed {
        allow: Vec<String>,
    },
    /// The provider's credentials are unusable.
    ProviderAuthRequired {
        provider: ProviderSlug,
        provider_id: ProviderId,
        /// Scopes that the credentials lack, if that is the reason.
        scopes: Vec<String>,
        /// The way to get it credentials that it takes.
        remedy: Remedy,
    },
    /// There is nothing to get new credentials with.
    NotRefreshable {
        auth_type: &'static str,
    },
    /// The request of this idempotency key is still under way.
    IdempotencyInProgress {
        /// The request that came first.
        first: RequestId,
    },
    PayloadTooLarge {
        limit_bytes: usize,
    },
    /// The body is declared as something else than JSON.
    UnsupportedMediaType {
        /// The type that is taken.
        wanted: &'static str,
    },
    RateLimited {
        resource: Resource,
        limit: u32,
        /// Seconds to wait.
        retry_after: i64,
        /// When the window ends.
        reset_at: Timestamp,
    },
    /// As many exports of the org are under way as may be.
    TooManyExports {
        /// The number that may be under way.
        limit: u32,
        /// Seconds to wait.
        retry_after: i64,
        /// When that will be.
        reset_at: Timestamp,
    },
    /// The files of the org's exports are as many or as large as they may be.
    ExportsFull {
        /// The number that there may be.
        files: u32,
        /// The bytes that they may have together.
        bytes: u64,
        /// Seconds until the oldest goes.
        retry_after: i64,
        /// When that will be.
        reset_at: Timestamp,
    },
    /// The range asked for is not in the file.
    RangeNotSatisfiable {
        /// Number of bytes in the file.
        bytes: u64,
    },
    /// A bug; nothing of it is told.
    Internal,
    /// The provider failed or misbehaved.
    UpstreamError {
        provider: ProviderSlug,
        reason: UpstreamReason,
        /// The words of its server, as far as they may leave.
        said: Option<String>,
    },
    /// The tool asks something that the caller did not say it can answer.
    Unanswerable {
        provider: ProviderSlug,
        /// Capabilities that the caller has to declare.
        required: ClientCapabilities,
    },
    /// The provider or the tool kept failing and is left in peace for a while.
    UpstreamResting {
        provider: ProviderSlug,
        /// Seconds after which it is tried again.
        retry_after: u64,
    },
    /// The gateway cannot record or remember.
    Unavailable {
        reason: Unavailable,
    },
    UpstreamTimeout {
        provider: ProviderSlug,
        timeout_ms: u64,
    },
    /// The gateway stopped before the provider's answer was recorded.
    Interrupted {
        provider: ProviderSlug,
        timeout_ms: u64,
    },
}

impl Refusal {
    /// The provider failed for this reason.
    #[must_use]
    pub const fn upstream(provider: ProviderSlug, reason: UpstreamReason) -> Self {
        Self::UpstreamError { provider, reason, said: None }
    }

    /// A bad request that no single parameter or place is to blame for.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::InvalidRequest { message: message.into(), parameter: None, violations: Vec::new() }
    }

    /// A bad query parameter or header.
    #[must_use]
    pub fn bad_parameter(parameter: &str, message: impl Into<String>) -> Self {
        let parameter = Some(parameter.chars().take(100).collect());
        Self::InvalidRequest { message: message.into(), parameter, violations: Vec::new() }
    }

    /// Something that is not there for this caller; the id is cut to 200 characters.
    #[must_use]
    pub fn not_found(resource: &'static str, id: &str) -> Self {
        Self::NotFound { resource, id: id.chars().take(200).collect(), hint: None }
    }

    /// A slug that names nothing that can be connected; cut to 200 characters.
    #[must_use]
    pub fn no_such_provider(slug: &str, available: Vec<ProviderSlug>) -> Self {
        Self::NoSuchProvider { slug: slug.chars().take(200).collect(), available }
    }

    /// The stable `error.code`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidRequest { .. } | Self::RejectedByProvider { .. } => "invalid_request",
            Self::InvalidInput { .. } => "invalid_input",
            Self::InvalidScope { .. } => "invalid_scope",
            Self::IdempotencyKeyReused { .. } => "idempotency_key_reused",
            Self::MissingToken => "missing_token",
            Self::InvalidToken | Self::WrongTokenKind { .. } => "invalid_token",
            Self::TokenExpired { .. } => "token_expired",
            Self::TokenRevoked => "token_revoked",
            Self::TokenReused => "token_reused",
            Self::InvalidCredential { .. } => "invalid_credential",
            Self::InvalidProof { fault, .. } if fault.wants_nonce() => "use_dpop_nonce",
            Self::InvalidProof { .. } => "invalid_dpop_proof",
            Self::PolicyDenied { .. } | Self::AwaitsApproval { .. } => "policy_denied",
            Self::InsufficientScope { .. } | Self::DelegationNotTrusted => "insufficient_scope",
            Self::ReadOnly => "read_only",
            Self::PreconditionFailed => "precondition_failed",
            Self::Conflict { .. } => "conflict",
            Self::NotFound { .. } | Self::NoSuchProvider { .. } => "not_found",
            Self::MethodNotAllowed { .. } => "method_not_allowed",
            Self::ProviderAuthRequired { .. } => "provider_auth_required",
            Self::NotRefreshable { .. } => "not_refreshable",
            Self::ApprovalSettled { .. } => "approval_settled",
            Self::IdempotencyInProgress { .. } => "idempotency_in_progress",
            Self::PayloadTooLarge { .. } => "payload_too_large",
            Self::UnsupportedMediaType { .. } => "unsupported_media_type",
            Self::RateLimited { .. } | Self::TooManyExports { .. } | Self::ExportsFull { .. } => {
                "rate_limited"
            }
            Self::RangeNotSatisfiable { .. } => "range_not_satisfiable",
            Self::Internal => "internal_error",
            Self::UpstreamError { .. }
            | Self::Unanswerable { .. }
            | Self::UpstreamResting { .. } => "upstream_error",
            Self::Unavailable { .. } => "unavailable",
            Self::UpstreamTimeout { .. } | Self::Interrupted { .. } => "upstream_timeout",
        }
    }

    /// The HTTP status (RFC 9110 §15). No other file says one.
    #[must_use]
    pub const fn http_status(&self) -> u16 {
        match self {
            Self::InvalidRequest { .. }
            | Self::RejectedByProvider { .. }
            | Self::InvalidInput { .. }
            | Self::InvalidScope { .. }
            | Self::IdempotencyKeyReused { .. } => 400,
            Self::MissingToken
            | Self::InvalidToken
            | Self::WrongTokenKind { .. }
            | Self::TokenExpired { .. }
            | Self::TokenRevoked
            | Self::TokenReused
            | Self::InvalidCredential { .. }
            | Self::InvalidProof { .. } => 401,
            Self::PolicyDenied { .. }
            | Self::AwaitsApproval { .. }
            | Self::InsufficientScope { .. }
            | Self::ReadOnly
            | Self::DelegationNotTrusted => 403,
            Self::NotFound { .. } | Self::NoSuchProvider { .. } => 404,
            Self::MethodNotAllowed { .. } => 405,
            Self::ProviderAuthRequired { .. }
            | Self::ApprovalSettled { .. }
            | Self::NotRefreshable { .. }
            | Self::Conflict { .. }
            | Self::IdempotencyInProgress { .. } => 409,
            Self::PreconditionFailed => 412,
            Self::PayloadTooLarge { .. } => 413,
            Self::UnsupportedMediaType { .. } => 415,
            Self::RangeNotSatisfiable { .. } => 416,
            Self::RateLimited { .. } | Self::TooManyExports { .. } | Self::ExportsFull { .. } => {
                429
            }
            Self::Internal => 500,
            Self::UpstreamError { .. }
            | Self::Unanswerable { .. }
            | Self::UpstreamResting { .. } => 502,
            Self::Unavailable { .. } => 503,
            Self::UpstreamTimeout { .. } | Self::Interrupted { .. } => 504,
        }
    }
}

/// Every `error.code`, sorted.
pub const CODES: [&str; 31] = [
    "approval_settled", "conflict", "idempotency_in_progress", "idempotency_key_reused",
    "insufficient_scope", "internal_error", "invalid_credential", "invalid_dpop_proof",
    "invalid_input", "invalid_request", "invalid_scope", "invalid_token", "method_not_allowed",
    "missing_token", "not_found", "not_refreshable", "payload_too_large", "policy_denied",
    "precondition_failed", "provider_auth_required", "range_not_satisfiable", "rate_limited",
    "read_only", "token_expired", "token_reused", "token_revoked", "unavailable",
    "unsupported_media_type", "upstream_error", "upstream_timeout", "use_dpop_nonce",
];

/// Reason that a delegation is refused.
const NOT_DELEGATED: &str = "no trust rule lets the Bearer act for this subject";

/// The reason of a denial by `token-scopes`.
pub(crate) fn lacks(required: Scope) -> String {
    format!("the token lacks the scope {required}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_denial_names_policy_and_reason() {
        let refusal = Refusal::PolicyDenied {
            policy: "no-prod-writes".to_owned(),
            reason: "production is read-only for agents".to_owned(),
            dlp: None,
            more: Map::new(),
        };

        assert_eq!(
            refusal.to_string(),
            "Denied by policy 'no-prod-writes': production is read-only for agents."
        );
        assert_eq!(
            Value::Object(refusal.details()),
            json!({"policy": "no-prod-writes", "reason": "production is read-only for agents"})
        );
    }

    #[test]
    fn every_code_that_is_documented_is_in_the_list() {
        let documented = include_str!("../../../docs/errors.md");
        let titles = documented.lines().filter_map(|line| line.strip_prefix("### `"));
        let mut codes: Vec<&str> = titles.filter_map(|title| title.split('`').next()).collect();
        codes.sort_unstable();

        assert_eq!(codes, CODES);
    }

    #[test]
    fn an_overlong_id_is_cut_before_it_is_echoed() {
        let refusal = Refusal::not_found("mcp", &"x".repeat(5_000));

        assert_eq!(refusal.details().get("id").and_then(Value::as_str).map(str::len), Some(200));
    }
}
