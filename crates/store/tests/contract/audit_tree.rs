//! The tree of a log: grown by sealing, signed, proving, and not to be fooled.

use std::sync::atomic::{AtomicU64, Ordering};

use portcullis_core::audit::Plan;

use crate::audit_counts::call;
use crate::prelude::*;

/// Signs by writing down what it signs, and counts alarms.
#[derive(Clone, Default)]
struct Signer {
    key: u32,
    alarms: Arc<AtomicU64>,
}

impl Signer {
    fn note(&self, size: u64) -> String {
        format!("{size} by {}", self.key)
    }

    fn alarms(&self) -> u64 {
        self.alarms.load(Ordering::SeqCst)
    }
}

impl Sealer for Signer {
    fn leaf(&self, event: &UnsealedEvent, sequence: i64, recorded_at: Timestamp) -> Hash {
        leaf(event, sequence, recorded_at)
    }

    fn sign(&self, _: OrgId, size: u64, _: &Hash) -> Option<SignedNote> {
        Some(SignedNote { note: self.note(size), signed_at: NOW })
    }

    fn refuse(&self, _: OrgId, _: &[RefusedRow]) -> Option<NewEvent> {
        None
    }

    fn forked(&self, _: OrgId, _: u64) {
        self.alarms.fetch_add(1, Ordering::SeqCst);
    }
}

async fn leaves(store: &Store, org: OrgId) -> Vec<Hash> {
    whole_log(store, org).await.iter().map(|it| it.seal.unwrap().leaf_hash).collect()
}

fn root(leaves: &[Hash]) -> Hash {
    let mut tree = Frontier::default();
    for leaf in leaves {
        tree.push(*leaf).unwrap();
    }
    tree.root()
}

async fn signed(store: &Store, org: OrgId) -> StoredCheckpoint {
    store.find_checkpoint(org, CheckpointKind::Signed).await.unwrap().unwrap()
}

/// The stored tree is that of the stored leaves, the checkpoint covers it, and it proves.
async fn assert_proves(store: &Store, org: OrgId, signer: &Signer) {
    let leaves = leaves(store, org).await;
    let size = leaves.len() as u64;
    let checkpoint = signed(store, org).await;
    assert_eq!((checkpoint.size, checkpoint.root), (size, root(&leaves)));
    assert_eq!(checkpoint.note, signer.note(size));
    for index in [0, size / 3, size / 2, size - 1] {
        let path = store.prove(org, &Plan::inclusion(index, size).unwrap()).await.unwrap();
        let leaf = &leaves[usize::try_from(index).unwrap()];
        assert_eq!(root_of_path(index, size, leaf, &path), Some(checkpoint.root));
        let proof = store.prove(org, &Plan::consistency(index, size).unwrap()).await.unwrap();
        let old = store.root_at(org, index).await.unwrap();
        assert_eq!(old, root(&leaves[..usize::try_from(index).unwrap()]));
        assert!(is_consistent(index, &old, size, &checkpoint.root, &proof));
    }
}

/// Places of three events, in their order.
async fn places(store: &Store, org: OrgId, first: u32) -> [Option<i64>; 3] {
    let mut places = [None; 3];
    for (place, n) in places.iter_mut().zip(first..) {
        let id = id("evt", n);
        let found = store.find_event(org, Visibility::All, id).await.unwrap();
        *place = found.unwrap().seal.map(|seal| seal.sequence);
    }
    places.sort_unstable();
    places
}

