//! The API as a caller meets it: the real binary on a real socket. Mirrors the URL table.

mod dlp;
mod durability;
mod health;
mod quickstart;
mod real_servers;
mod scene;
mod v1;

use portcullis_testkit::Builder;

/// The binary under test.
fn gateway() -> Builder {
    Builder::new(env!("CARGO_BIN_EXE_portcullis"))
}
