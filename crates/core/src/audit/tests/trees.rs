//! Every proof of every small tree, and of random larger ones.

use proptest::prelude::*;
use tlog_tiles::{check_record, check_tree};

use super::{leaves, reference_root, stored};
use crate::audit::{
    merkle::{Frontier, Hash, MAX_SIZE, empty_root, is_consistent, root_of_path},
    nodes::{Node, Nodes, Plan},
    tiles::{GrowingTree, TileId, Tiles},
};

const MOST: usize = 70;

/// Hashes for another library.
fn library(hashes: &[Hash]) -> Vec<tlog_tiles::Hash> {
    hashes.iter().copied().map(tlog_tiles::Hash).collect()
}

/// Returns true if the path leads from the leaf to the root, by our code and by the library.
fn leads(root: &Hash, at: u64, size: u64, leaf: &Hash, path: &[Hash]) -> bool {
    let [theirs, own] = [*root, *leaf].map(tlog_tiles::Hash);
    let leads = root_of_path(at, size, leaf, path) == Some(*root);
    assert_eq!(check_record(&library(path), size, theirs, at, own).is_ok(), leads, "{at} {size}");
    leads
}

/// Returns true if the proof shows that the older tree begins the newer one, by our code and by the
/// library, which has no proofs from nothing.
fn continues(old: (u64, &Hash), new: (u64, &Hash), proof: &[Hash]) -> bool {
    let [before, after] = [*old.1, *new.1].map(tlog_tiles::Hash);
    let holds = is_consistent(old.0, old.1, new.0, new.1, proof);
    let theirs = check_tree(&library(proof), new.0, after, old.0, before).is_ok();
    assert_eq!(theirs, holds && old.0 > 0, "{} {}", old.0, new.0);
    holds
}

/// The root as the one who verifies a range sees it.
fn root_of_range(prefix: &[Hash], first: u64, range: &[Hash], suffix: &[Hash], size: u64) -> Hash {
    let mut frontier = Frontier::default();
    frontier.push_span(first, prefix).unwrap();
    for leaf in range {
        frontier.push(*leaf).unwrap();
    }
    frontier.push_span(size, suffix).unwrap();
    frontier.root()
}

fn check_inclusion(leaves: &[Hash], tiles: &Tiles, index: usize) {
    let at = index as u64;
    let size = leaves.len() as u64;
    let path = Plan::inclusion(at, size).unwrap().hashes(tiles).unwrap();

    assert!(leads(&reference_root(leaves), at, size, &leaves[index], &path));
}

fn check_consistency(leaves: &[Hash], tiles: &Tiles, old: usize) {
    let before = old as u64;
    let after = leaves.len() as u64;
    let proof = Plan::consistency(before, after).unwrap().hashes(tiles).unwrap();
    let old_root = reference_root(&leaves[..old]);
    let root = reference_root(leaves);

    assert!(continues((before, &old_root), (after, &root), &proof), "{before} {after}");
    let mut forked = root;
    forked[0] ^= 1;
    assert!(!continues((before, &forked), (after, &root), &proof), "{before} {after}");
    // Every log continues the one without events.
    assert_eq!(continues((before, &old_root), (after, &forked), &proof), old == 0);
}

fn check_range(leaves: &[Hash], tiles: &Tiles, first: usize, end: usize) {
    let size = leaves.len() as u64;
    let prefix = Plan::span(0, first as u64).hashes(tiles).unwrap();
    let suffix = Plan::span(end as u64, size).hashes(tiles).unwrap();

    let root = root_of_range(&prefix, first as u64, &leaves[first..end], &suffix, size);

    assert_eq!(root, reference_root(leaves), "{first} {end} {size}");
}

#[test]
fn every_proof_of_every_small_tree_holds() {
    for size in 1..=MOST {
        let leaves = leaves(size as u64);
        let tiles = stored(&leaves, 7);
        for first in 0..size {
            check_inclusion(&leaves, &tiles, first);
            check_consistency(&leaves, &tiles, first);
            (first..=size).for_each(|end| check_range(&leaves, &tiles, first, end));
        }
        check_consistency(&leaves, &tiles, size);
    }
}

