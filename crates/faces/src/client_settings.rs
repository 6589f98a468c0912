//! Settings of MCP clients, to be pasted, and links by which some take them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

/// An MCP client, by the form of its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpClient {
    Claude,
    Codex,
    Cursor,
    Gemini,
    Vscode,
    Windsurf,
}

/// The gateway as a client is told of it.
#[derive(Debug, Clone, Copy)]
pub struct ClientEntry<'a> {
    /// Name of the server in the settings.
    pub name: &'a str,
    /// Address of its MCP endpoint.
    pub url: &'a str,
    /// Environment variable with the token; without one the client logs a person in.
    pub token: Option<&'a str>,
}

impl McpClient {
    /// All clients, by their names.
    pub const ALL: [Self; 6] =
        [Self::Claude, Self::Codex, Self::Cursor, Self::Gemini, Self::Vscode, Self::Windsurf];

    /// Name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
            Self::Vscode => "vscode",
            Self::Windsurf => "windsurf",
        }
    }

    /// The client of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.name() == name)
    }

    /// Name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Cursor => "Cursor",
            Self::Gemini => "Gemini CLI",
            Self::Vscode => "Visual Studio Code",
            Self::Windsurf => "Windsurf",
        }
    }

    /// File of the settings.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::Claude => ".mcp.json",
            Self::Codex => "~/.codex/config.toml",
            Self::Cursor => ".cursor/mcp.json",
            Self::Gemini => ".gemini/settings.json",
            Self::Vscode => ".vscode/mcp.json",
            Self::Windsurf => "~/.codeium/windsurf/mcp_config.json",
        }
    }

    /// The settings as the client's file has them. Nothing of them is secret.
    #[must_use]
    pub fn settings(self, entry: &ClientEntry<'_>) -> String {
        let ClientEntry { name, url, token } = *entry;
        let server = json!({ name: self.server(entry) });
        let document = match self {
            Self::Codex => {
                let token = token
                    .map(|it| format!("\nbearer_token_env_var = {}", Value::from(it)))
                    .unwrap_or_default();
                return format!("[mcp_servers.{name}]\nurl = {}{token}", Value::from(url));
            }
            Self::Vscode if token.is_some() => json!({
                "inputs": [{
                    "type": "promptString", "id": VSCODE_INPUT, "password": true,
                    "description": "Token of the gateway",
                }],
                "servers": server,
            }),
            Self::Vscode => json!({ "servers": server }),
            Self::Claude | Self::Cursor | Self::Gemini | Self::Windsurf => {
                json!({ "mcpServers": server })
            }
        };
        serde_json::to_string_pretty(&document).unwrap_or_default()
    }

    /// The address at which the client takes the entry at one click, if it has such a form and asks for the
    /// token itself.
    #[must_use]
    pub fn link(self, entry: &ClientEntry<'_>) -> Option<String> {
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        match self {
            Self::Cursor => {
                let config = STANDARD.encode(self.server(entry).to_string());
                let name = encoded(entry.name);
                let config = encoded(&config);
                Some(format!(
                    "cursor://anysphere.cursor-deeplink/mcp/install?name={name}&config={config}"
                ))
            }
            Self::Vscode if entry.token.is_none() => {
                let config = json!({ "name": entry.name, "type": "http", "url": entry.url });
                Some(format!("vscode:mcp/install?{}", encoded(&config.to_string())))
            }
            Self::Vscode | Self::Claude | Self::Codex | Self::Gemini | Self::Windsurf => None,
        }
    }

    /// The entry of the server within the settings.
    fn server(self, entry: &ClientEntry<'_>) -> Value {
        let mut server = match self {
            Self::Claude | Self::Vscode => json!({ "type": "http", "url": entry.url }),
            Self::Gemini => json!({ "httpUrl": entry.url }),
            Self::Windsurf => json!({ "serverUrl": entry.url }),
            Self::Cursor | Self::Codex => json!({ "url": entry.url }),
        };
        if let (Some(token), Some(members)) = (entry.token, server.as_object_mut()) {
            let token = match self {
                Self::Claude => format!("${{{token}}}"),
                Self::Gemini => format!("${token}"),
                Self::Vscode => format!("${{input:{VSCODE_INPUT}}}"),
                Self::Cursor | Self::Codex | Self::Windsurf => format!("${{env:{token}}}"),
            };
            let headers = json!({ "Authorization": format!("Bearer {token}") });
            members.insert("headers".to_owned(), headers);
        }
        server
    }
}

const VSCODE_INPUT: &str = "portcullis-token";

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://gate.example/mcp";

    #[test]
    fn settings_name_the_address_and_where_the_token_is_and_hold_no_token() {
        for client in McpClient::ALL {
            for token in [Some("MY_TOKEN"), None] {
                let settings =
                    client.settings(&ClientEntry { name: "portcullis", url: URL, token });

                assert!(settings.contains(URL), "{client:?}: {settings}");
                let has_token = settings.contains("MY_TOKEN") || settings.contains(VSCODE_INPUT);
                assert_eq!(has_token, token.is_some(), "{client:?}: {settings}");
                let is_json = serde_json::from_str::<Value>(&settings).is_ok();
                assert_eq!(is_json, client != McpClient::Codex, "{client:?}: {settings}");
                assert_eq!(McpClient::from_name(client.name()), Some(client));
            }
        }
    }

    #[test]
    fn links_hold_the_entry_and_nothing_else() {
        let entry = ClientEntry { name: "portcullis", url: URL, token: None };
        let cursor = McpClient::Cursor.link(&entry).unwrap();
        let (_, config) = cursor.split_once("&config=").unwrap();
        let config = percent_encoding::percent_decode_str(config).decode_utf8().unwrap();
        assert_eq!(STANDARD.decode(&*config).unwrap(), br#"{"url":"https://gate.example/mcp"}"#);
        let vscode = McpClient::Vscode.link(&entry).unwrap();
        assert!(
            vscode.starts_with("vscode:mcp/install?%7B%22name%22%3A%22portcullis%22"),
            "{vscode}"
        );
        assert_eq!(McpClient::Claude.link(&entry), None);
    }
}
