//! Everything Portcullis may answer instead of a result: the error catalogue.
//!
//! A refusal is not a failure: most of these are the product working. This is the one file that
//! knows codes, statuses, messages and details; the event of a call records the same status that
//! the caller is answered with.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    clock::Timestamp,
    id::ProviderId,
    limits::Resource,
    principal::{Scope, ScopeSet},
    tool::{ProviderSlug, ToolId},
    trust::CredentialCheck,
};

/// Whether the upstream effect happened: tells a caller whether a retry is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Executed {
    /// Nothing reached the upstream.
    No,
    /// The upstream did it.
    Yes,
    /// The upstream may have done it.
    Unknown,
}

impl Executed {
    /// `no`, `yes` or `unknown`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Yes => "yes",
            Self::Unknown => "unknown",
        }
    }
}

/// One place where a request breaks a rule. Never echoes a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// JSON Pointer to the place.
    pub path: String,
    /// The schema keyword that was broken, if a schema was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyword: Option<String>,
    /// What is wrong, in words.
    pub message: String,
}

/// Why a provider's answer could not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UpstreamReason {
    /// No connection could be made; nothing was sent.
    ConnectFailed,
    /// The connection or process died before the answer came.
    ConnectionReset,
    /// The answer was not MCP.
    ProtocolError,
    /// The server asked for a conversation that the gateway does not offer.
    InteractionRequired,
    /// The answer is larger than the cap.
    ResponseTooLarge,
    /// The server answered with an HTTP status of 500 or more.
    #[serde(rename = "http_5xx")]
    Http5xx,
    /// The server answered with a JSON-RPC error.
    JsonrpcError,
}

impl UpstreamReason {
    /// The reason as it stands in `error.details.reason`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConnectFailed => "connect_failed",
            Self::ConnectionReset => "connection_reset",
            Self::ProtocolError => "protocol_error",
            Self::InteractionRequired => "interaction_required",
            Self::ResponseTooLarge => "response_too_large",
            Self::Http5xx => "http_5xx",
            Self::JsonrpcError => "jsonrpc_error",
        }
    }
}

/// What the gateway cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    /// The audit log cannot be written.
    Audit,
    /// The store cannot be read.
    Store,
    /// The node is shutting down.
    Shutdown,
    /// Too much work is in flight already.
    Overloaded,
    /// The keys of a trusted issuer cannot be fetched, and none are remembered.
    IssuerKeys,
}

impl Unavailable {
    /// The reason as it stands in `error.details.reason`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Store => "store",
            Self::Shutdown => "shutdown",
            Self::Overloaded => "overloaded",
            Self::IssuerKeys => "issuer_keys",
        }
    }
}

/// An answer from the error catalogue.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// Not JSON, a duplicate or unknown member, a wrong type, a bad parameter.
    InvalidRequest {
        /// What is wrong and what to do.
        message: String,
        /// The query parameter or header at fault, if one is.
        parameter: Option<String>,
        /// The places in the body at fault.
        violations: Vec<Violation>,
    },
    /// `input` breaks the tool's schema.
    InvalidInput {
        /// The tool.
        tool: ToolId,
        /// How it breaks it.
        violations: Vec<Violation>,
    },
    /// A scope that does not exist, or more than the credential may have.
    InvalidScope {
        /// What of the scopes asked for is too much, bounded.
        scope: String,
        /// What may be asked for.
        allowed: ScopeSet,
    },
    /// No credential was presented.
    MissingToken,
    /// Unknown, malformed, or of the wrong kind for this endpoint.
    InvalidToken,
    /// One of ours, but of a kind that this endpoint does not take.
    WrongTokenKind {
        /// What to do with it instead.
        hint: &'static str,
    },
    /// Known, but past its expiry.
    TokenExpired {
        /// When it ended.
        expired_at: Timestamp,
    },
    /// Known, but it or an ancestor was revoked.
    TokenRevoked,
    /// A refresh token that was spent before; its grant has ended.
    TokenReused,
    /// A JWT that is not accepted at the exchange.
    InvalidCredential {
        /// The class of the check that failed.
        check: CredentialCheck,
    },
    /// A policy, or its DLP rule, or its failure, said no.
    PolicyDenied {
        /// The policy's name.
        policy: String,
        /// Its reason.
        reason: String,
        /// What DLP found, when that is why.
        dlp: Option<Value>,
        /// Further members of `details`.
        more: Map<String, Value>,
    },
    /// The token lacks a scope.
    InsufficientScope {
        /// The missing scope.
        required: Scope,
    },
    /// No trust rule lets the Bearer act for the subject.
    DelegationNotTrusted,
    /// Not there, or not visible to this caller.
    NotFound {
        /// The kind of resource.
        resource: &'static str,
        /// The id as asked for, bounded.
        id: String,
    },
    /// The path exists, the method does not.
    MethodNotAllowed {
        /// The methods that do.
        allow: Vec<String>,
    },
    /// The provider's credentials are unusable.
    ProviderAuthRequired {
        /// The provider.
        provider: ProviderSlug,
        /// The connection.
        provider_id: ProviderId,
    },
    /// The body is over the limit.
    PayloadTooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// The body is declared as something else than JSON.
    UnsupportedMediaType,
    /// A limit is exceeded.
    RateLimited {
        /// Which one.
        resource: Resource,
        /// Its size.
        limit: u32,
        /// Seconds to wait.
        retry_after: i64,
        /// When the window ends.
        reset_at: Timestamp,
    },
    /// A bug; nothing of it is told.
    Internal,
    /// The provider failed or misbehaved.
    UpstreamError {
        /// The provider.
        provider: ProviderSlug,
        /// How.
        reason: UpstreamReason,
    },
    /// The gateway cannot record or remember.
    Unavailable {
        /// What is missing.
        reason: Unavailable,
    },
    /// The provider was too slow.
    UpstreamTimeout {
        /// The provider.
        provider: ProviderSlug,
        /// How long it was given.
        timeout_ms: u64,
    },
}

