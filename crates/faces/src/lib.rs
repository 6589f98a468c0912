//! The HTTP interface.
//!
//! A handler translates: parse, call one use case, answer. It never decides. The frame in
//! `exchange` is the outermost layer, so every answer has its envelope and its headers.

mod answer;
mod approvals;
mod authorization;
mod body;
mod caller;
pub mod client_settings;
pub mod connection;
mod console;
mod download;
mod exchange;
mod form;
mod front;
mod health;
mod host;
mod html;
mod idempotency;
mod known;
mod leftover;
mod login;
mod mcp;
mod metrics;
mod nearest;
mod oauth;
mod openapi;
mod outcome;
mod page;
mod parts;
mod precondition;
mod prefix;
mod proof;
mod proxies;
mod query;
pub mod quota;
mod routes;
mod scim;
mod segment;
mod strangers;
mod traces;
mod v1;
mod waiting;

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use portcullis_app::App;

pub use self::{
    console::live::Feeds,
    known::KnownSenders,
    mcp::{Guard, ListForm, Listeners, MOST_LISTED, Settings as McpSettings},
    openapi::openapi,
    page::Cursors,
    prefix::can_be_below,
    proxies::Proxies,
    routes::{RouteSpec, framed, health_router, router},
    strangers::Strangers,
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

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
