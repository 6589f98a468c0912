//! Sealing: gives committed events their place in the org's log, and signs what stands.
//!
//! Anyone may seal at any time, several at once: only who still finds the head of the log as it
//! was read may move it. Places, hashes of the tree and the checkpoint that covers them are one
//! transaction: what a crash leaves is the log before or the log after.

mod growth;
mod postgres;
mod sqlite;
mod tail;

use async_recursion::async_recursion as boxed;
use portcullis_core::{
    audit::{Hash, merkle::Frontier},
    clock::Timestamp,
    id::{EventId, OrgId},
};

use self::growth::{Growth, Head, LogState, Unsealed, frontier_of, grown, seals_of, signed};
pub(super) use self::sqlite::INDEX;
use super::checkpoints::{CheckpointKind, HeadRow, StoredCheckpoint};
use crate::{
    db::{
        Db, Found, LogConnection, NewEvent, Store, all, change, find, last_given, one, read,
        waiting_events,
    },
    error::StoreError,
};

/// Events that are read of one log at a time, and after which no further log is read before they
/// have their places: while those are written, nothing else writes to SQLite, for some ten milliseconds.
const BATCH: usize = 256;

/// Results of sealing several logs.
type SealResults = Vec<(OrgId, Result<u64, StoreError>)>;

/// A committed event that has no place yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsealedEvent {
    pub id: EventId,
    pub org_id: OrgId,
    /// The part that is hashed, as JSON, without sequence and time of recording.
    pub core: String,
}

/// A signed note and when it was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedNote {
    pub note: String,
    pub signed_at: Timestamp,
}

/// A row that is not sealed, and no longer waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRow {
    /// Its id, whatever is written there.
    pub id: String,
    pub position: i64,
    pub fault: RowFault,
}

portcullis_core::words! {
    /// Reason that a row is not sealed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RowFault {
        /// Its code is not that of the row: the gateway did not write it like this.
        Mac = "mac",
        /// An event of its id has a place already.
        Twice = "twice",
    }
}

/// Callbacks of sealing. Each may be called more than once.
pub trait Sealer: Send + Sync {
    /// The leaf hash of an event from its sequence (counted from 0 without gaps) and time of
    /// recording (never running backwards).
    fn leaf(&self, event: &UnsealedEvent, sequence: i64, recorded_at: Timestamp) -> Hash;

    /// The signed checkpoint of a tree, the same one each time; `None` leaves it to the next
    /// sealer.
    fn sign(&self, org: OrgId, size: u64, root: &Hash) -> Option<SignedNote>;

    /// The event in the log of the org that tells of rows which are not sealed. Told once for each row that is set
    /// aside, but again if another sealer was faster.
    fn refuse(&self, org: OrgId, rows: &[RefusedRow]) -> Option<NewEvent>;

    /// The stored log is not the continuation of a tree of that size, or not as long as its own
    /// tree, or its head is at a position that the gateway has not given out: it was tampered with,
    /// and nothing is signed.
    fn forked(&self, org: OrgId, size: u64);
}

/// Seals without signing.
impl<F> Sealer for F
where
    F: Fn(&UnsealedEvent, i64, Timestamp) -> Hash + Send + Sync,
{
    fn leaf(&self, event: &UnsealedEvent, sequence: i64, recorded_at: Timestamp) -> Hash {
        self(event, sequence, recorded_at)
    }

    fn sign(&self, _: OrgId, _: u64, _: &Hash) -> Option<SignedNote> {
        None
    }

    fn refuse(&self, _: OrgId, _: &[RefusedRow]) -> Option<NewEvent> {
        None
    }

    fn forked(&self, _: OrgId, _: u64) {}
}

/// Work on a log.
enum Step {
    Done,
    Grow(Box<Growth>),
}

impl Store {
    /// Seals what the org has committed, in the order of commits, and says how many events that
    /// were. When it returns, all that is sealed is in the tree and, as far as the sealer signs,
    /// covered by a checkpoint.
    pub async fn seal(&self, org: OrgId, sealer: impl Sealer) -> Result<u64, StoreError> {
        let horizon = self.horizon().await?;
        self.seal_one(org, horizon, &sealer).await
    }

    async fn seal_one(
        &self,
        org: OrgId,
        horizon: i64,
        sealer: &impl Sealer,
    ) -> Result<u64, StoreError> {
        let mut count = 0;
        while let Some(standing) = self.standings(&[org], horizon).await?.pop() {
            match self.step(org, standing?, sealer).await? {
                Step::Done => break,
                Step::Grow(growth) => {
                    let events = growth.events();
                    let is_last = growth.is_last;
                    let ours = self.grow(vec![*growth]).await? == [true];
                    count += if ours { events } else { 0 };
                    if ours && is_last {
                        break;
                    }
                }
            }
        }
        Ok(count)
    }

