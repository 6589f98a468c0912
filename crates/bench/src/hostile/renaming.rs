//! A server that names its tools anew whenever it is asked for them: what the gateway remembers of
//! it. The figure is by how much the data folder grows once it has seen many names.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use axum::{body::Bytes, response::Response};
use serde_json::{Value, json};

use super::reply;
use crate::{
    Failure, Verdict,
    args::HostileArgs,
    client::{Connection, post},
    gateway::{Installation, Running},
    process, say,
    upstream::Upstream,
};

/// The path that the server answers at.
pub(super) const PATH: &str = "/renaming";

/// Tools of a list, and bytes of what each says of itself.
const TOOLS: u64 = 500;
const WORDS: usize = 1000;
/// Bytes that the second half of the listings may add: the events of its connects, and what a
/// database has not given back yet.
const GOAL_BYTES: u64 = 4 << 20;

/// Connects a provider again and again, which lists its tools each time.
pub(super) async fn run(args: &HostileArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let hostile = Upstream::hostile().await?;
    let installation = Installation::create(args.binary.as_deref(), upstream.address).await?;
    let address = format!("{}{PATH}", hostile.address);
    installation.add_provider("renaming", &address, "auth = \"api_key\"\n")?;
    let token = installation.admin_token().await?;
    let running = installation.start().await?;
    let data = installation.folder().join("data");
    let half = args.listings / 2;
    let mut sizes = Vec::new();
    for listing in 0..=args.listings {
        connect(&running, &token).await?;
        if listing == 0 || listing == half || listing == args.listings {
            let bytes = size(&data)?;
            let kib = process::resident_kib(running.pid)?;
            say(&format!(
                "{listing:>5} listings  data {:>8} KiB  rss {kib:>8} KiB\n",
                bytes / 1024
            ));
            sizes.push(bytes);
        }
    }
    running.stop().await?;
    let grown = match sizes.as_slice() {
        [.., before, after] => after.saturating_sub(*before),
        _ => return Err("it takes at least two listings".into()),
    };
    let grown_kib = grown / 1024;
    let goal_kib = GOAL_BYTES / 1024;
    say(&format!("growth in the second half: {grown_kib} KiB (goal {goal_kib})\n"));
    Ok(if grown <= GOAL_BYTES { Verdict::Holds } else { Verdict::Broken })
}

async fn connect(running: &Running, token: &str) -> Result<(), Failure> {
    let body = json!({"api_key": "of-nobody-0123456789", "owner": "org"});
    let asked = post(running.address, token, "/v1/providers/renaming/connect", &body)?;
    Connection::open(running.address).await?.send(asked).await?.ok()?;
    Ok(())
}

/// The bytes of all files below a folder.
fn size(folder: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() { size(&entry.path())? } else { about.len() };
    }
    Ok(bytes)
}

/// The server.
pub(super) async fn answer(body: Bytes) -> Response {
    reply(&body, tools)
}

/// Tools with new names.
fn tools() -> Value {
    static LISTED: AtomicU64 = AtomicU64::new(0);
    let listing = LISTED.fetch_add(1, Ordering::Relaxed);
    let tool = |number: u64| {
        json!({
            "name": format!("l{listing}_t{number}"),
            "description": "word ".repeat(WORDS / 5),
            "inputSchema": {"type": "object"},
        })
    };
    (0..TOOLS).map(tool).collect()
}
