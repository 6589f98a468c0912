//! The program of `docs/mcp.md` with the official Rust SDK, letter by letter, and a call of it.

use std::error::Error;

use rmcp::{
    ServiceExt,
    model::{CallToolRequestParams, CallToolResult},
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};

async fn list_repos(gateway: &str, token: &str) -> Result<CallToolResult, Box<dyn Error>> {
    let config =
        StreamableHttpClientTransportConfig::with_uri(format!("{gateway}/mcp")).auth_header(token);
    let client = ().serve(StreamableHttpClientTransport::from_config(config)).await?;
    let input = serde_json::json!({"limit": 10}).as_object().cloned().unwrap_or_default();
    let call = CallToolRequestParams::new("github__list_repos").with_arguments(input);
    let result = client.call_tool(call).await?;
    client.cancel().await?;
    Ok(result)
}

/// Settings of the program.
pub(super) async fn answer(gateway: &str, token: &str) -> serde_json::Value {
    let result = list_repos(gateway, token).await.expect("a result");
    result.structured_content.expect("structured content")
}
