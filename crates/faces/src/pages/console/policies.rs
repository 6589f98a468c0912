//! The policies in force, and one policy with its text.

use askama::Template;
use axum::http::StatusCode;
use portcullis_core::principal::Scope;

use super::{
    PageResult,
    json::Json,
    render,
    signed_in::{Frame, Guest},
    table::{Filters, more},
};
use crate::{exchange::Segment, v1};

const PATH: &str = "/console/policies";
const SCOPE: Option<Scope> = Some(Scope::PoliciesRead);

#[derive(Template)]
#[template(path = "policies.html")]
struct PoliciesPage {
    frame: Frame,
    filters: Filters,
    set: Json,
    policies: Vec<Json>,
    more: Option<String>,
}

/// The policies in force and how often each decided, with the filters of the API.
#[utoipa::path(
    get, path = "/console/policies", tag = "console", operation_id = "console_policies",
    responses(
        (status = 200, description = "a page of policies; takes the filters of `GET /v1/policies`", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 403, description = "a page: the person lacks `policies:read`", content_type = "text/html"),
    )
)]
pub(crate) async fn list(guest: Guest, filters: Filters) -> PageResult {
    let reply = guest.list(SCOPE, &filters, v1::policies::list).await?;
    let frame = guest.frame("Policies", PATH);
    let more = more(PATH, &filters, reply.next.as_deref());
    let set = reply.data.at("/policy_set");
    let policies = reply.items();
    Ok(render(StatusCode::OK, &PoliciesPage { frame, filters, set, policies, more }))
}

#[derive(Template)]
#[template(path = "policy.html")]
struct PolicyPage {
    frame: Frame,
    policy: Json,
}

/// One policy: its text, where it comes from, what it reads, and how often it decided.
#[utoipa::path(
    get, path = "/console/policies/{id}", tag = "console", operation_id = "console_policy",
    params(
        ("id" = String, Path, description = "the policy's `@id`"),
        ("version" = Option<String>, Query, description = "the version an event points at"),
    ),
    responses(
        (status = 200, description = "a page: the policy", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 404, description = "a page: no such policy", content_type = "text/html"),
    )
)]
pub(crate) async fn show(guest: Guest, path: Segment, filters: Filters) -> PageResult {
    let reply = guest.list(SCOPE, &filters, |caller| v1::policies::get(caller, path)).await?;
    let frame = guest.frame(reply.data.text("/id"), PATH);
    Ok(render(StatusCode::OK, &PolicyPage { frame, policy: reply.data }))
}
