//! An index and counts of events, changed from outside and written anew.

use portcullis_core::id::OrgId;
use portcullis_store::{
    CountedEvents, CountsRange, IndexColumns, IndexedEvent, NewEvent, StepCounts, Store,
};

use crate::{
    audit_counts::call,
    database::{Database, on_both},
    given::{self, NOW, append_all, event, leaf},
};

const EVENTS: u32 = 6;

/// A log of some calls, in the order in which they are sealed.
async fn log(store: &Store) -> OrgId {
    let org = given::org(store, 1).await;
    let calls = (0..EVENTS).map(|n| NewEvent {
        actor_id: Some(given::id("usr", 1)),
        request_id: Some(given::id("req", n)),
        ..call(org, n, 900, ["allow", "redacted", "success"])
    });
    given::sealed(store, org, calls.collect()).await;
    org
}

async fn indexed(store: &Store, org: OrgId) -> Vec<IndexedEvent> {
    store.indexed_events(org, 0, EVENTS.into()).await.unwrap().events
}

/// Writes the columns anew that these events had. Number of events that differed.
async fn mend(store: &Store, org: OrgId, good: &[IndexedEvent]) -> Result<u64, String> {
    let columns: Vec<Option<IndexColumns>> =
        good.iter().map(|event| Some(event.columns.clone())).collect();
    let tell = |count| NewEvent {
        kind: "audit.reindexed".into(),
        ..event(org, 900 + u32::try_from(count).unwrap())
    };
    let mended = store.mend_events(org, 0, EVENTS.into(), |_| columns.clone(), tell).await;
    mended.map_err(|error| error.to_string())
}

async fn steps(store: &Store, org: OrgId) -> Vec<StepCounts> {
    let minute = NOW.as_seconds() / 60;
    let range = CountsRange { from: minute - 9_000, to: minute + 9_000, step: 1 };
    store.call_counts(org, range).await.unwrap()
}

fn counted() -> CountedEvents {
    CountedEvents::new(0, NOW.plus_seconds(-400 * 86_400), NOW)
}

