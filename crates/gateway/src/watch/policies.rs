//! Loads the policy folder anew when it changes, or on SIGHUP; and when other tools came, if it does not load.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use portcullis_app::{Policies, Reloading};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::MissedTickBehavior,
};

use super::{Changes, WatchError};
use crate::{
    boot::{Node, detach},
    config::Config,
    reload_report::ReloadReport,
};

/// Interval between two checks that the watched folder is still there. A watch goes with
/// the folder it was made for; a mount or a link may put another in its place.
const LOOK: Duration = Duration::from_secs(1);

/// Watches the policy folder as long as the node lives. Fails if it cannot be watched.
pub(super) fn watch(config: &Config, node: &Node) -> Result<(), WatchError> {
    let (folder, file) = (config.policy_folder(), config.reload_report_file());
    let (sentry, changes) = Changes::watched(|_| true)?;
    let mut watched = WatchedFolder { sentry, folder, seen: None };
    watched.begin()?;
    let hangup = signal(SignalKind::hangup())?;
    let policies = Arc::clone(&node.app.policies);
    detach(reload_on(watched, changes, hangup, ReportedReloads { policies, file, ordered: 0 }));
    Ok(())
}

/// Reloads whose results stand in a file for the commands.
struct ReportedReloads {
    policies: Arc<Policies>,
    file: PathBuf,
    ordered: u64,
}

impl ReportedReloads {
    async fn reload(&mut self, reloading: Reloading) {
        // Errors are logged and kept to be shown.
        let errors = self.policies.reload_policies(reloading).await.err().unwrap_or_default();
        self.ordered += u64::from(reloading == Reloading::Ordered);
        let report = ReloadReport {
            process: i32::try_from(std::process::id()).unwrap_or_default(),
            ordered: self.ordered,
            policy_set: self.policies.policy_set().0.version().to_owned(),
            errors: errors.iter().map(ToString::to_string).collect(),
        };
        if let Err(error) = report.write(&self.file) {
            tracing::error!(%error, "the result of the reload cannot be written for the commands");
        }
    }
}

/// The folder that is watched, told apart from another of its name.
struct WatchedFolder {
    sentry: RecommendedWatcher,
    folder: PathBuf,
    seen: Option<Identity>,
}

/// Device, inode and birth: a new folder may be given the inode of one that is gone.
type Identity = (u64, u64, Option<SystemTime>);

impl WatchedFolder {
    fn begin(&mut self) -> notify::Result<()> {
        self.seen = self.present();
        self.sentry.watch(&self.folder, RecursiveMode::Recursive)
    }

    fn present(&self) -> Option<Identity> {
        let found = fs::metadata(&self.folder).ok()?;
        Some((found.dev(), found.ino(), found.created().ok()))
    }

    /// Returns true if another folder, or none, stands where the watched one stood.
    fn moved(&mut self) -> bool {
        let present = self.present();
        if present == self.seen {
            return false;
        }
        // The watch of a folder that is gone is gone with it.
        let _ = self.sentry.unwatch(&self.folder);
        self.seen = None;
        if present.is_some()
            && let Err(error) = self.begin()
        {
            tracing::error!(%error, "the policy folder cannot be watched; SIGHUP still loads it");
        }
        true
    }
}

async fn reload_on(
    mut watched: WatchedFolder,
    mut changes: Changes,
    mut hangup: Signal,
    mut reloads: ReportedReloads,
) {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let reloading = tokio::select! {
            change = changes.next() => match change {
                Some(()) => {
                    watched.moved();
                    Reloading::Noticed
                }
                None => return,
            },
            _ = hangup.recv() => Reloading::Ordered,
            _ = looks.tick() => {
                let policies = &reloads.policies;
                let is_same = !watched.moved() && !policies.overrides_changed();
                if is_same && !policies.may_load_now() {
                    continue;
                }
                Reloading::Noticed
            }
        };
        changes.settle().await;
        reloads.reload(reloading).await;
    }
}
