//! The log as evidence: sealing, signing, proofs and checkpoints.

use std::{collections::BTreeSet, sync::Arc};

use arc_swap::ArcSwap;
use portcullis_core::{
    audit::{
        Actor, Detached, Event, EventType, Hash, Outcome, OutcomeStatus, Plan, Shown,
        checkpoint::{Checkpoint, hash_text},
        keyring::{Keyring, KnownKey},
        leaf_bytes, leaf_hash,
        merkle::{empty_root, root_of_path},
        note::{KeyError, SigningKey, VerifierKey},
        proof::TlogProof,
    },
    clock::{Clock, Timestamp},
    id::{EventId, Ids, OrgId},
    random::Random,
    refusal::{Executed, Refusal},
};
use portcullis_store::{
    CheckpointKind, NewEvent, RefusedRow, RowBeyond, RowFault, Sealer, SignedNote, StoreError,
    StoredCheckpoint, UnsealedEvent,
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{
    Audit,
    events::{row_of, sealed, visibility},
};
use crate::{
    request::{Ctx, target_of},
    telemetry::counters,
};

/// Under which names and with which keys the logs are signed.
#[derive(Debug)]
pub(crate) struct LogSigner {
    host: String,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    keys: ArcSwap<Keyring>,
    pub(crate) pending: Mutex<Pending>,
}

/// State of the sealing job: the work it knows of.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Up to which position the orgs of committed events are known; `None` before the first look.
    pub(crate) known: Option<i64>,
    /// The orgs with something to seal or to sign.
    pub(crate) orgs: BTreeSet<OrgId>,
    /// Rows at positions that were not given out, which the last sweep found.
    pub(crate) beyond: Vec<RowBeyond>,
}

impl LogSigner {
    pub(crate) fn new(
        host: String,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        keys: Keyring,
    ) -> Self {
        let keys = ArcSwap::from_pointee(keys);
        Self { host, clock, random, keys, pending: Mutex::default() }
    }

    /// The keys that sign, or once signed, the log of `org`.
    pub(crate) fn known(&self, org: OrgId) -> Result<Vec<KnownKey>, KeyError> {
        self.keys.load().known(&self.origin(org))
    }

    /// The name of an org's log.
    pub(crate) fn origin(&self, org: OrgId) -> String {
        origin(&self.host, org)
    }

    /// The event that tells of open calls whose rows are not as the gateway wrote them.
    pub(crate) fn refuse_intents(&self, org: OrgId, ids: &[EventId]) -> NewEvent {
        counters::rows_refused(ids.len());
        let fault = RowFault::Mac.as_str();
        let named = ids.iter().take(MAX_SHOWN).map(|id| json!({ "fault": fault, "id": id }));
        let details = json!({ "rows": named.collect::<Vec<_>>() });
        tracing::error!(
            log = self.origin(org),
            count = ids.len(),
            %details,
            "rows of open calls were not written by this installation: they were added or changed in the \
             database, and are removed"
        );
        self.rows_refused(org, ids.len(), details)
    }

    fn rows_refused(&self, org: OrgId, count: usize, details: Value) -> NewEvent {
        row_of(&Event {
            id: EventId::new(Ids { clock: &*self.clock, random: &*self.random }),
            org_id: org,
            kind: EventType::AuditRowsRefused,
            occurred_at: self.clock.now(),
            count: u64::try_from(count).ok(),
            actor: Actor::system(),
            request: None,
            target: Some(target_of("audit_log", org)),
            governance: None,
            outcome: REFUSED,
            detached: Detached::default().keep("refused", Some(details), &*self.random),
        })
    }
}

/// The name of an org's log in an installation whose public host is `host`.
#[must_use]
pub fn origin(host: &str, org: OrgId) -> String {
    format!("{host}/audit/{org}")
}

/// Refused rows that an event names.
const MAX_SHOWN: usize = 20;
/// Characters of the id of a refused row that are shown: anybody may have written them.
const MAX_SHOWN_ID: usize = 40;

