//! Sealing: gives committed events their place in the org's log, and signs what stands.
//!
//! Anyone may seal at any time, several at once: only who still finds the head of the log as it
//! was read may move it. Places, hashes of the tree and the checkpoint that covers them are one
//! transaction: what a crash leaves is the log before or the log after.

use portcullis_core::{
    audit::{
        Hash,
        tiles::{GrowingTree, TileId},
    },
    clock::Timestamp,
    id::{EventId, OrgId},
};

use super::{
    checkpoints::{CheckpointKind, StoredCheckpoint, put_checkpoint},
    tree::put_tiles,
};
use crate::{
    Store,
    db::{Db, Dialect, LogConnection, NewSeal, change, parse, read, row},
    error::StoreError,
};

const BATCH: u16 = 1000;

/// A committed event that has no place yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsealedEvent {
    /// Its id.
    pub id: EventId,
    /// The tenant.
    pub org_id: OrgId,
    /// The part that is hashed, as JSON, without sequence and time of recording.
    pub core: String,
}

/// A signed note and when it was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedNote {
    /// The note.
    pub note: String,
    /// When.
    pub signed_at: Timestamp,
}

/// What sealing needs to be told. Any of it may be asked more than once.
pub trait Sealer: Send + Sync {
    /// The leaf hash of an event from its sequence (counted from 0 without gaps) and time of
    /// recording (never running backwards).
    fn leaf(&self, event: &UnsealedEvent, sequence: i64, recorded_at: Timestamp) -> Hash;

    /// The signed checkpoint of a tree, the same one each time; `None` leaves it to whoever seals
    /// next.
    fn sign(&self, org: OrgId, size: u64, root: &Hash) -> Option<SignedNote>;

    /// The stored tree is not the continuation of what was signed: it was tampered with, and
    /// nothing is signed.
    fn forked(&self, org: OrgId, signed_size: u64);
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

    fn forked(&self, _: OrgId, _: u64) {}
}

row!(Head { size: i64, tree_size: i64, last_position: i64, last_recorded_at: i64 });
row!(UnsealedRow { position: i64, id: String, committed_at: i64, core: String });

/// An event to be sealed, where it is and since when.
#[derive(Debug)]
pub(crate) struct Unsealed {
    pub(crate) position: i64,
    pub(crate) committed_at: Timestamp,
    pub(crate) event: UnsealedEvent,
}

impl UnsealedRow {
    fn read(self, org_id: OrgId) -> Result<Unsealed, StoreError> {
        let id = parse(&self.id, "audit_events.id")?;
        let event = UnsealedEvent { id, org_id, core: self.core };
        let committed_at = Timestamp::from_micros(self.committed_at);
        Ok(Unsealed { position: self.position, committed_at, event })
    }
}

/// What one transaction adds to a log.
struct Growth {
    org: OrgId,
    head: Head,
    last_position: i64,
    seals: Vec<NewSeal>,
    tiles: Vec<(TileId, Vec<u8>)>,
    checkpoint: Option<StoredCheckpoint>,
    /// Whether nothing is left to do once it is written.
    is_last: bool,
}

/// What there is to do for a log.
enum Step {
    /// Nothing more.
    Done,
    /// To look again, for something was mended.
    Again,
    Grow(Box<Growth>),
}

/// Writes what a log grows by in a transaction; whether it was still as it had been read.
macro_rules! write_growth {
    ($tx:ident, $growth:expr) => {{
        let growth: &Growth = $growth;
        let org = growth.org.to_string();
        let last = growth.seals.last();
        let last_recorded_at = last.map_or(growth.head.last_recorded_at, |seal| seal.recorded_at);
        let moved = sqlx::query(
            "UPDATE audit_heads SET size = size + $3, tree_size = tree_size + $3, \
             last_position = $4, last_recorded_at = $5 \
             WHERE org_id = $1 AND size = $2 AND tree_size = $2",
        )
        .bind(&org)
        .bind(growth.head.size)
        .bind(i64::try_from(growth.seals.len()).unwrap_or(0))
        .bind(growth.last_position)
        .bind(last_recorded_at)
        .execute(&mut *$tx)
        .await?;
        let ours = moved.rows_affected() == 1;
        if ours {
            $tx.insert_seals(&org, growth.head.size, &growth.seals).await?;
            put_tiles!($tx, &org, &growth.tiles);
            if let Some(checkpoint) = &growth.checkpoint {
                put_checkpoint!($tx, &org, CheckpointKind::Signed, checkpoint);
            }
        }
        ours
    }};
}

