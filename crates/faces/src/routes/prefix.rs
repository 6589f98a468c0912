//! A gateway below a path of its host: `server.public_url` has a path, which the proxy in front gives it.
//!
//! Everything within knows the paths of the gateway only. The path is taken from requests here, if the proxy has
//! left it there, and put before what an answer leads browsers to: `Location`, and what a page loads and links, also
//! by rows that a stream adds to it.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    http::{
        HeaderMap, HeaderValue, Uri,
        header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION},
        uri::PathAndQuery,
    },
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use portcullis_core::{oauth::PublicUrl, refusal::Refusal};
use tower::ServiceExt as _;

use crate::exchange::Outcome;

/// First segments of the gateway's own paths. A prefix that begins so could not be told from them.
const OWN: [&str; 13] = [
    ".well-known", "approvals", "console", "healthz", "login", "logout", "mcp", "metrics", "oauth",
    "openapi.json", "readyz", "scim", "v1",
];

/// Starts of attributes in which a page names a path of the gateway.
///
/// **Invariant:** a text of a stranger has no quotation mark in a page, so none of them is begun by one.
const LINKS: [&str; 8] = [
    "action=\"", "href=\"", "src=\"", "content=\"0; url=", "data-await=\"", "data-live=\"",
    "data-log=\"", "data-proof=\"",
];

/// The largest page.
const MAX_PAGE: usize = 64 << 20;

/// Returns true if a gateway can be below this path of its host: an empty one, or `/portcullis`.
#[must_use]
pub fn can_be_below(path: &str) -> bool {
    path.split('/').nth(1).is_none_or(|first| !OWN.contains(&first))
}

/// A path before those of the gateway, without a last slash.
#[derive(Debug)]
pub(crate) struct Prefix(String);

impl Prefix {
    /// The one in a public address.
    pub(crate) fn of(public_url: &str) -> Option<Self> {
        let url = PublicUrl::parse(public_url)?;
        Some(Self(url.path().to_owned())).filter(|prefix| !prefix.0.is_empty())
    }

    /// The router of the gateway, below this path and without it.
    pub(crate) fn around(self, router: Router) -> Router {
        let prefix = Arc::new(self);
        Router::new().fallback(move |mut request: Request| {
            let prefix = Arc::clone(&prefix);
            let router = router.clone();
            async move {
                if let Some(uri) = prefix.within(request.uri()) {
                    *request.uri_mut() = uri;
                }
                let Ok(response) = router.oneshot(request).await;
                prefix.complete(response).await
            }
        })
    }

    /// The address without the prefix, if it has it.
    fn within(&self, asked: &Uri) -> Option<Uri> {
        let within = self.stripped(asked.path_and_query()?.as_str())?;
        let mut parts = asked.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from(within).ok()?);
        Uri::from_parts(parts).ok()
    }

    fn stripped(&self, asked: &str) -> Option<String> {
        // Behind the name of a document, where the host has several issuers or resources (RFC 8414 §3, RFC 9728 §3).
        let document = asked.strip_prefix("/.well-known/").and_then(|rest| rest.find('/'));
        let at = document.map_or(0, |at| at + "/.well-known/".len());
        let (before, rest) = asked.split_at_checked(at)?;
        let rest = rest.strip_prefix(&*self.0)?;
        match (before, rest.bytes().next()) {
            ("", None | Some(b'?')) => Some(format!("/{rest}")),
            (_, None | Some(b'/' | b'?')) => Some(format!("{before}{rest}")),
            (_, Some(_)) => None,
        }
    }

    async fn complete(self: &Arc<Self>, mut response: Response) -> Response {
        let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
        let to = to.filter(|to| to.starts_with('/')).map(|to| format!("{}{to}", self.0));
        if let Some(to) = to.and_then(|to| HeaderValue::try_from(to).ok()) {
            response.headers_mut().insert(LOCATION, to);
        }
        if has_kind(response.headers(), b"text/event-stream") {
            return self.stream(response);
        }
        if !has_kind(response.headers(), b"text/html") {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        let page =
            to_bytes(body, MAX_PAGE).await.ok().and_then(|it| String::from_utf8(it.into()).ok());
        let Some(page) = page else { return Outcome::from(Refusal::Internal).into_response() };
        parts.headers.remove(CONTENT_LENGTH);
        Response::from_parts(parts, Body::from(self.linked(page)))
    }

    /// A stream whose rows of pages have links with the prefix. An event is one frame. A message in JSON has none of the
    /// starts, for the quotation marks of its texts follow a backslash.
    fn stream(self: &Arc<Self>, response: Response) -> Response {
        let this = Arc::clone(self);
        response.map(|body| {
            let frames = body.into_data_stream();
            Body::from_stream(frames.map_ok(move |frame| match str::from_utf8(&frame) {
                Ok(rows) if LINKS.iter().any(|start| rows.contains(start)) => {
                    Bytes::from(this.linked(rows.to_owned()))
                }
                Ok(_) | Err(_) => frame,
            }))
        })
    }

    /// A page whose links have the prefix.
    fn linked(&self, page: String) -> String {
        let link = |page: String, start: &&str| {
            page.replace(&format!("{start}/"), &format!("{start}{}/", self.0))
        };
        LINKS.iter().fold(page, link)
    }
}

