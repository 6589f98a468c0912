//! `portcullis client-config`: settings of MCP clients, to be pasted.

use clap::{Args, ValueEnum};
use portcullis_core::tool::ProviderSlug;
use serde_json::{Value, json};

use super::{Failure, Installation};
use crate::config::{self, Server};

/// The variable from which clients take the token, unless another is named.
const TOKEN: &str = "PORTCULLIS_TOKEN";

#[derive(Args)]
pub(super) struct ClientConfig {
    #[command(flatten)]
    installation: Installation,
    /// The client whose settings are printed
    #[arg(long, value_enum, default_value_t = Client::Claude)]
    client: Client,
    /// Only the tools of this provider, under their own names
    #[arg(long, value_name = "SLUG")]
    provider: Option<ProviderSlug>,
    /// Environment variable that holds the token
    #[arg(long, value_name = "NAME", default_value = TOKEN)]
    token_env: String,
}

/// A client, by the form of its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Client {
    /// Claude Code: `.mcp.json`
    Claude,
    /// Codex: `~/.codex/config.toml`
    Codex,
    /// Cursor: `.cursor/mcp.json`
    Cursor,
    /// Gemini CLI: `.gemini/settings.json`
    Gemini,
    /// Visual Studio Code: `.vscode/mcp.json`
    Vscode,
    /// Windsurf: `~/.codeium/windsurf/mcp_config.json`
    Windsurf,
}

impl ClientConfig {
    /// Prints the settings; nothing of them is secret.
    pub(super) fn run(self) -> Result<(), Failure> {
        let config = self.installation.own_config()?;
        let origin = match &self.installation.remote.url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => origin(&config.server)?,
        };
        let (name, path) = match &self.provider {
            Some(slug) => (format!("portcullis-{slug}"), format!("/mcp/{slug}")),
            None => ("portcullis".to_owned(), "/mcp".to_owned()),
        };
        let settings = self.client.settings(&name, &format!("{origin}{path}"), &self.token_env);
        self.installation.output().line(&settings)
    }
}

/// Origin of the gateway, for clients.
pub(super) fn origin(server: &Server) -> Result<String, Failure> {
    if let Some(url) = &server.public_url {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    let address = config::address(&server.listen, "server.listen")?;
    let scheme = if server.tls.is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://{address}"))
}

impl Client {
    fn settings(self, name: &str, url: &str, token: &str) -> String {
        let bearer = |token: String| json!({"Authorization": format!("Bearer {token}")});
        let servers = |entry: Value| json!({"mcpServers": {name: entry}});
        let document = match self {
            Self::Codex => {
                let url = Value::from(url);
                let token = Value::from(token);
                return format!(
                    "[mcp_servers.{name}]\nurl = {url}\nbearer_token_env_var = {token}"
                );
            }
            Self::Claude => servers(json!({
                "type": "http", "url": url, "headers": bearer(format!("${{{token}}}")),
            })),
            Self::Cursor => {
                servers(json!({"url": url, "headers": bearer(format!("${{env:{token}}}"))}))
            }
            Self::Gemini => {
                servers(json!({"httpUrl": url, "headers": bearer(format!("${token}"))}))
            }
            Self::Windsurf => {
                servers(json!({"serverUrl": url, "headers": bearer(format!("${{env:{token}}}"))}))
            }
            Self::Vscode => {
                let id = "portcullis-token";
                let headers = bearer(format!("${{input:{id}}}"));
                json!({
                    "inputs": [{
                        "type": "promptString", "id": id, "password": true,
                        "description": "Token of the gateway",
                    }],
                    "servers": {name: {"type": "http", "url": url, "headers": headers}},
                })
            }
        };
        serde_json::to_string_pretty(&document).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_the_address_and_where_the_token_is_and_hold_no_token() {
        for client in Client::value_variants() {
            let settings = client.settings("portcullis", "https://gate.example/mcp", "MY_TOKEN");

            assert!(settings.contains("https://gate.example/mcp"), "{client:?}: {settings}");
            let named = settings.contains("MY_TOKEN") || *client == Client::Vscode;
            assert!(named, "{client:?}: {settings}");
            let parsed: Result<Value, _> = serde_json::from_str(&settings);
            let toml: Result<toml::Table, _> = settings.parse();
            assert!(parsed.is_ok() || toml.is_ok(), "{client:?}: {settings}");
        }
    }
}
