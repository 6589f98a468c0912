//! A real authorization server and a real MCP server that takes nothing but its tokens: npm's
//! `oidc-provider` and `fastmcp` of `PyPI`, as child processes.

use serde_json::{Value, json};

use crate::driven::{Driven, servers, text};

/// The authorization server; it ends when it is dropped.
#[derive(Debug)]
pub struct Authorizer {
    issuer: String,
    running: Driven,
}

impl Authorizer {
    /// Starts it. Needs the services of `./test`.
    pub fn start() -> Self {
        let running = Driven::start("node", "authorizer.mjs", &[]);
        Self { issuer: text(&running.description(), "issuer"), running }
    }

    /// Its `iss`.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Plays the browser of `subject` from an authorization URL on, until it is sent to an address
    /// that begins with `until`; gives that.
    pub fn consent(&self, url: &str, subject: &str, until: &str) -> String {
        let command = json!({"do": "consent", "url": url, "subject": subject, "until": until});
        text(&self.running.command(&command), "url")
    }

    /// Access tokens live so long from now on.
    pub fn set_life(&self, seconds: u32) {
        self.running.command(&json!({"do": "life", "seconds": seconds}));
    }

    /// Ends the account of a subject: nothing is renewed for it.
    pub fn end(&self, subject: &str) {
        self.running.command(&json!({"do": "end", "subject": subject}));
    }

    /// Holds a document at an https address that does not exist.
    pub fn set_document(&self, url: &str, text: &str) {
        self.running.command(&json!({"do": "document", "url": url, "text": text}));
    }

    /// Number of registered clients.
    pub fn registered(&self) -> usize {
        let answer = self.running.command(&json!({"do": "clients"}));
        answer.get("clients").and_then(Value::as_array).map_or(0, Vec::len)
    }
}

/// The MCP server; it ends when it is dropped. Its tool `whoami` says whose token a call came with,
/// and remembers when the call said otherwise; `foreign` tells.
#[derive(Debug)]
pub struct GuardedServer {
    port: u16,
    _running: Driven,
}

impl GuardedServer {
    /// Starts it for the tokens of this issuer.
    pub fn start(issuer: &str) -> Self {
        let running = Driven::start(servers().join("venv/bin/python"), "guarded.py", &[issuer]);
        Self { port: running.line().parse().expect("a port"), _running: running }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}
