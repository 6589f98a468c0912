//! The address of the gateway itself in a browser: what it is, and how to connect.

use std::{
    fmt::Write as _,
    sync::{Arc, atomic::Ordering},
};

use axum::{extract::State, http::StatusCode, response::Response};

use super::{
    html::{escape, page},
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
    let mut text = text(url, is_ready);
    if gateway.app.logins.is_on() {
        let _ = write!(text, "<p><a href=\"{}\">Log in</a></p>", login_address("/login"));
    }
    page(StatusCode::OK, "Portcullis", &text)
}

fn text(url: &str, is_ready: bool) -> String {
    let mut text = String::from(
        "<p>Agents and programs call tools of MCP servers through this gateway: under policy, with limits, data-loss \
         prevention and an audit log.</p>",
    );
    text.push_str(if is_ready {
        "<p>It is ready.</p>"
    } else {
        "<p>It takes no calls at the moment; its operator sees why in its log.</p>"
    });
    text.push_str("<h2>Connect an MCP client</h2><p>The address, with a token that the operator gives you:</p><pre>");
    escape(&format!("{url}/mcp\nAuthorization: Bearer <token>"), &mut text);
    text.push_str(
        "</pre><p><code>portcullis client-config</code> prints the settings of common clients.</p>\
         <h2>Call tools over REST</h2><pre>",
    );
    escape(&format!("curl -H \"Authorization: Bearer $TOKEN\" {url}/v1/mcps"), &mut text);
    text.push_str(
        "</pre><p>The whole API: <a href=\"/openapi.json\">openapi.json</a>. Health: \
         <a href=\"/healthz\">healthz</a>, <a href=\"/readyz\">readyz</a>.</p>",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_text_in_the_page_and_the_state_is_told() {
        let shown = text("https://gw.example/<script>", true);

        assert!(shown.contains("https://gw.example/&lt;script&gt;/mcp"), "{shown}");
        assert!(!shown.contains("<script") && shown.contains("It is ready."), "{shown}");
        assert!(text("x", false).contains("takes no calls"));
    }
}