impl Store {
    /// Seals what the org has committed, in the order of commits, and says how many events that
    /// were. When it returns, all that is sealed is in the tree and, as far as the sealer signs,
    /// covered by a checkpoint.
    pub async fn seal(&self, org: OrgId, sealer: impl Sealer) -> Result<u64, StoreError> {
        let horizon = self.horizon().await?;
        self.seal_one(org, horizon, None, &sealer).await
    }

    /// Begins with what the log is known to grow by.
    async fn seal_one(
        &self,
        org: OrgId,
        horizon: i64,
        mut known: Option<Box<Growth>>,
        sealer: &impl Sealer,
    ) -> Result<u64, StoreError> {
        let mut count = 0;
        loop {
            let step = match known.take() {
                Some(growth) => Step::Grow(growth),
                None => self.step(org, horizon, sealer).await?,
            };
            match step {
                Step::Done => break,
                Step::Again => {}
                Step::Grow(growth) => {
                    let ours = change!(self, org, |tx| write_growth!(tx, &growth));
                    count += if ours { growth.events() } else { 0 };
                    if ours && growth.is_last {
                        break;
                    }
                }
            }
        }
        Ok(count)
    }

    /// The same for several orgs, and how it went with each. What is short is written in one
    /// transaction for all of them: a commit costs more than what is in it.
    pub async fn seal_each(
        &self,
        orgs: &[OrgId],
        sealer: impl Sealer,
    ) -> Vec<(OrgId, Result<u64, StoreError>)> {
        let horizon = match self.horizon().await {
            Ok(horizon) => horizon,
            Err(error) => return orgs.iter().map(|org| (*org, Err(error.clone()))).collect(),
        };
        if let [org] = orgs {
            return vec![(*org, self.seal_one(*org, horizon, None, &sealer).await)];
        }
        let mut told = Vec::with_capacity(orgs.len());
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        for org in orgs {
            match self.step(*org, horizon, &sealer).await {
                Ok(Step::Done) => told.push((*org, Ok(0))),
                Ok(Step::Again) => alone.push((*org, None)),
                Ok(Step::Grow(growth)) if growth.is_last => together.push(*growth),
                Ok(Step::Grow(growth)) => alone.push((*org, Some(growth))),
                Err(error) => told.push((*org, Err(error))),
            }
        }
        for growths in portions(together) {
            match self.grow_all(&growths).await {
                Ok(ours) => {
                    for (growth, ours) in growths.into_iter().zip(ours) {
                        if ours {
                            told.push((growth.org, Ok(growth.events())));
                        } else {
                            alone.push((growth.org, None));
                        }
                    }
                }
                // One of them may be what fails.
                Err(_) => {
                    alone.extend(growths.into_iter().map(|it| (it.org, Some(Box::new(it)))));
                }
            }
        }
        for (org, known) in alone {
            told.push((org, self.seal_one(org, horizon, known, &sealer).await));
        }
        told
    }

    /// Which of the logs were still as they had been read, and have grown.
    async fn grow_all(&self, growths: &[Growth]) -> Result<Vec<bool>, StoreError> {
        Ok(change!(self, installation, |tx| {
            let mut ours = Vec::with_capacity(growths.len());
            for growth in growths {
                ours.push(write_growth!(tx, growth));
            }
            ours
        }))
    }

