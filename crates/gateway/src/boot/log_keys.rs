//! The keys that sign the audit logs: made at the first start, read again when their file changes.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
    time::Duration,
};

use portcullis_app::Audit;
use portcullis_core::{audit::keyring::Keyring, clock::Timestamp, random::Random};
use portcullis_store::Store;
use tokio::time::MissedTickBehavior;

use super::{BootError, Node, detach};
use crate::config::{Config, KeySource};

/// Interval between two looks at the file.
const LOOK: Duration = Duration::from_secs(2);

/// The keys of this configuration. Makes the file if nothing was ever signed; fails if something
/// was and the keys are gone.
pub(crate) async fn load(
    config: &Config,
    store: &Store,
    random: &dyn Random,
    now: Timestamp,
) -> Result<Keyring, BootError> {
    let source = config.audit.key_source(&config.data_dir);
    if let Some(keys) = source.read().map_err(BootError::LogKeys)? {
        return Ok(keys);
    }
    if store.any_checkpoint().await?.is_some() {
        return Err(BootError::LogKeys(format!(
            "{source} is gone, and the logs in the database are signed with it: bring it back; \
             with another key nobody could tell these logs from forged ones"
        )));
    }
    let keys = Keyring::generate(random, now);
    if let KeySource::File { file } = &source {
        let made = write_new(file, &keys);
        made.map_err(|error| BootError::LogKeys(format!("{source}: {error}")))?;
        tracing::info!("made the signing keys of the audit logs: {}", file.display());
    }
    Ok(keys)
}

fn write_new(file: &Path, keys: &Keyring) -> io::Result<()> {
    let mut out = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    out.write_all(keys.text().expose().as_bytes())?;
    out.sync_all()
}

/// Puts the keys in the place of those in `file`. A crash at any line leaves either these or those.
pub(crate) fn replace(file: &Path, keys: &Keyring) -> io::Result<()> {
    let fresh = file.with_extension("new");
    match fs::remove_file(&fresh) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    write_new(&fresh, keys)?;
    fs::rename(&fresh, file)
}

/// Takes changed keys over as long as the node lives. Keys that do not go with what was signed
/// are refused, and those so far sign on.
pub(crate) fn watch(config: &Config, node: &Node) {
    let source = config.audit.key_source(&config.data_dir);
    if let KeySource::File { file } = &source {
        detach(follow(file.clone(), source, Arc::clone(&node.app.audit)));
    }
}

async fn follow(file: std::path::PathBuf, source: KeySource, audit: Arc<Audit>) {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = present(&file);
    loop {
        looks.tick().await;
        let now = present(&file);
        if now.is_none() || now == seen {
            continue;
        }
        seen = now;
        let changed = match source.read() {
            Ok(Some(keys)) => audit.change_log_keys(keys).await.map_err(|error| error.to_string()),
            Ok(None) => continue,
            Err(error) => Err(error),
        };
        match changed {
            Ok(()) => tracing::info!("the audit logs are signed with changed keys from now on"),
            Err(error) => {
                tracing::error!(error, "the changed signing keys are not used; the old ones stay");
            }
        }
    }
}

fn present(file: &Path) -> Option<(u64, u64, i64, i64)> {
    let found = fs::metadata(file).ok()?;
    Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec()))
}
