//! The redirect address of browsers, and the gateway's description for authorization servers.
//! Outside `/v1`: these addresses are registered at third parties and never move.

use std::sync::Arc;

use axum::{
    extract::{RawQuery, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use percent_encoding::percent_decode_str;
use portcullis_app::{Callback, CalledBack};
use portcullis_core::secret::Secret;

use super::html::{Html, html, markup, page};
use crate::{
    exchange::{Outcome, Stranger},
    gateway::Gateway,
};

/// The longest query; codes are at most a few KiB.
const MAX_QUERY: usize = 16 << 10;

/// Takes a browser that comes back from an authorization server.
///
/// Its `state` is the credential: 256 bits, good for once and for ten minutes.
#[utoipa::path(
    get, path = "/oauth/callback", tag = "providers", operation_id = "oauth_callback",
    params(
        ("state" = String, Query, description = "as it was sent along"),
        ("code" = Option<String>, Query, description = "what tokens are had for"),
        ("iss" = Option<String>, Query, description = "who sends the browser (RFC 9207)"),
        ("error" = Option<String>, Query, description = "why there is no code"),
    ),
    responses(
        (status = 200, description = "a page with the code to confirm with", content_type = "text/html"),
        (status = 302, description = "on to `return_to`, with `confirm` or `error`"),
        (status = 400, description = "a page: the state is unknown, used or too old", content_type = "text/html"),
        (status = 429, description = "too many unknown states from this address", body = crate::exchange::ErrorAnswer),
    )
)]
pub(crate) async fn callback(
    Stranger(exchange): Stranger,
    State(gateway): State<Arc<Gateway>>,
    RawQuery(raw): RawQuery,
) -> Response {
    let callback = raw.as_deref().and_then(read).unwrap_or_default();
    match gateway.app.providers.called_back(callback, &exchange.origin).await {
        Ok(called) => answer_of(called),
        Err(refused) => Outcome::from(refused.refusal).into_response(),
    }
}

/// The parameters, if none of those that count stands there twice.
fn read(raw: &str) -> Option<Callback> {
    if raw.len() > MAX_QUERY {
        return None;
    }
    let mut callback = Callback::default();
    for pair in raw.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = value.replace('+', " ");
        let value = percent_decode_str(&value).decode_utf8().ok()?.into_owned();
        let twice = match name {
            "state" => callback.state.replace(value).is_some(),
            "code" => callback.code.replace(Secret::new(value)).is_some(),
            "iss" => callback.iss.replace(value).is_some(),
            "error" => callback.error.replace(value).is_some(),
            _ => false,
        };
        if twice {
            return None;
        }
    }
    Some(callback)
}

fn answer_of(called: CalledBack) -> Response {
    match called {
        CalledBack::Redirect(to) => match HeaderValue::from_str(&to) {
            Ok(to) => {
                let mut response = page(StatusCode::FOUND, "Connected", &Html::default());
                response.headers_mut().insert(header::LOCATION, to);
                response
            }
            Err(_) => unknown(),
        },
        CalledBack::Unknown => unknown(),
        CalledBack::Code { provider, code } => {
            let text = html(
                "<p>To finish connecting {}, give this code to the program that you began with:</p>\
                 <p><code>{}</code></p><p>Did you not begin this yourself? Then close this page and give the \
                 code to nobody: nothing is connected without it.</p>",
                &[&provider, &code.expose()],
            );
            page(StatusCode::OK, "One more step", &text)
        }
        CalledBack::Done { provider } => {
            let text = html("<p>{} is connected. You can close this page.</p>", &[&provider]);
            page(StatusCode::OK, "Connected", &text)
        }
        CalledBack::Failed { provider, error } => {
            let text = "<p>{} is not connected ({}). You can begin again.</p>";
            page(StatusCode::OK, "Not connected", &html(text, &[&provider, &error]))
        }
    }
}

fn unknown() -> Response {
    let text = "<p>This link is not known here, was used before, or is too old. Begin again.</p>";
    page(StatusCode::BAD_REQUEST, "Not known", &markup(text))
}

/// The Client ID Metadata Document: what the gateway is, for servers that it is not registered at.
#[utoipa::path(
    get, path = "/oauth/client-metadata.json", tag = "providers", operation_id = "get_client_metadata",
    responses((status = 200, description = "OAuth client metadata (RFC 7591)", body = Object))
)]
pub(crate) async fn client_metadata(State(gateway): State<Arc<Gateway>>) -> Response {
    match gateway.app.providers.client_document() {
        Ok(document) => {
            let json = [(header::CONTENT_TYPE, "application/json")];
            (json, document.to_string()).into_response()
        }
        Err(refusal) => Outcome::from(refusal).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_stands_twice_is_none() {
        let state = |raw: &str| read(raw).and_then(|it| it.state);

        assert_eq!(state("state=a&code=b&x=1&x=2").as_deref(), Some("a"));
        assert_eq!(state("state=a&state=b"), None);
        assert_eq!(state("state=a&code=b&code=c"), None);
        assert_eq!(state("state=%ff"), None);
        assert_eq!(
            read("iss=https%3A%2F%2Fid.example").unwrap().iss.unwrap(),
            "https://id.example"
        );
    }
}
