//! Pages for browsers: no scripts, no styles, and a policy that lets none in.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};

const CSP: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// A page without scripts, styles or links, for browsers that are not signed in. `text` is HTML.
pub(super) fn page(status: StatusCode, title: &str, text: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         </head><body><h1>{title}</h1>{text}</body></html>"
    );
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HTML);
    headers.insert(header::CONTENT_SECURITY_POLICY, CSP);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    response
}

/// A text as it stands in HTML.
pub(super) fn escape(text: &str, into: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => into.push_str("&amp;"),
            '<' => into.push_str("&lt;"),
            '>' => into.push_str("&gt;"),
            '"' => into.push_str("&quot;"),
            '\'' => into.push_str("&#39;"),
            other => into.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_in_pages() {
        let mut text = String::new();

        escape("<script>'\"&", &mut text);

        assert_eq!(text, "&lt;script&gt;&#39;&quot;&amp;");
    }
}
