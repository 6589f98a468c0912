//! Rows that wait for their seals and were added, copied or changed from outside: they get no place, are told of
//! once, and hold up no other.

use std::sync::Mutex;

use crate::prelude::*;

/// Seals, and tells of refused rows with events of their own.
#[derive(Default)]
struct Telling {
    refused: Mutex<Vec<(OrgId, String, RowFault)>>,
}

impl Telling {
    fn take(&self) -> Vec<(OrgId, String, RowFault)> {
        std::mem::take(&mut self.refused.lock().unwrap())
    }
}

impl Sealer for &Telling {
    fn leaf(&self, event: &UnsealedEvent, sequence: i64, recorded_at: Timestamp) -> Hash {
        leaf(event, sequence, recorded_at)
    }

    fn sign(&self, _: OrgId, _: u64, _: &Hash) -> Option<SignedNote> {
        None
    }

    fn refuse(&self, org: OrgId, rows: &[RefusedRow]) -> Option<NewEvent> {
        let mut refused = self.refused.lock().unwrap();
        refused.extend(rows.iter().map(|row| (org, row.id.clone(), row.fault)));
        let number = u32::try_from(rows[0].position).unwrap();
        Some(NewEvent { kind: "told".into(), ..event(org, 900_000 + number) })
    }

    fn forked(&self, _: OrgId, _: u64) {}
}

/// The ids of the org's log, without the events that tell of refused rows, and how many those are.
async fn log_of(db: &Database, org: OrgId) -> (Vec<EventId>, usize) {
    let log = whole_log(db, org).await;
    let told = log.iter().filter(|event| event.kind == "told").count();
    (log.iter().filter(|event| event.kind != "told").map(|event| event.id).collect(), told)
}

/// An event id as a text.
fn text(n: u32) -> String {
    id::<EventId>("evt", n).to_string()
}

const COLUMNS: &str = "id, org_id, type, occurred_at, committed_at, packed";

/// The statement that adds a row like that of event 1, with the id of event 7.
fn added_at(position: &str) -> String {
    format!(
        "INSERT INTO audit_events (position, {COLUMNS}, mac) SELECT {position}, '{}', org_id, type, \
         occurred_at, committed_at, packed, mac FROM audit_events WHERE id = '{}'",
        text(7),
        text(1)
    )
}

