//! `/oauth/authorize`: a person lets a client act for it, or does not.

use std::sync::Arc;

use axum::{
    extract::{RawQuery, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use portcullis_app::{Answer, Decision, Origin, Person, Step};
use portcullis_core::{
    authorization::{OAuthError, OAuthErrorCode},
    refusal::Refusal,
};

use super::consent_page;
use crate::{
    exchange::Outcome,
    gateway::Gateway,
    pages::{
        html::{forward, html, page},
        login::{SignedIn, Visitor, VisitorForm, login_address, step_up_address},
    },
};

/// Longest query: it comes back after a login, and as a field of the page.
const MAX_QUERY: usize = 4_000;

/// Begins an authorization: a person logs in, sees what the client asks for, and is sent back to it.
#[utoipa::path(
    get, path = "/oauth/authorize", tag = "oauth", operation_id = "authorize",
    params(
        ("response_type" = String, Query, description = "`code`"),
        ("client_id" = String, Query, description = "of a client that is registered or declared"),
        ("redirect_uri" = Option<String>, Query, description = "where the browser goes back to: one of the client's"),
        ("code_challenge" = String, Query, description = "PKCE (RFC 7636)"),
        ("code_challenge_method" = String, Query, description = "`S256`"),
        ("scope" = Option<String>, Query, description = "scopes with spaces between; `mcps:read mcps:invoke` when absent"),
        ("resource" = Option<String>, Query, description = "the MCP endpoint (RFC 8707); `/mcp` when absent"),
        ("dpop_jkt" = Option<String>, Query, description = "thumbprint of the key that the code is bound to (RFC 9449)"),
        ("state" = Option<String>, Query, description = "comes back as it is"),
        ("prompt" = Option<String>, Query, description = "`none`: answer at once; `consent`: ask in any case; `login` or `select_account`: have the person log in anew before"),
    ),
    responses(
        (status = 200, description = "a page that asks the person", content_type = "text/html"),
        (status = 302, description = "to the login, or back to the client with `code` or `error`, `state` and `iss`"),
        (status = 400, description = "a page: the client or its address is not known, or the address opens a program that the person has not let in", content_type = "text/html"),
        (status = 429, description = "too many requests", body = crate::exchange::ErrorAnswer),
        (status = 503, description = "nothing can be recorded at the moment", body = crate::exchange::ErrorAnswer),
    )
)]
pub(crate) async fn show(
    visitor: Visitor,
    State(gateway): State<Arc<Gateway>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Outcome> {
    let query = query.unwrap_or_default();
    let origin = &visitor.exchange.origin;
    if query.len() > MAX_QUERY {
        return Ok(show_error(&OAuthError::request("the request is too long")));
    }
    let signed_in = visitor.signed_in.as_ref();
    let person = signed_in.map(|it| &it.person);
    let step = gateway.app.authorization.begin(&query, person, origin).await?;
    charge_failure(&gateway, &step, person, origin)?;
    Ok(answer(&step, &query, signed_in))
}

/// Takes the answer of a person from the page that asked it.
#[utoipa::path(
    post, path = "/oauth/authorize", tag = "oauth", operation_id = "answer_authorize",
    request_body(content = Object, content_type = "application/x-www-form-urlencoded", description = "`form_token`, `request`, `shown`, `decision` (`allow`, `deny`, or `other` to sign out and log in as somebody else) and `remember` of the page"),
    responses(
        (status = 200, description = "a page that goes on by itself: back to the client with `code` or `error`, or to the login; or one that asks anew, because what is asked or the session changed", content_type = "text/html"),
        (status = 400, description = "no page of the session sent the form", body = crate::exchange::ErrorAnswer),
        (status = 429, description = "too many requests", body = crate::exchange::ErrorAnswer),
        (status = 503, description = "nothing can be recorded at the moment", body = crate::exchange::ErrorAnswer),
    )
)]
pub(crate) async fn decide(
    State(gateway): State<Arc<Gateway>>,
    VisitorForm(visitor, form): VisitorForm,
) -> Result<Response, Outcome> {
    let origin = &visitor.exchange.origin;
    let query = form.field("request").unwrap_or_default();
    let form_token = form.field("form_token");
    let decision = match (form.field("decision"), form.field("remember")) {
        (Some("allow"), Some("1")) => Decision::AllowAndRemember,
        (Some("allow"), _) => Decision::Allow,
        (Some("other"), _) => Decision::OtherAccount,
        _ => Decision::Deny,
    };
    let since = visitor.signed_in_since(form_token);
    let signed_in = if since.is_some() { since } else { visitor.sender(form_token)? };
    let person = signed_in.map(|it| &it.person);
    // Several logins in tabs replace each other's session: who answers on a page of an earlier one is asked anew,
    // also about what it remembers, as one to whom nothing was shown.
    let shown = form.field("shown").filter(|_| since.is_none()).unwrap_or_default();
    let given = Answer { decision, shown };
    let step = gateway.app.authorization.answered(query, person, given, origin).await?;
    charge_failure(&gateway, &step, person, origin)?;
    Ok(match &step {
        // Not by a redirect: what follows the form has to obey the policy of its page, and clients and issuers are
        // where that cannot know.
        Step::Redirect(to) => forward("Back to the program", to),
        Step::LogIn(path) => forward("Log in", &login_address(path)),
        Step::StepUp(step_up, path) => {
            let mut response = forward("Log in", &step_up_address(*step_up, path));
            if decision == Decision::OtherAccount && since.is_none() {
                gateway.drop_session(response.headers_mut());
            }
            response
        }
        Step::Ask(_) | Step::Told(_) => answer(&step, query, signed_in),
    })
}

