//! Login at an issuer (OpenID Connect): the way there, and the way back.

use std::sync::Arc;

use axum::{
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use portcullis_app::{LoginError, LoginFailure};
use portcullis_core::{browser_session::LocalPath, openid::StepUp};

use super::{Visitor, cookies::Cookie};
use crate::{
    exchange::{Outcome, Segment, segment},
    gateway::Gateway,
    pages::{
        form,
        html::{forward, html, markup, page, see_other},
    },
};

/// Begins a login: sends the browser to the issuer of this name.
#[utoipa::path(
    get, path = "/login/issuers/{name}", tag = "login", operation_id = "begin_login",
    params(
        ("name" = String, Path, description = "of the issuer, as `[[login.issuers]]` names it"),
        ("return_to" = Option<String>, Query, description = "a path of this gateway, with its query, that the browser goes to after the login"),
        ("step_up" = Option<String>, Query, description = "what the login has to prove: `mfa`, a second factor, `admin`, a level of `login.admin_acr`, or `again`, nothing but that it is a new one"),
    ),
    responses(
        (status = 303, description = "to the issuer, with a cookie that the browser has to bring back"),
        (status = 404, description = "a page: there is no issuer of this name", content_type = "text/html"),
        (status = 429, description = "too many logins from this address", body = crate::exchange::ErrorAnswer),
        (status = 502, description = "a page: the issuer cannot be reached", content_type = "text/html"),
    )
)]
pub(crate) async fn begin(
    visitor: Visitor,
    State(gateway): State<Arc<Gateway>>,
    name: Segment,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let name = segment(name);
    let fields = form::fields(query.as_deref());
    let step_up = fields.get("step_up").and_then(StepUp::from_name);
    let return_to = fields.get("return_to").and_then(LocalPath::parse);
    let origin = &visitor.exchange.origin;
    let logins = &gateway.app.logins;
    let begun = match logins.begin_login(&name, step_up, return_to.as_ref(), origin).await {
        Ok(begun) => begun,
        Err(failure) => return answer(failure),
    };
    let mut response = see_other("Log in", &begun.location);
    gateway.keep_attempt(&begun, origin.arrived, &headers, response.headers_mut());
    response
}

/// Finishes a login: the browser comes back from the issuer.
#[utoipa::path(
    get, path = "/login/callback", tag = "login", operation_id = "login_callback",
    params(
        ("state" = String, Query, description = "of the login that this browser began"),
        ("code" = Option<String>, Query, description = "from the issuer"),
        ("error" = Option<String>, Query, description = "from the issuer, if it logged nobody in"),
        ("iss" = Option<String>, Query, description = "the issuer (RFC 9207)"),
    ),
    responses(
        (status = 200, description = "a page that goes on by itself, with the cookie of a new session; without one where a person is signed in and this browser has no such login under way, as after a reload", content_type = "text/html"),
        (status = 400, description = "a page: this browser began no such login, or the issuer logged nobody in", content_type = "text/html"),
        (status = 403, description = "a page: the person may not log in here, or the issuer did not confirm what was asked for", content_type = "text/html"),
        (status = 429, description = "too many failed logins from this address", body = crate::exchange::ErrorAnswer),
        (status = 502, description = "a page: the issuer cannot be reached, or sends a token of more than 64 KiB", content_type = "text/html"),
        (status = 503, description = "nothing can be recorded at the moment", body = crate::exchange::ErrorAnswer),
    )
)]
pub(crate) async fn finish(
    visitor: Visitor,
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let query = query.unwrap_or_default();
    let attempt = gateway.attempt(form::fields(Some(&query)).get("state"), &headers);
    let sealed = attempt.map(|it| it.sealed);
    let origin = &visitor.exchange.origin;
    let logins = &gateway.app.logins;
    let finished = Box::pin(logins.finish_login(&query, sealed, visitor.secret, origin)).await;
    let mut response = match finished {
        Ok((opened, return_to)) => {
            let to = return_to.unwrap_or_else(|| gateway.home());
            let mut response = forward("Signed in", to.as_str());
            gateway.set_cookie(Cookie::Session, opened.secret.expose(), response.headers_mut());
            response
        }
        // An answer that was brought before, as by a reload: it changes nothing, and the person goes on.
        Err(LoginFailure::Told(LoginError::Stale)) if visitor.signed_in.is_some() => {
            return forward("Signed in", gateway.home().as_str());
        }
        // Who only sends a browser here does not end a login that is under way in it.
        Err(failure @ LoginFailure::Told(LoginError::Stale)) => return answer(failure),
        Err(failure) => answer(failure),
    };
    if let Some(attempt) = attempt {
        gateway.drop_attempt(attempt, response.headers_mut());
    }
    response
}

fn answer(failure: LoginFailure) -> Response {
    match failure {
        LoginFailure::Told(error) => show_error(error),
        LoginFailure::Refusal(refusal) => Outcome::from(refusal).into_response(),
    }
}

/// The page about a login that came to nothing.
fn show_error(error: LoginError) -> Response {
    let status = match &error {
        LoginError::UnknownIssuer => StatusCode::NOT_FOUND,
        LoginError::IssuerDown | LoginError::TooLong { .. } => StatusCode::BAD_GATEWAY,
        LoginError::Stale
        | LoginError::OtherIssuer
        | LoginError::Refused(_)
        | LoginError::CodeRefused => StatusCode::BAD_REQUEST,
        LoginError::Untrusted(_) | LoginError::NotEnough(_) => StatusCode::FORBIDDEN,
    };
    let text = match error {
        LoginError::UnknownIssuer => markup("There is no issuer of this name here."),
        LoginError::IssuerDown => markup(
            "The issuer cannot be reached, or does not answer as OpenID Connect demands. The log of the \
             gateway says more.",
        ),
        LoginError::TooLong { member, kib } => html(
            "The <code>{}</code> of the issuer is longer than {} KiB, which is the most that this gateway \
             takes. It names your groups: the issuer has to send fewer of them.",
            &[&member, &kib.to_string()],
        ),
        LoginError::Stale => markup(
            "This browser has begun no login that this answer belongs to. The login may have been begun more \
             than 15 minutes ago, before eight others, or in another browser.",
        ),
        LoginError::OtherIssuer => {
            markup("The answer is of another issuer than the one that this login began at.")
        }
        LoginError::Refused(code) => {
            html("The issuer did not log you in. It says <code>{}</code>.", &[&code])
        }
        LoginError::CodeRefused => markup(
            "The issuer does not accept the code that this browser brought. It may have been used before.",
        ),
        // The class of the check that failed, as at `POST /v1/auth/token`.
        LoginError::Untrusted(check) => html(
            "{} (<code>{}</code>) Ask the operator of this gateway whether you are meant to log in here.",
            &[&check.sentence(), &check.as_str()],
        ),
        LoginError::NotEnough(step_up) => markup(not_enough(step_up)),
    };
    let text = html("<p>{}</p><p><a href=\"/login\">Log in</a></p>", &[&text]);
    page(status, "Not signed in", &text)
}

const fn not_enough(step_up: StepUp) -> &'static str {
    match step_up {
        StepUp::Mfa => "The issuer logged you in, but did not confirm a second factor.",
        StepUp::Admin => {
            "The issuer logged you in, but not at the level that changes of an admin need here."
        }
        StepUp::Again => "The issuer did not log you in anew.",
    }
}
