//! Pages on which people log in, see that they are signed in, and sign out. Outside `/v1`: they are
//! for browsers, which are known by a cookie.

mod cookies;
pub(crate) mod issuers;
pub(crate) mod links;
pub(crate) mod logout;
mod visitor;

use std::sync::Arc;

use axum::{
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use portcullis_core::{browser_session::LocalPath, hidden::spelled, openid::StepUp};
use portcullis_store::BrowserSession;

pub(crate) use self::visitor::{SignedIn, Visitor, VisitorForm};
use super::{
    form,
    html::{Html, form_page, hidden, html, markup, page, see_other},
};
use crate::{exchange::Outcome, gateway::Gateway};

/// The address at which a person logs in and from which the browser comes back to `return_to`, a path
/// of this gateway with its query. Anything else leads to the page of the person.
#[must_use]
pub(crate) fn login_address(return_to: &str) -> String {
    let path = LocalPath::parse(return_to).unwrap_or_else(LocalPath::start);
    format!("/login?return_to={}", utf8_percent_encode(path.as_str(), NON_ALPHANUMERIC))
}

/// The address at which a person who is signed in proves more, and from which the browser comes back to `return_to`.
#[must_use]
pub(crate) fn step_up_address(step_up: StepUp, return_to: &str) -> String {
    format!("{}&step_up={}", login_address(return_to), step_up.name())
}

/// The page to log in at; of a person who is signed in, the page that says so.
#[utoipa::path(
    get, path = "/login", tag = "login", operation_id = "login_page",
    params(
        ("return_to" = Option<String>, Query, description = "a path of this gateway, with its query, that the browser goes to after the login"),
        ("step_up" = Option<String>, Query, description = "what a person who is signed in has to prove besides: `mfa`, a second factor, or `admin`, a level of `login.admin_acr`; `again`: another login, maybe of another person"),
    ),
    responses(
        (status = 200, description = "a page: how to log in, or who is signed in", content_type = "text/html"),
        (status = 303, description = "on to `return_to`: a person is signed in already; or to the login at the one issuer there is"),
        (status = 404, description = "a page: nobody can log in here", content_type = "text/html"),
        (status = 429, description = "too many unknown sessions from this address, or the org's limit is used up", body = crate::exchange::ErrorAnswer),
    )
)]
pub(crate) async fn show(
    visitor: Visitor,
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let logins = &gateway.app.logins;
    if !logins.is_on() {
        return switched_off();
    }
    let fields = form::fields(query.as_deref());
    let return_to = fields.get("return_to").and_then(LocalPath::parse);
    let return_to = return_to.filter(|path| *path != LocalPath::start());
    let step_up = fields.get("step_up").and_then(StepUp::from_name);
    let Some(signed_in) = visitor.signed_in else {
        return log_in(&gateway, return_to.as_ref(), step_up, &headers);
    };
    if let Some(step_up) = step_up.filter(|it| !logins.proves(&signed_in.person, *it)) {
        let issuer = logins.issuer_of(&signed_in.person);
        // The next login may be that of another person, at any of the issuers.
        return match issuer.filter(|_| step_up != StepUp::Again) {
            Some(name) => {
                see_other("Log in", &issuer_path(name, return_to.as_ref(), Some(step_up)))
            }
            None => log_in(&gateway, return_to.as_ref(), Some(step_up), &headers),
        };
    }
    if let Some(to) = return_to {
        return see_other("Signed in", to.as_str());
    }
    match logins.of_person(&signed_in.person).await {
        Ok(sessions) => {
            form_page(StatusCode::OK, "Signed in", &signed_in_text(&signed_in, &sessions))
        }
        Err(refusal) => Outcome::from(refusal).into_response(),
    }
}

/// The page to log in at. Where there is one way and the browser comes from a page that it goes back to, it goes
/// that way at once.
fn log_in(
    gateway: &Gateway,
    return_to: Option<&LocalPath>,
    step_up: Option<StepUp>,
    brought: &HeaderMap,
) -> Response {
    let logins = &gateway.app.logins;
    let issuers: Vec<(&str, &str)> = logins.issuers().collect();
    let more = step_up.filter(|it| *it != StepUp::Again);
    let by_link = logins.takes_links() && more.is_none();
    if let ([(name, _)], Some(_), false) = (issuers.as_slice(), return_to, by_link) {
        return see_other("Log in", &issuer_path(name, return_to, step_up));
    }
    let link = |(name, label)| {
        let path = issuer_path(name, return_to, step_up);
        html("<p><a href=\"{}\">Log in with {}</a></p>", &[&path, &label])
    };
    let text = Html::from([
        more.map(|_| markup(MORE)).unwrap_or_default(),
        issuers.into_iter().map(link).collect(),
        markup(if by_link { LOG_IN } else { "" }),
    ]);
    let mut response = page(StatusCode::OK, "Log in", &text);
    if let Some(path) = return_to {
        gateway.keep_return(path, brought, response.headers_mut());
    }
    response
}