on_both! {
    async fn a_seal_lets_the_tree_grow_and_signs_it(db: Database) {
        let org = org(&db, 1).await;
        let signer = Signer::default();
        let mut first = 0;
        for count in [1, 2, 252, 1, 1, 1500, 3] {
            append_all(&db, (first..first + count).map(|n| event(org, n)).collect()).await;
            first += count;

            assert_eq!(db.seal(org, signer.clone()).await.unwrap(), u64::from(count));

            assert_proves(&db, org, &signer).await;
        }
        let before = signed(&db, org).await;
        assert_eq!(db.seal(org, signer.clone()).await.unwrap(), 0);
        assert_eq!(signed(&db, org).await, before);
        assert_eq!(signer.alarms(), 0);
    }

    // As a node that dies with places, index, counts, tiles or checkpoint written and not the rest, or before all.
    async fn a_seal_that_is_cut_off_leaves_committed_events_to_be_found_and_sealed(db: Database) {
        let org = org(&db, 1).await;
        let signer = Signer::default();
        let of_all = ["audit_heads", "audit_seals", "audit_counts", "audit_capability_counts", "audit_tiles", "audit_checkpoints"];
        let of_sqlite = ["audit_index", "audit_floor"];
        let tables = of_all.into_iter().chain(of_sqlite.into_iter().filter(|_| db.is_sqlite()));
        for (table, first) in tables.zip((0..).step_by(3)) {
            let store = Store::open(&db.settings).await.unwrap();
            let calls = (first..first + 3).map(|n| call(org, n, 900, ["allow", "passed", "success"]));
            append_all(&store, calls.collect()).await;
            db.refuse_writes(table).await;

            let cut_off = store.seal(org, signer.clone()).await;

            assert!(cut_off.is_err(), "{table}");
            db.allow_writes(table).await;
            store.close().await;
            if db.is_sqlite() {
                let ahead = "SELECT COUNT(*) FROM audit_index WHERE position NOT IN (SELECT position FROM audit_seals)";
                assert_eq!(db.count(ahead), 0, "{table}");
            }
            let again = Store::open(&db.settings).await.unwrap();
            assert_eq!(again.sealed_size(org).await.unwrap(), i64::from(first), "{table}");
            assert_eq!(again.orgs_with_unsealed().await.unwrap(), [org], "{table}");
            assert_eq!(places(&again, org, first).await, [None; 3], "{table}");
            assert_eq!(again.seal(org, signer.clone()).await.unwrap(), 3, "{table}");
            let given = [0, 1, 2].map(|n| Some(i64::from(first + n)));
            assert_eq!(places(&again, org, first).await, given, "{table}");
            assert_proves(&again, org, &signer).await;
            let indexed = again.indexed_events(org, 0, i64::from(first) + 3).await.unwrap().events;
            assert!(indexed.iter().all(|event| event.is_indexed), "{table}");
        }
        assert_eq!(signer.alarms(), 0);
    }

    async fn many_may_seal_at_once_and_there_is_one_tree(db: Database) {
        let org = org(&db, 1).await;
        let signer = Signer::default();
        let mut work = JoinSet::new();
        for node in 0..3_u32 {
            let settings = db.settings.clone();
            let signer = signer.clone();
            work.spawn(async move {
                let store = Store::open(&settings).await.unwrap();
                for round in 0..8 {
                    let first = node * 10_000 + round * 100;
                    append_all(&store, (first..first + 40).map(|n| event(org, n)).collect()).await;
                    store.seal(org, signer.clone()).await.unwrap();
                }
            });
        }

        work.join_all().await;
        db.seal(org, signer.clone()).await.unwrap();

        assert_eq!(leaves(&db, org).await.len(), 960);
        assert_proves(&db, org, &signer).await;
        assert_eq!(signer.alarms(), 0);
    }

    async fn a_log_that_stands_still_is_signed_by_whoever_has_keys_and_again_with_other_keys(
        db: Database
    ) {
        let org = org(&db, 1).await;
        let signer = Signer::default();
        append_all(&db, (0..9).map(|n| event(org, n)).collect()).await;
        db.seal(org, leaf).await.unwrap();
        assert_eq!(db.find_checkpoint(org, CheckpointKind::Signed).await.unwrap(), None);
        assert_eq!(db.any_checkpoint().await.unwrap(), None);
        assert_eq!(db.orgs_with_unsigned().await.unwrap(), [org]);

        db.seal(org, signer.clone()).await.unwrap();
        assert!(db.orgs_with_unsigned().await.unwrap().is_empty());
        assert_proves(&db, org, &signer).await;
        let other = Signer { key: 2, ..signer };
        db.seal(org, other.clone()).await.unwrap();

        assert_proves(&db, org, &other).await;
        assert_eq!(db.any_checkpoint().await.unwrap(), Some((org, other.note(9))));
        let since = db.checkpoints_since(NOW).await.unwrap();
        assert_eq!(since, [(org, signed(&db, org).await)]);
        assert!(db.checkpoints_since(NOW.plus_seconds(1)).await.unwrap().is_empty());
    }

    async fn proofs_of_younger_events_outlive_the_older_ones(db: Database) {
        let org = org(&db, 1).await;
        let signer = Signer::default();
        append_all(&db, (0..600).map(|n| event(org, n)).collect()).await;
        db.seal(org, signer.clone()).await.unwrap();
        let all = leaves(&db, org).await;
        db.execute("DELETE FROM audit_seals WHERE sequence < 555").await;
        db.execute("DELETE FROM audit_events WHERE position NOT IN \
                    (SELECT position FROM audit_seals)").await;

        append_all(&db, (600..610).map(|n| event(org, n)).collect()).await;
        assert_eq!(db.seal(org, signer.clone()).await.unwrap(), 10);

        let checkpoint = signed(&db, org).await;
        let path = db.prove(org, &Plan::inclusion(555, 610).unwrap()).await.unwrap();
        assert_eq!(root_of_path(555, 610, &all[555], &path), Some(checkpoint.root));
        let proof = db.prove(org, &Plan::consistency(300, 610).unwrap()).await.unwrap();
        let old = root(&all[..300]);
        assert!(is_consistent(300, &old, 610, &checkpoint.root, &proof));
        assert_eq!(signer.alarms(), 0);
    }

    async fn a_log_that_was_changed_or_set_back_is_sealed_and_not_signed(db: Database) {
        let org = org(&db, 1).await;
        let signer = Signer::default();
        append_all(&db, (0..40).map(|n| event(org, n)).collect()).await;
        db.seal(org, signer.clone()).await.unwrap();
        let before = signed(&db, org).await;

        db.execute("UPDATE audit_checkpoints SET size = 50").await;
        append_all(&db, vec![event(org, 40)]).await;
        assert_eq!(db.seal(org, signer.clone()).await.unwrap(), 1);
        assert_eq!(signer.alarms(), 2, "once for the seal, once for the standing log");
        assert_eq!(signed(&db, org).await.note, before.note);

        // The hashes of two leaves change places.
        db.execute("UPDATE audit_checkpoints SET size = 40").await;
        db.execute(if db.is_sqlite() {
            "UPDATE audit_tiles SET hashes = CAST(substr(hashes, 33, 32) || \
             substr(hashes, 1, 32) || substr(hashes, 65) AS BLOB)"
        } else {
            "UPDATE audit_tiles SET hashes = substr(hashes, 33, 32) || substr(hashes, 1, 32) || \
             substr(hashes, 65)"
        })
        .await;
        append_all(&db, vec![event(org, 41)]).await;
        assert_eq!(db.seal(org, signer.clone()).await.unwrap(), 1);
        assert!(signer.alarms() > 2);
        assert_eq!(signed(&db, org).await.note, before.note);
    }

    // With a tree that is ahead of the log or behind it nothing can be sealed, and no sealer tries for ever.
    async fn a_log_of_another_length_than_its_tree_is_not_sealed_and_is_no_burden(db: Database) {
        let signer = Signer::default();
        let [org, other] = orgs(&db).await;
        append_all(&db, (0..4).map(|n| event(org, n)).collect()).await;
        db.seal(org, signer.clone()).await.unwrap();
        append_all(&db, vec![event(org, 4), event(other, 5)]).await;

        for sizes in ["size = 0", "size = 3", "size = 4, tree_size = 3"] {
            let set_back = format!("UPDATE audit_heads SET {sizes} WHERE tree_size = 4");
            db.execute_text(set_back).await;
            let told = db.seal_each(&[org, other], signer.clone()).await;

            assert!(told.iter().all(|(told, sealed)| sealed.is_err() == (*told == org)), "{told:?}");
        }

        assert_eq!(signer.alarms(), 3);
        assert_eq!(db.sealed_size(other).await.unwrap(), 1);
    }

    async fn a_smaller_checkpoint_never_replaces_a_larger_one(db: Database) {
        let org = org(&db, 1).await;
        let checkpoint = |size: u64| StoredCheckpoint {
            size, root: [7; 32], note: size.to_string(), signed_at: NOW,
        };
        for (kept, expected) in [(5, 5), (4, 5), (6, 6), (6, 6)] {
            let kind = CheckpointKind::Witnessed;
            db.keep_checkpoint(org, kind, &checkpoint(kept)).await.unwrap();

            let found = db.find_checkpoint(org, kind).await.unwrap().unwrap();
            assert_eq!(found, checkpoint(expected));
        }
        assert_eq!(db.find_checkpoint(org, CheckpointKind::Signed).await.unwrap(), None);
    }

    async fn what_was_committed_since_is_found_by_its_events(db: Database) {
        let orgs = orgs(&db).await;
        let (found, start) = db.committed_since(0).await.unwrap();
        assert_eq!((found, start), (vec![], 0));
        append_all(&db, (0..4).map(|n| event(orgs[0], n)).collect()).await;

        let (found, first) = db.committed_since(start).await.unwrap();
        assert_eq!((found, first), (vec![orgs[0]], db.horizon().await.unwrap()));
        append_all(&db, (4..6).map(|n| event(orgs[1], n)).collect()).await;
        let (found, second) = db.committed_since(first).await.unwrap();
        assert_eq!(found, [orgs[1]]);
        assert_eq!(db.committed_since(second).await.unwrap(), (vec![], second));
    }

    // Each write of a seal fails once; what is left is the log before, and the next seal makes
    // the log after.
    async fn a_seal_that_fails_anywhere_leaves_the_log_as_it_was(db: Database) {
        let org = org(&db, 1).await;
        let signer = Signer::default();
        append_all(&db, (0..300).map(|n| event(org, n)).collect()).await;
        db.seal(org, signer.clone()).await.unwrap();
        let of_actor = |n| NewEvent { actor_id: Some(id("usr", 1)), ..event(org, n) };
        append_all(&db, (300..310).map(of_actor).collect()).await;
        let mut tables = vec!["audit_heads", "audit_seals", "audit_tiles", "audit_checkpoints"];
        if db.is_sqlite() {
            tables.extend(["audit_index", "audit_counts", "audit_floor"]);
        }

        for table in tables {
            db.refuse_writes(table).await;
            assert!(db.seal(org, signer.clone()).await.is_err(), "{table}");
            db.allow_writes(table).await;

            assert_eq!(db.sealed_size(org).await.unwrap(), 300, "{table}");
            assert_proves(&db, org, &signer).await;
        }

        assert_eq!(db.seal(org, signer.clone()).await.unwrap(), 10);
        assert_proves(&db, org, &signer).await;
    }

    // One transaction for all that are short; one that cannot be sealed is no burden to the others.
    async fn several_logs_are_sealed_as_each_would_be(db: Database) {
        let signer = Signer::default();
        let mut orgs = Vec::new();
        for (number, events) in [(1, 1), (2, 1200), (3, 0), (4, 7), (5, 3)] {
            let org = org(&db, number).await;
            let events = number * 10_000..number * 10_000 + events;
            append_all(&db, events.map(|n| event(org, n)).collect()).await;
            orgs.push(org);
        }
        db.seal(orgs[4], signer.clone()).await.unwrap();
        append_all(&db, vec![event(orgs[4], 3)]).await;
        // Only this log has any so far.
        db.execute("DELETE FROM audit_tiles").await;

        let told = db.seal_each(&orgs, signer.clone()).await;

        let of = |org| &told.iter().find(|(told, _)| *told == org).unwrap().1;
        assert_eq!(told.len(), 5);
        for (org, events) in orgs.iter().zip([1, 1200, 0, 7]) {
            assert_eq!(*of(*org).as_ref().unwrap(), events, "{org}");
            assert_eq!(db.sealed_size(*org).await.unwrap(), i64::try_from(events).unwrap());
        }
        assert!(of(orgs[4]).is_err());
        for org in [orgs[0], orgs[1], orgs[3]] {
            assert_proves(&db, org, &signer).await;
        }
        assert_eq!(signer.alarms(), 0);

        append_all(&db, (4..6).zip(&orgs).map(|(n, org)| event(*org, n)).collect()).await;
        db.refuse_writes("audit_checkpoints").await;
        let refused = db.seal_each(&orgs[..2], signer.clone()).await;
        db.allow_writes("audit_checkpoints").await;
        assert!(refused.iter().all(|(_, sealed)| sealed.is_err()), "{refused:?}");
        let sealed = db.seal_each(&orgs[..2], signer.clone()).await;
        assert!(sealed.iter().all(|(_, sealed)| *sealed.as_ref().unwrap() == 1), "{sealed:?}");
        assert_proves(&db, orgs[0], &signer).await;
    }

    // A seal that was made without an answer: the next sealer finds it made.
    async fn a_seal_whose_answer_was_lost_is_found_made(db: Database) {
        let org = org(&db, 1).await;
        let signer = Signer::default();
        append_all(&db, (0..300).map(|n| event(org, n)).collect()).await;
        let store = db.store.clone();
        let its = signer.clone();
        let mut asked = JoinSet::new();
        asked.spawn(async move { store.seal(org, its).await });
        // The sealer goes away at some moment of it.
        tokio::task::yield_now().await;
        asked.shutdown().await;

        let again = db.seal(org, signer.clone()).await.unwrap();

        assert!(again == 0 || again == 300, "{again}");
        assert_eq!(db.sealed_size(org).await.unwrap(), 300);
        assert_proves(&db, org, &signer).await;
        assert_eq!(signer.alarms(), 0);
    }
}
