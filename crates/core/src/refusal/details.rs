//! Members of `error.details`, code by code.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    AskedApproval, Conflict, Executed, NOT_DELEGATED, Refusal, Unavailable, UpstreamReason,
    Violation, lacks,
};
use crate::{
    approval::Status,
    capability::ProviderSlug,
    clock::Timestamp,
    id::{ApprovalId, ProviderId, RequestId},
    mcp::interaction::ClientCapabilities,
    policy::TOKEN_SCOPES,
};

/// Details of an error; which there are depends on its code, and members can be added.
// In the order in which they are sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct ErrorDetails {
    /// The query parameter or header at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<String>,
    /// The places in the body at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    violations: Option<Vec<Violation>>,
    /// Size of the limit that was exceeded, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_bytes: Option<u64>,
    /// On denials: the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// The provider that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    provider: Option<ProviderSlug>,
    /// In words or, where the gateway or a provider failed, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The words of a server that answered with a JSON-RPC error: at most 1,000 characters, judged like a
    /// result.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_message: Option<String>,
    /// On denials: what DLP found.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    dlp: Option<Value>,
    /// On denials because a rate is used up: the obligation that sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    obligation: Option<Value>,
    /// On calls that people have to approve first: the approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<AskedApproval>,
    /// On decisions about an approval that is settled: its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<ApprovalId>,
    /// Its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    /// The missing scope; `null` where no scope is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    required_scope: Option<Value>,
    /// Capabilities that the caller has to declare, as `ClientCapabilities` of MCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    required_capabilities: Option<Value>,
    /// The limit that was exceeded, or the kind of what was not found.
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<&'static str>,
    /// The id of what was not found.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The providers that can be connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    available: Option<Vec<ProviderSlug>>,
    /// Size of the limit that was exceeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    /// Seconds to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    retry_after: Option<i64>,
    /// When the limit has room again.
    #[serde(skip_serializing_if = "Option::is_none")]
    reset_at: Option<Timestamp>,
    /// The connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_id: Option<ProviderId>,
    /// Path at which to connect it anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    connect: Option<String>,
    /// Scopes that its credentials lack.
    #[serde(skip_serializing_if = "Option::is_none")]
    scopes: Option<Vec<String>>,
    /// Time limit of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    /// The scopes asked for that are too much.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// When the token ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    expired_at: Option<Timestamp>,
    /// The class of the check that a credential or a DPoP proof failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<&'static str>,
    /// The methods that the path takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    allow: Option<Vec<String>>,
    /// Number of bytes in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Authentication of the gateway to the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_type: Option<&'static str>,
    /// The request that an idempotency key stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_request_id: Option<RequestId>,
    /// On errors of invocations: the effect at the provider, which tells if a retry is safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    executed: Option<Executed>,
}

impl ErrorDetails {
    /// The same with the effect of the call that was refused.
    #[must_use]
    pub fn with_executed(self, executed: Option<Executed>) -> Self {
        Self { executed, ..self }
    }

    /// The members as they are sent, by name.
    #[must_use]
    pub fn members(&self) -> Map<String, Value> {
        // Strings, integers and maps with string keys always serialise.
        match serde_json::to_value(self) {
            Ok(Value::Object(members)) => members,
            Ok(_) | Err(_) => Map::new(),
        }
    }
}

impl Refusal {
    /// The members of `error.details`.
    #[must_use]
    pub fn details(&self) -> Map<String, Value> {
        self.error_details().members()
    }

