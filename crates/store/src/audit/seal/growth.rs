//! State of a log before sealing, and its growth.

use std::collections::HashSet;

use portcullis_core::{
    audit::{
        merkle::Frontier,
        tiles::{GrowingTree, TileId, Tiles},
    },
    clock::Timestamp,
    id::{EventId, OrgId},
};

use super::{RefusedRow, RowFault, SignedNote, UnsealedEvent};
use crate::{
    audit::{checkpoints::StoredCheckpoint, tree::size_of},
    db::{NewEvent, NewSeal, RecordTexts},
    error::StoreError,
    row_key::{CodedRow, RowKey},
};

/// State of an org's log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    /// Events that have their place.
    pub(crate) size: i64,
    /// Of them in the tree.
    pub(crate) tree_size: i64,
    pub(crate) last_position: i64,
    pub(crate) last_recorded_at: i64,
}

/// An event to be sealed, where it is and since when, with its record as it is kept: what is packed is read
/// after the turn to write has ended.
#[derive(Debug)]
pub(crate) struct Unsealed {
    pub(crate) position: i64,
    pub(crate) committed_at: i64,
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) packed: Option<Vec<u8>>,
    pub(crate) mac: Option<Vec<u8>>,
    /// True if another event of this id has a place.
    pub(crate) is_known: bool,
}

impl Unsealed {
    /// The event, if the gateway wrote the row and it is the first one of its id.
    fn check(
        &self,
        org: OrgId,
        key: &RowKey,
        seen: &mut HashSet<EventId>,
    ) -> Result<EventId, RowFault> {
        let org = org.text();
        let row = CodedRow::Event {
            id: &self.id,
            org_id: org.as_str(),
            kind: &self.kind,
            committed_at: self.committed_at,
        };
        if !key.fits(row, self.packed.as_deref(), self.mac.as_deref()) {
            return Err(RowFault::Mac);
        }
        let id = self.id.parse().map_err(|_| RowFault::Mac)?;
        if self.is_known || !seen.insert(id) {
            return Err(RowFault::Twice);
        }
        Ok(id)
    }
}

/// All that has to be known of a log to seal it.
#[derive(Debug)]
pub(crate) struct LogState {
    /// The last signed checkpoint. Read before the head, so that a head behind it is one that was
    /// set back.
    pub(crate) signed: Option<StoredCheckpoint>,
    pub(crate) head: Head,
    /// The last position that the gateway has given out, read with the head or later.
    pub(crate) last_given: i64,
    /// The first events that have no place yet; none while the tree is not that of the log.
    pub(crate) rows: Vec<Unsealed>,
    /// The edge of the tree of [`Head::size`] leaves.
    pub(crate) edge: Tiles,
}

impl LogState {
    /// The tree as it stands.
    pub(super) fn tree(&mut self) -> Result<GrowingTree, StoreError> {
        let edge = std::mem::take(&mut self.edge);
        GrowingTree::open(size_of(self.head.size)?, edge).map_err(|_| damaged())
    }

    /// The tiles that are the edge of a tree of this size.
    pub(crate) fn edge_of(size: i64) -> Result<impl Iterator<Item = TileId>, StoreError> {
        Ok(TileId::edge(size_of(size)?).map(|(id, _)| id))
    }
}

/// Growth of a log in one transaction.
#[derive(Debug)]
pub(crate) struct Growth {
    pub(crate) org: OrgId,
    pub(crate) head: Head,
    pub(crate) last_position: i64,
    pub(crate) seals: Vec<NewSeal>,
    pub(crate) tiles: Vec<(TileId, Vec<u8>)>,
    pub(crate) checkpoint: Option<StoredCheckpoint>,
    /// The event that tells of the rows that were refused. They get no place, and are behind the head from now on.
    pub(crate) refusal: Option<NewEvent>,
    /// True if nothing is left to do once it is written.
    pub(super) is_last: bool,
}

impl Growth {
    pub(super) fn events(&self) -> u64 {
        u64::try_from(self.seals.len()).unwrap_or(0)
    }

    pub(crate) fn last_recorded_at(&self) -> i64 {
        self.seals.last().map_or(self.head.last_recorded_at, |seal| seal.recorded_at)
    }
}

pub(super) fn damaged() -> StoreError {
    StoreError::Corrupt("audit_tiles")
}

/// Leaves up to which the frontier is grown one by one; beyond, hashing the new edge costs less.
const FEW: usize = 128;

pub(super) fn frontier_of(tree: &GrowingTree) -> Result<Frontier, StoreError> {
    tree.frontier().map_err(|_| damaged())
}

/// The frontier of a tree that has grown by these seals; `before` is that from before.
pub(super) fn grown(
    mut before: Frontier,
    tree: &GrowingTree,
    seals: &[NewSeal],
) -> Result<Frontier, StoreError> {
    if seals.len() > FEW {
        return frontier_of(tree);
    }
    let mut leaves = seals.iter().map(|seal| seal.leaf_hash);
    leaves.try_for_each(|leaf| before.push(leaf)).map_err(|_| damaged())?;
    Ok(before)
}

/// The checkpoint of a tree, if it is signed.
pub(super) fn signed(
    org: OrgId,
    tree: &Frontier,
    sealer: &impl super::Sealer,
) -> Option<StoredCheckpoint> {
    let size = tree.size();
    let root = tree.root();
    let SignedNote { note, signed_at } = sealer.sign(org, size, &root)?;
    Some(StoredCheckpoint { size, root, note, signed_at })
}

/// The places that these events get, and the rows that get none.
pub(super) fn seals_of(
    org_id: OrgId,
    head: &Head,
    rows: Vec<Unsealed>,
    key: &RowKey,
    sealer: &impl super::Sealer,
) -> Result<(Vec<NewSeal>, Vec<RefusedRow>), StoreError> {
    let mut recorded_at = head.last_recorded_at;
    let mut sequences = head.size..;
    let mut seen = HashSet::new();
    let mut seals = Vec::with_capacity(rows.len());
    let mut refused = Vec::new();
    for row in rows {
        let position = row.position;
        let id = match row.check(org_id, key, &mut seen) {
            Ok(id) => id,
            Err(fault) => {
                refused.push(RefusedRow { id: row.id, position, fault });
                continue;
            }
        };
        let Some(sequence) = sequences.next() else { break };
        recorded_at = recorded_at.max(row.committed_at);
        let core = RecordTexts::of_row(row.packed.as_deref())?.core;
        let event = UnsealedEvent { id, org_id, core };
        let leaf_hash = sealer.leaf(&event, sequence, Timestamp::from_micros(recorded_at));
        seals.push(NewSeal { event_id: id, position, recorded_at, leaf_hash });
    }
    Ok((seals, refused))
}
