//! Commands on the log of an org: export it and verify its end.

use std::sync::Arc;

use portcullis_core::{
    audit::{Actor, Auth, Detached, Shown, keyring::Keyring},
    id::{EventId, ExportId, OrgId},
};
use portcullis_store::{EventFilter, EventOrder, EventRecord, Org, StoreError, Visibility};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Shell, ShellError};
use crate::audit::{
    events::{patience, row_of, sealed},
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

/// Events that are read at a time.
const PAGE: u32 = 200;

/// The name and the keys of the logs, as the operator's shell has them.
#[derive(Debug, Clone)]
pub struct LogIdentity {
    /// The public host of the installation.
    pub host: String,
    pub keys: Keyring,
}

/// The end of a log as far as it was read.
#[derive(Debug)]
pub struct Tail {
    /// The events, oldest first, as the API lists them.
    pub events: Vec<Value>,
    /// The last place that was looked at.
    pub reached: i64,
}

impl Shell {
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
        let actor = Actor { auth: Auth { method: "operator", trust: None }, ..Actor::system() };
        let name = self.os_user.as_deref();
        let detached = Detached::default().keep("actor_name", name, &*self.random);
        let made = ExportMade {
            org_id: org.id,
            export: &ExportId::new(self.ids()).to_string(),
            request: &request.to_json(),
            result: &written.to_json(),
            actor,
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
    pub async fn stored_event(&self, org: OrgId, id: EventId) -> Result<EventRecord, ShellError> {
        let found = self.store.find_event(org, Visibility::All, id).await?;
        found.ok_or_else(|| ShellError::NoEvent(id.to_string()))
    }

    /// Seals what is committed, and gives one event as the API does. Fails if there is none.
    pub async fn log_event(
        &self,
        org: &Org,
        identity: LogIdentity,
        id: EventId,
    ) -> Result<Value, ShellError> {
        let signer = self.signer(identity);
        self.store.seal(org.id, &signer).await?;
        let event = self.stored_event(org.id, id).await?;
        let mut found = show(&signer, org.id, std::slice::from_ref(&event))?;
        found.pop().ok_or_else(|| ShellError::NoEvent(id.to_string()))
    }

    /// Seals what is committed, and gives the last `count` events that `filter` lets through.
    pub async fn log_end(
        &self,
        org: &Org,
        identity: LogIdentity,
        filter: &EventFilter,
        count: u32,
    ) -> Result<Tail, ShellError> {
        let signer = self.signer(identity);
        self.store.seal(org.id, &signer).await?;
        let end = self.store.sealed_size(org.id).await?;
        let all = Visibility::All;
        let order = EventOrder::Descending;
        let mut found = Vec::new();
        let mut after = Some(end);
        while found.len() < usize::try_from(count).unwrap_or(usize::MAX) {
            let missing = count.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
            let page = self
                .store
                .list_events(org.id, all, filter, order, after, missing.min(PAGE))
                .await?;
            found.extend(page.events);
            after = page.reached;
            if !page.more || after.is_none() {
                break;
            }
        }
        found.reverse();
        Ok(Tail { events: show(&signer, org.id, &found)?, reached: end - 1 })
    }

    /// The events behind `reached` that `filter` lets through, as far as they are sealed.
    pub async fn log_after(
        &self,
        org: &Org,
        host: &str,
        filter: &EventFilter,
        reached: i64,
    ) -> Result<Tail, ShellError> {
        let all = Visibility::All;
        let order = EventOrder::Ascending;
        let page = self.store.list_events(org.id, all, filter, order, Some(reached), PAGE).await?;
        let origin = crate::audit::log::origin(host, org.id);
        let reached = page.reached.unwrap_or(reached);
        Ok(Tail { events: records(&origin, &page.events)?, reached })
    }
}

fn show(signer: &LogSigner, org: OrgId, events: &[EventRecord]) -> Result<Vec<Value>, ShellError> {
    records(&signer.origin(org), events)
}

fn records(origin: &str, events: &[EventRecord]) -> Result<Vec<Value>, ShellError> {
    let read = |event: &EventRecord| {
        let sealed = sealed(event)?;
        let mismatches = sealed.mismatches(Shown::Named);
        let record = sealed.record(origin, Shown::Named, &mismatches).ok()?;
        serde_json::from_str(&record).ok()
    };
    let unreadable = || ShellError::Store(StoreError::Corrupt("audit_events.core"));
    events.iter().map(|event| read(event).ok_or_else(unreadable)).collect()
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
