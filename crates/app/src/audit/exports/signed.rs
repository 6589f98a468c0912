//! The signed state of a log, for files that are proven against it.

use portcullis_core::{audit::merkle::empty_root, clock::Timestamp, id::OrgId};
use portcullis_store::{CheckpointKind, Sealer, Store};

use super::error::ExportError;
use crate::audit::log::LogSigner;

/// The signed state of a log that everything in a file is proven against.
#[derive(Debug, Clone)]
pub struct SignedLog {
    /// Origin of the log: `<host>/audit/<org_id>`.
    pub origin: String,
    pub note: String,
    pub size: u64,
    pub keys: Vec<String>,
}

/// The log that is exported.
#[derive(Debug, Clone, Copy)]
pub struct ExportedLog<'a> {
    pub store: &'a Store,
    pub org: OrgId,
    /// Its signed state, which covers all that is exported.
    pub signed: &'a SignedLog,
    pub now: Timestamp,
}

impl SignedLog {
    /// Seals what is committed, and takes the checkpoint that covers it.
    pub(crate) async fn take(
        store: &Store,
        signer: &LogSigner,
        org: OrgId,
    ) -> Result<Self, ExportError> {
        store.seal(org, signer).await?;
        let latest = store.find_checkpoint(org, CheckpointKind::Signed).await?;
        let (note, size) = if let Some(latest) = latest {
            (latest.note, latest.size)
        } else {
            // Nothing was ever recorded.
            (signer.sign(org, 0, &empty_root()).ok_or(ExportError::Tree)?.note, 0)
        };
        let keys = signer.known(org).map_err(|_| ExportError::Tree)?;
        let keys = keys.iter().map(|key| key.verifier.to_string()).collect();
        Ok(Self { origin: signer.origin(org), note, size, keys })
    }
}
