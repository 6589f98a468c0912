//! Login by a link of the operator. The page has a button, so that programs which look at links do
//! not use one up.

use std::sync::Arc;

use axum::{
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use portcullis_core::{browser_session::BrowserSecret, hidden::spelled};

use super::{SignedIn, Visitor, VisitorForm, cookies::Cookie, switched_off};
use crate::{
    exchange::Outcome,
    gateway::Gateway,
    pages::{
        form,
        html::{form_page, forward, hidden, html, markup, page},
    },
};

/// The page of a login link, with a button that uses it.
#[utoipa::path(
    get, path = "/login/link", tag = "login", operation_id = "login_link_page",
    params(("code" = String, Query, description = "as `portcullis login-link` printed it")),
    responses(
        (status = 200, description = "a page: whom the link logs in, and a button; or, of a link that logs nobody in, who is signed in", content_type = "text/html"),
        (status = 400, description = "a page: the link is unknown, used or too old", content_type = "text/html"),
        (status = 404, description = "a page: links log nobody in here", content_type = "text/html"),
        (status = 429, description = "too many unknown links from this address", body = crate::exchange::ErrorAnswer),
    )
)]
pub(crate) async fn show(
    visitor: Visitor,
    State(gateway): State<Arc<Gateway>>,
    RawQuery(query): RawQuery,
) -> Response {
    if !gateway.app.logins.takes_links() {
        return switched_off();
    }
    let fields = form::fields(query.as_deref());
    let Some(secret) = fields.get("code").and_then(BrowserSecret::parse) else {
        return worthless(&gateway, &visitor);
    };
    match gateway.app.logins.linked(&secret, &visitor.exchange.origin).await {
        Ok(Some((name, org))) => {
            let text = html(
                "<p>This link logs this browser in as <strong>{}</strong> of <strong>{}</strong>. Is that not you? \
                 Then close this page.</p><form method=\"post\" action=\"/login/link\">{}\
                 <button>Log in</button></form>",
                &[&spelled(&name), &spelled(&org), &hidden("code", secret.expose())],
            );
            form_page(StatusCode::OK, "Log in", &text)
        }
        Ok(None) => worthless(&gateway, &visitor),
        Err(refused) => Outcome::from(refused.refusal).into_response(),
    }
}

/// The page of a link that opens no session. A person who is signed in, as after a second click, is told so.
fn worthless(gateway: &Gateway, visitor: &Visitor) -> Response {
    if let Some(SignedIn { person, .. }) = &visitor.signed_in {
        let text = html(
            "<p>You are signed in as <strong>{}</strong> of <strong>{}</strong>. This link logs nobody in any more.\
             </p><p><a href=\"{}\">Go on</a></p>",
            &[&spelled(&person.name), &spelled(&person.org_name), &gateway.home().as_str()],
        );
        return page(StatusCode::OK, "Signed in", &text);
    }
    let text = "<p>This link was used before, is older than five minutes, or is not one of this \
                gateway. The operator makes another:</p><pre>portcullis login-link --principal \
                &lt;your name&gt;</pre>";
    page(StatusCode::BAD_REQUEST, "Not a login", &markup(text))
}

/// Logs a browser in by a link, which is used up by that. Ends the session that the browser had.
#[utoipa::path(
    post, path = "/login/link", tag = "login", operation_id = "log_in_by_link",
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`code`, from the page of the link"),
    responses(
        (status = 200, description = "a page that goes on by itself, with the cookie of the session; or, of a link that logs nobody in, who is signed in", content_type = "text/html"),
        (status = 400, description = "a page: the link is unknown, used or too old; or no page of this gateway sent the form", content_type = "text/html"),
        (status = 404, description = "a page: links log nobody in here", content_type = "text/html"),
        (status = 429, description = "too many unknown links from this address", body = crate::exchange::ErrorAnswer),
    )
)]
pub(crate) async fn log_in(
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    VisitorForm(visitor, form): VisitorForm,
) -> Result<Response, Outcome> {
    if !gateway.app.logins.takes_links() {
        return Ok(switched_off());
    }
    let Some(secret) = form.field("code").and_then(BrowserSecret::parse) else {
        return Ok(worthless(&gateway, &visitor));
    };
    let origin = &visitor.exchange.origin;
    let replaced = visitor.secret.clone();
    let opened = gateway.app.logins.log_in_by_link(secret, replaced, origin).await;
    let Some(opened) = opened.map_err(|refused| Outcome::from(refused.refusal))? else {
        return Ok(worthless(&gateway, &visitor));
    };
    let mut response = forward("Signed in", gateway.return_path(&headers).as_str());
    let headers = response.headers_mut();
    gateway.set_cookie(Cookie::Session, opened.secret.expose(), headers);
    gateway.drop_cookie(Cookie::Return, headers);
    Ok(response)
}
