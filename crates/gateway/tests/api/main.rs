//! The API as a caller meets it: the real binary on a real socket. Mirrors the URL table.

#![cfg(test)]

mod authority;
mod given;
mod planted;
mod prelude;
mod scene;

mod agents_guide;
mod approvals;
mod audit_commands;
mod audit_log;
mod backup;
mod capture;
mod cli;
mod client_conformance;
mod cluster;
mod coalesced;
mod config;
mod connections;
mod console;
mod damaged_rows;
mod deploy;
mod dlp;
mod durability;
mod first_steps;
mod generated_client;
mod groups;
mod health;
mod host;
mod http;
mod import;
mod limits;
mod login;
mod mcp;
mod metrics;
mod moving;
mod oauth;
mod openapi_conformance;
mod pinning;
mod policy_commands;
mod policy_guide;
mod policy_moving;
mod quickstart;
mod real_capabilities;
mod real_servers;
mod retention;
mod scim;
mod shutdown;
mod sinks;
mod stores;
mod traces;
mod trust;
mod v1;

use portcullis_testkit::Builder;

/// The binary under test.
fn gateway() -> Builder {
    Builder::new(env!("CARGO_BIN_EXE_portcullis"))
}
