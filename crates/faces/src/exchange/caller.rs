//! The caller of a request: the extractors that handlers begin with.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use portcullis_app::{Attribute, Ctx, Possession, PresentedToken, Purpose, Refused, Stage};
use portcullis_core::{refusal::Refusal, secret::Secret};

use super::{Exchange, outcome::Outcome, query::Query, spec::Access};
use crate::gateway::{Gateway, anonymous_budget::overloaded};

/// A caller who holds what the route asks for, and whose org may still make requests in this
/// minute.
///
/// Refuses others with 401 before anything is told about the path, with 429 beyond the plan, and
/// with 403 without the scope of the route. Refuses with 503 one whose org does not take its answers,
/// unless a token is to be revoked. A call is refused with 503 while the queue for capacity
/// is full; where nodes count together, its request is counted with the invocation.
#[derive(Debug)]
pub(crate) struct Caller(pub(crate) Ctx);

impl FromRequestParts<Arc<Gateway>> for Caller {
    type Rejection = Outcome;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Outcome> {
        Self::of(Exchange::of(parts)?, &parts.headers, gateway).await
    }
}

impl Caller {
    /// The caller of a request with these headers.
    pub(crate) async fn of(
        exchange: &Arc<Exchange>,
        headers: &HeaderMap,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Outcome> {
        let access = exchange.route.access;
        let purpose = match access {
            Access::AnyToken => Purpose::Revocation,
            Access::Token | Access::Scoped(_) | Access::Call(_) | Access::Message => {
                Purpose::Access
            }
            // There is no caller on these; a handler that wants one does not fit its route.
            Access::Open | Access::Public | Access::Probe | Access::Credential => {
                return Err(Refusal::Internal.into());
            }
        };
        let ctx = authenticated(exchange, headers, purpose, gateway).await?;
        if access != Access::AnyToken && !gateway.known.has_room_for_answer(ctx.caller()) {
            return Err(overloaded().into());
        }
        if let Access::Call(_) | Access::Message = access {
            admit_call(&ctx, gateway)?;
            return Ok(Self(ctx));
        }
        admit(&ctx, gateway).await?;
        if let Access::Scoped(scope) = access {
            ctx.require(scope)?;
        }
        Ok(Self(ctx))
    }
}

/// A caller and the query of its request, as it came.
pub(crate) struct WithQuery(pub(crate) Ctx, pub(crate) Arc<Gateway>, pub(crate) Option<String>);

impl FromRequestParts<Arc<Gateway>> for WithQuery {
    type Rejection = Outcome;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Outcome> {
        let Caller(ctx) = Caller::from_request_parts(parts, gateway).await?;
        Ok(Self(ctx, Arc::clone(gateway), parts.uri.query().map(str::to_owned)))
    }
}

/// A caller of a route without parameters. Refuses a query that names any.
pub(crate) struct NoQuery(pub(crate) Ctx, pub(crate) Arc<Gateway>);

impl FromRequestParts<Arc<Gateway>> for NoQuery {
    type Rejection = Outcome;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Outcome> {
        let Caller(ctx) = Caller::from_request_parts(parts, gateway).await?;
        Query::parse(parts.uri.query(), &[])?;
        Ok(Self(ctx, Arc::clone(gateway)))
    }
}

/// Anybody: a browser that brings no Bearer.
#[derive(Debug)]
pub(crate) struct Stranger(pub(crate) Arc<Exchange>);

impl FromRequestParts<Arc<Gateway>> for Stranger {
    type Rejection = Outcome;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Gateway>) -> Result<Self, Outcome> {
        Ok(Self(Arc::clone(Exchange::of(parts)?)))
    }
}

/// The Bearer of an endpoint at which it is the credential itself; nothing is known of it yet.
#[derive(Debug)]
pub(crate) struct Credential {
    pub(crate) bearer: Option<Secret>,
    pub(crate) scheme: TokenScheme,
    pub(crate) exchange: Arc<Exchange>,
}

impl FromRequestParts<Arc<Gateway>> for Credential {
    type Rejection = Outcome;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Outcome> {
        let exchange = Exchange::of(parts)?;
        if parts.headers.get_all(header::AUTHORIZATION).iter().count() > 1 {
            let refusal = Refusal::bad_request("There are several `Authorization` headers.");
            return Err(gateway.app.quotas.charge_source(refusal, &exchange.origin).refusal.into());
        }
        let (scheme, text) = match presented(&parts.headers) {
            Some((scheme, text)) => (scheme, Some(text)),
            None => (TokenScheme::Bearer, None),
        };
        let bearer = text.map(|text| Secret::new(text.to_owned()));
        Ok(Self { bearer, scheme, exchange: Arc::clone(exchange) })
    }
}

