//! `[database]`: where things are remembered.

use std::path::Path;

use portcullis_store::{DatabaseSettings, DatabaseUrl, Sync};
use serde::Deserialize;

use super::{Audit, AuditSync, ConfigError};

/// `[database]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Database {
    /// `sqlite:` and a path, or `postgres://…`; `portcullis.db` in the data folder when absent.
    pub(crate) url: Option<String>,
}

impl Database {
    /// URL of the database.
    pub(crate) fn settings(
        &self,
        data_dir: &Path,
        audit: &Audit,
    ) -> Result<DatabaseSettings, ConfigError> {
        let url = match &self.url {
            None => DatabaseUrl::sqlite(data_dir.join("portcullis.db")),
            Some(text) => text
                .parse()
                .map_err(|error| ConfigError::Wrong(format!("`database.url`: {error}")))?,
        };
        let sync = match audit.sync {
            AuditSync::PowerLoss => Sync::PowerLoss,
            AuditSync::ProcessCrash => Sync::ProcessCrash,
        };
        Ok(DatabaseSettings { sync, ..DatabaseSettings::new(url) })
    }
}
