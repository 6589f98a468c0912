//! Markup in which every text is escaped, and pages of it for browsers: no scripts, no styles, and a policy that lets
//! none in.

use std::fmt::{self, Write as _};

use askama::{Template, filters::HtmlSafe};
use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use portcullis_core::hidden::is_hidden;

const CSP: &str = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// The same for pages whose forms are sent to this gateway.
const CSP_OF_FORMS: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
);
/// The type of pages.
pub(super) const HTML: &str = "text/html; charset=utf-8";

/// Markup of the program around texts of which each is escaped.
///
/// **Invariant:** only [`html`] and templates make one, so that no `<`, `>` or `"` is of a stranger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Html(String);

/// Text that is escaped in markup, or markup, which stands there as it is.
pub(crate) trait Render {
    fn render(&self, into: &mut String);
}

impl Render for Html {
    fn render(&self, into: &mut String) {
        into.push_str(&self.0);
    }
}

impl<T: AsRef<str>> Render for T {
    fn render(&self, into: &mut String) {
        escape(self.as_ref(), into);
    }
}

/// Markup with a text in place of each `{}`.
pub(crate) fn html(markup: &'static str, texts: &[&dyn Render]) -> Html {
    debug_assert_eq!(markup.matches("{}").count(), texts.len(), "{markup}");
    let mut parts = markup.split("{}");
    let mut written = parts.next().unwrap_or_default().to_owned();
    for (text, part) in texts.iter().zip(parts) {
        text.render(&mut written);
        written.push_str(part);
    }
    Html(written)
}

/// Markup without texts.
pub(crate) fn markup(markup: &'static str) -> Html {
    Html(markup.to_owned())
}

impl Html {
    /// The markup of a template, which escapes its texts; nothing if it cannot be written.
    pub(crate) fn of(template: &impl Template) -> Self {
        Self(template.render().unwrap_or_default())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The markup with hidden characters spelled out.
    pub(crate) fn into_visible(self) -> String {
        visible(self.0)
    }
}

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Templates show it as it is.
impl HtmlSafe for Html {}

impl FromIterator<Self> for Html {
    fn from_iter<T: IntoIterator<Item = Self>>(parts: T) -> Self {
        Self(parts.into_iter().map(|part| part.0).collect())
    }
}

impl<const N: usize> From<[Self; N]> for Html {
    fn from(parts: [Self; N]) -> Self {
        parts.into_iter().collect()
    }
}

/// A page without scripts, styles or links, for browsers that are not signed in.
pub(crate) fn page(status: StatusCode, title: &str, text: &Html) -> Response {
    let page = html(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\
         </head><body><h1>{}</h1>{}</body></html>",
        &[&title, &title, text],
    );
    let headers = [
        (header::CONTENT_TYPE, HTML),
        (header::CONTENT_SECURITY_POLICY, CSP),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    (status, headers, page.into_visible()).into_response()
}

/// A page with forms that go to this gateway. Its requests name their page to this gateway alone, so
/// that browsers send an `Origin`.
pub(crate) fn form_page(status: StatusCode, title: &str, text: &Html) -> Response {
    let mut response = page(status, title, text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, CSP_OF_FORMS);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// A page that goes on by itself: to a path of this gateway, to an issuer, or back to a client. Not a redirect,
/// for what follows a form by redirects has to obey the `form-action` of its page.
pub(crate) fn forward(title: &str, to: &str) -> Response {
    let text = html(
        "<meta http-equiv=\"refresh\" content=\"0; url={}\"><p><a href=\"{}\">Go on</a></p>",
        &[&to, &to],
    );
    page(StatusCode::OK, title, &text)
}

/// A redirect by which the browser asks for another address.
pub(crate) fn see_other(title: &str, to: &str) -> Response {
    let mut response = page(StatusCode::SEE_OTHER, title, &Html::default());
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}

/// The field of a form that a person does not see.
pub(crate) fn hidden(name: &str, value: &str) -> Html {
    html("<input type=\"hidden\" name=\"{}\" value=\"{}\">", &[&name, &value])
}

/// A page with hidden characters spelled out, for many texts come from strangers. What a form sends back, and what is
/// copied, stays as it is.
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
fn escape(text: &str, into: &mut String) {
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
    fn texts_are_escaped_in_markup_and_markup_is_not() {
        let name = html("<b>{}</b>", &[&"<script>'\"&{}"]);

        let both = html(
            "<p title=\"{}\">{}</p>",
            &[&"a\"b".to_owned(), &Html::from([name, markup("<br>")])],
        );

        let expected = "<p title=\"a&quot;b\"><b>&lt;script&gt;&#39;&quot;&amp;{}</b><br></p>";
        assert_eq!(both.into_visible(), expected);
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
