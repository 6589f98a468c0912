//! Commands on the log of an org as it is stored: export it, and find an event.

use std::sync::Arc;

use portcullis_core::{
    audit::{Actor, Detached, keyring::Keyring},
    id::{EventId, ExportId, OrgId},
};
use portcullis_store::{EventRecord, Org, Visibility};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Operator, OperatorError};
use crate::audit::{
    events::{patience, row_of},
    exports::{
        ExportMade, exported,
        request::ExportRequest,
        writing::{
            ExportError, ExportOutput, ExportedLog, Progress, SignedLog, Written, export_log,
        },
    },
    log::LogSigner,
    proven::LogReader,
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
        org: &Org,
        identity: LogIdentity,
        request: &ExportRequest,
        output: ExportOutput,
        progress: &mut impl Progress,
    ) -> Result<Written, ExportError> {
        let now = self.clock.now();
        let written = self.write_log(org, identity, request, output, progress).await?;
        let event_id = EventId::new(self.ids());
        let name = self.os_user.as_deref();
        let detached = Detached::default().keep("actor_name", name, &*self.random);
        let made = ExportMade {
            org_id: org.id,
            export: &ExportId::new(self.ids()).to_string(),
            request: &request.to_json(),
            result: &written.to_json(),
            actor: Actor::operator(),
            asked: None,
            detached,
        };
        let event = exported(made, event_id, now, &*self.random);
        let recorded = self.writer.append(row_of(&event), patience()).await;
        recorded.map_err(|_| ExportError::Unrecorded)?;
        Ok(written)
    }

    async fn write_log(
        &self,
        org: &Org,
        identity: LogIdentity,
        request: &ExportRequest,
        output: ExportOutput,
        progress: &mut impl Progress,
    ) -> Result<Written, ExportError> {
        let signed = SignedLog::take(&self.store, &self.signer(identity), org.id).await?;
        let now = self.clock.now();
        let log = ExportedLog { store: &self.store, org: org.id, signed: &signed, now };
        export_log(log, request, output, progress).await
    }

    /// One event of the org as it is stored. Fails if there is none.
    pub async fn stored_event(
        &self,
        org: OrgId,
        id: EventId,
    ) -> Result<EventRecord, OperatorError> {
        let found = self.store.find_event(org, Visibility::All, id).await?;
        found.ok_or_else(|| OperatorError::NoEvent(id.to_string()))
    }
}

/// A request as it is told to a person.
#[must_use]
pub fn describe_export(request: &ExportRequest, written: &Written) -> Value {
    let mut told = request.to_json();
    if let (Value::Object(told), Value::Object(written)) = (&mut told, written.to_json()) {
        told.extend(written);
    }
    json!(told)
}
