//! The queue of calls that wait for people, and the page on which one is decided.

use askama::Template;
use axum::{extract::Path, http::StatusCode, response::Response};
use portcullis_core::{openid::StepUp, principal::Scope};
use serde_json::{Map, Value};

use super::{
    PageResult,
    api::Problem,
    json::Json,
    render, see_other,
    signed_in::{Frame, Guest, GuestForm},
    table::{Filters, more},
};
use crate::{
    exchange::{NoQuery, Outcome, Segment, segment},
    pages::form::Form,
    v1,
};

const PATH: &str = "/console/approvals";

#[derive(Template)]
#[template(path = "approvals.html")]
struct ApprovalsPage {
    frame: Frame,
    filters: Filters,
    approvals: Vec<Json>,
    more: Option<String>,
}

/// Approvals: those that wait, or those with the status that the query names.
#[utoipa::path(
    get, path = "/console/approvals", tag = "console", operation_id = "console_approvals",
    responses(
        (status = 200, description = "a page of approvals; takes the filters of `GET /v1/approvals`", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 403, description = "a page: the person lacks `approvals:read`", content_type = "text/html"),
    )
)]
pub(crate) async fn list(guest: Guest, filters: Filters) -> PageResult {
    let reply = guest.list(Some(Scope::ApprovalsRead), &filters, v1::approvals::list).await?;
    let frame = guest.frame("Approvals", PATH);
    let more = more(PATH, &filters, reply.next.as_deref());
    let approvals = reply.items();
    Ok(render(StatusCode::OK, &ApprovalsPage { frame, filters, approvals, more }))
}

#[derive(Template)]
#[template(path = "approval.html")]
struct ApprovalPage {
    frame: Frame,
    approval: Json,
    may_decide: bool,
    /// True if it waits, and the person asked for it, who cannot decide.
    is_own: bool,
    /// Address at which the person proves the second factor that the policy wants.
    step_up: Option<String>,
    problem: Option<Problem>,
}

/// One approval: the call as it will be sent, who asked for it, and a form to decide.
#[utoipa::path(
    get, path = "/console/approvals/{id}", tag = "console", operation_id = "console_approval",
    params(("id" = String, Path, description = "`apr_` and a ULID")),
    responses(
        (status = 200, description = "a page: the approval", content_type = "text/html"),
        (status = 303, description = "to the login, if nobody is signed in"),
        (status = 404, description = "a page: no such approval for this person", content_type = "text/html"),
    )
)]
pub(crate) async fn show(guest: Guest, path: Segment) -> Response {
    page(&guest, segment(path), None).await
}

/// Decides about an approval, from the form of its page.
#[utoipa::path(
    post, path = "/console/approvals/{id}", tag = "console", operation_id = "console_decide",
    params(("id" = String, Path, description = "`apr_` and a ULID")),
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`form_token`, `decision`, `comment`, and `digest` of the call that was shown"),
    responses(
        (status = 200, description = "a page: why the decision was not taken", content_type = "text/html"),
        (status = 303, description = "the decision is recorded; on to the approval"),
        (status = 400, description = "no page of this session sent the form", body = crate::exchange::ErrorAnswer),
        (status = 404, description = "a page: no such approval for this person", content_type = "text/html"),
    )
)]
pub(crate) async fn decide(path: Segment, GuestForm(guest, form): GuestForm) -> Response {
    let id = segment(path);
    let members = decision(&form);
    let named = id.clone();
    let decided = guest.ask(Some(Scope::ApprovalsDecide), async move |NoQuery(ctx, gateway)| {
        let decision = v1::approvals::decision(members)?;
        let id = v1::approvals::parse_id(Ok(Path(named)))?;
        Ok(Outcome::data(&gateway.app.approvals.decide(&ctx, id, decision).await?))
    });
    match decided.await {
        Ok(_) => see_other(&format!("{PATH}/{id}")),
        Err(problem) => page(&guest, id, Some(problem)).await,
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

/// Returns true if the person asked for a call, or acts for its requester.
fn asked_by(guest: &Guest, requester: &Json) -> bool {
    let person = guest.ctx.caller().principal_id.to_string();
    requester.is("/principal_id", &person)
        || requester.items("/actors").iter().any(|actor| actor.is("", &person))
}

async fn page(guest: &Guest, id: String, problem: Option<Problem>) -> Response {
    let path = Ok(Path(id));
    let scope = Some(Scope::ApprovalsRead);
    match guest.ask(scope, |caller| v1::approvals::get(caller, path)).await {
        Ok(reply) => {
            let is_pending = reply.data.is("/status", "pending");
            let is_own = is_pending && asked_by(guest, &reply.data.at("/requester"));
            let may_decide = is_pending && !is_own && guest.may(Scope::ApprovalsDecide);
            let here = format!("{PATH}/{}", reply.data.text("/id"));
            let wants_factor = may_decide && reply.data.is("/terms/mfa", "true");
            let step_up = wants_factor.then(|| guest.step_up(StepUp::Mfa, &here)).flatten();
            let page = ApprovalPage {
                frame: guest.frame("Approval", PATH),
                approval: reply.data,
                may_decide: may_decide && step_up.is_none(),
                is_own,
                step_up,
                problem,
            };
            render(StatusCode::OK, &page)
        }
        Err(problem) => problem.page(guest),
    }
}
