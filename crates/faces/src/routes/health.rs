//! Health of the node: alive, and able to do its work. No token needed, no details given.

use std::sync::{Arc, atomic::Ordering};

use axum::extract::State;
use portcullis_core::refusal::{Refusal, Unavailable};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    exchange::{ErrorAnswer, One, Outcome},
    gateway::Gateway,
};

/// Says that the process lives.
#[utoipa::path(
    get, path = "/healthz", tag = "health", operation_id = "get_health",
    responses((status = 200, description = "the process lives", body = One<Health>))
)]
pub(crate) async fn healthz() -> Outcome {
    Outcome::data(&Health { status: "ok", policies: None })
}

/// Says whether calls can be governed: the audit log writable, the store readable, not shutting down.
#[utoipa::path(
    get, path = "/readyz", tag = "health", operation_id = "get_readiness",
    responses(
        (status = 200, description = "calls are accepted", body = One<Health>),
        (status = 503, description = "calls would be refused; `details.reason` says why; within two seconds, also if the database is locked", body = ErrorAnswer),
    )
)]
pub(crate) async fn readyz(State(gateway): State<Arc<Gateway>>) -> Outcome {
    if gateway.leaving.load(Ordering::Acquire) {
        return Refusal::Unavailable { reason: Unavailable::Shutdown }.into();
    }
    match gateway.app.nodes.ready().await {
        Ok(()) => {
            let failed = !gateway.app.policies.policy_set().1.errors.is_empty();
            Outcome::data(&Health { status: "ready", policies: failed.then_some("reload_failed") })
        }
        Err(refusal) => refusal.into(),
    }
}

/// State of the node.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok` or `ready`.
    status: &'static str,
    /// `reload_failed` if the policy folder could not be loaded: calls are decided by the set before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    policies: Option<&'static str>,
}
