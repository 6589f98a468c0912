//! Exports of the log of an org as it is stored.

use std::sync::Arc;

use portcullis_core::{
    audit::{EventType, keyring::Keyring},
    id::{ExportId, OrgId},
};
use tokio_util::sync::CancellationToken;

use super::Operator;
use crate::{
    audit::{
        events::patience,
        exports::{
            ExportError, ExportOutput, ExportRequest, Progress, Written,
            writing::{ExportedLog, SignedLog, export_log, exported},
        },
        log::LogSigner,
        proven::LogReader,
    },
    request::target_of,
};

/// The name and the keys of the logs of an installation.
#[derive(Debug, Clone)]
pub struct LogIdentity {
    /// The public host of the installation.
    pub host: String,
    pub keys: Keyring,
}

impl Operator {
    pub(super) fn signer(&self, identity: LogIdentity) -> LogSigner {
        LogSigner::new(
            identity.host,
            Arc::clone(&self.clock),
            Arc::clone(&self.random),
            identity.keys,
        )
    }

    pub(super) fn reader<'a>(&'a self, signer: &'a LogSigner) -> LogReader<'a> {
        let stop = CancellationToken::new();
        LogReader { store: &self.store, signer, writer: &self.writer, stop }
    }

    /// Writes an export of the org's log. That it was made is recorded, with the hash of what was
    /// written.
    pub async fn export(
        &self,
        org: OrgId,
        identity: LogIdentity,
        request: &ExportRequest,
        output: ExportOutput,
        progress: &mut impl Progress,
    ) -> Result<Written, ExportError> {
        let target = target_of("export", ExportId::new(self.ids()));
        let event = self.event(EventType::AuditExported, org, target);
        let signed = SignedLog::take(&self.store, &self.signer(identity), org).await?;
        let now = self.clock.now();
        let log = ExportedLog { store: &self.store, org, signed: &signed, now };
        let written = export_log(log, request, output, progress).await?;
        let event = exported(event, request, &written, &*self.random);
        let recorded = self.writer.append(event, patience()).await;
        recorded.map_err(|_| ExportError::Unrecorded)?;
        Ok(written)
    }
}
