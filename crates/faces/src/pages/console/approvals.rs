//! The queue of calls that wait for people, and the page on which one is decided.

use axum::{extract::Path, http::StatusCode};
use portcullis_core::{approval::Status, openid::StepUp, principal::Scope};
use serde_json::{Map, Value};

use super::{
    PageResult,
    form::FormState,
    json::Json,
    render, see_other,
    signed_in::{Guest, GuestForm},
    table::Filters,
};
use crate::{
    exchange::{NoQuery, Outcome, Segment, segment},
    pages::{form::Form, html::Html},
    v1,
};

const PATH: &str = "/console/approvals";

page! { ApprovalsPage = "approvals.html"; filters: Filters, approvals: Vec<Json>, more: Html }

/// Approvals: those that wait, or those with the status that the query names.
pub(crate) async fn list(guest: Guest, filters: Filters) -> PageResult {
    let reply = guest.list(Some(Scope::ApprovalsRead), &filters, v1::approvals::list).await?;
    let frame = guest.frame("Approvals", PATH);
    let more = reply.more(PATH, &filters, "Older ones");
    let approvals = reply.items();
    Ok(render(StatusCode::OK, &ApprovalsPage { frame, filters, approvals, more }))
}

page! { ApprovalPage = "approval.html";
    approval: Json, may_decide: bool,
    /// True if it waits, and the person asked for it, who cannot decide.
    is_own: bool,
    /// Address at which the person proves the second factor that the policy wants.
    step_up: Option<String>, form: FormState,
}

/// One approval: the call as it will be sent, who asked for it, and a form to decide.
pub(crate) async fn show(guest: Guest, path: Segment) -> PageResult {
    page(&guest, segment(path), FormState::default()).await
}

/// Decides about an approval, from the form of its page.
pub(crate) async fn decide(path: Segment, GuestForm(guest, form): GuestForm) -> PageResult {
    let id = segment(path);
    let members = decision(&form);
    let named = id.clone();
    let decided = guest.ask(Some(Scope::ApprovalsDecide), async move |NoQuery(ctx, gateway)| {
        let decision = v1::approvals::decision(members)?;
        let id = v1::approvals::parse_id(Ok(Path(named)))?;
        Ok(Outcome::data(&gateway.app.approvals.decide(&ctx, id, decision).await?))
    });
    match decided.await {
        Ok(_) => Ok(see_other(&format!("{PATH}/{id}"))),
        Err(problem) => page(&guest, id, FormState::refused(&form, Some(problem))).await,
    }
}

/// The members of the body that a program would send.
fn decision(form: &Form) -> Map<String, Value> {
    let names = ["decision", "comment", "digest"];
    let filled = names.into_iter().filter_map(|name| {
        let text = form.field(name)?.replace("\r\n", "\n");
        (!text.trim().is_empty()).then(|| (name.to_owned(), Value::String(text)))
    });
    filled.collect()
}

/// True if the person asked for a call, or acts for its requester.
fn asked_by(guest: &Guest, requester: &Json) -> bool {
    let person = guest.ctx.caller().principal_id.to_string();
    requester.is("/principal_id", &person)
        || requester.items("/actors").iter().any(|actor| actor.is("", &person))
}

async fn page(guest: &Guest, id: String, form: FormState) -> PageResult {
    let path = Ok(Path(id));
    let asked = guest.ask(Some(Scope::ApprovalsRead), |caller| v1::approvals::get(caller, path));
    let approval = asked.await.map_err(|problem| problem.page(guest))?.data;
    let is_pending = approval.is("/status", "pending");
    let is_own = is_pending && asked_by(guest, &approval.at("/requester"));
    let may_decide = is_pending && !is_own && guest.may(Scope::ApprovalsDecide);
    let here = format!("{PATH}/{}", approval.text("/id"));
    let wants_factor = may_decide && approval.is("/terms/mfa", "true");
    let step_up = wants_factor.then(|| guest.step_up(StepUp::Mfa, &here)).flatten();
    let frame = guest.frame("Approval", PATH);
    let may_decide = may_decide && step_up.is_none();
    let page = ApprovalPage { frame, approval, may_decide, is_own, step_up, form };
    Ok(render(StatusCode::OK, &page))
}
