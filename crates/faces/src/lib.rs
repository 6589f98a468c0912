//! The HTTP interface.
//!
//! A handler translates: parse, call one use case, answer. It never decides. From the ground up:
//! `gateway` is the state that all share, `exchange` one request while it is handled, `v1`, `mcp`,
//! `scim`, `pages` and `authorization` speak to those who ask, and `routes` is the table of all
//! routes. Its frame is the outermost layer, so every answer has its envelope and its headers.

pub mod client_settings;
pub mod connection;
pub mod quota;

mod authorization;
mod exchange;
mod gateway;
mod installation;
mod mcp;
mod pages;
mod routes;
mod scim;
mod v1;

pub use self::{
    exchange::spec::RouteSpec,
    gateway::{
        Gateway,
        anonymous_budget::Strangers,
        cursors::Cursors,
        feeds::Feeds,
        guard::Guard,
        known_senders::KnownSenders,
        listeners::Listeners,
        mcp_settings::{ListForm, Settings as McpSettings},
        proxies::Proxies,
    },
    mcp::MOST_LISTED,
    routes::{
        openapi,
        operator::OperatorApi,
        prefix::can_be_below,
        router::{framed, health_router, router},
    },
};

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