/// A caller with a live token on a path that is no endpoint: it costs a request like any other,
/// but is told so even when the plan is used up.
pub(crate) async fn charge_unknown_path(
    parts: &Parts,
    gateway: &Arc<Gateway>,
) -> Result<(), Outcome> {
    let exchange = Exchange::of(parts)?;
    let ctx = authenticated(exchange, &parts.headers, Purpose::Access, gateway).await?;
    let _ = admit(&ctx, gateway).await;
    Ok(())
}

/// Admits a request that asks for a call, if there is capacity for one.
fn admit_call(ctx: &Ctx, gateway: &Gateway) -> Result<(), Refusal> {
    let stages = &ctx.origin.stages;
    stages.enter(Stage::Limits, gateway.app.base.now());
    gateway.app.quotas.admit_invoker(ctx)?;
    gateway.app.calls.room_for_a_call()?;
    stages.leave(gateway.app.base.now());
    Ok(())
}

/// Counts the request against the plan.
async fn admit(ctx: &Ctx, gateway: &Gateway) -> Result<(), Refusal> {
    let stages = &ctx.origin.stages;
    stages.enter(Stage::Limits, gateway.app.base.now());
    gateway.app.quotas.admit_request(ctx).await?;
    stages.leave(gateway.app.base.now());
    Ok(())
}

async fn authenticated(
    exchange: &Exchange,
    headers: &HeaderMap,
    purpose: Purpose,
    gateway: &Arc<Gateway>,
) -> Result<Ctx, Outcome> {
    if let Some(session) = &exchange.operator {
        exchange.set_caller(session);
        let (origin, session) = (Arc::clone(&exchange.origin), Arc::clone(session));
        return Ok(Ctx { origin, session, attendance: None });
    }
    let token = match presented(headers) {
        None => PresentedToken::bearer(None),
        Some((TokenScheme::Bearer, text)) => PresentedToken::bearer(Some(text)),
        Some((TokenScheme::Dpop, text)) => {
            PresentedToken { text: Some(text), possession: Possession::Dpop(exchange.proof()) }
        }
    };
    let authenticated = gateway.app.access.authenticate(token, purpose, &exchange.origin).await;
    let session = authenticated.map_err(|Refused { refusal, account }| {
        if let Some(account) = account {
            exchange.set_account(account);
        }
        Outcome::from(refusal)
    })?;
    exchange.set_caller(&session);
    if let Some(recording) = exchange.origin.stages.traced() {
        recording.set_caller([
            Attribute::text("portcullis.org.id", session.caller.org_id.to_string()),
            Attribute::text("portcullis.principal.id", session.caller.principal_id.to_string()),
        ]);
    }
    Ok(Ctx { origin: Arc::clone(&exchange.origin), session, attendance: None })
}

/// Scheme of the header `Authorization`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenScheme {
    Bearer,
    /// With a proof of the key that the token is bound to (RFC 9449 §7.1).
    Dpop,
}

/// The token, if there is exactly one `Authorization` header and it holds one (RFC 6750 §2.1).
/// Anything else reads as a token that cannot be valid.
fn presented(headers: &HeaderMap) -> Option<(TokenScheme, &str)> {
    const NONE: (TokenScheme, &str) = (TokenScheme::Bearer, "");
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let first = values.next()?;
    if values.next().is_some() {
        return Some(NONE);
    }
    let text = first.to_str().unwrap_or_default();
    Some(match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
            (TokenScheme::Bearer, token.trim())
        }
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("dpop") => {
            (TokenScheme::Dpop, token.trim())
        }
        Some(_) | None => NONE,
    })
}

/// The token in the header `Authorization`, whatever its scheme.
pub(crate) fn token(headers: &HeaderMap) -> Option<&str> {
    presented(headers).map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_header_holds_a_token() {
        let headers = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, value.parse().unwrap());
            }
            headers
        };

        assert_eq!(presented(&headers(&[])), None);
        assert_eq!(presented(&headers(&["Bearer abc"])), Some((TokenScheme::Bearer, "abc")));
        assert_eq!(presented(&headers(&["bearer abc"])), Some((TokenScheme::Bearer, "abc")));
        assert_eq!(presented(&headers(&["DPoP abc"])), Some((TokenScheme::Dpop, "abc")));
        assert_eq!(token(&headers(&["Basic abc"])), Some(""));
        assert_eq!(token(&headers(&["Bearer a", "Bearer b"])), Some(""));
        assert_eq!(token(&headers(&["DPoP a", "Bearer a"])), Some(""));
    }
}
