//! `[database]` and `[audit]`: where things are remembered and how safely.

use std::path::Path;

use portcullis_store::{DatabaseSettings, DatabaseUrl, Sync};
use serde::Deserialize;

use super::{AuditRetention, CaptureMode, ConfigError};

/// `[database]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Database {
    /// `sqlite:` and a path, or `postgres://…`; `portcullis.db` in the data folder when absent.
    pub(crate) url: Option<String>,
}

/// `[audit]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Audit {
    /// What a recorded event survives.
    pub(crate) sync: AuditSync,
    /// How much of payloads events keep where no policy says so.
    pub(crate) capture: CaptureMode,
    /// How long events are kept.
    pub(crate) retention: AuditRetention,
}

/// What a recorded event survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AuditSync {
    /// Every commit waits for the disk.
    #[default]
    PowerLoss,
    /// Faster: what the last moments before a power loss recorded may be lost.
    ProcessCrash,
}

impl Database {
    /// How to open it.
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