    /// Finds out what there is to do for a log. What is committed behind the horizon waits.
    async fn step(
        &self,
        org: OrgId,
        horizon: i64,
        sealer: &impl Sealer,
    ) -> Result<Step, StoreError> {
        // Read in front of the head, so that a head behind it is one that was set back.
        let before = self.find_checkpoint(org, CheckpointKind::Signed).await?;
        let Some(head) = self.head(org).await? else { return Ok(Step::Done) };
        if head.tree_size < head.size {
            self.plant(org, head.tree_size).await?;
            return Ok(Step::Again);
        }
        let rows = self.unsealed(org, &head, horizon).await?;
        let Some(last_position) = rows.last().map(|row| row.position) else {
            self.sign_head(org, &head, before, sealer).await?;
            return Ok(Step::Done);
        };
        let seals = seals_of(&head, &rows, sealer);
        let mut tree = self.growing(org, head.size).await?;
        let continues = self.continues(org, &tree, before.as_ref(), sealer).await?;
        for seal in &seals {
            tree.push(seal.leaf_hash);
        }
        let checkpoint = if continues { signed(org, &tree, sealer)? } else { None };
        // If it is not signed, whether it can be is asked once more.
        let is_last = checkpoint.is_some() && rows.len() < usize::from(BATCH);
        let tiles = tree.into_changed();
        let growth = Growth { org, head, last_position, seals, tiles, checkpoint, is_last };
        Ok(Step::Grow(Box::new(growth)))
    }

    /// The orgs that have something to seal. Looks at every org: see [`Self::committed_since`].
    pub async fn orgs_with_unsealed(&self) -> Result<Vec<OrgId>, StoreError> {
        let rows: Vec<String> = read!(self, installation, |conn| {
            sqlx::query_scalar(
                "SELECT h.org_id FROM audit_heads h WHERE EXISTS (SELECT 1 FROM audit_events e \
                 WHERE e.org_id = h.org_id AND e.position > h.last_position) ORDER BY h.org_id",
            )
            .fetch_all(&mut *conn)
            .await?
        });
        rows.iter().map(|id| parse(id, "audit_heads.org_id")).collect()
    }

    /// The orgs of the events committed behind `position`, and the position up to which that is
    /// known. Costs with the events, not with the orgs.
    pub async fn committed_since(&self, position: i64) -> Result<(Vec<OrgId>, i64), StoreError> {
        if let Db::Sqlite { log, .. } = &self.db {
            return log.act(move |log| log.committed_since(position)).await;
        }
        let last: i64 = read!(self, installation, |conn| {
            sqlx::query_scalar("SELECT COALESCE(MAX(position), 0) FROM audit_events")
                .fetch_one(&mut *conn)
                .await?
        });
        if last <= position {
            return Ok((Vec::new(), position));
        }
        let horizon = self.horizon().await?;
        let rows: Vec<String> = read!(self, installation, |conn| {
            sqlx::query_scalar(
                "SELECT DISTINCT org_id FROM audit_events WHERE position > $1 AND position <= $2",
            )
            .bind(position)
            .bind(horizon)
            .fetch_all(&mut *conn)
            .await?
        });
        let orgs = rows.iter().map(|id| parse(id, "audit_events.org_id"));
        Ok((orgs.collect::<Result<_, _>>()?, horizon))
    }

    /// How many events of the org are sealed: the sequence the next one gets.
    pub async fn sealed_size(&self, org: OrgId) -> Result<i64, StoreError> {
        Ok(self.head(org).await?.map_or(0, |head| head.size))
    }

    /// A position up to which every event is visible.
    pub async fn horizon(&self) -> Result<i64, StoreError> {
        if let Db::Sqlite { log, .. } = &self.db {
            return log.act(LogConnection::horizon).await;
        }
        let last: i64 = change!(self, installation, |tx| {
            tx.wait_for_writers().await?;
            sqlx::query_scalar("SELECT COALESCE(MAX(position), 0) FROM audit_events")
                .fetch_one(&mut *tx)
                .await?
        });
        Ok(last)
    }

    async fn head(&self, org: OrgId) -> Result<Option<Head>, StoreError> {
        Ok(read!(self, org, |conn| {
            sqlx::query_as(
                "SELECT size, tree_size, last_position, last_recorded_at FROM audit_heads \
                 WHERE org_id = $1",
            )
            .bind(org.to_string())
            .fetch_optional(&mut *conn)
            .await?
        }))
    }

