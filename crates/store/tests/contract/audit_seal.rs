//! Sealing: no gaps, no repeats, time that never runs backwards.

use std::sync::Mutex;

use crate::prelude::*;

/// Sequences without gaps, times that do not run backwards, each leaf made of what is stored.
fn assert_sound(org_id: OrgId, log: &[EventRecord]) {
    let mut last = i64::MIN;
    for (sequence, event) in (0..).zip(log) {
        let seal = event.seal.unwrap();
        let unsealed = UnsealedEvent { id: event.id, org_id, core: event.core.clone() };
        assert_eq!(seal.sequence, sequence);
        assert!(seal.recorded_at.as_micros() >= last);
        assert_eq!(seal.leaf_hash, leaf(&unsealed, sequence, seal.recorded_at));
        last = seal.recorded_at.as_micros();
    }
}

on_both! {
    async fn sealing_twice_changes_nothing(db: Database) {
        let org = org(&db, 1).await;
        append_all(&db, (0..2300).map(|n| event(org, n)).collect()).await;

        let pending = db.orgs_with_unsealed().await.unwrap();
        let first = db.seal(org, leaf).await.unwrap();
        let log = whole_log(&db, org).await;
        let second = db.seal(org, leaf).await.unwrap();

        assert_eq!((pending, first, second), (vec![org], 2300, 0));
        assert_eq!(whole_log(&db, org).await, log);
        assert_eq!(db.sealed_size(org).await.unwrap(), 2300);
        assert!(db.orgs_with_unsealed().await.unwrap().is_empty());
        assert_sound(org, &log);
    }

    // A log that cannot be sealed waits, however many events of others are sealed meanwhile.
    async fn a_log_that_cannot_be_sealed_holds_up_no_other(db: Database) {
        let [stuck, other] = orgs(&db).await;
        let (writer, _tasks) = writer(&db);
        for n in 0..3 {
            writer.append(event(stuck, n), soon()).await.unwrap();
        }
        let head = |size| format!("UPDATE audit_heads SET tree_size = {size} WHERE org_id = '{stuck}'");
        db.execute_text(head(1)).await;
        let sealed = db.seal(stuck, leaf).await;
        assert_eq!(sealed, Err(StoreError::Corrupt("audit_heads")));

        for round in 1..=3 {
            let events = (0..7_000).map(|n| event(other, 10_000 * round + n));
            append_all(&db, events.collect()).await;
            assert_eq!(db.seal(other, leaf).await.unwrap(), 7_000);
        }

        assert_eq!(db.orgs_with_unsealed().await.unwrap(), [stuck]);
        for n in 0..3 {
            let id = id("evt", n);
            let found = db.find_event(stuck, Visibility::All, id).await.unwrap();
            assert_eq!(found.map(|event| event.seal), Some(None));
            let twin = writer.append(event(stuck, n), soon()).await;
            assert!(matches!(twin, Err(StoreError::Conflict(_))), "{twin:?}");
        }
        if db.is_sqlite() {
            db.execute("CREATE TABLE is_short (events INTEGER CHECK (events < 16384))").await;
            db.execute(
                "INSERT INTO is_short SELECT COUNT(*) FROM audit_events \
                 WHERE position > (SELECT sealed FROM audit_floor)",
            )
            .await;
        }
        writer.append(event(stuck, 3), soon()).await.unwrap();
        db.execute_text(head(0)).await;
        assert_eq!(db.seal(stuck, leaf).await.unwrap(), 4);
        assert!(db.orgs_with_unsealed().await.unwrap().is_empty());
        let log = whole_log(&db, stuck).await;
        let ids: Vec<EventId> = log.iter().map(|event| event.id).collect();
        assert_eq!(ids, [0, 1, 2, 3].map(|n| id("evt", n)));
        assert_sound(stuck, &log);
        if db.is_sqlite() {
            db.execute("CREATE TABLE none_waits (kind INTEGER CHECK (kind < 6))").await;
            db.execute("INSERT INTO none_waits SELECT kind FROM audit_index").await;
        }
    }

    async fn an_org_that_does_not_exist_has_nothing_to_seal(db: Database) {
        assert_eq!(db.seal(id("org", 9), leaf).await.unwrap(), 0);
    }

    async fn the_time_of_recording_never_runs_backwards(db: Database) {
        let org = org(&db, 1).await;
        let clock = clock_at(NOW);
        let (writer, _tasks) = writer_of(&db, "node-1", clock.clone());

        for (n, micros) in (0..).zip([10, 30, 20, 25, 40, 5]) {
            clock.set(micros);
            writer.append(event(org, n), soon()).await.unwrap();
            if n % 2 == 1 {
                db.seal(org, leaf).await.unwrap();
            }
        }

        let log = whole_log(&db, org).await;
        let times: Vec<_> =
            log.iter().map(|event| event.seal.unwrap().recorded_at.as_micros()).collect();
        assert_eq!(times, [10, 30, 30, 30, 40, 40]);
    }

    async fn many_may_write_and_seal_at_once_and_nothing_is_skipped(db: Database) {
        let orgs = orgs(&db).await;
        let mut work = JoinSet::new();
        for node in 0..3u32 {
            let settings = db.settings.clone();
            work.spawn(async move {
                let store = Store::open(&settings).await.unwrap();
                for round in 0..10 {
                    let first = node * 10_000 + round * 100;
                    let events = (first..first + 60)
                        .map(|n| event(orgs[usize::try_from(n % 2).unwrap()], n))
                        .collect();
                    append_all(&store, events).await;
                    for org in orgs {
                        store.seal(org, leaf).await.unwrap();
                    }
                }
            });
        }

        work.join_all().await;

        assert!(db.orgs_with_unsealed().await.unwrap().is_empty());
        for org in orgs {
            let log = whole_log(&db, org).await;
            assert_eq!(log.len(), 900);
            assert_sound(org, &log);
        }
    }

    async fn a_leaf_is_asked_for_in_the_order_of_commits(db: Database) {
        let org = org(&db, 1).await;
        for n in [3, 1, 2] {
            append_all(&db, vec![event(org, n)]).await;
        }
        let asked = Mutex::new(Vec::new());

        let sealed = db
            .seal(org, |event: &UnsealedEvent, sequence, _: Timestamp| {
                asked.lock().unwrap().push((event.id, sequence));
                [0; 32]
            })
            .await
            .unwrap();

        assert_eq!(sealed, 3);
        let expected = [(3, 0), (1, 1), (2, 2)].map(|(n, place)| (id("evt", n), place));
        assert_eq!(asked.into_inner().unwrap(), expected);
    }
}
