//! Files and folders that are loaded anew when they change, or on SIGHUP.

mod dlp;
mod policies;

use std::time::Duration;

use notify::{Event, EventKind, RecommendedWatcher};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use crate::{
    boot::{self, Node},
    config::Config,
    serve::Bound,
};

/// Editors and deployments write several files: wait until they are done.
const SETTLE: Duration = Duration::from_millis(250);
/// But not for ever: a process may write all the time.
const PATIENCE: Duration = Duration::from_secs(2);

/// Something cannot be watched.
pub(crate) type WatchError = Box<dyn std::error::Error + Send + Sync>;

/// Follows everything that a running node takes over: policies, DLP settings, keys of the audit logs and the
/// certificate. `sources` are the digests of the DLP settings that the node was made from. Fails if something
/// cannot be watched.
pub(crate) fn follow(
    config: &Config,
    node: &Node,
    bound: &Bound,
    sources: Vec<String>,
) -> Result<(), WatchError> {
    policies::watch(config, node)?;
    dlp::watch(config, node, sources)?;
    boot::log_keys::watch(config, node);
    bound.watch_certificate(&config.server);
    Ok(())
}

/// Changes that are told by a watcher; it has room for one, which stands for all since.
struct Changes(mpsc::Receiver<()>);

impl Changes {
    /// A watcher that tells of the changes that `matters` picks. Reading a file is no change of it.
    fn watched(
        matters: impl Fn(&Event) -> bool + Send + 'static,
    ) -> notify::Result<(RecommendedWatcher, Self)> {
        let (bell, changes) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let is_change = |event: &Event| !matches!(event.kind, EventKind::Access(_));
            if event.is_ok_and(|event| is_change(&event) && matters(&event)) {
                // A full channel already holds the news.
                let _ = bell.try_send(());
            }
        })?;
        Ok((watcher, Self(changes)))
    }

    /// Waits for a change; `None` when nothing is watched any more.
    async fn next(&mut self) -> Option<()> {
        self.0.recv().await
    }

    /// Waits until nothing has changed for a while.
    async fn settle(&mut self) {
        let end = Instant::now() + PATIENCE;
        loop {
            let quiet = (Instant::now() + SETTLE).min(end);
            match timeout_at(quiet, self.0.recv()).await {
                Ok(Some(())) if Instant::now() < end => {}
                Ok(_) | Err(_) => return,
            }
        }
    }
}