#[test]
fn a_path_that_is_changed_in_any_place_leads_elsewhere_or_nowhere() {
    for size in 1..=40_usize {
        let leaves = leaves(size as u64);
        let tiles = stored(&leaves, 40);
        let root = reference_root(&leaves);
        for (index, leaf) in leaves.iter().enumerate() {
            let at = index as u64;
            let size = size as u64;
            let path = Plan::inclusion(at, size).unwrap().hashes(&tiles).unwrap();
            let leads = |at, size, path: &[Hash]| leads(&root, at, size, leaf, path);

            assert!(leads(at, size, &path));
            for place in 0..path.len() {
                let mut changed = path.clone();
                changed[place][31] ^= 1;
                assert!(!leads(at, size, &changed));
                changed.remove(place);
                assert!(!leads(at, size, &changed));
            }
            assert!(!leads(at, size, &[path.clone(), vec![[0; 32]]].concat()));
            assert!((0..size + 3).filter(|other| *other != at).all(|it| !leads(it, size, &path)));
        }
    }
}

#[test]
fn a_consistency_proof_that_is_changed_in_any_place_fails() {
    let leaves = leaves(53);
    let tiles = stored(&leaves, 53);
    let root = reference_root(&leaves);
    for old in 1..53_usize {
        let before = old as u64;
        let old_root = reference_root(&leaves[..old]);
        let proof = Plan::consistency(before, 53).unwrap().hashes(&tiles).unwrap();
        let holds = |proof: &[Hash]| continues((before, &old_root), (53, &root), proof);

        for place in 0..proof.len() {
            let mut changed = proof.clone();
            changed[place][0] ^= 1;
            assert!(!holds(&changed), "{old} {place}");
            changed.remove(place);
            assert!(!holds(&changed), "{old} {place}");
        }
        assert!(!holds(&[proof.clone(), vec![root]].concat()));
        assert!(!holds(&[]));
    }
}

#[test]
fn sizes_beyond_reason_are_refused_before_anything_is_counted() {
    let huge = MAX_SIZE + 1;
    let zero = [0; 32];

    assert_eq!(root_of_path(0, huge, &zero, &[]), None);
    assert_eq!(root_of_path(5, 5, &zero, &[]), None);
    assert!(!is_consistent(1, &zero, u64::MAX, &zero, &[zero]));
    assert!(!is_consistent(2, &zero, 1, &zero, &[]));
    assert!(Plan::inclusion(0, huge).is_none());
    assert!(Plan::consistency(1, huge).is_none());
    assert!(Frontier::default().push_subtree(64, zero).is_err());
    assert!(Frontier::default().push_subtree(63, zero).is_err());
}

#[test]
fn a_span_takes_exactly_its_hashes() {
    let leaves = leaves(21);
    let tiles = stored(&leaves, 5);
    let span = Plan::span(0, 21).hashes(&tiles).unwrap();
    let taken = |hashes: &[Hash]| Frontier::default().push_span(21, hashes);

    assert!(taken(&span).is_ok());
    assert!(taken(&span[1..]).is_err());
    assert!(taken(&[span.clone(), vec![[0; 32]]].concat()).is_err());
    assert!(Frontier::default().push_span(0, &[]).is_ok());
    let mut odd = Frontier::default();
    odd.push(leaves[0]).unwrap();
    assert!(odd.push_subtree(1, leaves[1]).is_err());
    assert!(odd.push_span(0, &[]).is_err());
}

#[test]
fn an_empty_tree_has_the_root_of_nothing() {
    assert_eq!(Frontier::default().root(), empty_root());
    assert_eq!(Plan::root(0).hash(&Tiles::default()).unwrap(), empty_root());
}

