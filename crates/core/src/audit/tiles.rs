//! The tree as it is stored: tiles of 256 hashes.
//!
//! A tile of level 0 holds the hashes of 256 leaves side by side, one of level 1 those of 256
//! full tiles below it, and so on; what lies between is computed when it is asked for. The tile at
//! the right edge of each level is partial and grows. So a leaf costs 32.2 bytes for ever, and a
//! proof among 10 million reads at most six tiles.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    merkle::{Frontier, Hash, MAX_SIZE, node_hash},
    nodes::{MissingNode, Node, Nodes, Plan, complete},
};

/// Number of hashes in a full tile.
const WIDTH: usize = 256;
/// The levels of the tree within a tile.
const HEIGHT: u8 = 8;
const HASH: usize = 32;

/// Address of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileId {
    /// 0 for tiles of leaf hashes.
    pub level: u8,
    /// Counted from 0 on its level.
    pub index: u64,
}

impl TileId {
    /// The tile that holds `node` or what it is computed from.
    #[must_use]
    pub const fn of(node: Node) -> Self {
        let within = node.level % HEIGHT;
        Self { level: node.level / HEIGHT, index: node.index >> (HEIGHT - within) }
    }

    /// The tiles that `plans` need, each once.
    #[must_use]
    pub fn of_plans(plans: &[&Plan]) -> BTreeSet<Self> {
        plans.iter().flat_map(|plan| plan.nodes()).map(Self::of).collect()
    }

    /// The partial tiles at the right edge of a tree of `size` leaves, with the number of hashes
    /// in each.
    pub fn edge(size: u64) -> impl Iterator<Item = (Self, usize)> {
        let levels = (0..HEIGHT).map_while(move |level| {
            let hashes = size.checked_shr(u32::from(level) * u32::from(HEIGHT))?;
            (hashes > 0).then_some((level, hashes))
        });
        levels.filter_map(|(level, hashes)| {
            let width = usize::try_from(hashes % 256).unwrap_or(0);
            (width > 0).then_some((Self { level, index: hashes / 256 }, width))
        })
    }
}

/// Tiles that were read: hashes side by side, 32 bytes each.
#[derive(Debug, Clone, Default)]
pub struct Tiles {
    tiles: BTreeMap<TileId, Vec<u8>>,
}

impl Tiles {
    /// Adds a tile as it was stored.
    pub fn insert(&mut self, id: TileId, hashes: Vec<u8>) {
        self.tiles.insert(id, hashes);
    }

    /// Takes a tile out as it was stored, if it is here.
    pub fn take(&mut self, id: TileId) -> Option<Vec<u8>> {
        self.tiles.remove(&id)
    }
}

impl FromIterator<(TileId, Vec<u8>)> for Tiles {
    fn from_iter<I: IntoIterator<Item = (TileId, Vec<u8>)>>(tiles: I) -> Self {
        Self { tiles: tiles.into_iter().collect() }
    }
}

impl Nodes for Tiles {
    fn hash(&self, node: Node) -> Option<Hash> {
        let tile = self.tiles.get(&TileId::of(node))?;
        let within = node.level % HEIGHT;
        let first = usize::try_from((node.index << within) % 256).ok()?;
        let width = 1_usize << within;
        let hashes = tile.get(first * HASH..(first + width) * HASH)?;
        subtree(hashes)
    }
}

/// The root over hashes that lie side by side; `None` unless they are a power of two.
fn subtree(hashes: &[u8]) -> Option<Hash> {
    let (level, rest) = hashes.as_chunks::<HASH>();
    if !rest.is_empty() || !level.len().is_power_of_two() {
        return None;
    }
    let mut level = level.to_vec();
    while level.len() > 1 {
        for at in 0..level.len() / 2 {
            let left = level.get(2 * at)?;
            let right = level.get(2 * at + 1)?;
            let parent = node_hash(left, right);
            *level.get_mut(at)? = parent;
        }
        level.truncate(level.len() / 2);
    }
    level.first().copied()
}

/// A tree that grows at its right edge, and the tiles that change by it.
#[derive(Debug, Clone)]
pub struct GrowingTree {
    size: u64,
    edge: Tiles,
    changed: BTreeMap<TileId, Vec<u8>>,
}

impl GrowingTree {
    /// A tree of `size` leaves from the stored tiles of its edge. What tiles hold beyond `size` is
    /// ignored: another writer appended it meanwhile. Fails if they hold less.
    pub fn open(size: u64, mut stored: Tiles) -> Result<Self, MissingNode> {
        let mut edge = Tiles::default();
        for (id, width) in TileId::edge(size) {
            let node = Node { level: id.level.saturating_mul(HEIGHT), index: id.index };
            let mut hashes = stored.tiles.remove(&id).ok_or(MissingNode(node))?;
            if hashes.len() < width * HASH {
                return Err(MissingNode(node));
            }
            hashes.truncate(width * HASH);
            edge.insert(id, hashes);
        }
        Ok(Self { size, edge, changed: BTreeMap::new() })
    }

    /// Number of leaves.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Adds the next leaf; nothing beyond 2⁶² of them.
    pub fn push(&mut self, leaf: Hash) {
        if self.size >= MAX_SIZE {
            return;
        }
        let mut id = TileId { level: 0, index: self.size / 256 };
        let mut hash = leaf;
        self.size += 1;
        loop {
            let tile = self.edge.tiles.entry(id).or_default();
            tile.extend_from_slice(&hash);
            if tile.len() < WIDTH * HASH {
                self.changed.insert(id, Vec::new());
                return;
            }
            let full = self.edge.tiles.remove(&id).unwrap_or_default();
            let root = subtree(&full);
            self.changed.insert(id, full);
            let Some(root) = root else { return };
            hash = root;
            id = TileId { level: id.level + 1, index: id.index / 256 };
        }
    }

    /// The root as it stands.
    pub fn root(&self) -> Result<Hash, MissingNode> {
        Plan::root(self.size).hash(&self.edge)
    }

    /// The roots of its complete subtrees, from which a few more leaves lead to the next root without
    /// hashing the edge again.
    pub fn frontier(&self) -> Result<Frontier, MissingNode> {
        let mut frontier = Frontier::default();
        for node in complete(0, self.size) {
            let hash = self.edge.hash(node).ok_or(MissingNode(node))?;
            frontier.push_subtree(node.level, hash).map_err(|_| MissingNode(node))?;
        }
        Ok(frontier)
    }

    /// Takes the tiles that have become full since the last time, so that a tree of any size can be
    /// walked in little memory.
    #[must_use]
    pub fn take_full(&mut self) -> Vec<(TileId, Vec<u8>)> {
        let partial = |_: &TileId, hashes: &mut Vec<u8>| !hashes.is_empty();
        self.changed.extract_if(.., partial).collect()
    }

    /// The tiles that are new or have grown, whole, as they are to be stored.
    #[must_use]
    pub fn into_changed(self) -> Vec<(TileId, Vec<u8>)> {
        let mut edge = self.edge.tiles;
        let whole = |(id, full): (TileId, Vec<u8>)| match edge.remove(&id) {
            Some(partial) => (id, partial),
            None => (id, full),
        };
        self.changed.into_iter().map(whole).collect()
    }
}
