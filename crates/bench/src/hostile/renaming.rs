//! A server that names its tools anew whenever it is asked for them: what the gateway remembers of
//! it. The figure is by how much the data folder grows once it has seen many names.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use axum::{
    body::Bytes,
    http::header::CONTENT_TYPE,
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};

use crate::{
    Failure, Verdict,
    args::HostileArgs,
    client::{Connection, post},
    gateway::{self, Installation, Running},
    process, say,
    upstream::{MODERN, Upstream},
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
    let binary = gateway::binary(args.binary.as_deref()).await?;
    let installation = Installation::create(binary, upstream.address).await?;
    let mut config =
        OpenOptions::new().append(true).open(installation.folder().join("portcullis.toml"))?;
    let address = hostile.address;
    write!(
        config,
        "\n[[providers]]\nslug = \"renaming\"\nurl = \"http://{address}{PATH}\"\n\
         allow_private = true\nauth = \"api_key\"\n"
    )?;
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
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let member = |path: &str| message.pointer(path).cloned().unwrap_or_default();
    let result = match member("/method").as_str() {
        Some("server/discover") => json!({
            "resultType": "complete", "supportedVersions": [MODERN], "capabilities": {"tools": {}},
        }),
        Some("tools/list") => json!({"resultType": "complete", "tools": tools()}),
        _ => json!({"resultType": "complete", "content": []}),
    };
    let body = json!({"jsonrpc": "2.0", "id": member("/id"), "result": result}).to_string();
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

/// Tools with new names.
fn tools() -> Vec<Value> {
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