#[test]
fn a_tree_that_misses_tiles_says_which_instead_of_proving() {
    let tiles = stored(&leaves(300), 300);
    let error = Plan::inclusion(299, 301).unwrap().hashes(&tiles).unwrap_err();

    assert_eq!(error.0, Node { level: 0, index: 300 });
    assert!(GrowingTree::open(301, tiles.clone()).is_err());
    assert!(GrowingTree::open(300, tiles).is_ok());
}

#[test]
fn what_was_appended_beyond_the_size_that_is_asked_for_is_ignored() {
    let leaves = leaves(400);
    let tiles = stored(&leaves, 400);
    let mut tree = GrowingTree::open(390, tiles).unwrap();

    assert_eq!(tree.root().unwrap(), reference_root(&leaves[..390]));
    tree.push(leaves[0]);
    let forked: Vec<_> = leaves[..390].iter().chain(&leaves[..1]).copied().collect();
    assert_eq!(tree.root().unwrap(), reference_root(&forked));
}

#[test]
fn the_frontier_of_a_stored_tree_grows_as_the_tree_does() {
    let leaves = leaves(256 * 2 + 40);
    let mut tree = GrowingTree::open(0, Tiles::default()).unwrap();
    for (size, leaf) in leaves.iter().enumerate() {
        let mut frontier = tree.frontier().unwrap();
        assert_eq!((frontier.size(), frontier.root()), (size as u64, tree.root().unwrap()));

        frontier.push(*leaf).unwrap();
        tree.push(*leaf);

        assert_eq!(frontier.root(), tree.root().unwrap(), "{size}");
    }
}

#[test]
fn tiles_that_are_taken_as_they_fill_are_those_of_the_whole_tree() {
    let leaves = leaves(256 * 3 + 7);
    let grow = || GrowingTree::open(0, Tiles::default()).unwrap();
    let mut whole = grow();
    let mut walked = grow();
    let mut taken = Vec::new();
    for leaf in leaves {
        whole.push(leaf);
        walked.push(leaf);
        taken.extend(walked.take_full());
    }

    assert_eq!(taken.len(), 3);
    assert_eq!(walked.root().unwrap(), whole.root().unwrap());
    taken.extend(walked.into_changed());
    taken.sort();
    assert_eq!(taken, whole.into_changed());
}

#[test]
fn a_proof_among_ten_million_reads_few_tiles() {
    let size = 10_000_000;
    for index in [0, 4_999_999, 9_999_999] {
        let plan = Plan::inclusion(index, size).unwrap();

        assert!(TileId::of_plans(&[&plan]).len() <= 6);
        assert!(plan.nodes().count() <= 48);
    }
    assert!(TileId::of_plans(&[&Plan::root(size)]).len() <= 3);
}

/// Nodes that are computed from the leaves each time: what tiles have to agree with.
struct Leaves(Vec<Hash>);

impl Nodes for Leaves {
    fn hash(&self, node: Node) -> Option<Hash> {
        let first = usize::try_from(node.index << node.level).ok()?;
        Some(reference_root(self.0.get(first..first + (1 << node.level))?))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn larger_trees_in_tiles_prove_the_same(
        size in 1_usize..140_000, step in 1_usize..90_000, at in any::<[u64; 3]>(),
    ) {
        let leaves = leaves(size as u64);
        let tiles = stored(&leaves, step.max(size / 40));
        let place = |seed: u64, below: usize| usize::try_from(seed % below as u64).unwrap();
        let index = place(at[0], size);
        let old = place(at[1], size);
        let end = index + place(at[2], size - index + 1);

        check_inclusion(&leaves, &tiles, index);
        check_consistency(&leaves, &tiles, old);
        check_range(&leaves, &tiles, index, end);
        let plan = Plan::inclusion(index as u64, size as u64).unwrap();
        prop_assert_eq!(plan.hashes(&tiles).unwrap(), plan.hashes(&Leaves(leaves)).unwrap());
    }
}
