//! Disks that take nothing more: one for a process whose files may grow no more, and a small one that
//! is full.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use tempfile::TempDir;

use crate::Gateway;

/// A program in `folder` that becomes `binary`; what `serve` prints is appended to `printed`.
pub fn printing(binary: &str, folder: &Path, printed: &Path) -> PathBuf {
    let printed = printed.display();
    let prints = format!("[ \"$1\" = serve ] && exec '{binary}' \"$@\" 1<>'{printed}'");
    becoming(binary, &folder.join("printing"), &prints)
}

/// A program in `folder` that becomes `binary`, but is told of a file that may grow no more by the
/// failed write alone: the signal that comes with it is ignored.
pub fn unsignalled(binary: &str, folder: &Path) -> PathBuf {
    becoming(binary, &folder.join("unsignalled"), "trap '' XFSZ")
}

/// A script that does something first and then becomes `binary`.
fn becoming(binary: &str, script: &Path, first: &str) -> PathBuf {
    let text = format!("#!/bin/sh\n{first}\nexec '{binary}' \"$@\"\n");
    let draft = script.with_extension("draft");
    fs::write(&draft, text).expect("a script");
    // Another process writes the program: a child that another test starts meanwhile would hold it
    // open for writing, and then it cannot be run.
    let installed = Command::new("install").arg("-m755").arg(&draft).arg(script).status();
    assert!(installed.is_ok_and(|status| status.success()), "a program");
    script.to_owned()
}

impl Gateway {
    /// From now on every write to a file fails, and to its database if that is a server. For
    /// gateways from [`unsignalled`].
    pub fn fail_writes(&self) {
        self.limit_files(Some(0));
        if let Some(database) = self.postgres() {
            database.refuse_writes();
        }
    }

    /// From now on no file grows beyond so many bytes. For gateways from [`unsignalled`].
    pub fn limit_writes(&self, bytes: u64) {
        self.limit_files(Some(bytes));
    }

    /// Files and database can be written again.
    pub fn allow_writes(&self) {
        if let Some(database) = self.postgres() {
            database.allow_writes();
        }
        self.limit_files(getrlimit(Resource::Fsize).current);
    }

    fn limit_files(&self, bytes: Option<u64>) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("a process");
        let limit = Rlimit { current: bytes, maximum: getrlimit(Resource::Fsize).maximum };
        prlimit(Some(pid), Resource::Fsize, limit).expect("a limit");
    }
}

/// A disk of a few MiB; it is unmounted when this is dropped.
#[derive(Debug)]
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// Mounts one. `None`, and a word on stderr, for who may not mount.
    pub fn mount(mebibytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mebibytes}m,mode=0700"), "tmpfs"])
            .arg(folder.path())
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(folder));
        }
        #[expect(clippy::print_stderr, reason = "a test that is left out has to say so")]
        {
            eprintln!("left out: this test needs the right to mount a file system");
        }
        None
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The file that fills it.
    pub fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    /// Writes until there is no room.
    pub fn fill(&self) {
        use std::io::Write;
        let mut file = fs::File::create(self.filler()).expect("a file");
        for size in [64 * 1024, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a gateway may still have files open.
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).output();
    }
}