    async fn unsealed(
        &self,
        org: OrgId,
        head: &Head,
        horizon: i64,
    ) -> Result<Vec<Unsealed>, StoreError> {
        let after = head.last_position;
        if let Db::Sqlite { log, .. } = &self.db {
            return log.act(move |log| log.unsealed(org, after, horizon, BATCH.into())).await;
        }
        let rows: Vec<UnsealedRow> = read!(self, org, |conn| {
            sqlx::query_as(
                "SELECT position, id, committed_at, core FROM audit_events \
                 WHERE org_id = $1 AND position > $2 AND position <= $3 \
                 ORDER BY position LIMIT $4",
            )
            .bind(org.to_string())
            .bind(after)
            .bind(horizon)
            .bind(i64::from(BATCH))
            .fetch_all(&mut *conn)
            .await?
        });
        rows.into_iter().map(|row| row.read(org)).collect()
    }

    /// Whether the tree is the continuation of what was signed last; if not, the sealer is told.
    async fn continues(
        &self,
        org: OrgId,
        tree: &GrowingTree,
        signed: Option<&StoredCheckpoint>,
        sealer: &impl Sealer,
    ) -> Result<bool, StoreError> {
        let Some(signed) = signed else { return Ok(true) };
        let root = match signed.size {
            size if size > tree.size() => None,
            size if size == tree.size() => Some(root_of(tree)?),
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
        head: &Head,
        before: Option<StoredCheckpoint>,
        sealer: &impl Sealer,
    ) -> Result<(), StoreError> {
        if head.size == 0 && before.is_none() {
            return Ok(());
        }
        let tree = self.growing(org, head.size).await?;
        let Some(checkpoint) = signed(org, &tree, sealer)? else { return Ok(()) };
        let same = |it: &StoredCheckpoint| {
            it.size == tree.size() && it.root == checkpoint.root && it.note == checkpoint.note
        };
        if before.as_ref().is_some_and(same) {
            return Ok(());
        }
        if self.continues(org, &tree, before.as_ref(), sealer).await? {
            self.keep_checkpoint(org, CheckpointKind::Signed, &checkpoint).await?;
        }
        Ok(())
    }
}

impl Growth {
    fn events(&self) -> u64 {
        u64::try_from(self.seals.len()).unwrap_or(0)
    }
}

/// What is written in one transaction each: no more rows than one log alone may bring, for nobody
/// else writes to SQLite meanwhile. By org, so that two nodes never wait for each other.
fn portions(mut growths: Vec<Growth>) -> Vec<Vec<Growth>> {
    growths.sort_unstable_by_key(|growth| growth.org);
    let mut portions: Vec<Vec<Growth>> = Vec::new();
    let mut rows = 0;
    for growth in growths {
        rows += growth.seals.len();
        if let Some(last) = portions.last_mut().filter(|_| rows <= usize::from(BATCH)) {
            last.push(growth);
        } else {
            rows = growth.seals.len();
            portions.push(vec![growth]);
        }
    }
    portions
}

fn root_of(tree: &GrowingTree) -> Result<Hash, StoreError> {
    tree.root().map_err(|_| StoreError::Corrupt("audit_tiles"))
}

fn signed(
    org: OrgId,
    tree: &GrowingTree,
    sealer: &impl Sealer,
) -> Result<Option<StoredCheckpoint>, StoreError> {
    let root = root_of(tree)?;
    let signed = sealer.sign(org, tree.size(), &root);
    Ok(signed.map(|SignedNote { note, signed_at }| StoredCheckpoint {
        size: tree.size(),
        root,
        note,
        signed_at,
    }))
}

fn seals_of(head: &Head, rows: &[Unsealed], sealer: &impl Sealer) -> Vec<NewSeal> {
    let mut recorded_at = head.last_recorded_at;
    let sequences = head.size..;
    let seals = rows.iter().zip(sequences).map(|(row, sequence)| {
        recorded_at = recorded_at.max(row.committed_at.as_micros());
        let moment = Timestamp::from_micros(recorded_at);
        let leaf_hash = sealer.leaf(&row.event, sequence, moment);
        NewSeal { event_id: row.event.id, position: row.position, recorded_at, leaf_hash }
    });
    seals.collect()
}