/// Charges the source of a request that leads nowhere, if there is no session. What cannot be told at the moment
/// is no fault of the source.
fn charge_failure(
    gateway: &Gateway,
    step: &Step,
    person: Option<&Arc<Person>>,
    origin: &Origin,
) -> Result<(), Refusal> {
    match (step, person) {
        (Step::Told(error), None) if error.code != OAuthErrorCode::TemporarilyUnavailable => {
            gateway.app.authorization.charge_stranger(origin)
        }
        (
            Step::Told(_) | Step::Redirect(_) | Step::LogIn(_) | Step::StepUp(..) | Step::Ask(_),
            _,
        ) => Ok(()),
    }
}

fn answer(step: &Step, query: &str, signed_in: Option<&SignedIn>) -> Response {
    match (step, signed_in) {
        (Step::Told(error), _) => show_error(error),
        (Step::Redirect(to), _) => redirect(to),
        (Step::LogIn(path), _) => redirect(&login_address(path)),
        (Step::StepUp(step_up, path), _) => redirect(&step_up_address(*step_up, path)),
        (Step::Ask(asked), Some(signed_in)) => consent_page::show(asked, query, signed_in),
        // A person who is asked is signed in.
        (Step::Ask(_), None) => show_error(&OAuthError::request("nobody is signed in")),
    }
}

fn redirect(to: &str) -> Response {
    let Ok(to) = HeaderValue::from_str(to) else {
        return show_error(&OAuthError::request("the address cannot be gone to"));
    };
    let mut response = StatusCode::FOUND.into_response();
    response.headers_mut().insert(header::LOCATION, to);
    let referrer = HeaderValue::from_static("no-referrer");
    response.headers_mut().insert(header::REFERRER_POLICY, referrer);
    response
}

/// An error that goes back to no client.
fn show_error(error: &OAuthError) -> Response {
    let text = html(
        "<p>The program that sent you here asked for something that cannot be done: {} (<code>{}</code>).</p>\
         <p>Nothing was given to it. Close this page, and begin anew in the program.</p>",
        &[&error.description, &error.code.as_str()],
    );
    page(StatusCode::BAD_REQUEST, "Not possible", &text)
}
