//! Operations of the installation, which only its operator has.
//!
//! **Invariant:** they are rows of no table that a listener or the document takes, and each handler begins with
//! [`Operator`], whom nothing of a connection becomes.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::request::Parts,
    routing::{MethodRouter, get, post},
};
use portcullis_app::{Ctx, OrgChange};
use portcullis_core::{principal::Plan, refusal::Refusal};
use portcullis_store::Org;
use serde_json::{Map, Value, json};

use crate::{
    exchange::{Caller, Exchange, HandlerResult, Items, Outcome, RequestBody, body},
    gateway::Gateway,
};

/// Bytes of a text member at most.
const LONGEST: usize = 1024;

/// A path with its operations.
pub(crate) type OperatorRow = (&'static str, MethodRouter<Arc<Gateway>>);

/// Every operation.
pub(crate) fn table() -> [OperatorRow; 3] {
    [
        ("/operator/orgs", get(list_orgs).post(create_org)),
        ("/operator/org", get(get_org).patch(change_org)),
        ("/operator/login-links", post(create_login_link)),
    ]
}

/// The operator, for the org of the session. Refuses everybody else, whatever the path.
struct Operator(Ctx, Arc<Gateway>);

impl FromRequestParts<Arc<Gateway>> for Operator {
    type Rejection = Outcome;

    async fn from_request_parts(
        parts: &mut Parts,
        gateway: &Arc<Gateway>,
    ) -> Result<Self, Outcome> {
        if Exchange::of(parts)?.operator.is_none() {
            return Err(Refusal::not_found("path", parts.uri.path()).into());
        }
        let Caller(ctx) = Caller::from_request_parts(parts, gateway).await?;
        Ok(Self(ctx, Arc::clone(gateway)))
    }
}

async fn list_orgs(Operator(_, gateway): Operator) -> HandlerResult {
    let orgs = gateway.app.administration.orgs().await?;
    Ok(Outcome::data(&Items { items: orgs.iter().map(record).collect() }))
}

async fn create_org(Operator(ctx, gateway): Operator, request: RequestBody) -> HandlerResult {
    let mut members = request.optional_object().await?;
    let plan = plan(&members)?;
    let name = body::text(&mut members, "name", LONGEST)?.unwrap_or_default();
    Ok(Outcome::created(&record(&gateway.app.administration.create_org(&ctx, name, plan).await?)))
}

async fn get_org(Operator(ctx, gateway): Operator) -> HandlerResult {
    Ok(Outcome::data(&record(&gateway.app.administration.found_org(&ctx).await?)))
}

async fn change_org(Operator(ctx, gateway): Operator, request: RequestBody) -> HandlerResult {
    let members = request.optional_object().await?;
    let change = match members.get("disabled").and_then(Value::as_bool) {
        Some(true) => OrgChange::Disabled,
        Some(false) => OrgChange::Enabled,
        None => OrgChange::Plan(plan(&members)?),
    };
    Ok(Outcome::data(&record(&gateway.app.administration.change_org(&ctx, change).await?)))
}

async fn create_login_link(
    Operator(ctx, gateway): Operator,
    request: RequestBody,
) -> HandlerResult {
    let mut members = request.optional_object().await?;
    let id = body::text(&mut members, "principal_id", LONGEST)?.unwrap_or_default();
    let made = gateway.app.administration.login_link(&ctx, &id).await?;
    Ok(Outcome::created(&json!({
        "code": made.secret.expose(), "principal_id": made.principal.id,
        "principal_name": made.principal.name, "org_id": made.principal.org_id,
        "expires_at": made.expires_at,
    })))
}

fn plan(members: &Map<String, Value>) -> Result<Plan, Refusal> {
    let number = |name: &str| members.get(name)?.as_u64()?.try_into().ok();
    let name = members.get("plan").and_then(Value::as_str).unwrap_or_default();
    let plan =
        Plan::from_parts(name, number("requests_per_minute"), number("invocations_per_minute"));
    plan.ok_or_else(|| {
        Refusal::bad_request("Only the plan enterprise has numbers of its own, and it needs both.")
    })
}

fn record(org: &Org) -> Value {
    json!({
        "id": org.id,
        "name": org.name,
        "plan": org.plan.name(),
        "requests_per_minute": org.plan.requests_per_minute(),
        "invocations_per_minute": org.plan.invocations_per_minute(),
        "created_at": org.created_at,
        "disabled_at": org.disabled_at,
    })
}
