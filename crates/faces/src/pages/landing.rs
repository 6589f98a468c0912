//! The address of the gateway itself in a browser: what it is, and how to connect.

use std::sync::{Arc, atomic::Ordering};

use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};

use super::{
    html::{Html, page},
    login::login_address,
};
use crate::gateway::Gateway;

/// A page that says what answers here and how to connect.
#[utoipa::path(
    get, path = "/", tag = "health", operation_id = "front_page",
    responses(
        (status = 200, description = "a page: what answers here, whether it is ready, and how to connect", content_type = "text/html"),
    )
)]
pub(crate) async fn show(State(gateway): State<Arc<Gateway>>) -> Response {
    let leaving = gateway.leaving.load(Ordering::Acquire);
    let is_ready = !leaving && gateway.app.nodes.ready().await.is_ok();
    let url = gateway.app.providers.public_url().unwrap_or("https://<this gateway>");
    let login = gateway.app.logins.is_on().then(|| login_address("/login"));
    page(StatusCode::OK, "Portcullis", &Html::of(&Landing { url, is_ready, login }))
}

/// Text of the page: what answers here, and how to connect.
#[derive(Template)]
#[template(path = "landing.html")]
struct Landing<'a> {
    url: &'a str,
    is_ready: bool,
    /// Address at which people log in, if they can.
    login: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_text_in_the_page_and_the_state_is_told() {
        let landing = Landing { url: "https://gw.example/<script>", is_ready: true, login: None };
        let shown = landing.to_string();

        assert!(shown.contains("https://gw.example/&#60;script&#62;/mcp"), "{shown}");
        assert!(!shown.contains("<script") && shown.contains("It is ready."), "{shown}");
        assert!(Landing { is_ready: false, ..landing }.to_string().contains("takes no calls"));
    }
}
