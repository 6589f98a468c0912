//! `[database]`: where things are remembered.

use std::path::Path;

use portcullis_store::{DatabaseSettings, DatabaseUrl, RowKey, Sync};
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
    /// Address of the database.
    pub(crate) fn address(&self, data_dir: &Path) -> Result<DatabaseUrl, ConfigError> {
        match &self.url {
            None => Ok(DatabaseUrl::sqlite(data_dir.join("portcullis.db"))),
            Some(text) => {
                text.parse().map_err(|error| ConfigError::Wrong(format!("`database.url`: {error}")))
            }
        }
    }

    /// Settings for opening the database.
    pub(crate) fn settings(
        &self,
        data_dir: &Path,
        audit: &Audit,
        row_key: RowKey,
    ) -> Result<DatabaseSettings, ConfigError> {
        let url = self.address(data_dir)?;
        let sync = match audit.sync {
            AuditSync::PowerLoss => Sync::PowerLoss,
            AuditSync::ProcessCrash => Sync::ProcessCrash,
        };
        Ok(DatabaseSettings { sync, ..DatabaseSettings::new(url, row_key) })
    }
}