fn has_kind(headers: &HeaderMap, kind: &[u8]) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|it| it.as_bytes().starts_with(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix() -> Prefix {
        Prefix::of("https://gw.example/a/b/").unwrap()
    }

    #[test]
    fn the_prefix_is_taken_from_where_clients_put_it() {
        for (asked, within) in [
            ("/a/b/mcp", Some("/mcp")),
            ("/a/b/v1/mcps?limit=1", Some("/v1/mcps?limit=1")),
            ("/a/b", Some("/")),
            ("/a/b/", Some("/")),
            ("/a/b?x", Some("/?x")),
            ("/a/b/a/b/mcp", Some("/a/b/mcp")),
            (
                "/.well-known/oauth-authorization-server/a/b",
                Some("/.well-known/oauth-authorization-server"),
            ),
            (
                "/.well-known/oauth-protected-resource/a/b/mcp",
                Some("/.well-known/oauth-protected-resource/mcp"),
            ),
            (
                "/a/b/.well-known/oauth-protected-resource/mcp",
                Some("/.well-known/oauth-protected-resource/mcp"),
            ),
            ("/.well-known/oauth-protected-resource", None),
            ("/.well-known/oauth-protected-resource/a/bc", None),
            ("/mcp", None),
            ("/a/bmcp", None),
            ("/a", None),
            ("/A/B/mcp", None),
            ("/a%2fb/mcp", None),
        ] {
            assert_eq!(prefix().stripped(asked).as_deref(), within, "{asked}");
        }
        for bare in ["https://gw.example", "https://gw.example/", "http://127.0.0.1:1"] {
            assert!(Prefix::of(bare).is_none(), "{bare}");
        }
    }

    #[tokio::test]
    async fn what_an_answer_leads_to_has_the_prefix() {
        let answer = |kind: &str, to: &str, body: &str| {
            let answer = Response::builder().header(CONTENT_TYPE, kind).header(LOCATION, to);
            answer.body(Body::from(body.to_owned())).unwrap()
        };
        let html = "<a href=\"/x\">/x</a><a href=\"https://y/\"><a href=\"?z\"><img src=\"/i\"><form \
                    action=\"/f\"><meta content=\"0; url=/g\"><p data-live=\"/l\">&quot; href=&quot;/h&quot;";
        let linked = "<a href=\"/a/b/x\">/x</a><a href=\"https://y/\"><a href=\"?z\"><img src=\"/a/b/i\"><form \
                      action=\"/a/b/f\"><meta content=\"0; url=/a/b/g\"><p data-live=\"/a/b/l\">&quot; href=&quot;/h&quot;";

        let message = "data: {\"html\":\"<a href=\\\"/x\\\">\"}";

        for (kind, to, body, wanted) in [
            ("text/html; charset=utf-8", "/login", html, ("/a/b/login", linked)),
            ("text/plain", "https://x.example/", html, ("https://x.example/", html)),
            ("text/event-stream", "/x", html, ("/a/b/x", linked)),
            ("text/event-stream", "/x", message, ("/a/b/x", message)),
            ("application/json", "/x", message, ("/a/b/x", message)),
        ] {
            let led = Arc::new(prefix()).complete(answer(kind, to, body)).await;

            assert_eq!(led.headers()[LOCATION], wanted.0);
            assert_eq!(to_bytes(led.into_body(), MAX_PAGE).await.unwrap(), wanted.1);
        }
    }
}
