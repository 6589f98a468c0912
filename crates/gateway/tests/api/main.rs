//! The API as a caller meets it: the real binary on a real socket. Mirrors the URL table.

#![cfg(test)]

mod given;

mod health;
mod http;
mod limits;
mod metrics;
mod v1;

mod cli;
mod config;
mod connections;
mod shutdown;

use portcullis_testkit::Builder;

/// The binary under test.
fn gateway() -> Builder {
    Builder::new(env!("CARGO_BIN_EXE_portcullis"))
}
