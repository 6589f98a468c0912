//! State that all handlers share; nothing here knows a handler.

pub(crate) mod anonymous_budget;
pub(crate) mod cursors;
pub(crate) mod feeds;
pub(crate) mod guard;
pub(crate) mod known_senders;
pub(crate) mod listeners;
pub(crate) mod mcp_settings;
pub(crate) mod proxies;

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use portcullis_app::App;

use self::{
    anonymous_budget::Strangers, cursors::Cursors, feeds::Feeds, known_senders::KnownSenders,
    mcp_settings::Settings as McpSettings, proxies::Proxies,
};

/// State that handlers share.
#[derive(Debug)]
pub struct Gateway {
    pub app: Arc<App>,
    pub cursors: Cursors,
    pub proxies: Proxies,
    /// True from the wish to end on: `/readyz` says so, while calls are still served.
    pub leaving: Arc<AtomicBool>,
    /// True when no new connection is served any more.
    pub draining: AtomicBool,
    /// Time that a client has to send its body.
    pub body_time: Duration,
    /// The budget for bodies of unknown callers.
    pub strangers: Strangers,
    /// The budget for bodies of known ones.
    pub known: KnownSenders,
    /// True if people are shown the console.
    pub console: bool,
    /// Events as the console shows them while they happen.
    pub feeds: Feeds,
    pub mcp: McpSettings,
}