/// Part that may be shown of the id of a row that was not written by the gateway.
pub(crate) fn shown(id: &str) -> String {
    id.chars().filter(char::is_ascii_graphic).take(MAX_SHOWN_ID).collect()
}

/// Ending of what the gateway would not do.
pub(crate) const REFUSED: Outcome = Outcome {
    error_code: None,
    executed: Executed::No,
    http_status: 0,
    status: OutcomeStatus::Denied,
};

impl Sealer for &LogSigner {
    fn leaf(&self, event: &UnsealedEvent, sequence: i64, recorded_at: Timestamp) -> Hash {
        match leaf_bytes(&event.core, sequence, recorded_at) {
            Ok(leaf) => leaf_hash(leaf.as_bytes()),
            // Not ours: sealed as it is, so that a reader finds what was stored.
            Err(_) => leaf_hash(event.core.as_bytes()),
        }
    }

    fn sign(&self, org: OrgId, size: u64, root: &Hash) -> Option<SignedNote> {
        // A process that was not told the name of the logs has not their keys either.
        if self.host.is_empty() {
            return None;
        }
        let checkpoint = Checkpoint { origin: self.origin(org), size, root: *root };
        match self.keys.load().signers(&checkpoint.origin) {
            Ok(keys) => {
                let keys: Vec<&SigningKey> = keys.iter().collect();
                let note = checkpoint.sign(&keys).to_string();
                Some(SignedNote { note, signed_at: self.clock.now() })
            }
            Err(error) => {
                tracing::error!(%error, log = checkpoint.origin, "the log cannot be signed");
                None
            }
        }
    }

    fn refuse(&self, org: OrgId, rows: &[RefusedRow]) -> Option<NewEvent> {
        counters::rows_refused(rows.len());
        let named = rows.iter().take(MAX_SHOWN).map(|row| {
            let id = shown(&row.id);
            json!({ "fault": row.fault.as_str(), "id": id, "position": row.position })
        });
        let details = json!({ "rows": named.collect::<Vec<_>>() });
        tracing::error!(
            log = self.origin(org),
            count = rows.len(),
            %details,
            "rows that wait for their seals were not written by this installation, or are copies: \
             they were added or changed in the database, and get no place in the log"
        );
        Some(self.rows_refused(org, rows.len(), details))
    }

    fn forked(&self, org: OrgId, signed_size: u64) {
        counters::log_forked();
        tracing::error!(
            log = self.origin(org),
            signed_size,
            "the stored log is not the continuation of the one that was signed, or its head is at a \
             position that was not given out, so nothing more is signed: the database was changed or set \
             back; compare it with a checkpoint kept elsewhere"
        );
    }
}

/// A checkpoint and what connects it with an older one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointSince {
    /// The signed note.
    pub checkpoint: String,
    /// Size of the older tree.
    pub since: u64,
    /// The consistency proof (RFC 6962 §2.1.2), each hash in base64.
    pub consistency: Vec<String>,
}

impl Audit {
    /// Gives every unsealed event of the org its place in the log, and signs the log.
    pub(crate) async fn seal(&self, org: OrgId) -> Result<u64, StoreError> {
        let sealed = self.base.store.seal(org, &self.log).await?;
        counters::sealed(sealed);
        Ok(sealed)
    }

    /// The same for several orgs, and how it went with each.
    pub(crate) async fn seal_each(&self, orgs: &[OrgId]) -> Vec<(OrgId, Result<u64, StoreError>)> {
        let told = self.base.store.seal_each(orgs, &self.log).await;
        for (_, sealed) in &told {
            counters::sealed(sealed.as_ref().copied().unwrap_or(0));
        }
        told
    }

