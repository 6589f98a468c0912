//! Loads the DLP settings anew when one of their files changes, or on SIGHUP, and tells of other settings
//! that changed.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use portcullis_app::Policies;
use portcullis_upstream::Outbound;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Changes, WatchError};
use crate::{
    boot::{Node, detach},
    config::{Config, Written},
    reload_report::RestartReport,
};

/// Watches the files with DLP settings as long as the node lives; `sources` are the digests of those that the
/// node was made from. Fails if they cannot be watched.
pub(super) fn watch(config: &Config, node: &Node, sources: Vec<String>) -> Result<(), WatchError> {
    match &config.file {
        Some(file) => watch_files(file, config, node, sources),
        None => Ok(()),
    }
}

/// Watches the folders of the files, for a file is often replaced by another one.
fn watch_files(
    file: &Path,
    config: &Config,
    node: &Node,
    sources: Vec<String>,
) -> Result<(), WatchError> {
    let names: Arc<ArcSwap<BTreeSet<OsString>>> = Arc::default();
    let wanted = Arc::clone(&names);
    let (watcher, changes) = Changes::watched(move |event| {
        let wanted = wanted.load();
        event.paths.iter().filter_map(|path| path.file_name()).any(|name| {
            // Mounted settings are replaced through a link of this name.
            wanted.contains(name) || name == "..data"
        })
    })?;
    let files = WatchedFiles { watcher: Mutex::new(watcher), names };
    files.follow(file, config)?;
    let reloader = Reloader {
        policies: Arc::clone(&node.app.policies),
        outbound: node.outbound.clone(),
        file: file.to_owned(),
        files,
        started: config.written.clone(),
        report: config.restart_report_file(),
        seen: Mutex::new(Seen { dlp: config.written.dlp().cloned(), sources, told: Vec::new() }),
    };
    on_change(changes, signal(SignalKind::hangup())?, move || {
        if let Err(error) = reloader.reload() {
            tracing::error!(%error, "the DLP settings cannot be loaded; the last good ones stay");
            portcullis_app::telemetry::counters::dlp_reload_failed();
        }
    });
    Ok(())
}

/// The files with DLP settings that are watched.
struct WatchedFiles {
    watcher: Mutex<RecommendedWatcher>,
    names: Arc<ArcSwap<BTreeSet<OsString>>>,
}

impl WatchedFiles {
    /// From now on the files that this configuration names.
    fn follow(&self, file: &Path, config: &Config) -> notify::Result<()> {
        let others = config.dlp.files().iter().map(PathBuf::as_path);
        let files: Vec<PathBuf> = [file].into_iter().chain(others).map(absolute).collect();
        let names = files.iter().filter_map(|file| file.file_name().map(ToOwned::to_owned));
        self.names.store(Arc::new(names.collect()));
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let folders: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
        folders.into_iter().try_for_each(|it| watcher.watch(it, RecursiveMode::NonRecursive))
    }
}

fn absolute(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.to_owned())
}

/// Parts by which the settings are loaded anew.
struct Reloader {
    policies: Arc<Policies>,
    outbound: Outbound,
    file: PathBuf,
    files: WatchedFiles,
    /// The settings that the node started with.
    started: Written,
    /// File with the names of those that changed since.
    report: PathBuf,
    seen: Mutex<Seen>,
}

/// Settings as they were when they were looked at last.
struct Seen {
    /// `[dlp]` in force.
    dlp: Option<toml::Value>,
    /// Digests of what it refers to.
    sources: Vec<String>,
    /// Changed settings of which the log told that they need a restart.
    told: Vec<String>,
}

impl Reloader {
    fn reload(&self) -> Result<(), String> {
        let told = |error: &dyn std::error::Error| match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        let config = Config::load(Some(&self.file)).map_err(|error| told(&error))?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.started.needing_restart(&config.written);
        if changed != seen.told {
            if let Err(error) = RestartReport::write(&self.report, &changed) {
                tracing::error!(%error, "settings that need a restart cannot be told to `check`");
            }
            if !changed.is_empty() {
                tracing::warn!("changed and needs a restart: {}", changed.join(", "));
            }
        }
        seen.told = changed;
        self.files.follow(&self.file, &config).map_err(|error| error.to_string())?;
        let sources = config.dlp.sources()?;
        if config.written.dlp() == seen.dlp.as_ref() && sources == seen.sources {
            tracing::info!("the DLP settings in force are those of the configuration");
            return Ok(());
        }
        let dlp = config.dlp.load(&self.outbound)?;
        self.policies.replace_dlp(dlp).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            format!("the policies do not go with them: {}", errors.join("; "))
        })?;
        seen.dlp = config.written.dlp().cloned();
        seen.sources = sources;
        Ok(())
    }
}

/// Reloads after every change and hangup, off the threads that serve requests.
fn on_change(mut changes: Changes, mut hangup: Signal, reload: impl Fn() + Send + Sync + 'static) {
    let reload = Arc::new(reload);
    detach(async move {
        loop {
            tokio::select! {
                change = changes.next() => if change.is_none() { return },
                _ = hangup.recv() => {}
            }
            changes.settle().await;
            if tokio::task::spawn_blocking({
                let reload = Arc::clone(&reload);
                move || reload()
            })
            .await
            .is_err()
            {
                tracing::error!("reloading ended in a panic; the settings in force stay");
            }
        }
    });
}