    /// The same for several orgs, and how it went with each. What is short is read together, and
    /// written in one transaction: a commit costs more than what is in it.
    pub async fn seal_each(
        &self,
        orgs: &[OrgId],
        sealer: impl Sealer,
    ) -> Vec<(OrgId, Result<u64, StoreError>)> {
        let mut told = SealResults::with_capacity(orgs.len());
        // In order, so that two nodes never wait for each other.
        let mut orgs = orgs.to_vec();
        orgs.sort_unstable();
        let horizon = match self.horizon().await {
            Ok(horizon) => horizon,
            Err(error) => return orgs.into_iter().map(|org| (org, Err(error.clone()))).collect(),
        };
        let mut waiting = orgs.as_slice();
        while !waiting.is_empty() {
            let standings = match self.standings(waiting, horizon).await {
                Ok(standings) => standings,
                Err(error) => {
                    told.extend(waiting.iter().map(|org| (*org, Err(error.clone()))));
                    break;
                }
            };
            let count = standings.len().max(1);
            let (read, rest) = waiting.split_at_checked(count).unwrap_or((waiting, &[]));
            let read = read.iter().copied().zip(standings).collect();
            for (org, events) in self.seal_read(read, &sealer, &mut told).await {
                let more = self.seal_one(org, horizon, &sealer).await;
                told.push((org, more.map(|more| events + more)));
            }
            waiting = rest;
        }
        told
    }

    /// Writes what the logs that were read grow by. Gives those that are to be looked at alone, each
    /// with the events that have their places by now.
    async fn seal_read(
        &self,
        read: Vec<(OrgId, Result<Option<LogState>, StoreError>)>,
        sealer: &impl Sealer,
        told: &mut SealResults,
    ) -> Vec<(OrgId, u64)> {
        let mut alone = Vec::new();
        let mut growths = Vec::new();
        for (org, standing) in read {
            let step = match standing {
                Ok(standing) => self.step(org, standing, sealer).await,
                Err(error) => Err(error),
            };
            match step {
                Ok(Step::Done) => told.push((org, Ok(0))),
                Ok(Step::Grow(growth)) => growths.push(*growth),
                Err(error) => told.push((org, Err(error))),
            }
        }
        let grown: Vec<_> = growths.iter().map(|it| (it.org, it.events(), it.is_last)).collect();
        // If it fails, one of them may be what fails.
        let ours = self.grow(growths).await.unwrap_or_default();
        let ours = ours.into_iter().chain(std::iter::repeat(false));
        for ((org, events, is_last), ours) in grown.into_iter().zip(ours) {
            match (ours, is_last) {
                (true, true) => told.push((org, Ok(events))),
                (true, false) => alone.push((org, events)),
                (false, _) => alone.push((org, 0)),
            }
        }
        alone
    }

    /// Finds out what there is to do for a log.
    async fn step(
        &self,
        org: OrgId,
        standing: Option<LogState>,
        sealer: &impl Sealer,
    ) -> Result<Step, StoreError> {
        let Some(mut standing) = standing else { return Ok(Step::Done) };
        let head = standing.head;
        if head.tree_size != head.size || head.last_position > standing.last_given {
            sealer.forked(org, u64::try_from(head.tree_size).unwrap_or(0));
            return Err(StoreError::Corrupt("audit_heads"));
        }
        let mut tree = standing.tree()?;
        let before = frontier_of(&tree)?;
        let Some(last_position) = standing.rows.last().map(|row| row.position) else {
            self.sign_head(org, &before, standing.signed, sealer).await?;
            return Ok(Step::Done);
        };
        let is_short = standing.rows.len() < BATCH;
        let (seals, refused) = seals_of(org, &head, standing.rows, &self.row_key, sealer)?;
        let refusal = if refused.is_empty() { None } else { sealer.refuse(org, &refused) };
        let continues = self.continues(org, &before, standing.signed.as_ref(), sealer).await?;
        for seal in &seals {
            tree.push(seal.leaf_hash);
        }
        let after = grown(before, &tree, &seals)?;
        let checkpoint = if continues { signed(org, &after, sealer) } else { None };
        // If it is not signed, whether it can be is asked once more.
        let is_last = checkpoint.is_some() && is_short && refusal.is_none();
        let tiles = tree.into_changed();
        let growth =
            Growth { org, head, last_position, seals, tiles, checkpoint, refusal, is_last };
        Ok(Step::Grow(Box::new(growth)))
    }

    /// Heads of the first of these logs, at least one. Events committed behind the horizon wait.
    async fn standings(
        &self,
        orgs: &[OrgId],
        horizon: i64,
    ) -> Result<Vec<Result<Option<LogState>, StoreError>>, StoreError> {
        match &self.db {
            Db::Sqlite { log, .. } => {
                let orgs = orgs.to_vec();
                log.act(move |log| log.standings(&orgs, horizon, BATCH)).await
            }
            Db::Postgres(pool) => Ok(postgres::standings(pool, orgs, horizon, BATCH).await),
        }
    }

