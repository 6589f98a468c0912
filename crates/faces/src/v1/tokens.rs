//! `/v1/tokens`: the tokens of the caller's org.

use portcullis_app::{InspectedToken, MadeToken, TokenRequest, TokenView};
use portcullis_core::{id::PrincipalId, refusal::Refusal, token::CidrList, trust::ThumbprintError};
use portcullis_store::TokenQuery;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Segment, auth::RevokedToken, principals, segment};
use crate::exchange::{
    ErrorAnswer, HandlerResult, Items, Listing, NoQuery, One, Outcome, Paged, RequestBody,
    WithQuery, body,
};

/// Bytes of a text member at most.
const LONGEST: usize = 1024;
/// Networks that a token may be bound to.
const MAX_NETWORKS: usize = 50;
const MEMBERS: [&str; 7] =
    ["principal_id", "scopes", "expires_in", "label", "allowed_from", "exchange_only", "dpop_jkt"];

/// Lists the tokens of the org, by id: what is known of them, never the tokens.
#[utoipa::path(
    get, path = "/v1/tokens", tag = "admin", operation_id = "list_tokens",
    params(
        TokenQuery,
        ("limit" = Option<u32>, Query, description = "1 to 200, default 50"),
        ("cursor" = Option<String>, Query, description = "from `meta.pagination.next_cursor`"),
    ),
    responses(
        (status = 200, description = "a page of tokens", body = Paged<Items<TokenView>>),
    )
)]
pub(crate) async fn list(WithQuery(ctx, gateway, raw): WithQuery) -> HandlerResult {
    let (wanted, list) = Listing::filtered(&gateway, &ctx, "tokens", &[], raw.as_deref())?;
    let wanted = TokenQuery { after: list.after(), limit: list.limit, ..wanted };
    let page = gateway.app.administration.tokens(&ctx, wanted).await?;
    Ok(list.answer(&Items { items: page.items }, page.end.as_ref()))
}

/// Makes a token for a service account. The answer holds it this once.
///
/// It can do no more than its service account, and no more than the token of a service account that makes it. If the answer is lost,
/// revoke the token that `GET /v1/tokens` shows and make another.
#[utoipa::path(
    post, path = "/v1/tokens", tag = "admin", operation_id = "create_token",
    request_body = NewTokenAsked,
    responses(
        (status = 201, description = "made", body = One<MadeToken>),
        (status = 400, description = "not understood, not a service account, or more scopes than it or the caller may give", body = ErrorAnswer),
        (status = 404, description = "no such principal in the org", body = ErrorAnswer),
    )
)]
pub(crate) async fn create(NoQuery(ctx, gateway): NoQuery, request: RequestBody) -> HandlerResult {
    let asked = new_token(request.optional_object().await?)?;
    Ok(Outcome::created(&gateway.app.administration.create_token(&ctx, asked).await?))
}

/// Tells what is known of a token of the org: whose it is, what it may do now, and whether it is accepted.
#[utoipa::path(
    post, path = "/v1/tokens/inspect", tag = "admin", operation_id = "inspect_token",
    request_body = InspectAsked,
    responses(
        (status = 200, description = "the token", body = One<InspectedToken>),
        (status = 400, description = "not understood, or no token and no id of one", body = ErrorAnswer),
        (status = 404, description = "no such token in the org", body = ErrorAnswer),
    )
)]
pub(crate) async fn inspect(NoQuery(ctx, gateway): NoQuery, request: RequestBody) -> HandlerResult {
    let mut members = request.optional_object().await?;
    body::only(&members, &["token"])?;
    let token = body::text(&mut members, "token", LONGEST)?;
    let token = token.ok_or_else(|| body::wrong_member("token", "is missing"))?;
    let found = gateway.app.administration.inspect_token(&ctx, &token).await?;
    Ok(Outcome::data(&found))
}

/// Revokes a token of the org with all that descends from it.
///
/// Takes effect on this node before the answer leaves, everywhere within 5 seconds.
#[utoipa::path(
    delete, path = "/v1/tokens/{id}", tag = "admin", operation_id = "revoke_token_of_org",
    params(("id" = String, Path, description = "`tok_` and a ULID")),
    responses(
        (status = 200, description = "revoked", body = One<RevokedToken>),
    )
)]
pub(crate) async fn revoke(NoQuery(ctx, gateway): NoQuery, path: Segment) -> HandlerResult {
    let id = segment(path);
    let (token, others) = gateway.app.administration.revoke_token(ctx, &id).await?;
    Ok(Outcome::data(&RevokedToken::of(token, others)))
}

