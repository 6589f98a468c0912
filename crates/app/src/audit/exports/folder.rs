//! The folder where export files lie, readable by their owner only.
//!
//! A file is written under a temporary name and gets its own once it is whole and on the disk. A
//! crash before that leaves a `.part` file that the next sweep removes.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use portcullis_core::id::ExportId;

use super::request::Format;

/// Folder of export files.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    /// True if every node sees the same files in it.
    pub(crate) shared: bool,
}

impl Folder {
    /// The folder at `path`, made if it is not there.
    pub fn open(path: PathBuf, shared: bool) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(Self { path, shared })
    }

    /// No folder, for a process that writes no exports.
    pub(crate) const fn none() -> Self {
        Self { path: PathBuf::new(), shared: false }
    }

    /// The bytes that a user other than root can still write to its disk.
    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        let disk = rustix::fs::statvfs(&self.path)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    fn part(&self, id: ExportId) -> PathBuf {
        self.path.join(format!("{id}.part"))
    }

    fn whole(&self, id: ExportId, format: Format) -> PathBuf {
        self.path.join(format!("{id}.{}", format.extension()))
    }

    /// The file to write.
    pub(crate) fn begin(&self, id: ExportId) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.part(id))
    }

    /// Gives a file that is whole its own name. It is on the disk when this returns.
    pub(crate) fn finish(&self, id: ExportId, format: Format, file: &File) -> io::Result<()> {
        file.sync_all()?;
        fs::rename(self.part(id), self.whole(id, format))?;
        File::open(&self.path)?.sync_all()
    }

    /// Opens a file that is whole; `None` if it is not here.
    pub(crate) fn find(&self, id: ExportId, format: Format) -> io::Result<Option<File>> {
        match File::open(self.whole(id, format)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes whatever there is of an export.
    pub(crate) fn remove(&self, id: ExportId) {
        for (path, known) in self.files().unwrap_or_default() {
            if known == id
                && let Err(error) = fs::remove_file(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%error, export = %id, "an export file cannot be removed");
            }
        }
    }

    /// The files of exports, whole or not.
    fn files(&self) -> io::Result<Vec<(PathBuf, ExportId)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            found.extend(export_of(&path).map(|id| (path, id)));
        }
        Ok(found)
    }

    /// The exports that have a file here.
    pub(crate) fn exports(&self) -> io::Result<Vec<ExportId>> {
        let mut ids: Vec<_> = self.files()?.into_iter().map(|(_, id)| id).collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }
}

fn export_of(path: &Path) -> Option<ExportId> {
    path.file_name()?.to_str()?.split_once('.')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn a_file_is_found_once_it_is_whole_and_nobody_else_may_read_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path().join("exports"), false).unwrap();
        let id: ExportId = "exp_01M754BKTKVNX98VF81AZM2YBG".parse().unwrap();
        fs::write(place.path().join("exports/notes.txt"), "not ours").unwrap();

        let mut file = folder.begin(id).unwrap();
        file.write_all(b"x").unwrap();
        let before = folder.find(id, Format::Csv).unwrap();
        folder.finish(id, Format::Csv, &file).unwrap();

        assert!(before.is_none());
        assert!(folder.find(id, Format::Csv).unwrap().is_some());
        for path in ["exports", "exports/exp_01M754BKTKVNX98VF81AZM2YBG.csv"] {
            let mode = fs::metadata(place.path().join(path)).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{path}");
        }
        assert_eq!(folder.exports().unwrap(), [id]);
        folder.remove(id);
        assert!(folder.exports().unwrap().is_empty());
        assert!(place.path().join("exports/notes.txt").exists());
    }
}
