//! A walk through the log: each event in its place held against its leaf, the leaves against the tiles of the tree and
//! the trees that an auditor kept, the values beside the records against the events that tell of erasures. Names events
//! that have no place, and places without an event.
//!
//! Every event is read once, and memory does not grow with the log. What is wrong with an event ends the walk; what is
//! wrong with the data beside it is told at the end, if the events are those of the signed tree.

use std::ops::Range;

use portcullis_core::{
    audit::{
        Hash, Shown,
        export::Fault,
        tiles::{GrowingTree, TileId, Tiles},
    },
    clock::Timestamp,
    id::OrgId,
};
use portcullis_store::{IndexedEvent, IndexedPortion, StoreError};
use serde_json::{Map, Value};

use super::{Witnessed, removals::Removals};
use crate::{
    audit::{
        exports::writing::SignedLog,
        faults::IndexFault,
        proven::{WIDTH, is_found, is_placed, place, verify_event},
    },
    nodes::commands::Operator,
};

/// Bytes of a hash.
const HASH: usize = 32;
/// Most kept trees of which it is told that they are not of this log.
const MAX_TOLD: usize = 1_000;

impl Operator {
    /// Walks through the signed part of the org's log.
    pub(super) async fn walk(
        &self,
        org: OrgId,
        signed: &SignedLog,
        witnessed: &Witnessed,
    ) -> Result<Result<Walk, Fault>, StoreError> {
        let size = signed.size;
        let pruned = u64::try_from(self.store.pruned_size(org).await?).unwrap_or(0);
        let mut walk = Walk::new(org, pruned.min(size), self.removals(org).await?)?;
        for index in 0..size.div_ceil(WIDTH) {
            let first = index * WIDTH;
            let end = size.min((index + 1) * WIDTH);
            let tile = self.tile(org, TileId { level: 0, index }, end - first).await?;
            if tile.is_none() {
                walk.note(IndexFault::Tile { level: 0, index });
            }
            let tile = tile.as_deref().unwrap_or_default();
            if let Err(fault) = self.walk_tile(&mut walk, first..end, tile, witnessed).await? {
                return Ok(Err(fault));
            }
            let full = walk.tree.take_full();
            if walk.pending.is_none() {
                walk.pending = self.differing(org, full).await?;
            }
        }
        if walk.pending.is_none() {
            walk.pending = self.beside(org, &walk).await?;
        }
        Ok(Ok(walk))
    }

    /// Walks through the events of a tile, as many at a time as may be read together.
    async fn walk_tile(
        &self,
        walk: &mut Walk,
        places: Range<u64>,
        mut tile: &[Hash],
        witnessed: &Witnessed,
    ) -> Result<Result<(), Fault>, StoreError> {
        let org = walk.org;
        let mut first = places.start;
        while first < places.end {
            let read = self.store.indexed_events(org, place(first), place(places.end)).await?;
            let IndexedPortion { events, end } = read;
            let next = u64::try_from(end).unwrap_or(places.end);
            let after = walk.position;
            if let Err(fault) = walk.take(first..next, tile, &events, witnessed)? {
                return Ok(Err(fault));
            }
            if walk.pending.is_none() {
                let oldest = place(first.max(walk.first));
                walk.pending = self.stray(org, oldest, end, after, &events).await?;
            }
            let taken = usize::try_from(next - first).unwrap_or(usize::MAX);
            tile = tile.get(taken..).unwrap_or_default();
            first = next;
        }
        Ok(Ok(()))
    }

    /// Fault behind the last event, or of the whole log.
    async fn beside(&self, org: OrgId, walk: &Walk) -> Result<Option<IndexFault>, StoreError> {
        if let Some(id) = self.store.stray_event(org, walk.position, None).await? {
            return Ok(Some(IndexFault::Stray(id)));
        }
        if let Some(id) = self.store.event_beyond(org).await? {
            return Ok(Some(IndexFault::Beyond(id)));
        }
        if let Err(fault) = walk.removals.suffice() {
            return Ok(Some(fault));
        }
        self.differing(org, walk.tree.clone().into_changed()).await
    }

