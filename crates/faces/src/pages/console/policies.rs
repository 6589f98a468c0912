//! The policies in force, and one policy with its text.

use axum::http::StatusCode;
use portcullis_core::principal::Scope;

use super::{
    PageResult,
    form::Choices,
    json::{self, Json},
    render,
    signed_in::Guest,
    table::Filters,
};
use crate::{exchange::Segment, pages::html::Html, v1};

const PATH: &str = "/console/policies";
const STATUSES: Choices =
    &[("", "any"), ("active", "active"), ("shadow", "shadow"), ("disabled", "disabled")];
const EFFECTS: Choices = &[("", "any"), ("permit", "permit"), ("forbid", "forbid")];
const SCOPE: Option<Scope> = Some(Scope::PoliciesRead);

page! { PoliciesPage = "policies.html";
    filters: Filters, set: Json, policies: Vec<Json>, more: Html,
}

/// The policies in force and how often each decided, with the filters of the API.
pub(crate) async fn list(guest: Guest, filters: Filters) -> PageResult {
    let reply = guest.list(SCOPE, &filters, v1::policies::list).await?;
    let frame = guest.frame("Policies", PATH);
    let more = reply.more(PATH, &filters, "More policies");
    let set = reply.data.at("/policy_set");
    let policies = reply.items();
    Ok(render(StatusCode::OK, &PoliciesPage { frame, filters, set, policies, more }))
}

page! { PolicyPage = "policy.html"; policy: Json }

/// One policy: its text, where it comes from, what it reads, and how often it decided.
pub(crate) async fn show(guest: Guest, path: Segment, filters: Filters) -> PageResult {
    let reply = guest.list(SCOPE, &filters, |caller| v1::policies::get(caller, path)).await?;
    let frame = guest.frame(reply.data.text("/id"), PATH);
    Ok(render(StatusCode::OK, &PolicyPage { frame, policy: reply.data }))
}
