//! The browser of the person at this machine.

use std::process::{Command, Stdio};

/// Programs that open an address in the browser that a desktop prefers.
const OPENERS: [&str; 2] = ["xdg-open", "open"];

/// Opens an address in a browser; `false` if no program does that here. It does not wait for the browser.
#[must_use]
pub fn open(address: &str) -> bool {
    OPENERS.iter().any(|program| {
        let mut opener = Command::new(program);
        opener.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        opener.spawn().is_ok()
    })
}
