//! Who asks: the extractor that every handler under `/v1` begins with.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use portcullis_app::{Attribute, Ctx, Purpose, Stage};
use portcullis_core::{refusal::Refusal, secret::Secret};

use super::{Gateway, answer::Answer, exchange::Exchange};

/// A caller with a live token whose org may still make requests in this minute.
///
/// Says 401 to everybody else, before anything is told about the path, and 429 beyond the plan.
#[derive(Debug)]
pub(crate) struct Known(pub(crate) Ctx);

impl FromRequestParts<Arc<Gateway>> for Known {
    type Rejection = Answer;

    async fn from_request_parts(parts: &mut Parts, gateway: &Arc<Gateway>) -> Result<Self, Answer> {
        let ctx = authenticated(parts, Purpose::Access, gateway).await?;
        admit(&ctx, gateway).await?;
        Ok(Self(ctx))
    }
}

/// A caller with a live token who wants to invoke: as [`Known`], but where nodes count together the
/// request is counted with the invocation. Says 503 while nobody may even wait for room.
#[derive(Debug)]
pub(crate) struct Invoker(pub(crate) Ctx);

impl FromRequestParts<Arc<Gateway>> for Invoker {
    type Rejection = Answer;

    async fn from_request_parts(parts: &mut Parts, gateway: &Arc<Gateway>) -> Result<Self, Answer> {
        let ctx = authenticated(parts, Purpose::Access, gateway).await?;
        let stages = &ctx.origin.stages;
        stages.enter(Stage::Limits, gateway.app.now());
        gateway.app.admit_invoker(&ctx)?;
        gateway.app.room_for_a_call()?;
        stages.leave(gateway.app.now());
        Ok(Self(ctx))
    }
}

/// Whoever holds one of our live tokens, of any kind: enough to end it.
#[derive(Debug)]
pub(crate) struct Holder(pub(crate) Ctx);

impl FromRequestParts<Arc<Gateway>> for Holder {
    type Rejection = Answer;

    async fn from_request_parts(parts: &mut Parts, gateway: &Arc<Gateway>) -> Result<Self, Answer> {
        let ctx = authenticated(parts, Purpose::Revocation, gateway).await?;
        admit(&ctx, gateway).await?;
        Ok(Self(ctx))
    }
}

/// Whoever it is: a browser that brings no Bearer.
#[derive(Debug)]
pub(crate) struct Stranger(pub(crate) Arc<Exchange>);

impl FromRequestParts<Arc<Gateway>> for Stranger {
    type Rejection = Answer;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Gateway>) -> Result<Self, Answer> {
        let exchange = parts.extensions.get::<Arc<Exchange>>().ok_or(Refusal::Internal)?;
        Ok(Self(Arc::clone(exchange)))
    }
}

/// The Bearer of an endpoint at which it is the credential itself; nothing is known of it yet.
#[derive(Debug)]
pub(crate) struct Credential {
    pub(crate) bearer: Option<Secret>,
    pub(crate) exchange: Arc<Exchange>,
}

impl FromRequestParts<Arc<Gateway>> for Credential {
    type Rejection = Answer;

    async fn from_request_parts(parts: &mut Parts, gateway: &Arc<Gateway>) -> Result<Self, Answer> {
        let exchange = parts.extensions.get::<Arc<Exchange>>().ok_or(Refusal::Internal)?;
        if parts.headers.get_all(header::AUTHORIZATION).iter().count() > 1 {
            let refusal = Refusal::bad_request("There are several `Authorization` headers.");
            return Err(gateway.app.charge_source(refusal, &exchange.origin).refusal.into());
        }
        let bearer = bearer(&parts.headers).map(|text| Secret::new(text.to_owned()));
        Ok(Self { bearer, exchange: Arc::clone(exchange) })
    }
}

/// A caller with a live token on a path that is no endpoint: it costs a request like any other,
/// but is told so even when the plan is used up.
pub(super) async fn lost(parts: &mut Parts, gateway: &Arc<Gateway>) -> Result<(), Answer> {
    let ctx = authenticated(parts, Purpose::Access, gateway).await?;
    let _ = admit(&ctx, gateway).await;
    Ok(())
}

/// Counts the request against the plan.
async fn admit(ctx: &Ctx, gateway: &Gateway) -> Result<(), Refusal> {
    let stages = &ctx.origin.stages;
    stages.enter(Stage::Limits, gateway.app.now());
    gateway.app.admit_request(ctx).await?;
    stages.leave(gateway.app.now());
    Ok(())
}

async fn authenticated(
    parts: &mut Parts,
    purpose: Purpose,
    gateway: &Arc<Gateway>,
) -> Result<Ctx, Answer> {
    let exchange = parts.extensions.get::<Arc<Exchange>>().ok_or(Refusal::Internal)?;
    let bearer = bearer(&parts.headers);
    let authenticated = gateway.app.authenticate(bearer, purpose, &exchange.origin).await;
    let session = authenticated.map_err(|refused| Answer::Refused(refused.refusal))?;
    exchange.known(session.account());
    if let Some(recording) = exchange.origin.stages.traced() {
        recording.known([
            Attribute::text("portcullis.org.id", session.caller.org_id.to_string()),
            Attribute::text("portcullis.principal.id", session.caller.principal_id.to_string()),
        ]);
    }
    Ok(Ctx { origin: exchange.origin.clone(), session })
}

/// The Bearer, if there is exactly one `Authorization` header and it holds one (RFC 6750 §2.1).
/// Anything else reads as a token that cannot be valid.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let first = values.next()?;
    if values.next().is_some() {
        return Some("");
    }
    let text = first.to_str().unwrap_or_default();
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Some(token.trim()),
        Some(_) | None => Some(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_bearer_header_is_a_bearer() {
        let headers = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, value.parse().unwrap());
            }
            headers
        };

        assert_eq!(bearer(&headers(&[])), None);
        assert_eq!(bearer(&headers(&["Bearer abc"])), Some("abc"));
        assert_eq!(bearer(&headers(&["bearer abc"])), Some("abc"));
        assert_eq!(bearer(&headers(&["Basic abc"])), Some(""));
        assert_eq!(bearer(&headers(&["Bearer a", "Bearer b"])), Some(""));
    }
}
