//! Claim of a data folder: one process works on it at a time.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::OnceLock,
};

use portcullis_store::MovedRows;

use super::{BootError, make_private, open_store};
use crate::config::Config;

/// The lock on the data folder, held as long as the process lives.
static CLAIM: OnceLock<fs::File> = OnceLock::new();

/// Makes this process the one that serves from the data folder. Fails if another one does: a
/// starting node closes the intents that are open, and those of a living node are none of its.
pub(crate) fn claim(config: &Config) -> Result<(), BootError> {
    let file = lock(&config.data_dir)?;
    CLAIM.get_or_init(|| file);
    Ok(())
}

/// The file by which this process holds its data folder, if it does.
pub(crate) fn claimed() -> Option<&'static fs::File> {
    CLAIM.get()
}

/// The lock on a data folder; it names this process, to whom `portcullis policy reload` sends its
/// signal.
fn lock(folder: &Path) -> Result<fs::File, BootError> {
    let failed = |error| BootError::DataFolder(folder.display().to_string(), error);
    make_private(folder).map_err(failed)?;
    let path = folder.join("serving.lock");
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(false).mode(0o600);
    let mut file = options.open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {
            file.set_len(0)
                .and_then(|()| writeln!(file, "{}", std::process::id()))
                .map_err(failed)?;
            Ok(file)
        }
        Err(fs::TryLockError::WouldBlock) => Err(BootError::Served(folder.display().to_string())),
        Err(fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Moves everything from an SQLite file into the database of this configuration. Refuses while a
/// process serves from the data folder, from the file's folder, or has the file open.
pub(crate) async fn take_over(config: &Config, file: &Path) -> Result<MovedRows, BootError> {
    let missing = |_| BootError::Other(format!("there is no file `{}`", file.display()));
    let file = file.canonicalize().map_err(missing)?;
    claim(config)?;
    let ours = config.data_dir.canonicalize();
    let ours =
        ours.map_err(|it| BootError::DataFolder(config.data_dir.display().to_string(), it))?;
    let theirs = file.parent().filter(|folder| **folder != ours);
    let held = theirs.filter(|folder| folder.join("serving.lock").exists()).map(lock);
    let held = held.transpose()?;
    let store = open_store(config).await?;
    let moved = store.take_over(&file).await;
    store.close().await;
    drop(held);
    Ok(moved?)
}

/// The process that serves from this data folder. Fails if none does.
pub(crate) fn serving(config: &Config) -> Result<i32, BootError> {
    let path = config.data_dir.join("serving.lock");
    let idle = || BootError::Idle(config.data_dir.display().to_string());
    let file = fs::File::open(&path).map_err(|_| idle())?;
    match file.try_lock() {
        Ok(()) => Err(idle()),
        Err(_) => fs::read_to_string(&path)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(idle),
    }
}
