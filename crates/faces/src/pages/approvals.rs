//! The address of an approval in a browser. Outside `/v1`, for people follow it.
//!
//! The address leads to the page of the console. Where there is none, browsers are not signed in, so that a page shows nothing
//! of the approval. The answer is the same whether there is one of this id or not.

use std::sync::Arc;

use askama::Template;
use axum::{
    extract::{Path, State, rejection::PathRejection},
    http::StatusCode,
    response::Response,
};
use portcullis_core::id::ApprovalId;

use super::html::{Html, markup, page, see_other};
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
    let text = Html::of(&ApprovalElsewhere { url, id });
    page(StatusCode::OK, "A call waits for approval", &text)
}

/// Text of the page: how people decide without a console.
#[derive(Template)]
#[template(path = "approval_elsewhere.html")]
struct ApprovalElsewhere<'a> {
    url: &'a str,
    id: ApprovalId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_text_in_the_page() {
        let id = "apr_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();

        let shown = ApprovalElsewhere { url: "https://gw.example/<script>", id }.to_string();

        assert!(shown.contains("&#60;script&#62;/v1/approvals/apr_01M7"), "{shown}");
        assert!(!shown.contains("<script"), "{shown}");
    }
}
