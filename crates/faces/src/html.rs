//! Pages for browsers: no scripts, no styles, and a policy that lets none in.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};

const CSP: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);
/// The same for pages whose forms are sent to this gateway.
const CSP_OF_FORMS: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
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

/// A page with forms that go to this gateway. Its requests name their page to this gateway alone, so
/// that browsers send an `Origin`.
pub(super) fn form_page(status: StatusCode, title: &str, text: &str) -> Response {
    let mut response = page(status, title, text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, CSP_OF_FORMS);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// A page that goes on by itself: to a path of this gateway, to an issuer, or back to a client. Not a redirect,
/// for what follows a form by redirects has to obey the `form-action` of its page.
pub(super) fn forward(title: &str, to: &str) -> Response {
    let mut address = String::new();
    escape(to, &mut address);
    page(
        StatusCode::OK,
        title,
        &format!(
            "<meta http-equiv=\"refresh\" content=\"0; url={address}\">\
             <p><a href=\"{address}\">Go on</a></p>"
        ),
    )
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
