//! A disk that stops taking anything, for one process: its files may grow no more.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::Gateway;

/// A program in `folder` that becomes `binary`; what `serve` prints is appended to `printed`.
pub fn printing(binary: &str, folder: &Path, printed: &Path) -> PathBuf {
    let script = folder.join("printing");
    let printed = printed.display();
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = serve ] && exec '{binary}' \"$@\" 1<>'{printed}'\n\
         exec '{binary}' \"$@\"\n"
    );
    fs::write(&script, text).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a program");
    script
}

/// A program in `folder` that becomes `binary`, but is told of a file that may grow no more by the
/// failed write alone: the signal that comes with it is ignored.
pub fn unsignalled(binary: &str, folder: &Path) -> PathBuf {
    let script = folder.join("unsignalled");
    fs::write(&script, format!("#!/bin/sh\ntrap '' XFSZ\nexec '{binary}' \"$@\"\n"))
        .expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a program");
    script
}

impl Gateway {
    /// From now on every write to a file fails. For gateways from [`unsignalled`].
    pub fn fail_writes(&self) {
        self.limit_files(Some(0));
    }

    /// From now on no file grows beyond so many bytes. For gateways from [`unsignalled`].
    pub fn limit_writes(&self, bytes: u64) {
        self.limit_files(Some(bytes));
    }

    /// Files can be written again.
    pub fn allow_writes(&self) {
        self.limit_files(getrlimit(Resource::Fsize).current);
    }

    fn limit_files(&self, bytes: Option<u64>) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("a process");
        let limit = Rlimit { current: bytes, maximum: getrlimit(Resource::Fsize).maximum };
        prlimit(Some(pid), Resource::Fsize, limit).expect("a limit");
    }
}
