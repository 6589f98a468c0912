//! One node among several: where it counts limits, and by which name the others know it.

use std::{fs, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portcullis_app::{Cluster, LimitParts};
use portcullis_core::{id::Ids, random};
use portcullis_store::{CountersTask, Nodes, SharedCounters};
use tokio_util::sync::CancellationToken;

use super::{BootError, Mode, SystemRandom, claimed, database_settings};
use crate::config::Config;

/// Limits of the node, and the server that counts them, if nodes count together. A server that does not answer holds up no
/// start: until it does every request is refused.
pub(crate) async fn limits(config: &Config) -> Result<LimitParts, BootError> {
    let unauthenticated_per_minute = config.server.unauthenticated_per_minute;
    let Some(url) = config.limits.counters()? else {
        return Ok(LimitParts { counters: None, unauthenticated_per_minute });
    };
    let made = SharedCounters::new(&url, config.limits.patience()?);
    let (counters, task) = made.map_err(|error| BootError::Other(error.to_string()))?;
    keep(url.to_string(), task);
    let _ = tokio::time::timeout(Duration::from_secs(1), counters.reachable()).await;
    Ok(LimitParts { counters: Some(counters), unauthenticated_per_minute })
}

/// Takes the name of a node that is to serve among those that share the database; an SQLite file is
/// not shared.
pub(crate) async fn join(
    config: &Config,
    mode: Mode,
    ids: Ids<'_>,
) -> Result<Option<Cluster>, BootError> {
    if mode == Mode::Check {
        return Ok(None);
    }
    let settings = database_settings(config)?;
    let Some(nodes) = Nodes::of(&settings) else { return Ok(None) };
    let counts_alone = config.limits.counters()?.is_none();
    let name = config.server.node.as_str();
    Ok(Some(Cluster::join(nodes, ids, name, place(), counts_alone).await?))
}

/// Identity of this data folder on this machine, since it was booted: while
/// this process holds the lock no other one serves from it.
fn place() -> String {
    use std::os::unix::fs::MetadataExt;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let lock = claimed().and_then(|file| file.metadata().ok());
    match (boot, lock) {
        (Some(boot), Some(lock)) => format!("{}:{}:{}", boot.trim(), lock.dev(), lock.ino()),
        // Nowhere else: a predecessor has to be waited for.
        (None, _) | (_, None) => STANDARD.encode(random::bytes::<16>(&SystemRandom)),
    }
}

/// Runs outside the tracker, until everything in it has ended: others would close what is under way.
#[expect(clippy::disallowed_methods, reason = "it outlives every tracked task")]
pub(crate) fn take_part(nodes: Arc<portcullis_app::Nodes>, living: CancellationToken) {
    tokio::spawn(async move { living.run_until_cancelled(Box::pin(nodes.take_part())).await });
}

#[expect(clippy::disallowed_methods, reason = "the connection lives as long as its users")]
fn keep(server: String, task: CountersTask) {
    tokio::spawn(task.run(move |trouble| match trouble {
        None => tracing::info!(server, "limits are counted with other nodes"),
        Some(error) => tracing::error!(
            server, %error, "the counters of the limits cannot be used: every request is refused \
             until they can"
        ),
    }));
}
