//! Loads policies and DLP settings anew when their files change, or on SIGHUP.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use portcullis_app::App;
use portcullis_upstream::Outbound;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};

use crate::{boot::Node, config::Config};

/// Editors and deployments write several files: wait until they are done.
const SETTLE: Duration = Duration::from_millis(250);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Watches the policy folder and the files with DLP settings as long as the node lives. Says no
/// if they cannot be watched.
pub(crate) fn watch(config: &Config, node: &Node) -> Result<(), Failure> {
    let (mut watcher, changes) = bell(|_| true)?;
    watcher.watch(&config.policy_folder(), RecursiveMode::Recursive)?;
    let app = Arc::clone(&node.app);
    on_change(watcher, changes, signal(SignalKind::hangup())?, move || {
        // It logs what is wrong by itself.
        let _ = app.reload_policies();
    });
    if let Some(file) = &config.file {
        watch_dlp(file, config, node)?;
    }
    Ok(())
}

/// The folders of the files are watched, for a file is often replaced by another one.
fn watch_dlp(file: &Path, config: &Config, node: &Node) -> Result<(), Failure> {
    let files: Vec<PathBuf> = [file]
        .into_iter()
        .chain(config.dlp.files().iter().map(PathBuf::as_path))
        .map(absolute)
        .collect();
    let names: BTreeSet<OsString> =
        files.iter().filter_map(|file| file.file_name().map(ToOwned::to_owned)).collect();
    let (mut watcher, changes) = bell(move |event| {
        event.paths.iter().filter_map(|path| path.file_name()).any(|name| {
            // Mounted settings are replaced through a link of this name.
            names.contains(name) || name == "..data"
        })
    })?;
    let folders: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    for folder in folders {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
    }
    let (app, outbound, file) = (Arc::clone(&node.app), node.outbound.clone(), file.to_owned());
    on_change(watcher, changes, signal(SignalKind::hangup())?, move || {
        if let Err(error) = reload_dlp(&app, &outbound, &file) {
            tracing::error!(%error, "the DLP settings cannot be loaded; the last good ones stay");
            portcullis_app::counting::dlp_reload_failed();
        }
    });
    Ok(())
}

fn absolute(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned())
}

fn reload_dlp(app: &App, outbound: &Outbound, file: &Path) -> Result<(), String> {
    let told = |error: &dyn std::error::Error| match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    let config = Config::load(Some(file)).map_err(|error| told(&error))?;
    let dlp = config.dlp.load(outbound)?;
    app.replace_dlp(dlp).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        format!("the policies do not go with them: {}", errors.join("; "))
    })
}

/// A watcher that rings for the changes that `matters` picks. Reading a file is no change of it.
fn bell(
    matters: impl Fn(&Event) -> bool + Send + 'static,
) -> notify::Result<(RecommendedWatcher, mpsc::Receiver<()>)> {
    let (bell, changes) = mpsc::channel(1);
    let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        if event.is_ok_and(|event| !matches!(event.kind, EventKind::Access(_)) && matters(&event)) {
            // A full channel already holds the news.
            let _ = bell.try_send(());
        }
    })?;
    Ok((watcher, changes))
}

/// Reloads after every change and hangup, off the threads that serve requests.
fn on_change(
    watcher: RecommendedWatcher,
    mut changes: mpsc::Receiver<()>,
    mut hangup: Signal,
    reload: impl Fn() + Clone + Send + 'static,
) {
    detach(async move {
        let _watcher = watcher;
        loop {
            tokio::select! {
                change = changes.recv() => if change.is_none() { return },
                _ = hangup.recv() => {}
            }
            while tokio::time::timeout(SETTLE, changes.recv()).await.is_ok_and(|it| it.is_some()) {}
            if tokio::task::spawn_blocking(reload.clone()).await.is_err() {
                tracing::error!("loading anew ended in a panic; what was in force stays");
            }
        }
    });
}

#[expect(clippy::disallowed_methods, reason = "the watch lives as long as the process")]
fn detach(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work);
}
