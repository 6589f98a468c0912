//! Trust rules: how they are written, what `check` says of them, and `trust test`.

mod config;
mod test;

use crate::prelude::*;

const GATEWAY: &str = "https://gateway.acme.example";
const APP: &str = "mcp-gateway";

/// A prepared gateway with an org.
fn prepared() -> (Gateway, String) {
    let gateway = gateway().prepare();
    let org = gateway.org("acme", &[]);
    (gateway, org)
}
