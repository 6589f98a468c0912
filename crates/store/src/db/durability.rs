//! Durability of commits, as the database reports it.

/// Durability of the database, read back from it over a connection like those that write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Durability {
    /// `sqlite` or `postgres`.
    pub engine: &'static str,
    /// The engine's version.
    pub version: String,
    /// SQLite's `journal_mode`; `wal` on PostgreSQL.
    pub journal: String,
    /// SQLite's `synchronous` (`full`, `normal`, …) or PostgreSQL's `synchronous_commit`.
    pub synchronous: String,
    /// Reason why a commit that was answered may not survive a power loss; `None` if it does.
    pub weakness: Option<Weakness>,
    /// True if pages that a power loss leaves half written are mended from the journal. PostgreSQL
    /// without `full_page_writes` leaves that to the file system.
    pub whole_pages: bool,
    /// True if row-level security holds for this role; `None` on a database that has none.
    pub row_security: Option<bool>,
}

impl Durability {
    /// True if a commit that was answered survives a power loss.
    #[must_use]
    pub const fn survives_power_loss(&self) -> bool {
        self.weakness.is_none()
    }
}

/// Reason why a commit that was answered may not survive a power loss. The text says what to set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Weakness {
    #[error(
        "PostgreSQL answers commits before they are on its disk (`synchronous_commit` is `off` for \
         this role in this database): set it to `on` with ALTER ROLE, ALTER DATABASE or in \
         postgresql.conf"
    )]
    Unawaited,
    /// A synchronous replica is named, and commits do not wait for its disk.
    #[error(
        "`synchronous_standby_names` names a replica, and commits do not wait for its disk \
         (`synchronous_commit` is `{0}` for this role in this database): set it to `on` or \
         `remote_apply`, or name no replica"
    )]
    ReplicaUnawaited(String),
    /// The PostgreSQL server does not wait for its disk at all.
    #[error("the PostgreSQL server does not wait for its disk (`fsync` is `off`): set it to `on`")]
    Unsynced,
    #[error("SQLite does not wait for the disk with each commit (`synchronous` is `{0}`)")]
    Relaxed(String),
    #[error(
        "SQLite keeps no write-ahead log there (`journal_mode` is `{0}`): put the database on a \
         local file system"
    )]
    Journal(String),
    /// SQLite was compiled without something that a commit needs to survive.
    #[error(
        "the SQLite in this program was compiled with `{0}`, so commits may not reach the disk: \
         build Portcullis without that option in LIBSQLITE3_FLAGS"
    )]
    Build(String),
}

/// Options of SQLite's build that take away what a commit relies on.
const WEAKENING: [&str; 4] = [
    // Files are never synced.
    "NO_SYNC",
    // The folder is not synced: a power loss may take the whole write-ahead log with it.
    "DISABLE_DIRSYNC", // Nothing is written to files.
    "OMIT_DISKIO",
    // Connections move between threads, and only mutexes make that safe.
    "THREADSAFE=0",
];

/// The weakness of PostgreSQL with these settings, if there is one.
pub(super) fn of_postgres(synchronous: &str, names_replica: bool, fsync: bool) -> Option<Weakness> {
    match synchronous {
        "off" => Some(Weakness::Unawaited),
        "local" | "remote_write" if names_replica => {
            Some(Weakness::ReplicaUnawaited(synchronous.to_owned()))
        }
        _ if !fsync => Some(Weakness::Unsynced),
        _ => None,
    }
}

/// The weakness of a build of SQLite with these `PRAGMA compile_options`, if there is one.
pub(super) fn of_build(options: &[String]) -> Option<Weakness> {
    let weakens = |option: &&String| WEAKENING.contains(&option.as_str());
    options.iter().find(weakens).cloned().map(Weakness::Build)
}

/// The weakness of an SQLite connection that writes, if there is one.
pub(super) fn of_sqlite(journal: &str, level: i64, synchronous: &str) -> Option<Weakness> {
    if journal != "wal" {
        return Some(Weakness::Journal(journal.to_owned()));
    }
    (level < 2).then(|| Weakness::Relaxed(synchronous.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_that_does_not_sync_is_a_weakness() {
        let options = |more: &[&str]| -> Vec<String> {
            let all = [&["COMPILER=gcc-12.2.0", "THREADSAFE=1"], more].concat();
            all.into_iter().map(str::to_owned).collect()
        };
        assert_eq!(of_build(&options(&["DEFAULT_SYNCHRONOUS=2", "OMIT_DEPRECATED"])), None);
        for option in WEAKENING {
            let found = of_build(&options(&[option]));

            assert_eq!(found, Some(Weakness::Build(option.to_owned())));
            assert!(found.unwrap().to_string().contains(option));
        }
    }

    #[test]
    fn a_commit_has_to_wait_for_every_disk_that_is_named() {
        let replica = |level: &str| Some(Weakness::ReplicaUnawaited(level.to_owned()));
        for (synchronous, names_replica, fsync, wanted) in [
            ("on", false, true, None),
            ("on", true, true, None),
            ("remote_apply", true, true, None),
            ("local", false, true, None),
            ("remote_write", false, true, None),
            ("off", false, true, Some(Weakness::Unawaited)),
            ("off", true, true, Some(Weakness::Unawaited)),
            ("local", true, true, replica("local")),
            ("remote_write", true, true, replica("remote_write")),
            ("on", false, false, Some(Weakness::Unsynced)),
        ] {
            let found = of_postgres(synchronous, names_replica, fsync);

            assert_eq!(found, wanted, "{synchronous} {names_replica} {fsync}");
        }
        assert_eq!(of_sqlite("wal", 2, "full"), None);
        assert_eq!(of_sqlite("wal", 1, "normal"), Some(Weakness::Relaxed("normal".to_owned())));
        assert_eq!(of_sqlite("delete", 2, "full"), Some(Weakness::Journal("delete".to_owned())));
    }
}
