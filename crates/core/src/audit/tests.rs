//! Tests of the log's mathematics and formats.

mod exports;
mod notes;
mod trees;
mod vectors;

use super::{
    checkpoint::{Checkpoint, hash_of},
    merkle::{Hash, empty_root, leaf_hash, node_hash},
    note::{KeyKind, SigningKey},
    tiles::{GrowingTree, Tiles},
};

/// The root by the recursion of RFC 9162 §2.1.1, which knows nothing of tiles or frontiers.
fn reference_root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => empty_root(),
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
            node_hash(&reference_root(left), &reference_root(right))
        }
    }
}

fn leaves(count: u64) -> Vec<Hash> {
    (0..count).map(|index| leaf_hash(&index.to_be_bytes())).collect()
}

/// The tiles of a tree that grew by `step` leaves at a time.
fn stored(leaves: &[Hash], step: usize) -> Tiles {
    let mut tiles = Tiles::default();
    let mut size = 0;
    for portion in leaves.chunks(step) {
        let mut tree = GrowingTree::open(size, tiles.clone()).unwrap();
        for leaf in portion {
            tree.push(*leaf);
        }
        size = tree.size();
        tree.into_changed().into_iter().for_each(|(id, hashes)| tiles.insert(id, hashes));
    }
    tiles
}

const ORIGIN: &str = "gateway.acme.example/audit/org_01M754BKTKX1YB8Q05NMW9TP4G";

fn log_key(seed: u8) -> SigningKey {
    SigningKey::new(ORIGIN, KeyKind::Log, &[seed; 32]).unwrap()
}

fn checkpoint(size: u64, root: Hash) -> Checkpoint {
    Checkpoint { origin: ORIGIN.to_owned(), size, root }
}

fn hash(text: &str) -> Hash {
    hash_of(text).unwrap()
}
