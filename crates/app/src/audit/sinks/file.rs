//! A file as a sink: appended to, waited for, rotated.
//!
//! **Invariant:** the path is the operator's, never part of it an event's; a link is not followed,
//! and only its owner can read what is written.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::OFlags;

/// Path and limits of the file.
#[derive(Debug, Clone)]
pub struct FileOutlet {
    pub path: PathBuf,
    /// When it is this large it is put aside as `path.1`, and another one begun.
    pub max_bytes: u64,
    /// Number of rotated files that are kept.
    pub max_files: u32,
    /// Longest time that they are kept.
    pub max_age: Option<Duration>,
}

/// The file while it is written.
#[derive(Debug)]
pub(super) struct LogFile {
    settings: FileOutlet,
    open: Option<(File, u64)>,
}

impl LogFile {
    pub(super) const fn new(settings: FileOutlet) -> Self {
        Self { settings, open: None }
    }

    /// Appends whole lines; they are on the disk when this returns.
    pub(super) async fn write(&mut self, lines: Vec<u8>) -> io::Result<()> {
        let settings = self.settings.clone();
        let open = self.open.take();
        let writing = tokio::task::spawn_blocking(move || append(&settings, open, &lines));
        self.open = Some(writing.await.map_err(io::Error::other)??);
        Ok(())
    }
}

/// After a failure the file is opened anew, which mends what the failure left.
fn append(
    settings: &FileOutlet,
    open: Option<(File, u64)>,
    lines: &[u8],
) -> io::Result<(File, u64)> {
    let length = u64::try_from(lines.len()).unwrap_or(u64::MAX);
    let (mut file, mut size) = match open {
        // The operator may have moved it away.
        Some((file, size)) if is_at(&file, &settings.path) => (file, size),
        Some(_) | None => begin(&settings.path)?,
    };
    if size > 0 && size.saturating_add(length) > settings.max_bytes {
        drop(file);
        rotate(settings)?;
        (file, size) = begin(&settings.path)?;
    }
    file.write_all(lines)?;
    file.sync_data()?;
    Ok((file, size.saturating_add(length)))
}

fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(file), Ok(there)) => (file.dev(), file.ino()) == (there.dev(), there.ino()),
        (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
    }
}

/// Opens the file for appending. Half a line at its end, which a crash or a full disk has left,
/// is cut off: its event comes again.
fn begin(path: &Path) -> io::Result<(File, u64)> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600).custom_flags(flags);
    let mut file = options.open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("the path is no plain file"));
    }
    if found.permissions().mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    let whole = whole_lines(&mut file, found.len())?;
    if whole < found.len() {
        file.set_len(whole)?;
    }
    Ok((file, whole))
}

/// Length of the part of the file that consists of whole lines.
fn whole_lines(file: &mut File, size: u64) -> io::Result<u64> {
    const PIECE: u64 = 64 << 10;
    let mut end = size;
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        let mut piece = vec![0; usize::try_from(end - start).unwrap_or(0)];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut piece)?;
        if let Some(at) = piece.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + u64::try_from(at).unwrap_or(0) + 1);
        }
        end = start;
    }
    Ok(0)
}

/// `path` becomes `path.1`, that `path.2`, and so on; what is too many or too old goes.
fn rotate(settings: &FileOutlet) -> io::Result<()> {
    let aside = |number: u32| {
        let mut name = settings.path.clone().into_os_string();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    for number in (1..settings.max_files).rev() {
        moved(&aside(number), &aside(number + 1))?;
    }
    if settings.max_files == 0 {
        fs::remove_file(&settings.path)?;
    } else {
        moved(&settings.path, &aside(1))?;
    }
    let Some(max_age) = settings.max_age else { return Ok(()) };
    for path in (1..=settings.max_files).map(aside) {
        let modified = fs::symlink_metadata(&path).and_then(|found| found.modified());
        if modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > max_age)) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn moved(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlet(folder: &Path) -> FileOutlet {
        FileOutlet { path: folder.join("audit.jsonl"), max_bytes: 20, max_files: 2, max_age: None }
    }

    #[tokio::test]
    async fn a_file_that_is_full_is_put_aside_and_only_so_many_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let settings = outlet(folder.path());
        let mut file = LogFile::new(settings.clone());

        for n in 0..5 {
            file.write(format!("line number {n}\n").into_bytes()).await.unwrap();
        }

        let mut found: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.file_name().unwrap().to_owned(), fs::read_to_string(&path).unwrap()))
            .collect();
        found.sort();
        let wanted = [
            ("audit.jsonl", "line number 4\n"),
            ("audit.jsonl.1", "line number 3\n"),
            ("audit.jsonl.2", "line number 2\n"),
        ];
        assert_eq!(found, wanted.map(|(name, text)| (name.into(), text.to_owned())));
        let mode = fs::metadata(&settings.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[tokio::test]
    async fn half_a_line_is_cut_off_and_a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let settings = FileOutlet { max_bytes: 1_000, ..outlet(folder.path()) };
        fs::write(&settings.path, "whole\nhal").unwrap();

        LogFile::new(settings.clone()).write(b"next\n".to_vec()).await.unwrap();

        assert_eq!(fs::read_to_string(&settings.path).unwrap(), "whole\nnext\n");
        let link = FileOutlet { path: folder.path().join("link"), ..settings.clone() };
        std::os::unix::fs::symlink(&settings.path, &link.path).unwrap();
        assert!(LogFile::new(link).write(b"x\n".to_vec()).await.is_err());
        let folder_itself = FileOutlet { path: folder.path().to_owned(), ..settings };
        assert!(LogFile::new(folder_itself).write(b"x\n".to_vec()).await.is_err());
    }

    #[tokio::test]
    async fn a_file_that_somebody_moved_away_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let settings = FileOutlet { max_bytes: 1_000, ..outlet(folder.path()) };
        let mut file = LogFile::new(settings.clone());
        file.write(b"one\n".to_vec()).await.unwrap();

        fs::rename(&settings.path, folder.path().join("taken")).unwrap();
        file.write(b"two\n".to_vec()).await.unwrap();

        assert_eq!(fs::read_to_string(&settings.path).unwrap(), "two\n");
    }
}
