//! The Merkle tree of RFC 6962 and RFC 9162: hashing, growing in logarithmic memory, verifying.
//!
//! A verifier needs nothing but this file and SHA-256: a [`Frontier`] takes leaf hashes one by one and
//! whole subtrees where they are given, and knows the root of what it took.

use crate::json;

/// A SHA-256.
pub type Hash = [u8; 32];

/// No tree of ours grows to this size; whatever claims it is refused before anything is counted.
pub const MAX_SIZE: u64 = 1 << 62;

/// The RFC 6962 leaf hash: SHA-256 over a zero byte and the leaf.
#[must_use]
pub fn leaf_hash(leaf: &[u8]) -> Hash {
    json::digest(&[&[0], leaf])
}

/// The RFC 6962 hash of an inner node: SHA-256 over a one byte and both children.
#[must_use]
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    let mut both = [1; 65];
    let (_, hashes) = both.split_at_mut(1);
    let (one, other) = hashes.split_at_mut(32);
    one.copy_from_slice(left);
    other.copy_from_slice(right);
    json::digest(&[&both])
}

/// The root of a tree without leaves.
#[must_use]
pub fn empty_root() -> Hash {
    json::digest(&[])
}

/// A subtree was given where none of its size can begin, or the tree would be too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a subtree hash does not fit where it is given")]
pub struct Misplaced;

/// The right edge of a growing tree: the roots of its complete subtrees, largest first. Holds at
/// most one hash for each bit of its size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    roots: Vec<Hash>,
}

impl Frontier {
    /// Number of leaves below the node.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Adds the next leaf. Fails for a tree of more than 2⁶² leaves.
    pub fn push(&mut self, leaf: Hash) -> Result<(), Misplaced> {
        self.push_subtree(0, leaf)
    }

    /// Adds the next 2^`level` leaves at once, by the hash of their subtree. Fails where no such
    /// subtree can begin.
    pub fn push_subtree(&mut self, level: u8, hash: Hash) -> Result<(), Misplaced> {
        let width = 1_u64.checked_shl(u32::from(level)).ok_or(Misplaced)?;
        let grown = self.size.checked_add(width).filter(|size| *size <= MAX_SIZE);
        let grown = grown.ok_or(Misplaced)?;
        if !self.size.is_multiple_of(width) {
            return Err(Misplaced);
        }
        let mut carried = hash;
        let mut bit = width;
        while self.size & bit != 0 {
            let left = self.roots.pop().ok_or(Misplaced)?;
            carried = node_hash(&left, &carried);
            bit <<= 1;
        }
        self.roots.push(carried);
        self.size = grown;
        Ok(())
    }

    /// The next leaves by the hashes of their subtrees up to `end`, each as large as can begin
    /// where the one before ended: as [`super::Plan::span`] lists them. Fails with more or fewer
    /// hashes than that takes.
    pub fn push_span(&mut self, end: u64, hashes: &[Hash]) -> Result<(), Misplaced> {
        let mut hashes = hashes.iter();
        while self.size < end {
            let level = largest_subtree(self.size, end);
            self.push_subtree(level, *hashes.next().ok_or(Misplaced)?)?;
        }
        let exact = self.size == end && hashes.next().is_none();
        exact.then_some(()).ok_or(Misplaced)
    }

    /// Adds the leaves of `range`, which has to begin where this tree ends.
    pub fn push_range(&mut self, range: &LeafRange) -> Result<(), Misplaced> {
        if range.first != self.size {
            return Err(Misplaced);
        }
        range.subtrees.iter().try_for_each(|(level, hash)| self.push_subtree(*level, *hash))
    }

    /// The root of the tree so far.
    #[must_use]
    pub fn root(&self) -> Hash {
        let folded = self.roots.iter().rev().copied();
        folded.reduce(|right, left| node_hash(&left, &right)).unwrap_or_else(empty_root)
    }
}

/// A run of leaves that does not begin with the first: what is to the left of it may be told later.
/// Holds at most two hashes for each bit of the size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafRange {
    first: u64,
    end: u64,
    subtrees: Vec<(u8, Hash)>,
}

