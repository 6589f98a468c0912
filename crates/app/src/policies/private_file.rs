//! Files of the node's own, readable by its user only and replaced as a whole.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// Puts `text` in the place of the file. A crash at any line leaves either the old file or the new
/// one.
pub fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    match fs::remove_file(&fresh) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    out.write_all(text)?;
    out.sync_all()?;
    fs::rename(&fresh, path)
}