impl Refusal {
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
        Self::NotFound { resource, id: id.chars().take(200).collect() }
    }

    /// The stable `error.code`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::InvalidRequest { .. } => "invalid_request",
            Self::InvalidInput { .. } => "invalid_input",
            Self::InvalidScope { .. } => "invalid_scope",
            Self::MissingToken => "missing_token",
            Self::InvalidToken | Self::WrongTokenKind { .. } => "invalid_token",
            Self::TokenExpired { .. } => "token_expired",
            Self::TokenRevoked => "token_revoked",
            Self::TokenReused => "token_reused",
            Self::InvalidCredential { .. } => "invalid_credential",
            Self::PolicyDenied { .. } => "policy_denied",
            Self::InsufficientScope { .. } | Self::DelegationNotTrusted => "insufficient_scope",
            Self::NotFound { .. } => "not_found",
            Self::MethodNotAllowed { .. } => "method_not_allowed",
            Self::ProviderAuthRequired { .. } => "provider_auth_required",
            Self::PayloadTooLarge { .. } => "payload_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::RateLimited { .. } => "rate_limited",
            Self::Internal => "internal_error",
            Self::UpstreamError { .. } => "upstream_error",
            Self::Unavailable { .. } => "unavailable",
            Self::UpstreamTimeout { .. } => "upstream_timeout",
        }
    }

    /// The HTTP status (RFC 9110 §15). No other file says one.
    #[must_use]
    pub const fn http_status(&self) -> u16 {
        match self {
            Self::InvalidRequest { .. } | Self::InvalidInput { .. } | Self::InvalidScope { .. } => {
                400
            }
            Self::MissingToken
            | Self::InvalidToken
            | Self::WrongTokenKind { .. }
            | Self::TokenExpired { .. }
            | Self::TokenRevoked
            | Self::TokenReused
            | Self::InvalidCredential { .. } => 401,
            Self::PolicyDenied { .. }
            | Self::InsufficientScope { .. }
            | Self::DelegationNotTrusted => 403,
            Self::NotFound { .. } => 404,
            Self::MethodNotAllowed { .. } => 405,
            Self::ProviderAuthRequired { .. } => 409,
            Self::PayloadTooLarge { .. } => 413,
            Self::UnsupportedMediaType => 415,
            Self::RateLimited { .. } => 429,
            Self::Internal => 500,
            Self::UpstreamError { .. } => 502,
            Self::Unavailable { .. } => 503,
            Self::UpstreamTimeout { .. } => 504,
        }
    }

    /// The members of `error.details`.
    #[must_use]
    pub fn details(&self) -> Map<String, Value> {
        let details = match self {
            Self::InvalidRequest { parameter, violations, .. } => {
                let mut details = Map::new();
                if let Some(parameter) = parameter {
                    details.insert("parameter".to_owned(), json!(parameter));
                }
                if !violations.is_empty() {
                    details.insert("violations".to_owned(), json!(violations));
                }
                return details;
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
                let mut details = Map::new();
                details.insert("policy".to_owned(), json!(policy));
                details.insert("reason".to_owned(), json!(reason));
                if let Some(dlp) = dlp {
                    details.insert("dlp".to_owned(), dlp.clone());
                }
                details.extend(more.clone());
                return details;
            }
            Self::InsufficientScope { required } => json!({
                "policy": TOKEN_SCOPES,
                "reason": format!("the token lacks the scope {required}"),
                "required_scope": required.as_str(),
            }),
            Self::DelegationNotTrusted => json!({
                "policy": TOKEN_SCOPES,
                "reason": NOT_DELEGATED,
                "required_scope": null,
            }),
            Self::NotFound { resource, id } => json!({ "resource": resource, "id": id }),
            Self::MethodNotAllowed { allow } => json!({ "allow": allow }),
            Self::ProviderAuthRequired { provider, provider_id } => json!({
                "provider": provider,
                "provider_id": provider_id,
                "connect": format!("/v1/providers/{provider}/connect"),
            }),
            Self::PayloadTooLarge { limit_bytes } => json!({ "limit_bytes": limit_bytes }),
            Self::RateLimited { resource, limit, retry_after, reset_at } => json!({
                "resource": resource.as_str(),
                "limit": limit,
                "retry_after": retry_after,
                "reset_at": reset_at,
            }),
            Self::UpstreamError { provider, reason } => {
                json!({ "provider": provider, "reason": reason })
            }
            Self::Unavailable { reason } => json!({ "reason": reason.as_str() }),
            Self::UpstreamTimeout { provider, timeout_ms } => {
                json!({ "provider": provider, "timeout_ms": timeout_ms })
            }
        };
        if let Value::Object(details) = details { details } else { Map::new() }
    }
}

