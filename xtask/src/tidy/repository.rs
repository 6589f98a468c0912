//! The files that are checked: every text file below the root, build output left out.

use std::{fs, io, path::Path};

/// Folders that were built, installed or fetched, and git's own (a file in a linked work tree).
const SKIPPED: [&str; 6] =
    [".git", "target", "node_modules", ".venv", "portcullis-data", "__pycache__"];

/// A text file, by its path from the root with `/` between the parts.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }

    /// Returns true for a file of tests, which is all tests.
    pub(crate) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }
}

/// All files of the repository, sorted by path.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    files: Vec<File>,
}

impl Repository {
    /// Reads every text file below `root`; files that are not UTF-8 are left out.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        collect(root, "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// A repository made of these paths and texts.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() })
            .collect();
        Self { files }
    }

    /// Every file.
    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter()
    }

    /// Every Rust source file.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files().filter(|file| file.is_rust())
    }

    /// The files whose path begins with `prefix`.
    pub(crate) fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a File> {
        self.files().filter(move |file| file.path.starts_with(prefix))
    }

    /// The file at `path`, if it is there.
    pub(crate) fn find(&self, path: &str) -> Option<&File> {
        self.files().find(|file| file.path == path)
    }
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), &path, files)?;
        } else if kind.is_file()
            && let Ok(text) = String::from_utf8(fs::read(entry.path())?)
        {
            files.push(File { path, text });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_read_with_its_own_sources_and_without_build_output() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();

        let repository = Repository::read(root).unwrap();

        assert!(repository.find("xtask/src/tidy/repository.rs").is_some());
        assert_eq!(repository.under("target/").count(), 0);
    }
}
