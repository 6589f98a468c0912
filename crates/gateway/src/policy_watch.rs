//! Loads the policy folder anew when it changes, or on SIGHUP.

use std::{path::Path, sync::Arc, time::Duration};

use notify::{EventKind, RecursiveMode, Watcher};
use portcullis_app::App;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};

use crate::boot::Node;

/// Editors and deployments write several files: wait until they are done.
const SETTLE: Duration = Duration::from_millis(250);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Watches `folder` as long as the node lives. Says no if it cannot be watched.
pub(crate) fn watch(folder: &Path, node: &Node) -> Result<(), Failure> {
    let (bell, changes) = mpsc::channel(1);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading the folder is no change of it; a full channel already holds the news.
        if event.is_ok_and(|event| !matches!(event.kind, EventKind::Access(_))) {
            let _ = bell.try_send(());
        }
    })?;
    watcher.watch(folder, RecursiveMode::Recursive)?;
    let hangup = signal(SignalKind::hangup())?;
    let app = Arc::clone(&node.app);
    detach(async move {
        let _watcher = watcher;
        reload_on(changes, hangup, app).await;
    });
    Ok(())
}

async fn reload_on(mut changes: mpsc::Receiver<()>, mut hangup: Signal, app: Arc<App>) {
    loop {
        tokio::select! {
            change = changes.recv() => if change.is_none() { return },
            _ = hangup.recv() => {}
        }
        while tokio::time::timeout(SETTLE, changes.recv()).await.is_ok_and(|more| more.is_some()) {}
        let app = Arc::clone(&app);
        let reloaded = tokio::task::spawn_blocking(move || app.reload_policies()).await;
        if reloaded.is_err() {
            tracing::error!("loading the policies ended in a panic; the last good set stays");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the watch lives as long as the process")]
fn detach(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work);
}
