//! `[mcp]`: the server that MCP clients speak to.

use std::time::Duration;

use portcullis_core::{
    authorization::OwnHosts,
    oauth::{Origin, PublicUrl},
};
use portcullis_faces::{Guard, ListForm, Listeners, MOST_LISTED, McpSettings};
use serde::Deserialize;

use super::{Server, address, times};

/// Longest instructions in bytes.
const LONGEST: usize = 1024;
/// Seconds for which a client may keep a list of tools: as long as definitions are looked at anew.
const TTL_SECONDS: u64 = 60;
const MOST_TTL_SECONDS: u64 = 3_600;
/// Seconds for which a call is held whose caller opened the address of its approval: less than the minute
/// after which the TypeScript SDK and most proxies give up.
const APPROVAL_WAIT_SECONDS: u64 = 55;
const MOST_APPROVAL_WAIT_SECONDS: u64 = 300;

/// `[mcp]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Mcp {
    /// The way in which `/mcp` lists tools.
    pub(crate) tools: ToolsMode,
    /// Instructions for the models of clients; at most 1 KiB.
    pub(crate) instructions: Option<String>,
    /// Seconds for which a client may keep a list of tools, at most an hour.
    #[serde(deserialize_with = "times::whole")]
    pub(crate) ttl_seconds: Option<u64>,
    /// Seconds for which a call is held whose caller opened the address of its approval, at most five minutes.
    #[serde(deserialize_with = "times::whole")]
    pub(crate) approval_wait_seconds: Option<u64>,
    /// Names by which clients reach the gateway, each with or without a port, besides `server.public_host` and that
    /// of `server.public_url`.
    pub(crate) hosts: Vec<String>,
    /// Origins of pages that may ask, besides the gateway's own.
    pub(crate) origins: Vec<String>,
}

/// The way in which `/mcp` lists tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolsMode {
    /// All of them up to 40; beyond, tools to find them with.
    #[default]
    Auto,
    /// All of them.
    List,
    /// Tools to find them with.
    Search,
}

/// The origin of a page: over HTTPS, or over plain HTTP of this machine, also by the name `localhost`.
fn origin_of(text: &str) -> Option<Origin> {
    let local = || Origin::from_header(text).filter(|it| it.host().as_deref() == Some("localhost"));
    Origin::parse(text).or_else(local)
}

/// Returns true for a host name with or without a port.
fn is_host(text: &str) -> bool {
    let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    !name.is_empty() && !name.contains('/') && port.is_none_or(is_port)
}

impl Mcp {
    /// Refuses what clients could not be told, and origins that no browser sends.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.instructions.as_ref().is_some_and(|text| text.len() > LONGEST) {
            return Err(format!("`mcp.instructions` is longer than {LONGEST} bytes"));
        }
        if self.ttl_seconds.is_some_and(|ttl| ttl > MOST_TTL_SECONDS) {
            return Err(format!("`mcp.ttl_seconds` has to be 0 to {MOST_TTL_SECONDS}"));
        }
        if self.approval_wait_seconds.is_some_and(|wait| wait > MOST_APPROVAL_WAIT_SECONDS) {
            let most = MOST_APPROVAL_WAIT_SECONDS;
            return Err(format!("`mcp.approval_wait_seconds` has to be 0 to {most}"));
        }
        if let Some(host) = self.hosts.iter().find(|it| !is_host(it)) {
            return Err(format!(
                "`mcp.hosts` holds `{host}`, but has to hold host names without a scheme, such as \
                 gateway.internal or gateway.internal:8443"
            ));
        }
        match self.origins.iter().find(|origin| origin_of(origin).is_none()) {
            Some(origin) => Err(format!(
                "`mcp.origins` holds `{origin}`, but has to hold origins such as \
                 https://app.acme.example"
            )),
            None => Ok(()),
        }
    }

    /// Advice to operators of so many tools: `/mcp` lists others in their place.
    pub(crate) fn told_of_many(&self, tools: usize) -> Option<String> {
        let cliff = self.told_of_cliff().filter(|_| tools > MOST_LISTED)?;
        Some(format!("{tools} tools: {cliff}"))
    }

    /// Change of the list at `/mcp` once there are many tools, if there is one.
    pub(crate) fn told_of_cliff(&self) -> Option<String> {
        (self.tools == ToolsMode::Auto).then(|| {
            format!(
                "`/mcp` lists three tools to find the others with to whoever may use more than {MOST_LISTED}; \
                 `[mcp] tools = \"list\"` lists all, and `/mcp/SLUG` those of one provider"
            )
        })
    }

    /// The names of the gateway besides that of its public address.
    pub(crate) fn own_hosts(&self, server: &Server) -> OwnHosts {
        let listener = address(&server.listen, "server.listen").ok().map(|it| it.ip());
        OwnHosts::new(self.hosts.iter().cloned().chain([server.public_host.clone()]), listener)
    }

    /// The settings of the face of a gateway that serves as `server` says.
    pub(crate) fn settings(&self, server: &Server) -> McpSettings {
        let public = server.public_url.as_deref().and_then(PublicUrl::parse);
        let public = public.map(|url| url.origin().clone());
        let host = public.as_ref().and_then(Origin::host);
        let names = self.hosts.iter().filter_map(|host| host.split(':').next());
        let names = names.map(str::to_owned).chain([server.public_host.clone()]).chain(host);
        let others = self.origins.iter().filter_map(|origin| origin_of(origin));
        let origins = others.chain(public).collect();
        let secure = server.tls.is_some() || server.behind_tls_proxy;
        let listen = address(&server.listen, "server.listen").ok();
        let tools = match self.tools {
            ToolsMode::Auto => ListForm::Auto,
            ToolsMode::List => ListForm::List,
            ToolsMode::Search => ListForm::Search,
        };
        let instructions = self.instructions.clone();
        let guard = Guard::new(listen, secure, names, origins);
        let ttl_ms = self.ttl_seconds.unwrap_or(TTL_SECONDS).saturating_mul(1_000);
        let wait = self.approval_wait_seconds.unwrap_or(APPROVAL_WAIT_SECONDS);
        McpSettings {
            tools,
            instructions,
            ttl_ms,
            approval_wait: Duration::from_secs(wait),
            guard,
            listeners: Listeners::default(),
        }
    }
}
