//! Compares what the configuration promises of a commit with what the database keeps.

use portcullis_store::{Durability, Store, Weakness};

use super::{BootError, Mode, database_settings, open_store};
use crate::config::{AuditSync, Config};

/// Warning about a database role for whom the wall between orgs does not stand.
pub(crate) const UNWALLED: &str = "row-level security does not hold for the database role: it is \
                                   a superuser or has BYPASSRLS (docs/postgresql.md)";

/// Warning about a PostgreSQL server that leaves half-written pages to the file system.
pub(crate) const TORN_PAGES: &str = "`full_page_writes` is off: unless the file system writes whole \
                                     pages (such as ZFS), a power loss may damage the database";

/// Weakness of the database, if it does not keep what `audit.sync` promises.
pub(crate) fn weakness(config: &Config, durability: &Durability) -> Option<Weakness> {
    match config.audit.sync {
        AuditSync::PowerLoss => durability.weakness.clone(),
        AuditSync::ProcessCrash => None,
    }
}

/// Opens the store. Refuses to serve from a database that does not keep what `audit.sync` promises;
/// a command that only reads is told of it.
pub(super) async fn open(config: &Config, mode: Mode) -> Result<Store, BootError> {
    let store = open_store(config).await?;
    if mode == Mode::Serving
        && let Some(weakness) = weakness(config, &store.durability().await?)
    {
        return Err(BootError::Durability(weakness));
    }
    Ok(store)
}

/// Rejects a database of another schema for a node that only looks: a look is no upgrade.
pub(super) async fn refuse_other_schema(config: &Config, mode: Mode) -> Result<(), BootError> {
    match mode {
        Mode::Serving => Ok(()),
        Mode::Check => Ok(Store::refuse_other_schema(&database_settings(config)?).await?),
    }
}
