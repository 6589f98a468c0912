//! Signing out: here, and at the issuer that the person logged in at, if it has a place for that.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use portcullis_core::browser_session::LocalPath;

use super::VisitorForm;
use crate::{exchange::Outcome, gateway::Gateway, pages::html::forward};

/// Ends the session of the browser, or all of the person's.
#[utoipa::path(
    post, path = "/logout", tag = "login", operation_id = "log_out",
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`form_token` of the page, and `everywhere`: `1` ends the sessions on all devices"),
    responses(
        (status = 200, description = "a page that goes on by itself: to the logout of the issuer that the person logged in at, which leads back to the login, or to the login", content_type = "text/html"),
        (status = 400, description = "no page of the session sent the form", body = crate::exchange::ErrorAnswer),
        (status = 503, description = "the end cannot be recorded", body = crate::exchange::ErrorAnswer),
    )
)]
pub(crate) async fn log_out(
    State(gateway): State<Arc<Gateway>>,
    VisitorForm(visitor, form): VisitorForm,
) -> Result<Response, Outcome> {
    let origin = &visitor.exchange.origin;
    let mut next = None;
    if let Some(signed_in) = visitor.sender(form.field("form_token"))? {
        let logins = &gateway.app.logins;
        match form.field("everywhere") {
            Some("1") => logins.end_all(&signed_in.person, origin).await?,
            Some(_) | None => logins.end(&signed_in.person, origin).await?,
        }
        next = logins.logout_address(&signed_in.person).await;
    }
    let next = next.unwrap_or_else(|| LocalPath::start().as_str().to_owned());
    let mut response = forward("Signed out", &next);
    gateway.drop_session(response.headers_mut());
    Ok(response)
}