    /// Signs with these keys from now on. Refuses keys that do not go with what was signed; then
    /// those so far sign on.
    pub async fn change_log_keys(&self, keys: Keyring) -> Result<(), LogKeyError> {
        self.check_keys(&keys).await?;
        self.log.keys.store(keys.into());
        let mut pending = self.log.pending.lock().await;
        // Signed anew, also those logs that do not grow.
        let signed = self.base.store.checkpoints_since(Timestamp::default()).await?;
        pending.orgs.extend(signed.into_iter().map(|(org, _)| org));
        Ok(())
    }

    /// The keys that sign, or once signed, the log of `org`.
    pub fn log_keys(&self, org: OrgId) -> Result<Vec<KnownKey>, KeyError> {
        self.log.known(org)
    }

    /// The proof that an event is in the log, as the text of a `c2sp.org/tlog-proof@v1`. Visible
    /// as the event is; sealed and signed at once if it was not yet.
    pub async fn event_proof(&self, ctx: &Ctx, id: &str) -> Result<String, Refusal> {
        let unknown = || Refusal::not_found("event", id);
        let event: EventId = id.parse().map_err(|_| unknown())?;
        let org = ctx.caller().org_id;
        let found = self.base.store.find_event(org, visibility(ctx), event).await?;
        let mut record = found.ok_or_else(unknown)?;
        if record.seal.is_none() {
            self.seal(org).await?;
            let again = self.base.store.find_event(org, visibility(ctx), event).await;
            record = again?.ok_or_else(unknown)?;
        }
        let seal = record.seal.ok_or_else(|| Refusal::not_found("proof", id))?;
        let held = sealed(&record).map(|sealed| self.mismatches(org, event, &sealed, Shown::Bare));
        if held.is_none_or(|mismatches| !mismatches.is_empty()) {
            // There is no proof of a record that is not the one in the tree.
            return Err(Refusal::Internal);
        }
        let index = u64::try_from(seal.sequence).map_err(|_| Refusal::Internal)?;
        let signed = self.covering(org, index).await?;
        let signed = signed.ok_or_else(|| Refusal::not_found("proof", id))?;
        let plan = Plan::inclusion(index, signed.size).ok_or(Refusal::Internal)?;
        let path = self.base.store.prove(org, &plan).await?;
        if root_of_path(index, signed.size, &seal.leaf_hash, &path) != Some(signed.root) {
            tracing::error!(%event, "the stored log does not prove this event: it was changed");
            return Err(Refusal::Internal);
        }
        Ok(TlogProof { index, path, checkpoint: signed.note }.to_string())
    }

    /// A checkpoint that covers the leaf at `index`: one that a witness signed, if there is one.
    async fn covering(
        &self,
        org: OrgId,
        index: u64,
    ) -> Result<Option<StoredCheckpoint>, StoreError> {
        let covers = |it: &StoredCheckpoint| it.size > index;
        let witnessed = self.base.store.find_checkpoint(org, CheckpointKind::Witnessed).await?;
        if let Some(witnessed) = witnessed.filter(covers) {
            return Ok(Some(witnessed));
        }
        if let Some(signed) = self.signed(org).await?.filter(covers) {
            return Ok(Some(signed));
        }
        // Sealed by a process without keys, such as a command of the operator.
        self.seal(org).await?;
        Ok(self.signed(org).await?.filter(covers))
    }

    /// The latest signed checkpoint of the org's log.
    pub(crate) async fn signed(&self, org: OrgId) -> Result<Option<StoredCheckpoint>, StoreError> {
        self.base.store.find_checkpoint(org, CheckpointKind::Signed).await
    }

    /// The latest signed checkpoint, which covers everything committed before it was asked for.
    pub async fn checkpoint(&self, ctx: &Ctx) -> Result<String, Refusal> {
        Ok(self.latest(ctx).await?.note)
    }