impl LeafRange {
    /// An empty run that begins with the leaf at `first`. Fails beyond any tree.
    pub fn new(first: u64) -> Result<Self, Misplaced> {
        if first > MAX_SIZE {
            return Err(Misplaced);
        }
        Ok(Self { first, end: first, subtrees: Vec::new() })
    }

    /// The place of the first leaf.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// The place behind the last leaf.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Adds the next leaf. Fails beyond any tree.
    pub fn push(&mut self, leaf: Hash) -> Result<(), Misplaced> {
        if self.end >= MAX_SIZE {
            return Err(Misplaced);
        }
        self.end += 1;
        let mut level = 0_u8;
        let mut carried = leaf;
        // The subtree of this level that ends here is a right child as long as the bit is unset.
        while (self.end >> level).is_multiple_of(2)
            && let Some((_, left)) = self.subtrees.pop_if(|(other, _)| *other == level)
        {
            carried = node_hash(&left, &carried);
            level += 1;
        }
        self.subtrees.push((level, carried));
        Ok(())
    }
}

/// The level of the largest complete subtree that begins at `start` and does not pass `end`.
pub(super) fn largest_subtree(start: u64, end: u64) -> u8 {
    let fits = end.saturating_sub(start).checked_ilog2().unwrap_or(0);
    u8::try_from(start.trailing_zeros().min(fits)).unwrap_or(0)
}

/// The root that `path` leads to from the leaf at `index` of a tree of `size` leaves (RFC 9162
/// §2.1.3.2); `None` for a path that has not exactly the form of such a tree.
#[must_use]
pub fn root_of_path(index: u64, size: u64, leaf: &Hash, path: &[Hash]) -> Option<Hash> {
    if index >= size || size > MAX_SIZE {
        return None;
    }
    let mut place = TreePosition { own: index, last: size - 1 };
    let mut hash = *leaf;
    for sibling in path {
        if place.last == 0 {
            return None;
        }
        hash = if place.is_right() {
            place.climb_to_turn();
            node_hash(sibling, &hash)
        } else {
            node_hash(&hash, sibling)
        };
        place.climb();
    }
    (place.last == 0).then_some(hash)
}

/// Returns true if `proof` shows that the tree of `new_size` leaves with the root `new_root` begins
/// with the tree of `old_size` leaves with the root `old_root` (RFC 9162 §2.1.4.2).
#[must_use]
pub fn is_consistent(
    old_size: u64,
    old_root: &Hash,
    new_size: u64,
    new_root: &Hash,
    proof: &[Hash],
) -> bool {
    if old_size > new_size || new_size > MAX_SIZE {
        return false;
    }
    if old_size == new_size {
        return proof.is_empty() && old_root == new_root;
    }
    if old_size == 0 {
        return proof.is_empty() && *old_root == empty_root();
    }
    let begun =
        if old_size.is_power_of_two() { Some((old_root, proof)) } else { proof.split_first() };
    let Some((first, rest)) = begun else { return false };
    let mut place = TreePosition { own: old_size - 1, last: new_size - 1 };
    while place.own & 1 == 1 {
        place.climb();
    }
    let mut from_old = *first;
    let mut from_new = *first;
    for hash in rest {
        if place.last == 0 {
            return false;
        }
        if place.is_right() {
            place.climb_to_turn();
            from_old = node_hash(hash, &from_old);
            from_new = node_hash(hash, &from_new);
        } else {
            from_new = node_hash(&from_new, hash);
        }
        place.climb();
    }
    place.last == 0 && from_old == *old_root && from_new == *new_root
}

/// A node on the way up: its index on its level, and that of the last node there.
struct TreePosition {
    own: u64,
    last: u64,
}

impl TreePosition {
    const fn is_right(&self) -> bool {
        self.own & 1 == 1 || self.own == self.last
    }

    const fn climb(&mut self) {
        self.own >>= 1;
        self.last >>= 1;
    }

    /// Past the levels on which the last node has no sibling.
    const fn climb_to_turn(&mut self) {
        while self.own & 1 == 0 && self.own != 0 {
            self.climb();
        }
    }
}