/// The path at which a login at an issuer begins.
fn issuer_path(name: &str, return_to: Option<&LocalPath>, step_up: Option<StepUp>) -> String {
    let return_to = return_to
        .map(|path| format!("return_to={}", utf8_percent_encode(path.as_str(), NON_ALPHANUMERIC)));
    let step_up = step_up.map(|step_up| format!("step_up={}", step_up.name()));
    let query: Vec<String> = return_to.into_iter().chain(step_up).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("/login/issuers/{name}{mark}{}", query.join("&"))
}

const MORE: &str = "<p>What you are about to do needs a login that proves more than yours. An issuer has to \
     confirm it.</p>";

const LOG_IN: &str = "<p>The operator of this gateway logs you in by a link. On the machine of the \
     gateway:</p><pre>portcullis login-link --principal &lt;your name&gt;</pre><p>Open the address \
     that it prints in this browser within five minutes. It works once.</p>";

fn switched_off() -> Response {
    let text = "<p>Nobody can log in here: the operator has set up no way to, which is \
                <code>[login]</code> in the configuration. Programs use tokens, which \
                <code>portcullis token create</code> makes.</p>";
    page(StatusCode::NOT_FOUND, "No login", &markup(text))
}

fn signed_in_text(signed_in: &SignedIn, sessions: &[BrowserSession]) -> Html {
    let person = &signed_in.person;
    let session = |BrowserSession { id, created_at, last_seen_at, .. }: &BrowserSession| {
        let this = if *id == person.session.id { " (this browser)" } else { "" };
        let texts = [id.to_string(), created_at.to_string(), last_seen_at.to_string()];
        let [id, since, seen] = &texts;
        html("<li><code>{}</code>{}: since {}, last seen {}</li>", &[id, &this, since, seen])
    };
    let button = |(everywhere, label)| {
        html(
            "<form method=\"post\" action=\"/logout\">{}{}<button>{}</button></form>",
            &[
                &hidden("form_token", signed_in.form_token.expose()),
                &hidden("everywhere", everywhere),
                &label,
            ],
        )
    };
    html(
        "<p>You are <strong>{}</strong> of <strong>{}</strong>, with the role {}.</p>\
         <h2>Your sessions</h2><ul>{}</ul>{}",
        &[
            &spelled(&person.name),
            &spelled(&person.org_name),
            &person.role.name(),
            &sessions.iter().map(session).collect::<Html>(),
            &Html::from([("0", "Sign out"), ("1", "Sign out on all devices")].map(button)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_at_an_issuer_keeps_where_it_comes_back_to_and_what_it_has_to_prove() {
        let path = LocalPath::parse("/oauth/authorize?a=b&c=d");

        assert_eq!(issuer_path("okta", None, None), "/login/issuers/okta");
        assert_eq!(
            issuer_path("okta", path.as_ref(), Some(StepUp::Mfa)),
            "/login/issuers/okta?return_to=%2Foauth%2Fauthorize%3Fa%3Db%26c%3Dd&step_up=mfa"
        );
        assert_eq!(
            step_up_address(StepUp::Admin, "/approvals"),
            "/login?return_to=%2Fapprovals&step_up=admin"
        );
    }

    #[test]
    fn a_login_comes_back_to_a_path_of_this_gateway_or_to_the_page_of_the_person() {
        assert_eq!(
            login_address("/oauth/authorize?client_id=a&state=b"),
            "/login?return_to=%2Foauth%2Fauthorize%3Fclient%5Fid%3Da%26state%3Db"
        );
        for evil in ["//evil.example", "https://evil.example", "/\\evil.example", ""] {
            assert_eq!(login_address(evil), "/login?return_to=%2Flogin", "{evil}");
        }
    }
}
