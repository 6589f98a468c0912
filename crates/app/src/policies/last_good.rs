//! The files of the last set that loaded, kept beside the data: what a node can start with while
//! the folder is broken.

use std::{fs, io, path::PathBuf};

use portcullis_core::{json, policy::PolicyFile};
use serde::{Deserialize, Serialize};

use super::private_file;

/// Permission to start with the last good set when the folder does not load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fallback {
    /// No start: a node never starts with another set than the written one.
    #[default]
    Refuse,
    /// A start with the set that was last in force, which is logged.
    LastGood,
    /// A start with that set, or without any policy where there is none, for a node that only looks.
    Nothing,
}

/// The one file that holds them.
#[derive(Debug, Clone)]
pub struct LastGood(PathBuf);

#[derive(Serialize, Deserialize)]
struct Bundle {
    /// Of the files: what was cut off or changed by hand is not a set that was in force.
    digest: String,
    files: Vec<File>,
}

#[derive(Serialize, Deserialize)]
struct File {
    path: String,
    text: String,
}

impl LastGood {
    /// The file at `path`; it need not exist.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Keeps these files instead of those before. A crash at any line leaves either the old
    /// bundle or the new one.
    pub(crate) fn keep(&self, files: &[PolicyFile]) -> io::Result<()> {
        let file = |file: &PolicyFile| File { path: file.path.clone(), text: file.text.clone() };
        let files: Vec<File> = files.iter().map(file).collect();
        let text = serde_json::to_vec(&Bundle { digest: digest(&files), files })?;
        private_file::replace(&self.0, &text)
    }

    /// The files that were kept. Fails if there are none or they are not as they were written.
    pub fn read(&self) -> io::Result<Vec<PolicyFile>> {
        let bundle: Bundle = serde_json::from_slice(&fs::read(&self.0)?)?;
        if digest(&bundle.files) != bundle.digest {
            return Err(io::Error::other("the last good policies are not as they were written"));
        }
        let file = |file: File| PolicyFile { path: file.path, text: file.text };
        Ok(bundle.files.into_iter().map(file).collect())
    }
}

fn digest(files: &[File]) -> String {
    let parts: Vec<&[u8]> = files
        .iter()
        .flat_map(|file| [file.path.as_bytes(), b"\0", file.text.as_bytes(), b"\0"])
        .collect();
    json::sha256(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_read_back_and_what_was_changed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let kept = LastGood::new(folder.path().join("last-good.json"));
        let file = PolicyFile { path: "a.cedar".to_owned(), text: "permit…".to_owned() };

        kept.keep(std::slice::from_ref(&file)).unwrap();

        let read = kept.read().unwrap();
        assert_eq!((read[0].path.as_str(), read[0].text.as_str()), ("a.cedar", "permit…"));
        let text = fs::read_to_string(&kept.0).unwrap().replace("permit", "forbid");
        fs::write(&kept.0, text).unwrap();
        assert!(kept.read().is_err());
    }
}