/// The first violation as the end of a sentence; nothing when there is none.
struct First<'a>(&'a [Violation]);

impl fmt::Display for First<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.first() {
            None => Ok(()),
            Some(first) if first.path.is_empty() => write!(f, ": {}", first.message),
            Some(first) => write!(f, ": {} {}", first.path, first.message),
        }
    }
}

/// Why a delegation is refused.
const NOT_DELEGATED: &str = "no trust rule lets the Bearer act for this subject";

/// The built-in policy behind every missing scope.
pub const TOKEN_SCOPES: &str = "token-scopes";

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidRequest { message, .. } => f.write_str(message),
            Self::InvalidInput { tool, violations } => {
                write!(f, "Input does not match the schema of {tool}{}.", First(violations))
            }
            Self::InvalidScope { scope, allowed } => {
                write!(f, "The scope `{scope}` cannot be had here; `{allowed}` can.")
            }
            Self::MissingToken => f.write_str("Send a token as `Authorization: Bearer <token>`."),
            Self::InvalidToken => f.write_str("The token is not valid here."),
            Self::TokenExpired { expired_at } => write!(f, "The token expired at {expired_at}."),
            Self::WrongTokenKind { hint } => write!(f, "The token is not valid here: {hint}."),
            Self::TokenRevoked => f.write_str("The token was revoked."),
            Self::TokenReused => f.write_str(
                "The refresh token was used before, so everything that came of its login was \
                 revoked; log in again.",
            ),
            Self::InvalidCredential { check } => f.write_str(check.sentence()),
            Self::PolicyDenied { policy, reason, .. } => {
                write!(f, "Denied by policy '{policy}': {}.", reason.trim_end_matches('.'))
            }
            Self::InsufficientScope { required } => {
                write!(f, "The token lacks the scope {required}.")
            }
            Self::DelegationNotTrusted => write!(f, "Delegation is refused: {NOT_DELEGATED}."),
            Self::NotFound { resource, id } => write!(f, "There is no {resource} `{id}` here."),
            Self::MethodNotAllowed { allow } => {
                write!(f, "This path answers {} only.", allow.join(", "))
            }
            Self::ProviderAuthRequired { provider, .. } => {
                write!(f, "Provider '{provider}' refuses its credentials; connect it again.")
            }
            Self::PayloadTooLarge { limit_bytes } => {
                write!(f, "The body is larger than {limit_bytes} bytes.")
            }
            Self::UnsupportedMediaType => f.write_str("Send the body as application/json."),
            Self::RateLimited { resource, limit, retry_after, .. } => {
                let what = match resource {
                    Resource::Requests => "Request limit",
                    Resource::Invocations => "Invocation limit",
                    Resource::Unauthenticated => "Limit for requests without a valid token",
                };
                write!(f, "{what} of {limit} per minute exceeded. Retry in {retry_after} seconds.")
            }
            Self::Internal => f.write_str("Something went wrong inside the gateway."),
            Self::UpstreamError { provider, reason: UpstreamReason::ConnectFailed } => {
                write!(f, "Provider '{provider}' is unreachable.")
            }
            Self::UpstreamError { provider, .. } => {
                write!(f, "Provider '{provider}' failed while executing the call.")
            }
            Self::Unavailable { reason } => f.write_str(match reason {
                Unavailable::Audit => "The audit log cannot be written, so nothing is invoked.",
                Unavailable::Store => "The store cannot be read.",
                Unavailable::Shutdown => "This node is shutting down.",
                Unavailable::Overloaded => "Too much work is in flight; retry shortly.",
                Unavailable::IssuerKeys => "The issuer's keys cannot be fetched; retry shortly.",
            }),
            Self::UpstreamTimeout { provider, timeout_ms } => {
                write!(f, "Provider '{provider}' did not answer within {timeout_ms} ms.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
    fn an_overlong_id_is_cut_before_it_is_echoed() {
        let refusal = Refusal::not_found("mcp", &"x".repeat(5_000));

        assert_eq!(refusal.details().get("id").and_then(Value::as_str).map(str::len), Some(200));
    }
}
