//! Pages for browsers: no scripts, no styles, and a policy that lets none in.

use std::fmt::Write as _;

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use portcullis_core::hidden::is_hidden;

const CSP: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);
/// The same for pages whose forms are sent to this gateway.
const CSP_OF_FORMS: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
);
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// A page without scripts, styles or links, for browsers that are not signed in. `text` is HTML.
pub(crate) fn page(status: StatusCode, title: &str, text: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         </head><body><h1>{title}</h1>{text}</body></html>"
    );
    let mut response = Response::new(Body::from(visible(html)));
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
pub(crate) fn form_page(status: StatusCode, title: &str, text: &str) -> Response {
    let mut response = page(status, title, text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, CSP_OF_FORMS);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// A page that goes on by itself: to a path of this gateway, to an issuer, or back to a client. Not a redirect,
/// for what follows a form by redirects has to obey the `form-action` of its page.
pub(crate) fn forward(title: &str, to: &str) -> Response {
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

/// A page with hidden characters spelled out, for many texts come from strangers. What a form sends back, and what is
/// copied, stays as it is.
///
/// **Invariant:** each text in the page is escaped, so that no `<`, `>` or `"` is of a stranger.
pub(crate) fn visible(html: String) -> String {
    if !html.contains(is_hidden) {
        return html;
    }
    let mut seen = String::with_capacity(html.len() + 64);
    for (number, part) in html.split('<').enumerate() {
        let (tag, text) = part.split_once('>').filter(|_| number > 0).unwrap_or(("", part));
        if number > 0 {
            seen.push('<');
        }
        let mut attribute = "";
        for (number, piece) in tag.split('"').enumerate() {
            if number > 0 {
                seen.push('"');
            }
            push_seen(piece, EXACT.iter().any(|it| attribute.ends_with(it)), &mut seen);
            attribute = if number % 2 == 0 { piece } else { "" };
        }
        if number > 0 {
            seen.push('>');
        }
        push_seen(text, tag.starts_with("textarea"), &mut seen);
    }
    seen
}

/// Attributes whose values are sent back or copied.
const EXACT: [&str; 3] = [" value=", " name=", " data-copy="];

fn push_seen(text: &str, is_exact: bool, into: &mut String) {
    for letter in text.chars() {
        if is_exact || !is_hidden(letter) {
            into.push(letter);
        } else {
            let _ = write!(into, "[U+{:04X}]", u32::from(letter));
        }
    }
}

/// A text as it stands in HTML.
pub(crate) fn escape(text: &str, into: &mut String) {
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

    #[test]
    fn hidden_characters_are_spelled_out_but_for_what_is_sent_back() {
        for (html, wanted) in [
            ("<p>Ana</p>", "<p>Ana</p>"),
            ("\u{202e}<p>\u{7}a\nb</p>\u{202e}", "[U+202E]<p>[U+0007]a\nb</p>[U+202E]"),
            (
                "<input value=\"\u{202e}\" title=\"\u{202e}\" name=\"\u{202e}\">",
                "<input value=\"\u{202e}\" title=\"[U+202E]\" name=\"\u{202e}\">",
            ),
            (
                "<a title=\" value=\" class=\"\u{202e}\">",
                "<a title=\" value=\" class=\"[U+202E]\">",
            ),
            (
                "<textarea rows=\"2\">\r\n\u{202e}</textarea>\u{202e}",
                "<textarea rows=\"2\">\r\n\u{202e}</textarea>[U+202E]",
            ),
        ] {
            assert_eq!(visible(html.to_owned()), wanted);
        }
    }

    #[test]
    fn templates_quote_and_escape_what_they_write() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let mut page = String::new();
            for part in text.split("{%").map(|part| part.split_once("%}").map_or(part, |it| it.1)) {
                for (number, piece) in part.split("{{").enumerate() {
                    let (expression, rest) = piece.split_once("}}").unwrap_or(("", piece));
                    let place = format!("{}: {expression}", path.display());
                    let tag = page.rfind('<').filter(|at| !page[*at..].contains('>'));
                    let is_quoted = tag.is_none_or(|at| page[at..].matches('"').count() % 2 == 1);
                    assert!(number == 0 || is_quoted, "{place}: a value without quotation marks");
                    assert!(!expression.contains("|safe"), "{place}: a text that is not escaped");
                    page.push_str(rest);
                }
            }
        }
    }
}
