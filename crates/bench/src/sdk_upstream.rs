//! The same tool on rmcp, the official Rust SDK for MCP: what an upstream costs that was not made
//! for a benchmark.

use axum::Router;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::never::NeverSessionManager,
    },
};
use serde_json::Value;

use crate::{Failure, payload, upstream};

/// Serves on loopback, prints where, and returns when standard input ends.
pub(crate) async fn serve() -> Result<(), Failure> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true);
    let service =
        StreamableHttpService::new(|| Ok(Echo), NeverSessionManager::default().into(), config);
    upstream::serve_at(upstream::ANYWHERE, Router::new().route_service(upstream::PATH, service))
        .await
}

/// One tool, `echo`, that gives back its arguments as structured content.
#[derive(Debug, Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let Value::Object(schema) = payload::schema() else {
            return Err(ErrorData::internal_error("the schema is no object", None));
        };
        let echo = Tool::new("echo", "Gives back its arguments.", schema);
        Ok(ListToolsResult::with_all_items(vec![echo]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let mut result = CallToolResult::structured(arguments);
        // As the other upstream: the same bytes are not sent once more as text.
        result.content.clear();
        Ok(result.into())
    }
}
