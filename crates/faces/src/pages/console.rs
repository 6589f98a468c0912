//! The console: pages for people who are signed in.
//!
//! A page asks the operation of the API that a program would ask, with the session's person as its
//! caller, and shows its answer. So it shows nothing that the API does not give, filters as the API
//! does, and every rule about scopes, limits and events is that of the API.

mod api;
pub(crate) mod approvals;
pub(crate) mod assets;
pub(crate) mod dlp;
pub(crate) mod events;
pub(crate) mod home;
mod json;
pub(crate) mod limits;
pub(crate) mod lists;
pub(crate) mod live;
pub(crate) mod log;
pub(crate) mod people;
mod plot;
pub(crate) mod policies;
pub(crate) mod providers;
mod schema;
mod schema_form;
mod signed_in;
mod stages;
mod table;
pub(crate) mod tools;
mod trial;
pub(crate) mod workbench;

use askama::Template;
use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use portcullis_core::{principal::Scope, refusal::Refusal};

use self::{
    api::Problem,
    signed_in::{Frame, Guest},
};
use super::html::{forward, visible};
use crate::exchange::Outcome;

/// Lets in styles, scripts and requests of this gateway, and nothing written into a page.
const CSP: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
);

/// A page, or the page of what stood in its way.
type PageResult = Result<Response, Response>;

/// Renders a page.
fn render(status: StatusCode, template: &impl Template) -> Response {
    let Ok(html) = template.render() else {
        return Outcome::from(Refusal::Internal).into_response();
    };
    let mut response = Response::new(Body::from(visible(html)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, CSP);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Page of an operation that was refused: the API's message, and what helps.
#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    frame: Frame,
    problem: &'a Problem,
}

impl Problem {
    fn page(&self, guest: &Guest) -> Response {
        let lacks_admin = self.details.is("/required_scope", Scope::Admin.as_str());
        if let Some(address) = guest.proof_address().filter(|_| lacks_admin) {
            return forward("Log in", &address);
        }
        let frame = guest.frame("Not possible", "");
        render(self.status, &ProblemPage { frame, problem: self })
    }
}

/// Ends a form with a redirect, so that a reload of the page that follows sends nothing again.
fn see_other(path: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(path) = HeaderValue::from_str(path) {
        response.headers_mut().insert(header::LOCATION, path);
    }
    response
}