    /// The latest checkpoint, and the proof that the log of `since` events which the caller saw
    /// before is its beginning. Fails if there are fewer events than that.
    pub async fn checkpoint_since(
        &self,
        ctx: &Ctx,
        since: u64,
    ) -> Result<CheckpointSince, Refusal> {
        let latest = self.latest(ctx).await?;
        let Some(plan) = Plan::consistency(since, latest.size) else {
            let message = format!(
                "`since` is larger than the log, which has {} events: either the number is wrong \
                 or the log was cut.",
                latest.size
            );
            return Err(Refusal::bad_parameter("since", message));
        };
        let proof = self.base.store.prove(ctx.caller().org_id, &plan).await;
        let proof = proof?;
        let consistency = proof.iter().map(hash_text).collect();
        Ok(CheckpointSince { checkpoint: latest.note, since, consistency })
    }

    async fn latest(&self, ctx: &Ctx) -> Result<StoredCheckpoint, Refusal> {
        let org = ctx.caller().org_id;
        self.seal(org).await?;
        let signed = self.signed(org).await?;
        let witnessed = self.base.store.find_checkpoint(org, CheckpointKind::Witnessed).await;
        let witnessed = witnessed?;
        match (signed, witnessed) {
            (Some(signed), Some(witnessed)) if witnessed.size == signed.size => Ok(witnessed),
            (Some(signed), _) => Ok(signed),
            (None, _) => self.nothing_yet(org),
        }
    }

    /// The checkpoint of a log without events.
    fn nothing_yet(&self, org: OrgId) -> Result<StoredCheckpoint, Refusal> {
        let root = empty_root();
        let signed = (&self.log).sign(org, 0, &root).ok_or(Refusal::Internal)?;
        Ok(StoredCheckpoint { size: 0, root, note: signed.note, signed_at: signed.signed_at })
    }

    /// Fails if what is signed was signed by keys that are not here, or under another name.
    pub async fn check_log_keys(&self) -> Result<(), LogKeyError> {
        self.check_keys(&self.log.keys.load()).await
    }

    /// One that does not open may have been changed; none that opens means other keys.
    async fn check_keys(&self, keys: &Keyring) -> Result<(), LogKeyError> {
        let mut wrong = None;
        for (org, checkpoint) in self.base.store.recent_checkpoints(LOOKED_AT).await? {
            match self.signed_by(keys, org, &checkpoint.note) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    tracing::error!(%error, %org, "a signed checkpoint does not open");
                    wrong.get_or_insert(error);
                }
            }
        }
        wrong.map_or(Ok(()), Err)
    }

    fn signed_by(&self, keys: &Keyring, org: OrgId, note: &str) -> Result<(), LogKeyError> {
        let origin = self.log.origin(org);
        let known = keys.known(&origin)?;
        let keys: Vec<VerifierKey> = known.into_iter().map(|key| key.verifier).collect();
        let said = note.lines().next().unwrap_or_default();
        if said != origin {
            return Err(LogKeyError::Renamed { was: said.to_owned(), is: origin });
        }
        match Checkpoint::open(note, &keys) {
            Ok(_) => Ok(()),
            Err(_) => Err(LogKeyError::Stranger(origin)),
        }
    }
}

/// Checkpoints that are held against the keys of a node that starts.
const LOOKED_AT: u32 = 10;

/// Reason that a node must not sign the logs it has.
#[derive(Debug, thiserror::Error)]
pub enum LogKeyError {
    #[error(
        "the log `{0}` was signed with a key that is not here: bring back the file with the \
         signing keys (`audit.signing_key`, by default `audit-key` in the data folder)"
    )]
    Stranger(String),
    #[error(
        "the log was signed as `{was}` and would now be `{is}`, which nobody who keeps a \
         checkpoint could tell from a forgery: set `server.public_host` as it was"
    )]
    Renamed { was: String, is: String },
    #[error("the signing keys of the audit logs cannot be used: {0}")]
    Key(#[from] KeyError),
    #[error(transparent)]
    Store(#[from] StoreError),
}