    /// An event between these `events`, which stand behind the position `after`, that has no place;
    /// or one of these places without an event.
    async fn stray(
        &self,
        org: OrgId,
        first: i64,
        end: i64,
        after: i64,
        events: &[IndexedEvent],
    ) -> Result<Option<IndexFault>, StoreError> {
        let Some(last) = events.last().map(|event| event.positions.0) else { return Ok(None) };
        let count = self.store.count_events(org, after, last).await?;
        if usize::try_from(count) != Ok(events.len())
            && let Some(id) = self.store.stray_event(org, after, Some(last)).await?
        {
            return Ok(Some(IndexFault::Stray(id)));
        }
        Ok(self.store.stray_seal(org, first, end).await?.map(IndexFault::Empty))
    }

    /// The first of these tiles that is not stored like this. What is stored beyond was appended
    /// meanwhile.
    async fn differing(
        &self,
        org: OrgId,
        computed: Vec<(TileId, Vec<u8>)>,
    ) -> Result<Option<IndexFault>, StoreError> {
        for (id, hashes) in computed.into_iter().filter(|(id, _)| id.level > 0) {
            let width = u64::try_from(hashes.len() / HASH).unwrap_or(u64::MAX);
            let stored = self.tile(org, id, width).await?;
            if stored.is_none_or(|stored| stored.concat() != hashes) {
                return Ok(Some(IndexFault::Tile { level: id.level, index: id.index }));
            }
        }
        Ok(None)
    }

    /// The first `width` hashes of a tile, if it has so many.
    pub(in super::super) async fn tile(
        &self,
        org: OrgId,
        id: TileId,
        width: u64,
    ) -> Result<Option<Vec<Hash>>, StoreError> {
        let stored = self.store.tiles(org, [id]).await?.take(id).unwrap_or_default();
        let hashes = stored.as_chunks::<HASH>().0;
        let width = usize::try_from(width).unwrap_or(usize::MAX);
        Ok(hashes.get(..width).map(<[Hash]>::to_vec))
    }
}

/// State of a walk through the log.
pub(super) struct Walk {
    org: OrgId,
    /// Place of the first event that is kept.
    pub(super) first: u64,
    tree: GrowingTree,
    /// True while every leaf so far is known, so that the tree is that of the events.
    pub(super) is_whole: bool,
    position: i64,
    recorded_at: Timestamp,
    /// When the event in front was recorded, in microseconds.
    before: Option<i64>,
    removals: Removals,
    /// First places without an event.
    missing: Option<(u64, u64)>,
    /// The first difference that is none of an event.
    pub(super) pending: Option<IndexFault>,
    /// Root of the tree when it was as large as the newest one that was kept.
    pub(super) root_then: Option<Hash>,
    pub(super) events: u64,
    /// Number of values that are those committed to.
    pub(super) values: u64,
    /// Sizes and roots of kept trees that are not the beginning of this log.
    pub(super) strangers: Vec<(u64, Hash)>,
}

impl Walk {
    fn new(org: OrgId, first: u64, removals: Removals) -> Result<Self, StoreError> {
        let hidden = !removals.tell_of_events_before(first);
        Ok(Self {
            org,
            first,
            tree: GrowingTree::open(0, Tiles::default()).map_err(|_| damaged())?,
            is_whole: true,
            position: i64::MIN,
            recorded_at: Timestamp::default(),
            before: None,
            removals,
            missing: None,
            pending: hidden.then_some(IndexFault::Hidden(first)),
            root_then: None,
            events: 0,
            values: 0,
            strangers: Vec::new(),
        })
    }

    /// Keeps the first difference beside the events.
    fn note(&mut self, fault: IndexFault) {
        self.pending.get_or_insert(fault);
    }

