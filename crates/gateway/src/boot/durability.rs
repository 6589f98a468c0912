//! What the configuration promises of a commit, held against what the database keeps.

use portcullis_store::{Durability, Store, Weakness};

use super::BootError;
use crate::config::{AuditSync, Config};

/// What is told of a database role for whom the wall between orgs does not stand.
pub(crate) const UNWALLED: &str = "row-level security does not hold for the database role: it is \
                                   a superuser or has BYPASSRLS (docs/postgresql.md)";

/// What is told of a PostgreSQL server that leaves half-written pages to the file system.
pub(crate) const TORN_PAGES: &str = "`full_page_writes` is off: unless the file system writes whole \
                                     pages (such as ZFS), a power loss may damage the database";

/// Weakness of the database, if it does not keep what `audit.sync` promises.
pub(crate) fn weakness(config: &Config, durability: &Durability) -> Option<Weakness> {
    match config.audit.sync {
        AuditSync::PowerLoss => durability.weakness.clone(),
        AuditSync::ProcessCrash => None,
    }
}

/// Refuses a database that does not keep what `audit.sync` promises.
pub(super) async fn check(store: &Store, config: &Config) -> Result<(), BootError> {
    let durability = store.durability().await?;
    weakness(config, &durability).map_or(Ok(()), |weakness| Err(BootError::Durability(weakness)))
}