fn new_token(mut members: Map<String, Value>) -> Result<TokenRequest, Refusal> {
    body::only(&members, &MEMBERS)?;
    let members = &mut members;
    let principal: Option<PrincipalId> = body::text(members, "principal_id", LONGEST)?
        .map(|text| text.parse().map_err(|_| Refusal::not_found("principal", &text)))
        .transpose()?;
    Ok(TokenRequest {
        principal: principal.ok_or_else(|| body::wrong_member("principal_id", "is missing"))?,
        scopes: principals::scopes(body::text(members, "scopes", LONGEST)?.as_deref())?,
        lifetime_seconds: lifetime(members.remove("expires_in"))?,
        label: body::text(members, "label", LONGEST)?,
        allowed_from: networks(members.remove("allowed_from"))?,
        exchange_only: match members.remove("exchange_only") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(only)) => only,
            Some(Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) => {
                return Err(body::wrong_member("exchange_only", "has to be `true` or `false`"));
            }
        },
        dpop_jkt: body::text(members, "dpop_jkt", LONGEST)?
            .map(|text| text.parse())
            .transpose()
            .map_err(|error: ThumbprintError| {
                body::wrong_member("dpop_jkt", &format!("is no key: {error}"))
            })?,
    })
}

fn lifetime(value: Option<Value>) -> Result<Option<i64>, Refusal> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let problem = "has to be a whole number of seconds from 60 to 31536000 (365 days)";
    value.as_i64().map(Some).ok_or_else(|| body::wrong_member("expires_in", problem))
}

fn networks(value: Option<Value>) -> Result<Option<CidrList>, Refusal> {
    let wrong = || {
        let problem = "has to be a list of 1 to 50 networks such as \"10.0.0.0/8\"";
        body::wrong_member("allowed_from", problem)
    };
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let items = value.as_array().filter(|items| (1..=MAX_NETWORKS).contains(&items.len()));
    let items = items.ok_or_else(wrong)?.iter().map(|item| item.as_str().ok_or_else(wrong));
    let items: Vec<&str> = items.collect::<Result<_, _>>()?;
    items.join(",").parse().map(Some).map_err(|_| wrong())
}

/// The body that inspects a token.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly above")]
pub(crate) struct InspectAsked {
    /// Id of the token, or the token itself, which is never answered.
    #[schema(example = "tok_01M754BKTKX1YB8Q05NMW9TP4G")]
    token: String,
}

/// The body that makes a token.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the body is parsed strictly above")]
pub(crate) struct NewTokenAsked {
    /// Its service account.
    #[schema(example = "sa_01M754BKTKX1YB8Q05NMW9TP4G")]
    principal_id: String,
    /// Separated by spaces; all of what the account may but `admin`, `audit:export` and those of
    /// approvals when absent.
    #[schema(example = "mcps:read mcps:invoke")]
    scopes: Option<String>,
    /// Seconds; 90 days when absent.
    #[schema(minimum = 60, maximum = 31_536_000)]
    expires_in: Option<u32>,
    /// Free text, which is recorded in every event.
    #[schema(min_length = 1, max_length = 64, pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$")]
    label: Option<String>,
    /// Networks that it may be used from; anywhere when absent.
    #[schema(example = json!(["10.0.0.0/8", "2001:db8::/32"]), min_items = 1, max_items = 50)]
    allowed_from: Option<Vec<String>>,
    /// Thumbprint (RFC 7638) of the key that it is bound to (DPoP, RFC 9449): each request with it
    /// has to prove that key.
    #[schema(
        example = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
        pattern = "^[A-Za-z0-9_-]{43}$"
    )]
    dpop_jkt: Option<String>,
    /// True: it can only be exchanged for another token at `POST /v1/auth/token`.
    exchange_only: Option<bool>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ACCOUNT: &str = "sa_01M754BKTKX1YB8Q05NMW9TP4G";

    fn read(body: &Value) -> Result<TokenRequest, Refusal> {
        new_token(body.as_object().unwrap().clone())
    }

    #[test]
    fn a_new_token_is_read_strictly() {
        let all = json!({"principal_id": ACCOUNT, "scopes": "mcps:read", "expires_in": 3600,
            "label": "ci", "allowed_from": ["10.0.0.0/8", "2001:db8::/32"], "exchange_only": true});
        let request = read(&all).unwrap();

        assert_eq!(request.lifetime_seconds, Some(3600));
        assert_eq!(request.allowed_from.unwrap().to_string(), "10.0.0.0/8,2001:db8::/32");
        assert!(request.exchange_only);
        assert!(read(&json!({"principal_id": ACCOUNT})).is_ok());
        for (name, wrong) in [
            ("principal_id", json!(null)),
            ("principal_id", json!("sa_1")),
            ("scopes", json!("")),
            ("scopes", json!(["mcps:read"])),
            ("expires_in", json!("90d")),
            ("expires_in", json!(1.5)),
            ("allowed_from", json!("10.0.0.0/8")),
            ("allowed_from", json!([])),
            ("allowed_from", json!(["10.0.0.0"])),
            ("exchange_only", json!("yes")),
            ("dpop_jkt", json!("kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4")),
            ("dpop_jkt", json!({"kty": "OKP"})),
            ("token", json!("svc_live_mine")),
            ("kind", json!("user")),
            ("grant_id", json!("grn_01M754BKTKX1YB8Q05NMW9TP4G")),
        ] {
            let mut body = json!({"principal_id": ACCOUNT});
            body[name] = wrong.clone();

            assert!(read(&body).is_err(), "{name}: {wrong}");
        }
    }
}