on_both! {
    async fn a_waiting_row_that_was_changed_is_set_aside_and_told_of_once(db: Database) {
        let bytes = if db.is_sqlite() { "x'01ff'" } else { "'\\x01ff'" };
        let changes = [
            format!("packed = {bytes}"),
            "packed = (SELECT f.packed FROM audit_events f WHERE f.id = '{first}')".to_owned(),
            "packed = NULL".to_owned(),
            "type = 'token.issued'".to_owned(),
            "committed_at = committed_at + 1".to_owned(),
            "mac = NULL".to_owned(),
            "mac = (SELECT f.mac FROM audit_events f WHERE f.id = '{first}')".to_owned(),
            "id = id || 'X'".to_owned(),
        ];
        for (number, change) in (1..).zip(changes) {
            let org = org(&db, number).await;
            let (writer, _tasks) = writer(&db);
            let n = number * 100;
            for n in n..n + 4 {
                writer.append(event(org, n), soon()).await.unwrap();
            }
            // One in the middle, and the last.
            let change = change.replace("{first}", &text(n));
            let which = format!("id IN ('{}', '{}')", text(n + 1), text(n + 3));
            db.execute_text(format!("UPDATE audit_events SET {change} WHERE {which}")).await;
            let telling = Telling::default();

            let sealed = db.seal(org, &telling).await.unwrap();
            let refused: Vec<_> = telling.take().into_iter().map(|(_, _, fault)| fault).collect();
            let ends = db.log_ends(org).await.unwrap();
            let later = db.seal(org, &telling).await.unwrap();

            assert_eq!((sealed, later), (2, 1), "{change}");
            assert_eq!(refused, [RowFault::Mac; 2], "{change}");
            assert!(ends.agree && ends.sealed == ends.size, "{change}: {ends:?}");
            assert!(telling.take().is_empty(), "{change}");
            let ids = [n, n + 2].map(|n| id("evt", n));
            assert_eq!(log_of(&db, org).await, (ids.to_vec(), 1), "{change}");
            assert_eq!(db.seal(org, &telling).await.unwrap(), 0);
            assert!(db.orgs_with_unsealed().await.unwrap().is_empty(), "{change}");
            assert!(db.stray_event(org, 0, None).await.unwrap().is_some(), "{change}");
            let hidden = id("evt", n + 3);
            let found = db.find_event(org, Visibility::All, hidden).await.unwrap();
            assert_eq!(found, None, "{change}");
        }
    }

    async fn a_row_that_was_added_or_moved_is_set_aside(db: Database) {
        let [org, other] = orgs(&db).await;
        let (writer, _tasks) = writer(&db);
        writer.append(event(org, 1), soon()).await.unwrap();
        let telling = Telling::default();
        db.seal(org, &telling).await.unwrap();
        for n in 2..5 {
            writer.append(event(org, n), soon()).await.unwrap();
        }
        let mac = |key: &str| format!(
            "INSERT INTO audit_events ({COLUMNS}, mac) SELECT '{}', org_id, type, occurred_at, \
             committed_at, packed, {key} FROM audit_events WHERE id = '{}'",
            text(7), text(1)
        );
        // With the code of another row.
        db.execute_text(mac("mac")).await;
        db.execute_text(format!("UPDATE audit_events SET org_id = '{other}' WHERE id = '{}'", text(3))).await;
        writer.append(event(other, 5), soon()).await.unwrap();

        let sealed = db.seal_each(&[org, other], &telling).await;

        assert!(sealed.iter().all(|(_, sealed)| sealed.is_ok()), "{sealed:?}");
        let mut refused = telling.take();
        refused.sort_by(|a, b| a.1.cmp(&b.1));
        let faults = [(other, text(3), RowFault::Mac), (org, text(7), RowFault::Mac)];
        assert_eq!(refused, faults);
        db.seal_each(&[org, other], &telling).await;
        assert!(telling.take().is_empty());
        let ids = |numbers: &[u32]| numbers.iter().map(|n| id("evt", *n)).collect::<Vec<_>>();
        assert_eq!(log_of(&db, org).await, (ids(&[1, 2, 4]), 1));
        assert_eq!(log_of(&db, other).await, (ids(&[5]), 1));
    }

    async fn a_row_at_a_position_that_was_not_given_out_hides_no_event(db: Database) {
        let org = org(&db, 1).await;
        let (writer, _tasks) = writer(&db);
        let telling = Telling::default();
        writer.append(event(org, 1), soon()).await.unwrap();
        db.seal(org, &telling).await.unwrap();
        let known = db.horizon().await.unwrap();
        db.execute_text(added_at("9223372036854775807")).await;

        for n in 2..5 {
            writer.append(event(org, n), soon()).await.unwrap();
            assert_eq!(db.committed_since(known).await.unwrap().0, [org]);
            assert_eq!(db.seal(org, &telling).await.unwrap(), 1, "{n}");
        }

        assert!(telling.take().is_empty());
        assert_eq!(log_of(&db, org).await, ([1, 2, 3, 4].map(|n| id("evt", n)).to_vec(), 0));
        let added = id("evt", 7);
        assert_eq!(db.find_event(org, Visibility::All, added).await.unwrap(), None);
        assert_eq!(db.event_beyond(org).await.unwrap(), Some(text(7)));
        let beyond = db.rows_beyond(20).await.unwrap();
        let beyond: Vec<_> = beyond.iter().map(|row| (row.position, row.id.clone())).collect();
        assert_eq!(beyond, [(i64::MAX, text(7))]);
    }

    async fn a_row_ahead_of_the_others_hides_no_event(db: Database) {
        let org = org(&db, 1).await;
        let (writer, _tasks) = writer(&db);
        let telling = Telling::default();
        writer.append(event(org, 1), soon()).await.unwrap();
        db.seal(org, &telling).await.unwrap();
        db.execute_text(added_at("(SELECT MAX(f.position) + 3 FROM audit_events f)")).await;

        for n in 2..7 {
            db.seal(org, &telling).await.unwrap();
            writer.append(event(org, n), soon()).await.unwrap();
        }
        db.seal(org, &telling).await.unwrap();
        db.seal(org, &telling).await.unwrap();

        assert_eq!(telling.take(), [(org, text(7), RowFault::Mac)]);
        assert_eq!(log_of(&db, org).await, ((1..7).map(|n| id("evt", n)).collect(), 1));
        assert_eq!(db.event_beyond(org).await.unwrap(), None);
    }

    async fn a_head_at_a_position_that_was_not_given_out_is_told_of(db: Database) {
        let org = org(&db, 1).await;
        let (writer, _tasks) = writer(&db);
        writer.append(event(org, 1), soon()).await.unwrap();
        db.seal(org, leaf).await.unwrap();
        let head = |to: &str| format!("UPDATE audit_heads SET last_position = {to} WHERE org_id = '{org}'");
        db.execute_text(head("1000000000000")).await;
        writer.append(event(org, 2), soon()).await.unwrap();

        let sealed = db.seal(org, leaf).await;

        assert_eq!(sealed, Err(StoreError::Corrupt("audit_heads")));
        db.execute_text(head("(SELECT MAX(position) FROM audit_seals)")).await;
        assert_eq!(db.seal(org, leaf).await.unwrap(), 1);
    }

    async fn an_event_that_has_a_place_gets_no_other(db: Database) {
        let org = org(&db, 1).await;
        let (writer, _tasks) = writer(&db);
        for n in 1..=2 {
            writer.append(event(org, n), soon()).await.unwrap();
        }
        let telling = Telling::default();
        db.seal(org, &telling).await.unwrap();
        writer.append(event(org, 3), soon()).await.unwrap();
        let behind = "position = (SELECT MAX(position) + 1 FROM audit_events)";
        if db.is_sqlite() {
            // A copy of one that is sealed, and one of one that waits.
            for n in [1, 3] {
                db.execute_text(format!(
                    "INSERT INTO audit_events ({COLUMNS}, mac) SELECT {COLUMNS}, mac \
                     FROM audit_events WHERE id = '{}'", text(n)
                )).await;
            }
        } else {
            // An id is a key there, but a row can be put behind the head.
            db.execute_text(format!("UPDATE audit_events SET {behind} WHERE id = '{}'", text(1))).await;
            db.execute("SELECT setval('audit_events_position_seq', (SELECT MAX(position) FROM audit_events))").await;
        }
        writer.append(event(org, 4), soon()).await.unwrap();

        db.seal(org, &telling).await.unwrap();
        let refused = telling.take();
        db.seal(org, &telling).await.unwrap();

        let copies: &[u32] = if db.is_sqlite() { &[1, 3] } else { &[1] };
        let expected = copies.iter().map(|n| (org, text(*n), RowFault::Twice));
        assert_eq!(refused, expected.collect::<Vec<_>>());
        assert!(telling.take().is_empty());
        assert_eq!(db.sealed_size(org).await.unwrap(), 5);
        let (ids, told) = log_of(&db, org).await;
        assert_eq!((ids.last(), told), (Some(&id("evt", 4)), 1));
        if db.is_sqlite() {
            assert_eq!(db.stray_event(org, 0, None).await.unwrap(), Some(text(1)));
        } else {
            let moved = db.indexed_events(org, 0, 1).await.unwrap().events;
            assert_ne!(moved[0].positions.0, moved[0].positions.1);
        }
    }
}