    /// `error.details`, without `executed`.
    #[must_use]
    pub fn error_details(&self) -> ErrorDetails {
        let none = ErrorDetails::default();
        match self {
            Self::InvalidRequest { parameter, violations, .. } => {
                invalid(parameter.as_deref(), violations)
            }
            Self::InvalidInput { violations, .. } => unfit(violations),
            Self::InvalidScope { scope, .. } => ErrorDetails { scope: Some(scope.clone()), ..none },
            Self::MissingToken
            | Self::InvalidToken
            | Self::WrongTokenKind { .. }
            | Self::TokenRevoked
            | Self::TokenReused
            | Self::UnsupportedMediaType { .. }
            | Self::ReadOnly
            | Self::PreconditionFailed
            | Self::Internal => none,
            Self::TokenExpired { expired_at } => expired(*expired_at),
            Self::InvalidCredential { check } => worthless(check.as_str()),
            Self::InvalidProof { fault, .. } => worthless(fault.as_str()),
            Self::PolicyDenied { policy, reason, dlp, more } => {
                denied(policy, reason, dlp.as_ref(), more)
            }
            Self::AwaitsApproval { policy, reason, approval } => awaited(policy, reason, approval),
            Self::InsufficientScope { required } => {
                unscoped(lacks(*required), Value::from(required.as_str()))
            }
            Self::Conflict { reason } => conflicting(*reason),
            Self::DelegationNotTrusted => unscoped(NOT_DELEGATED.to_owned(), Value::Null),
            Self::NoSuchProvider { slug, available } => undeclared(slug, available),
            Self::RejectedByProvider { provider } => failed(provider, REJECTED),
            Self::ApprovalSettled { id, status } => settled(*id, *status),
            Self::NotRefreshable { auth_type } => unrefreshable(auth_type),
            Self::NotFound { resource, id, .. } => missing(resource, id),
            Self::MethodNotAllowed { allow } => ErrorDetails { allow: Some(allow.clone()), ..none },
            Self::ProviderAuthRequired { provider, provider_id, scopes, remedy: _ } => {
                unauthorized(provider, *provider_id, scopes)
            }
            Self::PayloadTooLarge { limit_bytes } => too_large(*limit_bytes),
            Self::RateLimited { resource, limit, retry_after, reset_at } => {
                exceeded(resource.as_str(), *limit, *retry_after, *reset_at)
            }
            Self::TooManyExports { limit, retry_after, reset_at } => {
                exceeded("exports", *limit, *retry_after, *reset_at)
            }
            Self::ExportsFull { files, bytes, retry_after, reset_at } => {
                full(*bytes, exceeded("export_files", *files, *retry_after, *reset_at))
            }
            Self::RangeNotSatisfiable { bytes } => ErrorDetails { bytes: Some(*bytes), ..none },
            Self::UpstreamError { provider, reason, said } => {
                quoting(provider, *reason, said.as_deref())
            }
            Self::Unanswerable { provider, required } => unanswerable(provider, *required),
            Self::UpstreamResting { provider, retry_after } => resting(provider, *retry_after),
            Self::Unavailable { reason } => unavailable(*reason),
            Self::IdempotencyKeyReused { first } | Self::IdempotencyInProgress { first } => {
                ErrorDetails { first_request_id: Some(*first), ..none }
            }
            Self::UpstreamTimeout { provider, timeout_ms }
            | Self::Interrupted { provider, timeout_ms } => late(provider, *timeout_ms),
        }
    }
}

const REJECTED: &str = "rejected_by_provider";

fn invalid(parameter: Option<&str>, violations: &[Violation]) -> ErrorDetails {
    let violations = (!violations.is_empty()).then(|| violations.to_vec());
    ErrorDetails { parameter: parameter.map(str::to_owned), violations, ..ErrorDetails::default() }
}

fn unfit(violations: &[Violation]) -> ErrorDetails {
    ErrorDetails { violations: Some(violations.to_vec()), ..ErrorDetails::default() }
}

fn expired(at: Timestamp) -> ErrorDetails {
    ErrorDetails { expired_at: Some(at), ..ErrorDetails::default() }
}

fn worthless(check: &'static str) -> ErrorDetails {
    ErrorDetails { check: Some(check), ..ErrorDetails::default() }
}

fn too_large(limit_bytes: usize) -> ErrorDetails {
    ErrorDetails { limit_bytes: u64::try_from(limit_bytes).ok(), ..ErrorDetails::default() }
}

