//! Bodies and answers of the token endpoints.

use portcullis_app::{Granted, SubjectType};
use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId, PrincipalKind, TokenId},
    lineage::Act,
    principal::{Scope, ScopeSet},
    refusal::Refusal,
    secret::Secret,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::exchange::Outcome;

/// The scopes that were asked for by name; `None` when nothing was said.
pub(super) fn scope(asked: Option<&str>) -> Result<Option<ScopeSet>, Refusal> {
    let Some(asked) = asked else { return Ok(None) };
    let mut scopes = ScopeSet::EMPTY;
    for name in asked.split_ascii_whitespace() {
        let scope: Scope = name.parse().map_err(|_| Refusal::InvalidScope {
            scope: name.chars().take(100).collect(),
            allowed: ScopeSet::ALL,
        })?;
        scopes = scopes.with(scope);
    }
    Ok(Some(scopes))
}

/// The tokens as they leave, the one time they do.
pub(super) fn answer(granted: &Granted) -> Outcome {
    let Granted { access, refresh, record, scopes, now } = granted;
    let left = record.expires_at.as_micros() - now.as_micros();
    let (refresh_token, refresh_expires_at) = match refresh {
        Some((token, expires_at)) => (Some(token.secret().expose()), Some(*expires_at)),
        None => (None, None),
    };
    Outcome::data(&Token {
        access_token: access.secret().expose(),
        token_type: record.dpop_jkt.map_or("Bearer", |_| "DPoP"),
        token_id: record.id,
        expires_in: left.div_euclid(1_000_000).max(0),
        expires_at: record.expires_at,
        scope: *scopes,
        org_id: record.org_id,
        principal: TokenPrincipal {
            kind: record.principal_id.kind(),
            id: record.principal_id,
            via: record.via,
            act: record.lineage.act(),
        },
        label: record.label.as_deref(),
        refresh_token,
        refresh_expires_at,
    })
}

/// The body of an exchange; every member may be left out.
#[derive(ToSchema)]
pub(crate) struct ExchangeBody {
    /// JWT of a trusted issuer or one of our live tokens, at most 16 KiB; the Bearer when absent.
    #[schema(value_type = Option<String>, max_length = 16384)]
    pub(super) subject_token: Option<Secret>,
    /// `urn:ietf:params:oauth:grant-type:token-exchange`
    #[schema(
        value_type = Option<String>,
        pattern = "^urn:ietf:params:oauth:grant-type:token-exchange$"
    )]
    #[expect(dead_code, reason = "one value is known, and stands for itself")]
    pub(super) grant_type: Option<TokenExchange>,
    /// `urn:ietf:params:oauth:token-type:jwt` or `…:access_token`; found out when absent.
    #[schema(
        value_type = Option<String>,
        pattern = "^urn:ietf:params:oauth:token-type:(jwt|access_token)$"
    )]
    pub(super) subject_token_type: Option<SubjectType>,
    /// Scopes with spaces between them; all the subject may have but `admin`, `audit:export`
    /// and those of approvals when absent.
    #[schema(
        example = "mcps:read mcps:invoke",
        max_length = 1024,
        pattern = "^(admin|approvals:decide|approvals:read|audit:export|audit:read|mcps:invoke|mcps:read|policies:read|providers:read|providers:write|scim|tokens:introspect)( (admin|approvals:decide|approvals:read|audit:export|audit:read|mcps:invoke|mcps:read|policies:read|providers:read|providers:write|scim|tokens:introspect))*$"
    )]
    pub(super) scope: Option<String>,
    /// Seconds, 60 or more; cut to what is allowed.
    #[schema(minimum = 60)]
    pub(super) expires_in: Option<i64>,
    /// The org, when the credential is known to several.
    #[schema(value_type = Option<String>, pattern = "^org_[0-7][0-9A-HJKMNP-TV-Z]{25}$")]
    pub(super) org_id: Option<OrgId>,
    /// At most 64 characters, recorded in every event; never trusted.
    #[schema(
        example = "nightly-deploy",
        max_length = 64,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$"
    )]
    pub(super) label: Option<String>,
}

/// The grant type of an exchange.
pub(super) struct TokenExchange;

/// The body of a refresh; every member may be left out.
#[derive(ToSchema)]
pub(crate) struct RefreshBody {
    /// `mcp_refresh_…`; the Bearer when absent.
    #[schema(value_type = Option<String>)]
    pub(super) refresh_token: Option<Secret>,
    /// Scopes of the new access token, among those of the login; all of them when absent.
    #[schema(
        max_length = 1024,
        pattern = "^(admin|approvals:decide|approvals:read|audit:export|audit:read|mcps:invoke|mcps:read|policies:read|providers:read|providers:write|scim|tokens:introspect)( (admin|approvals:decide|approvals:read|audit:export|audit:read|mcps:invoke|mcps:read|policies:read|providers:read|providers:write|scim|tokens:introspect))*$"
    )]
    pub(super) scope: Option<String>,
}

/// A token, shown this once.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "OAuth names the members")]
pub(crate) struct Token<'a> {
    /// `mcp_live_…` or `svc_live_…`.
    access_token: &'a str,
    /// `Bearer`, or `DPoP` if it is bound to a key.
    #[schema(example = "Bearer")]
    token_type: &'static str,
    /// Its name in events, lists and revocation.
    token_id: TokenId,
    /// Seconds until it ends.
    expires_in: i64,
    expires_at: Timestamp,
    /// Its scopes now, sorted, with spaces between.
    #[schema(value_type = String, example = "mcps:invoke mcps:read")]
    scope: ScopeSet,
    org_id: OrgId,
    principal: TokenPrincipal,
    label: Option<&'a str>,
    /// `mcp_refresh_…`; only for users who logged in with a JWT.
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<&'a str>,
    /// When the refresh token ends if it is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_expires_at: Option<Timestamp>,
}

/// The principal of a token.
#[derive(Serialize, ToSchema)]
struct TokenPrincipal {
    #[serde(rename = "type")]
    kind: PrincipalKind,
    id: PrincipalId,
    /// The principal that acts through it.
    via: Option<PrincipalId>,
    /// Absent when no principal acts through it.
    #[serde(skip_serializing_if = "Option::is_none")]
    act: Option<Act>,
}
