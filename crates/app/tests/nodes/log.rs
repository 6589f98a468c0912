//! The log of an org in a database file of its own, written and verified as the gateway does it, whose
//! clock stands where a test puts it.

use std::{path::Path, sync::Arc, time::Duration};

use portcullis_app::{LogIdentity, Operator, ReindexMode, Reindexed, Retention, Witnessed, origin};
use portcullis_core::{
    audit::{
        Actor, Auth, Detached, DlpResult, Event, EventType, Governance, Outcome, RecordedDecision,
        Request, Target,
        export::{Fault, Since},
        keyring::Keyring,
        note::VerifierKey,
    },
    clock::{Clock, Timestamp},
    id::{EventId, HoldId, Ids, OrgId, PrincipalId, PrincipalKind, RequestId},
    principal::Plan,
    random::Random,
    refusal::Executed,
};
use portcullis_store::{
    AuditSettings, AuditWriter, CheckpointKind, DatabaseSettings, DatabaseUrl, EventTexts, Hold,
    NewEvent, Org, RowKey, Store, TextColumn,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::node::{NOW, Stopped, SystemRandom};

const HOST: &str = "localhost";
const PATIENCE: Duration = Duration::from_mins(1);

/// The operator of a database file.
pub(crate) struct Log {
    pub(crate) operator: Operator,
    pub(crate) clock: Arc<Stopped>,
    keys: Keyring,
    writing: TaskTracker,
}

/// Values beside the record of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payload {
    Kept,
    CommittedTo,
}

impl Log {
    /// A new database, or the one that is there.
    pub(crate) async fn open(file: &Path, keys: &Keyring) -> Self {
        let stopped = Arc::new(Stopped::at(NOW));
        let (clock, random): (Arc<dyn Clock>, Arc<dyn Random>) =
            (Arc::<Stopped>::clone(&stopped), Arc::new(SystemRandom));
        let url = DatabaseUrl::sqlite(file.to_path_buf());
        let store =
            Store::open(&DatabaseSettings::new(url, RowKey::derive(&[0; 32]))).await.unwrap();
        let settings = AuditSettings::new("test".to_owned());
        let (writer, task) = AuditWriter::new(store.clone(), Arc::clone(&clock), settings);
        let writing = TaskTracker::new();
        writing.spawn(task.run());
        writing.close();
        let operator = Operator { clock, random, store, writer, os_user: Some("ops".to_owned()) };
        Self { operator, clock: stopped, keys: keys.clone(), writing }
    }

    /// A new database in this folder, with keys of its own.
    pub(crate) async fn begin(folder: &TempDir) -> Self {
        Self::open(&folder.path().join("audit.db"), &Keyring::generate(&SystemRandom, NOW)).await
    }

    pub(crate) async fn close(self) {
        let Self { operator: Operator { store, writer, .. }, writing, .. } = self;
        drop(writer);
        writing.wait().await;
        store.close().await;
    }

    pub(crate) async fn org(&self, name: &str) -> Org {
        let org = Org {
            id: OrgId::new(self.ids()),
            name: name.to_owned(),
            plan: Plan::Pro,
            created_at: self.operator.clock.now(),
            disabled_at: None,
        };
        self.operator.store.create_org(&org).await.unwrap();
        let mut event = self.system(org.id, EventType::OrgChanged);
        event.target = Some(target("org", &org.id.to_string()));
        event.detached = event.detached.keep("actor_name", Some("ops"), &SystemRandom);
        self.append(&event).await;
        org
    }

    pub(crate) fn identity(&self) -> LogIdentity {
        LogIdentity { host: HOST.to_owned(), keys: self.keys.clone() }
    }

    pub(crate) fn verifier_keys(&self, org: &Org) -> Vec<VerifierKey> {
        let known = self.keys.known(&origin(HOST, org.id)).unwrap();
        known.into_iter().map(|key| key.verifier).collect()
    }

    /// Whatever is verified is also sealed and signed. Gives the size of the log.
    pub(crate) async fn verify(&self, org: &Org, newest: Option<Since>) -> Result<u64, Fault> {
        let trees = newest.iter().map(|since| {
            let tree = since.checkpoint();
            (tree.size, vec![tree.root])
        });
        let trees = trees.collect();
        let witnessed = Witnessed { keys: self.verifier_keys(org), newest, trees };
        let found = self.operator.verify_log(org, self.identity(), &witnessed).await.unwrap();
        let (report, indexed) = found?;
        if let Some((size, _)) = indexed.strangers.first() {
            return Err(Fault::Inconsistent(format!("the first {size} are others")));
        }
        let found = self.reindex(org, ReindexMode::Check).await;
        if found.differs() || found.unproven > 0 {
            return Err(Fault::Index(format!("{found:?}")));
        }
        Ok(report.checkpoint_size)
    }

    /// Index and counts of the org's events, held against their records.
    pub(crate) async fn reindex(&self, org: &Org, mode: ReindexMode) -> Reindexed {
        let retention = Retention::default();
        let found = self.operator.reindex(org, self.identity(), mode, retention, |_, _| {}).await;
        let mut stray = self.operator.reindex_entries(Some(org.id), mode).await.unwrap();
        Reindexed { stray_entries: stray.remove(&Some(org.id)).unwrap_or(0), ..found.unwrap() }
    }

    /// The checkpoint of all that is recorded, as an auditor keeps it elsewhere.
    pub(crate) async fn checkpoint(&self, org: &Org) -> Since {
        self.verify(org, None).await.unwrap();
        let signed = self.operator.store.find_checkpoint(org.id, CheckpointKind::Signed).await;
        Since::open(&signed.unwrap().unwrap().note, &self.verifier_keys(org)).unwrap()
    }

