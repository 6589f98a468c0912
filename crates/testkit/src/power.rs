//! A power cut, for one process: what was not synced to the disk is not there afterwards.

use std::{
    ffi::OsStr,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{Builder, Gateway, programs::printed_by};

/// Bytes that a disk writes whole or not at all.
const SECTOR: usize = 512;

/// A disk whose power can be cut. Gateways from [`PowerCut::on`] keep their database on it.
#[derive(Debug)]
pub struct PowerCut {
    folder: TempDir,
}

impl PowerCut {
    /// Builds the library that watches over what was synced. Panics without a C compiler.
    pub fn build() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("losing.c");
        fs::write(&source, include_str!("power/losing.c")).expect("a source file");
        for place in ["disk", "copies"] {
            fs::create_dir(folder.path().join(place)).expect("a folder");
        }
        let library = folder.path().join("losing.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library);
        printed_by(compiler.arg(&source).args(["-ldl", "-lpthread"]));
        Self { folder }
    }

    /// The gateway with its database on this disk.
    pub fn on(&self, builder: Builder) -> Builder {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let database = format!("[database]\nurl = \"sqlite:{}\"", text(self.disk().join("p.db")));
        builder
            .config(&database)
            .env("LD_PRELOAD", &text(self.folder.path().join("losing.so")))
            .env("POWER_FOLDER", &text(self.disk()))
            .env("POWER_COPIES", &text(self.copies()))
            .env("POWER_AIM", &text(self.aim()))
    }

    /// Ends the gateway with this write from now on to the database file, to which SQLite writes when it
    /// carries its log file over. [`Self::cut`] or [`Self::tear`] is to follow.
    pub fn cut_at_write(&self, number: usize) {
        fs::write(self.aim(), format!("p.db {number}")).expect("an aim");
    }

    /// Takes back [`Self::cut_at_write`].
    pub fn spare(&self) {
        fs::remove_file(self.aim()).expect("an aim");
    }

    /// Kills the gateway and leaves on the disk what was synced until then.
    pub fn cut(&self, gateway: &mut Gateway) {
        self.cut_with(gateway, |_, _| false);
    }

    /// The same with some of the sectors that were written since: a disk may keep any of them.
    pub fn tear(&self, gateway: &mut Gateway, luck: u64) {
        self.cut_with(gateway, |name, sector| {
            let mut hasher = DefaultHasher::new();
            (luck, name, sector).hash(&mut hasher);
            hasher.finish().is_multiple_of(2)
        });
    }

    fn cut_with(&self, gateway: &mut Gateway, keeps: impl Fn(&OsStr, usize) -> bool) {
        gateway.kill();
        for copy in files(&self.copies()) {
            let name = copy.file_name().expect("a name");
            let written = fs::read(self.disk().join(name)).expect("a file of the disk");
            let mut kept = fs::read(&copy).expect("a copy");
            for (number, sector) in written.chunks(SECTOR).enumerate() {
                let place = number * SECTOR..number * SECTOR + sector.len();
                if keeps(name, number) {
                    kept.resize(kept.len().max(place.end), 0);
                    kept.splice(place, sector.iter().copied());
                }
            }
            // The copies go on to be what the disk holds.
            fs::write(copy, kept).expect("a copy");
        }
        for file in files(&self.disk()) {
            fs::remove_file(file).expect("a file of the disk");
        }
        for copy in files(&self.copies()) {
            let name = copy.file_name().expect("a name");
            fs::copy(&copy, self.disk().join(name)).expect("a copy");
        }
    }

    fn disk(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).expect("a folder").join("disk")
    }

    fn aim(&self) -> PathBuf {
        self.folder.path().join("aim")
    }

    fn copies(&self) -> PathBuf {
        self.folder.path().join("copies")
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}
