//! The members of an entry, taken one after the other.

use serde_json::{Map, Value};

/// Advice for a server of the first HTTP transport.
pub(super) const SSE: &str = "it speaks HTTP+SSE, the transport that MCP replaced in 2025 and that this gateway does \
     not speak; use the server's streamable HTTP address, which often ends in `/mcp`";

/// Way to a server, as its members tell it.
pub(super) enum ImportedTransport {
    Http,
    Program,
}

/// The members of an entry that are still unread.
pub(super) struct Members {
    pub(super) left: Map<String, Value>,
}

impl Members {
    /// The way to the server.
    pub(super) fn kind(&mut self) -> Result<ImportedTransport, String> {
        let kind = self.text("type")?;
        let transport = self.text("transport")?;
        let named = kind.or(transport).map(|it| it.to_ascii_lowercase().replace(['-', '_'], ""));
        let has_address =
            ["url", "serverUrl", "httpUrl"].iter().any(|name| self.left.contains_key(*name));
        let has_command = self.left.contains_key("command");
        match (named.as_deref(), has_address, has_command) {
            (_, true, true) => Err("it has both an address and a command; remove one".to_owned()),
            (Some("sse"), ..) => Err(SSE.to_owned()),
            (None | Some("http" | "streamablehttp"), true, false) => Ok(ImportedTransport::Http),
            (None | Some("stdio" | "local"), false, true) => Ok(ImportedTransport::Program),
            (None, false, false) => Err("it has neither a `url` nor a `command`".to_owned()),
            (Some(_), ..) => Err("its `type` does not fit: `http` goes with `url`, `stdio` with \
                                  `command`, and there is no other"
                .to_owned()),
        }
    }

    /// A text, if there is one.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                Err(format!("its `{name}` has to be a text"))
            }
        }
    }

    /// A list of texts; empty if there is none.
    pub(super) fn texts(&mut self, name: &str) -> Result<Vec<String>, String> {
        let wrong = || format!("its `{name}` has to be a list of texts");
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .into_iter()
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect(),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
                Err(wrong())
            }
        }
    }

    /// Names with texts; numbers, `true` and `false` count as the texts that they are written as.
    pub(super) fn pairs(&mut self, name: &str) -> Result<Vec<(String, String)>, String> {
        let wrong = || format!("its `{name}` has to be an object with texts");
        match self.left.remove(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Object(members)) => members
                .into_iter()
                .map(|(name, value)| match value {
                    Value::String(text) => Ok((name, text)),
                    Value::Bool(_) | Value::Number(_) => Ok((name, value.to_string())),
                    Value::Null | Value::Array(_) | Value::Object(_) => Err(wrong()),
                })
                .collect(),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                Err(wrong())
            }
        }
    }
}
