//! The console: pages for people who are signed in.
//!
//! A page asks the operation of the API that a program would ask, with the session's person as its
//! caller, and shows its answer. So it shows nothing that the API does not give, filters as the API
//! does, and every rule about scopes, limits and events is that of the API.

/// A page: its template, and what that shows beside the frame.
macro_rules! page {
    ($name:ident $(<$life:lifetime>)? = $path:tt; $($(#[$doc:meta])* $field:ident: $kind:ty),* $(,)?) => {
        #[derive(askama::Template)]
        #[template(path = $path)]
        struct $name $(<$life>)? {
            frame: crate::pages::console::signed_in::Frame,
            $($(#[$doc])* $field: $kind,)*
        }
    };
}

mod api;
pub(crate) mod approvals;
pub(crate) mod assets;
pub(crate) mod dlp;
pub(crate) mod events;
mod form;
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

use self::{api::Problem, signed_in::Guest};
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

// Page of an operation that was refused: the API's message, and what helps.
page! { ProblemPage<'a> = "problem.html"; problem: &'a Problem }

impl Problem {
    fn page(&self, guest: &Guest) -> Response {
        if self.status != StatusCode::NOT_FOUND
            && let Some(forwarded) = guest.step_up_of(self)
        {
            return forwarded;
        }
        let frame = guest.frame("Not possible", "");
        render(self.status, &ProblemPage { frame, problem: self })
    }
}

impl Guest {
    /// The way to a proof of what `admin` asks for, if a refused operation lacks that.
    fn step_up_of(&self, problem: &Problem) -> Option<Response> {
        let lacks_admin = problem.details.is("/required_scope", Scope::Admin.as_str());
        // What is another's is not found without `admin`.
        let is_hidden = problem.status == StatusCode::NOT_FOUND;
        let address = self.proof_address().filter(|_| lacks_admin || is_hidden)?;
        Some(forward("Log in", &address))
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
