//! Files of secrets that anybody on the machine can read.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use crate::config::{Config, KeySource};

/// Bits of a file's mode for those who are neither its owner nor of its group.
const OTHERS: u32 = 0o007;

/// The files with keys that others may read or write.
pub(super) fn exposed(config: &Config) -> Vec<PathBuf> {
    let key = config.key_file();
    let vault = config.keys.vault_place(&key).own_file().cloned();
    let log = match config.audit.key_source(&config.data_dir) {
        KeySource::File { file } => Some(file),
        KeySource::Env { .. } | KeySource::Command { .. } => None,
    };
    [Some(key), vault, log].into_iter().flatten().filter(|file| is_exposed(file)).collect()
}

fn is_exposed(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.permissions().mode() & OTHERS != 0)
}
