//! How Portcullis is spoken to over HTTP.
//!
//! A handler translates: parse, call one use case, answer. It never decides. The frame in
//! `exchange` is the outermost layer, so every answer has its envelope and its headers.

pub(crate) mod answer;
mod body;
mod caller;
mod described;
mod download;
mod exchange;
mod health;
mod host;
mod idempotency;
mod leftover;
mod mcp;
mod metrics;
mod oauth;
mod page;
mod proxies;
mod query;
mod routes;
mod strangers;
mod traces;
mod v1;

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use portcullis_app::App;

pub(crate) use self::{
    mcp::{Guard, Listed, Listeners, Settings as McpSettings, is_face as is_mcp},
    page::Cursors,
    proxies::Proxies,
    routes::{health_router, openapi, router},
    strangers::Strangers,
};

/// What handlers share.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) app: Arc<App>,
    pub(crate) cursors: Cursors,
    pub(crate) proxies: Proxies,
    pub(crate) draining: AtomicBool,
    /// How long a client may take to send its body.
    pub(crate) body_time: Duration,
    /// The budget for bodies of unknown callers.
    pub(crate) strangers: Strangers,
    /// Settings of the MCP face.
    pub(crate) mcp: McpSettings,
}