/// A denial; of its further members, those of a rate that is used up.
fn denied(
    policy: &str,
    reason: &str,
    dlp: Option<&Value>,
    more: &Map<String, Value>,
) -> ErrorDetails {
    ErrorDetails {
        policy: Some(policy.to_owned()),
        reason: Some(reason.to_owned()),
        dlp: dlp.cloned(),
        obligation: more.get("obligation").cloned(),
        retry_after: more.get("retry_after").and_then(Value::as_i64),
        ..ErrorDetails::default()
    }
}

fn awaited(policy: &str, reason: &str, approval: &AskedApproval) -> ErrorDetails {
    ErrorDetails { approval: Some(approval.clone()), ..denied(policy, reason, None, &Map::new()) }
}

fn conflicting(reason: Conflict) -> ErrorDetails {
    ErrorDetails { reason: Some(reason.as_str().to_owned()), ..ErrorDetails::default() }
}

fn unrefreshable(auth_type: &'static str) -> ErrorDetails {
    ErrorDetails { auth_type: Some(auth_type), ..ErrorDetails::default() }
}

fn settled(id: ApprovalId, status: Status) -> ErrorDetails {
    ErrorDetails { approval_id: Some(id), status: Some(status), ..ErrorDetails::default() }
}

fn unscoped(reason: String, required: Value) -> ErrorDetails {
    ErrorDetails {
        policy: Some(TOKEN_SCOPES.to_owned()),
        reason: Some(reason),
        required_scope: Some(required),
        ..ErrorDetails::default()
    }
}

fn undeclared(slug: &str, available: &[ProviderSlug]) -> ErrorDetails {
    ErrorDetails { available: Some(available.to_vec()), ..missing("provider_slug", slug) }
}

fn missing(resource: &'static str, id: &str) -> ErrorDetails {
    ErrorDetails { resource: Some(resource), id: Some(id.to_owned()), ..ErrorDetails::default() }
}

fn exceeded(
    resource: &'static str,
    limit: u32,
    retry_after: i64,
    reset_at: Timestamp,
) -> ErrorDetails {
    ErrorDetails {
        resource: Some(resource),
        limit: Some(u64::from(limit)),
        retry_after: Some(retry_after),
        reset_at: Some(reset_at),
        ..ErrorDetails::default()
    }
}

fn full(bytes: u64, exceeded: ErrorDetails) -> ErrorDetails {
    ErrorDetails { limit_bytes: Some(bytes), ..exceeded }
}

fn unauthorized(
    provider: &ProviderSlug,
    provider_id: ProviderId,
    scopes: &[String],
) -> ErrorDetails {
    ErrorDetails {
        provider: Some(provider.clone()),
        provider_id: Some(provider_id),
        connect: Some(format!("/v1/providers/{provider}/connect")),
        scopes: (!scopes.is_empty()).then(|| scopes.to_vec()),
        ..ErrorDetails::default()
    }
}

fn failed(provider: &ProviderSlug, reason: &str) -> ErrorDetails {
    ErrorDetails {
        provider: Some(provider.clone()),
        reason: Some(reason.to_owned()),
        ..ErrorDetails::default()
    }
}

fn quoting(provider: &ProviderSlug, reason: UpstreamReason, said: Option<&str>) -> ErrorDetails {
    ErrorDetails { upstream_message: said.map(str::to_owned), ..failed(provider, reason.as_str()) }
}

fn unanswerable(provider: &ProviderSlug, required: ClientCapabilities) -> ErrorDetails {
    ErrorDetails {
        required_capabilities: Some(required.declared()),
        ..failed(provider, UpstreamReason::InteractionRequired.as_str())
    }
}

/// An upstream that was not asked.
fn resting(provider: &ProviderSlug, retry_after: u64) -> ErrorDetails {
    ErrorDetails {
        retry_after: i64::try_from(retry_after).ok(),
        ..failed(provider, "circuit_open")
    }
}

fn unavailable(reason: Unavailable) -> ErrorDetails {
    ErrorDetails { reason: Some(reason.as_str().to_owned()), ..ErrorDetails::default() }
}

fn late(provider: &ProviderSlug, timeout_ms: u64) -> ErrorDetails {
    ErrorDetails {
        provider: Some(provider.clone()),
        timeout_ms: Some(timeout_ms),
        ..ErrorDetails::default()
    }
}