    /// Takes these places with the leaves that their tile has and the events that stand there. The inner error is what is wrong with one of these.
    fn take(
        &mut self,
        places: Range<u64>,
        tile: &[Hash],
        events: &[IndexedEvent],
        witnessed: &Witnessed,
    ) -> Result<Result<(), Fault>, StoreError> {
        let mut events = events.iter().peekable();
        let mut tile = tile.iter().copied();
        for at in places {
            while let Some(again) = events.next_if(|event| event.sequence < place(at)) {
                self.note(IndexFault::Position(again.sequence));
            }
            let stored = tile.next();
            let leaf = match events.next_if(|event| event.sequence == place(at)) {
                Some(event) => match self.event(event) {
                    Ok(leaf) => Some(leaf),
                    Err(fault) => return Ok(Err(fault)),
                },
                None if at < self.first => stored,
                None => {
                    self.lack(at);
                    None
                }
            };
            let Some(leaf) = leaf else {
                self.is_whole = false;
                continue;
            };
            if stored.is_some_and(|stored| stored != leaf) {
                self.note(IndexFault::Leaf(place(at)));
            }
            if self.is_whole {
                self.grow(leaf, witnessed)?;
            }
        }
        Ok(Ok(()))
    }

    /// Notes a place without its event.
    fn lack(&mut self, at: u64) {
        match &mut self.missing {
            Some((_, last)) if *last + 1 == at => *last = at,
            Some(_) => {}
            None => self.missing = Some((at, at)),
        }
    }

    /// Names the first places without events, if there are any.
    pub(super) fn missing(&self) -> Option<String> {
        self.missing.map(|(first, last)| match last - first {
            0 => format!("event {first} is missing"),
            _ => format!("events {first} to {last} are missing"),
        })
    }

    /// The leaf of an event, if it is the one that its seal has, and its values are those committed to.
    fn event(&mut self, event: &IndexedEvent) -> Result<Hash, Fault> {
        let at = event.sequence;
        let (record, leaf, opened) = verify_event(self.org, event, Shown::Whole)?;
        // Its leaf has milliseconds.
        let recorded_at = Timestamp::from_micros(event.recorded_at).floor_to_millis();
        if recorded_at < self.recorded_at {
            return Err(Fault::Root(format!("event {at} is recorded before the one in front")));
        }
        self.recorded_at = recorded_at;
        self.events += 1;
        self.values += opened;
        let before = self.before.replace(event.recorded_at);
        if self.pending.is_none() {
            self.pending = self.compare(event, &record, before).err();
        }
        self.position = self.position.max(event.positions.0);
        Ok(leaf)
    }

    /// Refuses an event whose position, id, columns or values are not as the log tells.
    fn compare(
        &mut self,
        event: &IndexedEvent,
        record: &Map<String, Value>,
        before: Option<i64>,
    ) -> Result<(), IndexFault> {
        is_placed(event, record, self.position)?;
        self.removals.compare(event, record)?;
        is_found(event, record, before)
    }

    /// Adds a leaf to the tree, and holds it against the trees of that size that were kept.
    fn grow(&mut self, leaf: Hash, witnessed: &Witnessed) -> Result<(), StoreError> {
        self.tree.push(leaf);
        let size = self.tree.size();
        let newest = witnessed.newest.as_ref().map(|since| since.checkpoint().size);
        if newest == Some(size) {
            self.root_then = Some(self.root()?);
        }
        let Some(roots) = witnessed.trees.get(&size) else { return Ok(()) };
        let root = self.root()?;
        let strangers = roots.iter().filter(|it| **it != root).map(|it| (size, *it));
        let left = MAX_TOLD.saturating_sub(self.strangers.len());
        self.strangers.extend(strangers.take(left));
        Ok(())
    }

    pub(super) fn root(&self) -> Result<Hash, StoreError> {
        self.tree.root().map_err(|_| damaged())
    }
}

const fn damaged() -> StoreError {
    StoreError::Corrupt("audit_tiles")
}
