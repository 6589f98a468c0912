//! The address of an approval in a browser. Outside `/v1`, for people follow it.
//!
//! The address leads to the page of the console. Where there is none, browsers are not signed in, so that a page shows nothing
//! of the approval. The answer is the same whether there is one of this id or not.

use std::sync::Arc;

use axum::{
    extract::{Path, State, rejection::PathRejection},
    http::StatusCode,
    response::Response,
};
use portcullis_core::id::ApprovalId;

use super::html::{Html, html, markup, page, see_other};
use crate::gateway::Gateway;

/// The way to the page of an approval in the console; without a console, a page that says how people decide.
#[utoipa::path(
    get, path = "/approvals/{id}", tag = "approvals", operation_id = "approval_page",
    params(("id" = String, Path, description = "`apr_` and a ULID")),
    responses(
        (status = 200, description = "a page that says how to decide, where there is no console; nothing of the approval stands there", content_type = "text/html"),
        (status = 303, description = "to the page of the approval in the console"),
        (status = 404, description = "a page: this is no id of an approval", content_type = "text/html"),
    )
)]
pub(crate) async fn show(
    State(gateway): State<Arc<Gateway>>,
    path: Result<Path<String>, PathRejection>,
) -> Response {
    let id = path.ok().and_then(|Path(text)| text.parse::<ApprovalId>().ok());
    let Some(id) = id else {
        let text = markup("<p>This is not the address of an approval.</p>");
        return page(StatusCode::NOT_FOUND, "Not known", &text);
    };
    if gateway.console && gateway.app.logins.is_on() {
        return see_other("A call waits for approval", &format!("/console/approvals/{id}"));
    }
    let url = gateway.app.providers.public_url().unwrap_or("https://<this gateway>");
    page(StatusCode::OK, "A call waits for approval", &text(url, id))
}

fn text(url: &str, id: ApprovalId) -> Html {
    let id = id.to_string();
    html(
        "<p>A policy asks that people approve a call of a tool before it runs. Nobody is signed in here, \
         so this page shows nothing of the call and takes no decision.</p><p>If you may approve it, \
         read it with a token of your own that has the scopes <code>approvals:read</code> and \
         <code>approvals:decide</code>:</p>\
         <pre>curl -H &quot;Authorization: Bearer $TOKEN&quot; \\\n  {}/v1/approvals/{}\n\n\
         curl -H &quot;Authorization: Bearer $TOKEN&quot; -H &quot;Content-Type: application/json&quot; \\\n  \
         -d &#39;{&quot;decision&quot;: &quot;approve&quot;, &quot;digest&quot;: &quot;sha256:…&quot;}&#39; \\\n  \
         {}/v1/approvals/{}/decision</pre>\
         <p><code>digest</code> is that of the call which you read; \
         <code>&quot;decision&quot;: &quot;deny&quot;</code> says no. The operator of this gateway can decide at its \
         shell:</p><pre>portcullis approval show {}\nportcullis approval approve {} --reason &quot;…&quot;</pre>\
         <p>Whoever asked for the call makes the same call again once it is approved.</p>",
        &[&url, &id, &url, &id, &id, &id],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_text_in_the_page() {
        let id = "apr_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();

        let shown = text("https://gw.example/<script>", id).into_visible();

        assert!(
            shown.contains("https://gw.example/&lt;script&gt;/v1/approvals/apr_01M7"),
            "{shown}"
        );
        assert!(!shown.contains("<script"), "{shown}");
    }
}
