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
mod capability;
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
mod reader;
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
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use portcullis_core::{principal::Scope, refusal::Refusal};

use self::{api::Problem, signed_in::Guest};
use super::html::{HTML, forward, visible};
use crate::exchange::Outcome;

/// Lets in styles, scripts and requests of this gateway, and nothing written into a page.
const CSP: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// The same, and pictures that are written into a page, which no browser executes.
const CSP_OF_PICTURES: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
);

/// A page, or the page of what stood in its way.
type PageResult = Result<Response, Response>;

/// Renders a page.
fn render(status: StatusCode, template: &impl Template) -> Response {
    let Ok(html) = template.render() else {
        return Outcome::from(Refusal::Internal).into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, HTML),
        (header::CONTENT_SECURITY_POLICY, CSP),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, visible(html)).into_response()
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
    Redirect::to(path).into_response()
}