    /// Writes what logs grow by in one transaction. Which of them were still as they had been read,
    /// and have grown.
    async fn grow(&self, growths: Vec<Growth>) -> Result<Vec<bool>, StoreError> {
        match &self.db {
            _ if growths.is_empty() => Ok(Vec::new()),
            Db::Sqlite { log, .. } => log.act(move |log| log.grow(&growths)).await,
            Db::Postgres(pool) => postgres::grow(pool, &self.row_key, &growths).await,
        }
    }

    /// The orgs that have something to seal. Looks at every org: see [`Self::committed_since`].
    #[boxed]
    pub async fn orgs_with_unsealed(&self) -> Result<Vec<OrgId>, StoreError> {
        let unsealed = match &self.db {
            Db::Sqlite { log, .. } => {
                log.act(LogConnection::follow).await?;
                UNSEALED_IN_SQLITE
            }
            Db::Postgres(_) => UNSEALED_IN_POSTGRES,
        };
        let rows: Vec<Found<HeadRow>> = read!(self, installation, |conn| all!(conn, unsealed));
        Ok(self.readable(rows))
    }

    /// The orgs of the events committed behind `position`, and the position up to which that is
    /// known. Costs with the events, not with the orgs.
    #[boxed]
    pub async fn committed_since(&self, position: i64) -> Result<(Vec<OrgId>, i64), StoreError> {
        if let Db::Sqlite { log, .. } = &self.db {
            return log.act(move |log| log.committed_since(position)).await;
        }
        let last: i64 = read!(self, installation, |conn| one!(conn, scalar LAST_GIVEN));
        if last <= position {
            return Ok((Vec::new(), position));
        }
        let horizon = self.horizon().await?;
        let rows: Vec<Found<HeadRow>> = read!(self, installation, |conn| {
            all!(
                conn, "SELECT DISTINCT org_id FROM audit_events WHERE position > $1 AND position <= $2"
                => position, horizon
            )
        });
        Ok((self.readable(rows), horizon))
    }

    /// Number of sealed events of the org: the sequence of the next one.
    #[boxed]
    pub async fn sealed_size(&self, org: OrgId) -> Result<i64, StoreError> {
        let size = read!(self, unqueued org, |conn| {
            find!(conn, scalar "SELECT size FROM audit_heads WHERE org_id = $1" => org)
        });
        Ok(size.unwrap_or(0))
    }

    /// A position up to which every event is visible. Rows beyond were added from outside, or are written at this
    /// moment.
    #[boxed]
    pub async fn horizon(&self) -> Result<i64, StoreError> {
        if let Db::Sqlite { log, .. } = &self.db {
            return log.act(LogConnection::horizon).await;
        }
        let last: i64 = change!(self, installation, |tx| {
            tx.wait_for_writers().await?;
            one!(tx, scalar LAST_GIVEN)
        });
        Ok(last)
    }

    /// Returns true if the tree continues the one signed last; if not, the sealer is told.
    async fn continues(
        &self,
        org: OrgId,
        tree: &Frontier,
        signed: Option<&StoredCheckpoint>,
        sealer: &impl Sealer,
    ) -> Result<bool, StoreError> {
        let Some(signed) = signed else { return Ok(true) };
        let root = match signed.size {
            size if size > tree.size() => None,
            size if size == tree.size() => Some(tree.root()),
            size => Some(self.root_at(org, size).await?),
        };
        let continues = root == Some(signed.root);
        if !continues {
            sealer.forked(org, signed.size);
        }
        Ok(continues)
    }

    /// Signs the log as it stands, if what is signed is older or by other keys.
    async fn sign_head(
        &self,
        org: OrgId,
        tree: &Frontier,
        before: Option<StoredCheckpoint>,
        sealer: &impl Sealer,
    ) -> Result<(), StoreError> {
        if tree.size() == 0 && before.is_none() {
            return Ok(());
        }
        let Some(checkpoint) = signed(org, tree, sealer) else { return Ok(()) };
        let same = |it: &StoredCheckpoint| {
            it.size == tree.size() && it.root == checkpoint.root && it.note == checkpoint.note
        };
        if before.as_ref().is_some_and(same) {
            return Ok(());
        }
        if self.continues(org, tree, before.as_ref(), sealer).await? {
            self.keep_checkpoint(org, CheckpointKind::Signed, &checkpoint).await?;
        }
        Ok(())
    }
}

const LAST_GIVEN: &str = concat!("SELECT ", last_given!(postgres));

const UNSEALED_IN_POSTGRES: &str = "
SELECT h.org_id FROM audit_heads h WHERE EXISTS (SELECT 1 FROM audit_events e
    WHERE e.org_id = h.org_id AND e.position > h.last_position) ORDER BY h.org_id";

const UNSEALED_IN_SQLITE: &str = concat!(
    "SELECT DISTINCT h.org_id FROM (",
    waiting_events!(),
    ") w JOIN audit_heads h ON h.org_id = w.org_id WHERE w.position > h.last_position ORDER BY h.org_id"
);
