//! The policies in force, and one policy with its text.

use axum::http::StatusCode;
use portcullis_core::principal::Scope;

use super::{
    PageResult,
    json::{self, Json},
    render,
    signed_in::Guest,
    table::{Filters, More, more},
};
use crate::{exchange::Segment, v1};

const PATH: &str = "/console/policies";
const STATUSES: &[(&str, &str)] =
    &[("", "any"), ("active", "active"), ("shadow", "shadow"), ("disabled", "disabled")];
const EFFECTS: &[(&str, &str)] = &[("", "any"), ("permit", "permit"), ("forbid", "forbid")];
const SCOPE: Option<Scope> = Some(Scope::PoliciesRead);

page! { PoliciesPage = "policies.html";
    filters: Filters, set: Json, policies: Vec<Json>, more: More,
}

/// The policies in force and how often each decided, with the filters of the API.
pub(crate) async fn list(guest: Guest, filters: Filters) -> PageResult {
    let reply = guest.list(SCOPE, &filters, v1::policies::list).await?;
    let frame = guest.frame("Policies", PATH);
    let more = more(PATH, &filters, reply.next.as_deref());
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