    fn ids(&self) -> Ids<'_> {
        Ids { clock: &*self.operator.clock, random: &SystemRandom }
    }

    pub(crate) fn principal(&self) -> PrincipalId {
        PrincipalId::new(PrincipalKind::User, self.ids())
    }

    /// Commits an event at this moment.
    pub(crate) async fn append(&self, event: &Event) -> EventId {
        let deadline = Instant::now() + PATIENCE;
        self.operator.writer.append(row(event), deadline).await.unwrap();
        event.id
    }

    /// Commits calls of `who` in turn, some of them at the same moment; every other payload is kept.
    pub(crate) async fn calls(&self, org: &Org, who: &[PrincipalId], count: usize) {
        for (number, who) in who.iter().cycle().take(count).enumerate() {
            if number % 3 != 0 {
                self.clock.set(Timestamp::from_micros(self.clock.now().as_micros() + 700));
            }
            let payload =
                if number.is_multiple_of(2) { Payload::Kept } else { Payload::CommittedTo };
            self.append(&self.call(org.id, *who, payload)).await;
        }
    }

    pub(crate) fn call(&self, org: OrgId, who: PrincipalId, payload: Payload) -> Event {
        let mut detached = Detached::default()
            .keep("actor_name", Some("ann"), &SystemRandom)
            .keep("source_ip", Some("203.0.113.7"), &SystemRandom)
            .keep("label", Some("claude-code"), &SystemRandom);
        let input = json!({ "limit": 1 });
        match payload {
            Payload::Kept => detached.keep_payload("input", &input, &SystemRandom),
            Payload::CommittedTo => detached.commit("input", &input, &SystemRandom),
        }
        let auth = Auth { method: "operator", trust: None };
        let kind = who.kind().as_str();
        let id = RequestId::new(self.ids());
        Event {
            actor: Actor {
                act: None,
                auth,
                client: None,
                id: Some(who),
                token_id: None,
                kind,
                via: None,
            },
            request: Some(Request { id, idempotent: false, trace_id: None }),
            target: Some(target("mcp", "sample:list_items")),
            governance: Some(Governance {
                approvals: Vec::new(),
                decision: Some(RecordedDecision::Allow),
                determining_policies: Vec::new(),
                dlp_findings: Vec::new(),
                dlp_result: DlpResult::Passed,
                policy: Some("base".to_owned()),
                policy_set: None,
                policy_version: None,
                reason: None,
                shadow: Vec::new(),
            }),
            detached,
            ..self.system(org, EventType::McpInvocation)
        }
    }

    fn system(&self, org_id: OrgId, kind: EventType) -> Event {
        Event {
            id: EventId::new(self.ids()),
            org_id,
            kind,
            occurred_at: self.operator.clock.now(),
            count: None,
            actor: Actor::system(),
            request: None,
            target: Some(target("audit_log", &org_id.to_string())),
            governance: None,
            outcome: Outcome::success(Executed::Yes),
            detached: Detached::default(),
        }
    }

    /// Holds what is recorded from this moment on.
    pub(crate) async fn hold_from(&self, org: &Org, from: Timestamp) {
        let hold = Hold {
            id: HoldId::new(self.ids()),
            org_id: org.id,
            reason: "case 4711".to_owned(),
            actor_id: None,
            from: Some(from),
            to: None,
            created_at: self.operator.clock.now(),
            released_at: None,
        };
        let laid = json!({ "id": hold.id, "actor": null, "from": from, "to": null });
        let laid = Some(json!({ "laid": laid }));
        let detached = Detached::default().keep("hold", laid, &SystemRandom);
        let mut event = self.system(org.id, EventType::AuditHoldChanged);
        event.target = Some(target("hold", &hold.id.to_string()));
        let event = row(&Event { detached, ..event });
        self.operator.store.lay_hold(&hold, &event).await.unwrap();
    }

    /// The row of the event that tells what retention removed.
    pub(crate) fn pruned(&self, org: OrgId, details: Value) -> NewEvent {
        let detached = Detached::default().keep("pruning", Some(details), &SystemRandom);
        row(&Event { detached, ..self.system(org, EventType::AuditPruned) })
    }
}

fn target(kind: &'static str, id: &str) -> Target {
    Target {
        capability: None,
        credential: None,
        id: Some(id.to_owned()),
        provider_id: None,
        kind,
        version: None,
    }
}

fn row(event: &Event) -> NewEvent {
    let governance = event.governance.as_ref();
    let target = event.target.as_ref().and_then(|target| target.id.as_deref());
    let mut seed = String::new();
    event.detached.write_seed(&mut seed);
    let given = [
        (TextColumn::Target, target),
        (TextColumn::Policy, governance.and_then(|it| it.policy.as_deref())),
        (TextColumn::Core, Some(&*event.parts().kept_json())),
        (TextColumn::Detached, Some(&*event.detached.values_json())),
        (TextColumn::Salts, Some(&*seed)),
    ];
    let given = given.into_iter().filter_map(|(column, text)| Some((column, text?)));
    let texts = given.fold(EventTexts::default(), |row, (column, text)| row.with(column, text));
    NewEvent {
        id: event.id,
        org_id: event.org_id,
        kind: event.kind.as_str().into(),
        occurred_at: event.occurred_at,
        actor_id: event.actor.id,
        via: event.actor.via,
        token_id: event.actor.token_id,
        decision: governance.and_then(|it| it.decision).map(|it| it.as_str().into()),
        dlp_result: governance.map(|it| it.dlp_result.as_str().into()),
        outcome: Some(event.outcome.status.as_str().into()),
        request_id: event.request.as_ref().map(|request| request.id),
        texts,
        has_payload: event.detached.has_payload(),
    }
}
