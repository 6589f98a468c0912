//! `POST /v1/auth/token`: a credential for an access token (RFC 8693, in JSON).

use std::sync::Arc;

use axum::extract::State;
use portcullis_app::{ExchangeRequest, Possession, Presented, PresentedToken, SubjectType};
use portcullis_core::{
    id::OrgId, lifetime, refusal::Refusal, secret::Secret, trust::MAX_JWT_BYTES,
};
use serde_json::{Map, Value};

use super::granted::{ExchangeBody, Token, TokenExchange, answer, scope};
use crate::{
    Gateway,
    answer::{ErrorAnswer, One},
    body::{self, RequestBody, text, wrong_member},
    caller::{Credential, TokenScheme},
    outcome::HandlerResult,
};

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const MEMBERS: [&str; 7] =
    ["subject_token", "grant_type", "subject_token_type", "scope", "expires_in", "org_id", "label"];
/// Characters of a label.
const MAX_LABEL: usize = 64;

/// Exchanges a JWT of a trusted issuer, or one of our tokens, for a token that can do no more.
///
/// The Bearer is the credential. With `subject_token` the new token is the subject's, and a
/// different Bearer is remembered as who acts for it. With a proof in the header `DPoP` the token
/// is bound to its key (RFC 9449), and so is all that is made of it.
#[utoipa::path(
    post, path = "/v1/auth/token", tag = "auth", operation_id = "exchange_token",
    request_body = Option<ExchangeBody>,
    responses(
        (status = 200, description = "a token; shown this once", body = One<Token>),
        (status = 400, description = "bad request, or more scopes than the subject may have", body = ErrorAnswer),
        (status = 401, description = "the credential is worth nothing", body = ErrorAnswer),
        (status = 403, description = "no trust rule lets the Bearer act for the subject", body = ErrorAnswer),
        (status = 503, description = "the gateway cannot record, unknown callers send more than it reads, or the issuer's keys cannot be had", body = ErrorAnswer),
    )
)]
pub(crate) async fn exchange(
    Credential { bearer, scheme, exchange }: Credential,
    State(gateway): State<Arc<Gateway>>,
    request: RequestBody,
) -> HandlerResult {
    let app = &gateway.app;
    let origin = &exchange.origin;
    let charged = |refusal| app.quotas.charge_source(refusal, origin).refusal;
    let text = bearer.as_ref().map(Secret::expose);
    let dpop = scheme == TokenScheme::Dpop;
    let proof = exchange.proof();
    let proved = app.access.proved_key(proof, text.filter(|_| dpop), origin.arrived);
    let proved = proved.map_err(charged)?;
    let key = proved.as_ref().map(|proved| proved.key);
    let possession = if dpop { Possession::ProvedDpop(key) } else { Possession::Proved(key) };
    let token = PresentedToken { text, possession };
    let screened = app.access.screen_exchange(token, origin).await.map_err(|no| no.refusal)?;
    let asked = match request.screened(screened, &gateway).optional_object().await {
        Ok(members) => ExchangeBody::read(members),
        Err(refusal) => Err(refusal),
    };
    let asked = asked.map_err(charged)?;
    let ExchangeBody { subject_token, subject_token_type, org_id, .. } = asked;
    let presented = Presented {
        bearer,
        dpop,
        key,
        subject: subject_token,
        subject_type: subject_token_type,
        org_id,
    };
    let credentials = app.access.credentials(presented, origin).await.map_err(|no| no.refusal)?;
    exchange.set_account(credentials.account().clone());
    app.access.admit_exchange(&credentials, origin).await?;
    let ExchangeBody { expires_in, label, .. } = asked;
    let scope = scope(asked.scope.as_deref())?;
    let request = ExchangeRequest { scope, expires_in, label, key: proved };
    Ok(answer(&app.access.exchange(credentials, request, origin).await?))
}

impl ExchangeBody {
    fn read(mut members: Map<String, Value>) -> Result<Self, Refusal> {
        body::only(&members, &MEMBERS)?;
        let members = &mut members;
        Ok(Self {
            subject_token: text(members, "subject_token", MAX_JWT_BYTES)?.map(Secret::new),
            grant_type: grant_type(members)?,
            subject_token_type: subject_token_type(members)?,
            org_id: org(members)?,
            scope: text(members, "scope", 1024)?,
            expires_in: expires_in(members)?,
            label: label(members)?,
        })
    }
}

fn grant_type(members: &mut Map<String, Value>) -> Result<Option<TokenExchange>, Refusal> {
    match text(members, "grant_type", 100)?.as_deref() {
        None => Ok(None),
        Some(GRANT_TYPE) => Ok(Some(TokenExchange)),
        Some(_) => Err(wrong_member("grant_type", &format!("can only be `{GRANT_TYPE}`"))),
    }
}

fn subject_token_type(members: &mut Map<String, Value>) -> Result<Option<SubjectType>, Refusal> {
    match text(members, "subject_token_type", 100)?.as_deref() {
        None => Ok(None),
        Some(JWT) => Ok(Some(SubjectType::Jwt)),
        Some(ACCESS_TOKEN) => Ok(Some(SubjectType::AccessToken)),
        Some(_) => {
            let problem = format!("can be `{JWT}` or `{ACCESS_TOKEN}`");
            Err(wrong_member("subject_token_type", &problem))
        }
    }
}

fn org(members: &mut Map<String, Value>) -> Result<Option<OrgId>, Refusal> {
    let text = text(members, "org_id", 64)?;
    let parsed = text.map(|text| text.parse()).transpose();
    parsed.map_err(|_| wrong_member("org_id", "has to be an id of the form `org_…`"))
}

fn expires_in(members: &mut Map<String, Value>) -> Result<Option<i64>, Refusal> {
    let seconds = match members.remove("expires_in") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => whole(&number.to_string()),
        Some(Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) => None,
    };
    let seconds = seconds.filter(|seconds| *seconds >= lifetime::SHORTEST);
    let problem = "has to be a whole number of seconds, 60 or more";
    seconds.map(Some).ok_or_else(|| wrong_member("expires_in", problem))
}

/// A whole number; one too large for us is a long time all the same, and is cut to the maximum.
fn whole(number: &str) -> Option<i64> {
    let digits = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    digits.then(|| number.parse().unwrap_or(i64::MAX))
}

fn label(members: &mut Map<String, Value>) -> Result<Option<String>, Refusal> {
    let label = text(members, "label", 4 * MAX_LABEL)?;
    match label {
        Some(label) if label.chars().count() > MAX_LABEL => {
            Err(wrong_member("label", "may be 64 characters long"))
        }
        Some(label) if label.chars().any(char::is_control) => {
            Err(wrong_member("label", "may hold no control characters"))
        }
        label => Ok(label),
    }
}