on_both! {
    async fn columns_that_were_changed_are_written_anew_and_told_of(db: Database) {
        let org = log(&db.store).await;
        let good = indexed(&db.store, org).await;
        assert!(good.iter().all(|event| event.is_indexed));
        for change in [
            "type = 'token.issued'", "actor_id = NULL", "via = 'usr_x'", "token_id = 'x'", "target = 'x'",
            "decision = 'deny'", "policy = 'x'", "dlp_result = NULL", "outcome = 'x'",
            "request_id = NULL", "occurred_at = 1", "committed_at = 1", "payload_at = 5",
        ] {
            let id = given::id::<portcullis_core::id::EventId>("evt", 3);
            db.execute_text(format!("UPDATE audit_events SET {change} WHERE id = '{id}'")).await;
            let named: Vec<_> = indexed(&db.store, org).await.iter().zip(&good)
                .flat_map(|(now, good)| now.columns.differing(&good.columns)).collect();
            assert_eq!(named, [change.split(' ').next().unwrap()]);

            assert_eq!(mend(&db.store, org, &good).await, Ok(1), "{change}");

            assert_eq!(indexed(&db.store, org).await, good, "{change}");
            db.execute_text(format!("DELETE FROM audit_events WHERE type = 'audit.reindexed' AND org_id = '{org}'")).await;
        }
        assert_eq!(mend(&db.store, org, &good).await, Ok(0), "nothing is told of nothing");
        assert_eq!(db.store.seal(org, leaf).await.unwrap(), 0);
    }

    async fn a_batch_that_is_cut_off_leaves_nothing_and_is_written_by_the_next_run(db: Database) {
        let org = log(&db.store).await;
        let good = indexed(&db.store, org).await;
        db.execute("UPDATE audit_events SET decision = 'deny'").await;
        let bad = indexed(&db.store, org).await;
        db.refuse_writes("audit_events").await;

        let cut_off = mend(&db.store, org, &good).await;
        db.allow_writes("audit_events").await;

        assert!(cut_off.is_err());
        assert_eq!(indexed(&db.store, org).await, bad);
        assert_eq!(mend(&db.store, org, &good).await, Ok(EVENTS.into()));
        assert_eq!(indexed(&db.store, org).await, good);
        assert_eq!(db.store.seal(org, leaf).await.unwrap(), 1, "what tells of it");
    }

    async fn entries_that_are_gone_or_of_no_event_are_mended(db: Database) {
        if !db.is_sqlite() {
            return;
        }
        let org = log(&db.store).await;
        let good = indexed(&db.store, org).await;
        // One waits for its seal, and is at the end of the table.
        append_all(&db.store, vec![event(org, 50)]).await;
        let position = good[2].positions.0;
        db.execute_text(format!(
            "DELETE FROM audit_index WHERE position = {position} AND kind IN (1, 4);
             INSERT INTO audit_index VALUES (2, 'usr_x', {position}), (7, '{org} x', 999), (6, '{org}', {position})"
        )).await;
        assert_eq!(indexed(&db.store, org).await.iter().filter(|event| !event.is_indexed).count(), 1);
        let start = (i64::MIN, String::new(), i64::MIN);

        assert_eq!(mend(&db.store, org, &good).await, Ok(1));
        let (stray, last) = db.store.stray_entries(&start).await.unwrap();
        let orgs: Vec<_> = stray.iter().map(|entry| entry.org).collect();
        let removed = db.store.remove_stray_entries(&stray, |_| Some(event(org, 800))).await;

        assert_eq!(orgs, [Some(org), Some(org), None]);
        assert_eq!(removed.unwrap(), 3);
        assert_eq!(indexed(&db.store, org).await, good);
        assert_eq!(db.store.stray_entries(&start).await.unwrap(), (vec![], last.clone()));
        assert_eq!(db.store.stray_entries(&last.unwrap()).await.unwrap(), (vec![], None));
    }

    async fn counts_that_were_changed_are_counted_anew(db: Database) {
        let org = log(&db.store).await;
        let other = given::org(&db.store, 2).await;
        given::sealed(&db.store, other, vec![call(other, 70, 900, ["deny", "blocked", "denied"])]).await;
        let good = steps(&db.store, org).await;
        let tools = ["p:t".to_owned()];
        let calls = db.store.tool_calls(org, &tools, 0).await.unwrap();
        let rest = steps(&db.store, other).await;
        let minute = NOW.as_seconds() / 60;
        let none = None::<fn(u64) -> NewEvent>;
        let mut all = counted();
        db.store.count_calls(org, &mut all, 2).await.unwrap();
        assert_eq!(db.store.mend_counts(org, all.clone(), none).await.unwrap(), 0, "what is not counted yet is");
        db.execute_text(format!(
            "UPDATE audit_counts SET number = 77 WHERE org_id = '{org}' AND kind = 1;
             DELETE FROM audit_counts WHERE org_id = '{org}' AND kind = 6;
             INSERT INTO audit_counts VALUES ('{org}', {minute}, 2, 5), ('{org}', {}, 2, 5);
             DELETE FROM audit_capability_counts WHERE org_id = '{org}'",
            minute - 5_000
        )).await;

        assert_eq!(db.store.mend_counts(org, all.clone(), none).await.unwrap(), 5);
        assert_ne!(steps(&db.store, org).await, good, "nothing is written");
        let tell = Some(|_| event(org, 900));
        assert_eq!(db.store.mend_counts(org, all.clone(), tell).await.unwrap(), 5);

        assert_eq!(steps(&db.store, org).await, good);
        assert_eq!(db.store.tool_calls(org, &tools, 0).await.unwrap(), calls);
        assert_eq!(steps(&db.store, other).await, rest);
        assert_eq!(db.store.seal(org, leaf).await.unwrap(), 1, "what tells of it");
        assert_eq!(db.store.mend_counts(org, all, none).await.unwrap(), 0);
    }

    async fn counts_that_were_merged_are_those_of_their_events(db: Database) {
        let org = log(&db.store).await;
        for days in [9, 50] {
            let now = NOW.plus_seconds(days * 86_400);
            db.store.thin_counts(&[org], now, NOW.plus_seconds(-86_400)).await.unwrap();
            let counted = |from: i64| CountedEvents::new(0, NOW.plus_seconds(from * 86_400), now);
            let none = None::<fn(u64) -> NewEvent>;

            assert_eq!(db.store.mend_counts(org, counted(-2), none).await.unwrap(), 0, "{days}");

            db.execute("UPDATE audit_counts SET number = number + 1 WHERE kind = 1").await;
            assert_eq!(db.store.mend_counts(org, counted(-2), none).await.unwrap(), 1, "{days}");
            assert_eq!(db.store.mend_counts(org, counted(0), none).await.unwrap(), 0, "forgotten");
            let tell = Some(|_| NewEvent { kind: "x".into(), ..event(org, 900 + u32::try_from(days).unwrap()) });
            assert_eq!(db.store.mend_counts(org, counted(-2), tell).await.unwrap(), 1, "{days}");
            assert_eq!(db.store.mend_counts(org, counted(-2), none).await.unwrap(), 0, "{days}");
        }
    }
}
