//! Reading the policy folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use portcullis_core::policy::{FACTS_FILE, PolicyFile};

/// The largest policy file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// The most policy files that are read.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 16;

/// The folder within the folder that holds cases, and what these files end with.
const TESTS: &str = "tests";
const CASES: [&str; 3] = ["yaml", "yml", "json"];

/// Contents of a policy folder.
#[derive(Debug, Clone, Default)]
pub struct FolderFiles {
    /// Policies and facts.
    pub policies: Vec<PolicyFile>,
    /// Cases: calls with what is expected of them.
    pub cases: Vec<PolicyFile>,
}

fn is_policy(path: &str) -> bool {
    path == FACTS_FILE || Path::new(path).extension().is_some_and(|it| it == "cedar")
}

/// The folder of `*.cedar` files.
#[derive(Debug, Clone)]
pub struct PolicyFolder(PathBuf);

impl PolicyFolder {
    /// The folder at `path`.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads every `*.cedar` file below the folder, the file of facts and the cases in it, in the
    /// order of their paths.
    pub fn read(&self) -> io::Result<FolderFiles> {
        let mut files = Vec::new();
        self.collect(&self.0, MAX_DEPTH, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let (policies, cases) = files.into_iter().partition(|file| is_policy(&file.path));
        Ok(FolderFiles { policies, cases })
    }

    /// Policies, wherever they are, the one file of facts, and the cases in `tests`.
    fn is_read(&self, path: &Path) -> bool {
        let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
        extension == "cedar"
            || path == self.0.join(FACTS_FILE)
            || CASES.contains(&extension) && path.parent() == Some(&*self.0.join(TESTS))
    }

    fn collect(&self, folder: &Path, depth: usize, files: &mut Vec<PolicyFile>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let hidden =
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
            // Before anything else: an editor's lock file is a link that leads nowhere.
            if hidden {
                continue;
            }
            let kind = fs::metadata(&path)?;
            if kind.is_dir() && depth > 0 {
                self.collect(&path, depth - 1, files)?;
            } else if self.is_read(&path) {
                let shown = path.display();
                let bytes = kind.len();
                if bytes > MAX_FILE {
                    return Err(io::Error::other(format!(
                        "`{shown}` has {bytes} bytes; a policy file has at most {MAX_FILE}"
                    )));
                }
                if files.len() >= MAX_FILES {
                    return Err(io::Error::other(format!(
                        "there are more than {MAX_FILES} files; `{shown}` is one too many"
                    )));
                }
                let name = path.strip_prefix(&self.0).unwrap_or(&path);
                let text = fs::read_to_string(&path)?;
                files.push(PolicyFile { path: name.to_string_lossy().into_owned(), text });
            }
        }
        Ok(())
    }
}
