//! What the token endpoints are asked and what they answer.

use portcullis_app::Granted;
use portcullis_core::{
    lineage::Lineage,
    principal::{Scope, ScopeSet},
    refusal::Refusal,
};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::http::{outcome::Outcome, v1::shapes::Meta};

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
    let mut data = json!({
        "access_token": access.secret().expose(),
        "token_type": "Bearer",
        "token_id": record.id,
        "expires_in": left.div_euclid(1_000_000).max(0),
        "expires_at": record.expires_at,
        "scope": scopes,
        "org_id": record.org_id,
        "principal": {
            "type": record.principal_id.kind(),
            "id": record.principal_id,
            "via": record.via,
        },
        "label": record.label,
    });
    if let (Some(act), Some(Value::Object(principal))) =
        (record.lineage.as_ref().and_then(Lineage::act), data.get_mut("principal"))
    {
        principal.insert("act".to_owned(), json!(act));
    }
    if let (Value::Object(members), Some((token, expires_at))) = (&mut data, refresh) {
        members.insert("refresh_token".to_owned(), json!(token.secret().expose()));
        members.insert("refresh_expires_at".to_owned(), json!(expires_at));
    }
    Outcome::data(&data)
}

/// What an exchange is asked; every member may be left out.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly by `exchange.rs`")]
pub(crate) struct ExchangeBody {
    /// JWT of a trusted issuer or one of our live tokens, at most 16 KiB; the Bearer when absent.
    #[schema(max_length = 16384)]
    subject_token: Option<String>,
    /// `urn:ietf:params:oauth:grant-type:token-exchange`
    #[schema(pattern = "^urn:ietf:params:oauth:grant-type:token-exchange$")]
    grant_type: Option<String>,
    /// `urn:ietf:params:oauth:token-type:jwt` or `…:access_token`; found out when absent.
    #[schema(pattern = "^urn:ietf:params:oauth:token-type:(jwt|access_token)$")]
    subject_token_type: Option<String>,
    /// Scopes with spaces between them; all the subject may have but `admin` and `audit:export`
    /// when absent.
    #[schema(
        example = "mcps:read mcps:invoke",
        max_length = 1024,
        pattern = "^(admin|audit:export|audit:read|mcps:invoke|mcps:read|policies:read|providers:read|providers:write)( (admin|audit:export|audit:read|mcps:invoke|mcps:read|policies:read|providers:read|providers:write))*$"
    )]
    scope: Option<String>,
    /// Seconds, 60 or more; cut to what is allowed.
    #[schema(minimum = 60)]
    expires_in: Option<i64>,
    /// Which org, when the credential is known to several.
    #[schema(pattern = "^org_[0-7][0-9A-HJKMNP-TV-Z]{25}$")]
    org_id: Option<String>,
    /// At most 64 characters, recorded in every event; never trusted.
    #[schema(
        example = "nightly-deploy",
        max_length = 64,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$"
    )]
    label: Option<String>,
}

/// What a refresh is asked; every member may be left out.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly by `refresh.rs`")]
pub(crate) struct RefreshBody {
    /// `mcp_refresh_…`; the Bearer when absent.
    refresh_token: Option<String>,
    /// Scopes of the new access token, among those of the login; all of them when absent.
    #[schema(
        max_length = 1024,
        pattern = "^(admin|audit:export|audit:read|mcps:invoke|mcps:read|policies:read|providers:read|providers:write)( (admin|audit:export|audit:read|mcps:invoke|mcps:read|policies:read|providers:read|providers:write))*$"
    )]
    scope: Option<String>,
}

/// A token, shown this once.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `answer` writes")]
pub(crate) struct TokenAnswer {
    data: TokenData,
    meta: Meta,
}

/// A token and what is known of it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `answer` writes")]
pub(crate) struct TokenData {
    /// `mcp_live_…` or `svc_live_…`.
    access_token: String,
    #[schema(example = "Bearer")]
    token_type: String,
    /// `tok_` and a ULID: what events, lists and revocation call it.
    token_id: String,
    /// Seconds until it ends.
    expires_in: i64,
    /// When it ends, RFC 3339 in UTC with milliseconds.
    expires_at: String,
    /// What it may do now, sorted, with spaces between.
    scope: String,
    org_id: String,
    principal: TokenPrincipal,
    label: Option<String>,
    /// `mcp_refresh_…`; only for users who logged in with a JWT.
    refresh_token: Option<String>,
    /// When the refresh token ends if it is not used.
    refresh_expires_at: Option<String>,
}

/// Whose token it is.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `answer` writes")]
pub(crate) struct TokenPrincipal {
    /// `user` or `service`.
    #[schema(rename = "type")]
    kind: String,
    id: String,
    /// Who acts through it.
    via: Option<String>,
    /// Everybody who acts, nested as in RFC 8693 §4.1, the newest outermost; absent when nobody
    /// does.
    #[schema(value_type = Option<Object>)]
    act: Option<Value>,
}
