//! The address of the gateway itself in a browser: what it is, and how to connect.

use std::sync::{Arc, atomic::Ordering};

use axum::{extract::State, http::StatusCode, response::Response};

use super::{
    html::{Html, html, page},
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
    let text = if gateway.app.logins.is_on() {
        let link = html("<p><a href=\"{}\">Log in</a></p>", &[&login_address("/login")]);
        Html::from([text(url, is_ready), link])
    } else {
        text(url, is_ready)
    };
    page(StatusCode::OK, "Portcullis", &text)
}

fn text(url: &str, is_ready: bool) -> Html {
    let state = if is_ready {
        "It is ready."
    } else {
        "It takes no calls at the moment; its operator sees why in its log."
    };
    html(
        "<p>Agents and programs call tools of MCP servers through this gateway: under policy, with limits, data-loss \
         prevention and an audit log.</p><p>{}</p>\
         <h2>Connect an MCP client</h2><p>The address, with a token that the operator gives you:</p>\
         <pre>{}/mcp\nAuthorization: Bearer &lt;token&gt;</pre>\
         <p><code>portcullis client-config</code> prints the settings of common clients.</p>\
         <h2>Call tools over REST</h2><pre>curl -H &quot;Authorization: Bearer $TOKEN&quot; {}/v1/mcps</pre>\
         <p>The whole API: <a href=\"/openapi.json\">openapi.json</a>. Health: \
         <a href=\"/healthz\">healthz</a>, <a href=\"/readyz\">readyz</a>.</p>",
        &[&state, &url, &url],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_text_in_the_page_and_the_state_is_told() {
        let shown = text("https://gw.example/<script>", true).into_visible();

        assert!(shown.contains("https://gw.example/&lt;script&gt;/mcp"), "{shown}");
        assert!(!shown.contains("<script") && shown.contains("It is ready."), "{shown}");
        assert!(text("x", false).into_visible().contains("takes no calls"));
    }
}
