//! Parts of a proof: the stored nodes to read, and the way to fold them.
//!
//! Core does not wait, so proving has three steps: a [`Plan`] names the nodes, the store reads
//! them all at once, the plan makes its hashes of them.

use super::merkle::{Hash, MAX_SIZE, empty_root, largest_subtree, node_hash};

/// A complete subtree: the `index`-th of 2^`level` leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// Logarithm of its width; leaves have level 0.
    pub level: u8,
    /// Counted from 0 on its level.
    pub index: u64,
}

/// Source of the hashes of complete subtrees.
pub trait Nodes {
    /// The hash of `node`, if it is known here.
    fn hash(&self, node: Node) -> Option<Hash>;
}

/// A node that a plan needs is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the tree has no hash at level {} index {}", .0.level, .0.index)]
pub struct MissingNode(pub Node);

/// The hashes of a proof, each folded from complete subtrees; at most two for each bit of the
/// tree's size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    parts: Vec<Vec<Node>>,
}

impl Plan {
    /// The root of a tree of `size` leaves.
    #[must_use]
    pub fn root(size: u64) -> Self {
        Self { parts: vec![complete(0, size)] }
    }

    /// The inclusion path of the leaf at `index` (RFC 9162 §2.1.3.1); `None` if the tree has no
    /// such leaf.
    #[must_use]
    pub fn inclusion(index: u64, size: u64) -> Option<Self> {
        if index >= size || size > MAX_SIZE {
            return None;
        }
        let mut start = 0;
        let mut end = size;
        let mut parts = Vec::new();
        while end - start > 1 {
            let middle = start + left_width(end - start);
            if index < middle {
                parts.push(complete(middle, end));
                end = middle;
            } else {
                parts.push(complete(start, middle));
                start = middle;
            }
        }
        parts.reverse();
        Some(Self { parts })
    }

    /// The consistency proof between two sizes (RFC 9162 §2.1.4.1); empty between equal ones and
    /// from nothing, `None` if the tree would have shrunk.
    #[must_use]
    pub fn consistency(old: u64, new: u64) -> Option<Self> {
        if old > new || new > MAX_SIZE {
            return None;
        }
        let mut parts = Vec::new();
        let mut start = 0;
        let mut end = new;
        while old != 0 && old != end {
            let middle = start + left_width(end - start);
            if old <= middle {
                parts.push(complete(middle, end));
                end = middle;
            } else {
                parts.push(complete(start, middle));
                start = middle;
            }
        }
        if start != 0 {
            parts.push(complete(start, end));
        }
        parts.reverse();
        Some(Self { parts })
    }

    /// The complete subtrees that cover the leaves from `start` up to `end`, each as large as can
    /// begin where the one before ended: what stands left or right of an exported range.
    #[must_use]
    pub fn span(start: u64, end: u64) -> Self {
        Self { parts: complete(start, end).into_iter().map(|node| vec![node]).collect() }
    }

    /// The nodes to read.
    pub fn nodes(&self) -> impl Iterator<Item = Node> {
        self.parts.iter().flatten().copied()
    }

    /// The hashes of the proof. Fails if a node is not stored.
    pub fn hashes(&self, nodes: &impl Nodes) -> Result<Vec<Hash>, MissingNode> {
        self.parts.iter().map(|part| folded(part, nodes)).collect()
    }

    /// The first of [`Self::hashes`]: what [`Self::root`] is asked for.
    pub fn hash(&self, nodes: &impl Nodes) -> Result<Hash, MissingNode> {
        self.parts.first().map_or_else(|| Ok(empty_root()), |part| folded(part, nodes))
    }
}

fn folded(part: &[Node], nodes: &impl Nodes) -> Result<Hash, MissingNode> {
    let mut hash = None;
    for node in part.iter().rev() {
        let left = nodes.hash(*node).ok_or(MissingNode(*node))?;
        hash = Some(hash.map_or(left, |right| node_hash(&left, &right)));
    }
    Ok(hash.unwrap_or_else(empty_root))
}

/// Number of leaves left of the root of `leaves`: the largest power of two below.
fn left_width(leaves: u64) -> u64 {
    leaves.saturating_sub(1).checked_ilog2().map_or(0, |log| 1 << log)
}

pub(super) fn complete(mut start: u64, end: u64) -> Vec<Node> {
    let mut nodes = Vec::new();
    while start < end.min(MAX_SIZE) {
        let level = largest_subtree(start, end);
        nodes.push(Node { level, index: start >> level });
        start += 1 << level;
    }
    nodes
}
