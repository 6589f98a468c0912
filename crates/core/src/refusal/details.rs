//! Members of `error.details`, code by code.

use serde_json::{Map, Value, json};

use super::{NOT_DELEGATED, Refusal, UpstreamReason, Violation, lacks};
use crate::{
    clock::Timestamp, id::ProviderId, mcp::interaction::ClientCapabilities, policy::TOKEN_SCOPES,
    tool::ProviderSlug,
};

impl Refusal {
    /// The members of `error.details`.
    #[must_use]
    pub fn details(&self) -> Map<String, Value> {
        let details = match self {
            Self::InvalidRequest { parameter, violations, .. } => {
                return invalid(parameter.as_deref(), violations);
            }
            Self::InvalidInput { violations, .. } => json!({ "violations": violations }),
            Self::InvalidScope { scope, .. } => json!({ "scope": scope }),
            Self::MissingToken
            | Self::InvalidToken
            | Self::WrongTokenKind { .. }
            | Self::TokenRevoked
            | Self::TokenReused
            | Self::UnsupportedMediaType
            | Self::Internal => json!({}),
            Self::TokenExpired { expired_at } => json!({ "expired_at": expired_at }),
            Self::InvalidCredential { check } => json!({ "check": check.as_str() }),
            Self::PolicyDenied { policy, reason, dlp, more } => {
                let mut details = denial(policy, reason, dlp.as_ref());
                details.extend(more.clone());
                return details;
            }
            Self::InsufficientScope { required } => json!({
                "policy": TOKEN_SCOPES,
                "reason": lacks(*required),
                "required_scope": required.as_str(),
            }),
            Self::DelegationNotTrusted => not_delegated(),
            Self::NoSuchProvider { slug, available } => unknown(slug, available),
            Self::RejectedByProvider { provider } => rejected(provider),
            Self::NotRefreshable { auth_type } => json!({ "auth_type": auth_type }),
            Self::NotFound { resource, id } => json!({ "resource": resource, "id": id }),
            Self::MethodNotAllowed { allow } => json!({ "allow": allow }),
            Self::ProviderAuthRequired { provider, provider_id, scopes, remedy: _ } => {
                return unauthorized(provider, *provider_id, scopes);
            }
            Self::PayloadTooLarge { limit_bytes } => json!({ "limit_bytes": limit_bytes }),
            Self::RateLimited { resource, limit, retry_after, reset_at } => {
                limited(resource.as_str(), *limit, *retry_after, *reset_at)
            }
            Self::TooManyExports { limit, retry_after, reset_at } => {
                limited("exports", *limit, *retry_after, *reset_at)
            }
            Self::ExportsFull { files, bytes, retry_after, reset_at } => {
                return full(*bytes, limited("export_files", *files, *retry_after, *reset_at));
            }
            Self::RangeNotSatisfiable { bytes } => json!({ "bytes": bytes }),
            Self::UpstreamError { provider, reason } => failed(provider, *reason),
            Self::Unanswerable { provider, required } => unanswerable(provider, *required),
            Self::UpstreamResting { provider, retry_after } => resting(provider, *retry_after),
            Self::Unavailable { reason } => json!({ "reason": reason.as_str() }),
            Self::IdempotencyKeyReused { first } | Self::IdempotencyInProgress { first } => {
                json!({ "first_request_id": first })
            }
            Self::UpstreamTimeout { provider, timeout_ms }
            | Self::Interrupted { provider, timeout_ms } => {
                json!({ "provider": provider, "timeout_ms": timeout_ms })
            }
        };
        if let Value::Object(details) = details { details } else { Map::new() }
    }
}

/// An upstream that was not asked.
fn resting(provider: &ProviderSlug, retry_after: u64) -> Value {
    json!({ "provider": provider, "reason": "circuit_open", "retry_after": retry_after })
}

fn rejected(provider: &ProviderSlug) -> Value {
    json!({ "provider": provider, "reason": REJECTED })
}

fn failed(provider: &ProviderSlug, reason: UpstreamReason) -> Value {
    json!({ "provider": provider, "reason": reason })
}

fn unanswerable(provider: &ProviderSlug, required: ClientCapabilities) -> Value {
    let reason = UpstreamReason::InteractionRequired;
    json!({ "provider": provider, "reason": reason, "required_capabilities": required.declared() })
}

fn full(bytes: u64, limited: Value) -> Map<String, Value> {
    let mut details = Map::from_iter([("limit_bytes".to_owned(), json!(bytes))]);
    if let Value::Object(limited) = limited {
        details.extend(limited);
    }
    details
}

fn limited(resource: &str, limit: u32, retry_after: i64, reset_at: Timestamp) -> Value {
    json!({
        "resource": resource,
        "limit": limit,
        "retry_after": retry_after,
        "reset_at": reset_at,
    })
}

fn invalid(parameter: Option<&str>, violations: &[Violation]) -> Map<String, Value> {
    let mut details = Map::new();
    if let Some(parameter) = parameter {
        details.insert("parameter".to_owned(), json!(parameter));
    }
    if !violations.is_empty() {
        details.insert("violations".to_owned(), json!(violations));
    }
    details
}

fn not_delegated() -> Value {
    json!({ "policy": TOKEN_SCOPES, "reason": NOT_DELEGATED, "required_scope": null })
}

const REJECTED: &str = "rejected_by_provider";

fn unknown(slug: &str, available: &[ProviderSlug]) -> Value {
    json!({ "resource": "provider_slug", "id": slug, "available": available })
}

fn unauthorized(
    provider: &ProviderSlug,
    provider_id: ProviderId,
    scopes: &[String],
) -> Map<String, Value> {
    let mut details = Map::new();
    details.insert("provider".to_owned(), json!(provider));
    details.insert("provider_id".to_owned(), json!(provider_id));
    details.insert("connect".to_owned(), json!(format!("/v1/providers/{provider}/connect")));
    if !scopes.is_empty() {
        details.insert("scopes".to_owned(), json!(scopes));
    }
    details
}

fn denial(policy: &str, reason: &str, dlp: Option<&Value>) -> Map<String, Value> {
    let mut details = Map::new();
    details.insert("policy".to_owned(), json!(policy));
    details.insert("reason".to_owned(), json!(reason));
    if let Some(dlp) = dlp {
        details.insert("dlp".to_owned(), dlp.clone());
    }
    details
}
