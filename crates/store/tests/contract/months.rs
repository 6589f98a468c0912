//! The months of the log on PostgreSQL: partitions that are made ahead, read across and dropped.

use tokio_postgres::Client;

use crate::database;
use crate::prelude::*;
use crate::retention::{hold, prune};

fn moment(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

fn id_at(at: Timestamp, n: u32) -> EventId {
    EventId::new(Ids { clock: &*clock_at(at), random: &with_number(n) })
}

/// Appends an event that is made and committed at this moment.
async fn append_at(store: &Store, org: OrgId, at: Timestamp, n: u32) {
    let event = NewEvent { id: id_at(at, n), occurred_at: at, ..event(org, n) };
    commit_at(store, at, event).await;
}

async fn commit_at(store: &Store, at: Timestamp, event: NewEvent) {
    let (writer, _tasks) = writer_of(store, "node-1", clock_at(at));
    writer.append(event, soon()).await.unwrap();
}

async fn connect(db: &Database) -> Client {
    let conn = database::connect(&db.url()).await;
    conn.batch_execute("SET portcullis.installation = 'on'").await.unwrap();
    conn
}

/// In which partition the rows of each event lie, in their order.
async fn places(db: &Database) -> Vec<(String, String)> {
    let places = "SELECT e.tableoid::regclass::text, s.tableoid::regclass::text \
                  FROM audit_events e JOIN audit_seals s ON s.event_id = e.id ORDER BY e.position";
    let places = connect(db).await.query(places, &[]).await.unwrap();
    places.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn month(name: &str) -> (String, String) {
    (format!("audit_events_{name}"), format!("audit_seals_{name}"))
}

async fn exists(db: &Database, table: &str) -> bool {
    let found = format!("SELECT to_regclass('{table}') IS NOT NULL");
    connect(db).await.query_one(&found, &[]).await.unwrap().get(0)
}

async fn listed(store: &Store, org: OrgId, order: EventOrder) -> Vec<EventId> {
    let filter = EventFilter::default();
    let page = store.list_events(org, Visibility::All, &filter, order, None, 200).await.unwrap();
    page.events.iter().map(|event| event.id).collect()
}

/// Tells of a pruning by an event of the month after those of the tests.
fn pruning_event(org: OrgId, pruned: &Pruned) -> NewEvent {
    let at = moment("2026-05-01T00:00:00Z");
    let number: u32 = org.to_string()[25..].parse().unwrap();
    let n = 1000 * (4 + number) + u32::try_from(pruned.size).unwrap();
    NewEvent { id: id_at(at, n), occurred_at: at, kind: "told".into(), ..event(org, n) }
}

/// Drops the months of before this moment, as if they were proven. Gives their number.
async fn prune_months(store: &Store, before: Timestamp) -> u32 {
    let mut dropped = 0;
    for month in store.old_months(before).await.unwrap() {
        let mut parts = Vec::new();
        for &(org, last) in &month.ends {
            let first = store.pruned_size(org).await.unwrap();
            let events = store.indexed_events(org, first, last + 1).await.unwrap().events;
            let position = events.last().map_or(0, |event| event.positions.0);
            parts.push(OldPart { org, first, last, position });
        }
        dropped += u32::from(store.prune_month(&month, &parts, pruning_event).await.unwrap());
    }
    dropped
}

const FEBRUARY: &str = "2026-02-10T00:00:00Z";

/// Two orgs with events in January, February and March, all sealed. The last of January is
/// committed in February, behind one of February.
async fn three_months(store: &Store) -> [OrgId; 2] {
    store.make_months(moment("2026-01-05T00:00:00Z")).await.unwrap();
    let orgs = orgs(store).await;
    for (org, n) in orgs.into_iter().zip([100, 200]) {
        append_at(store, org, moment("2026-01-05T00:00:00Z"), n).await;
        append_at(store, org, moment("2026-02-01T00:00:00Z"), n + 1).await;
        let id = id_at(moment("2026-01-31T23:59:59Z"), n + 2);
        let late = NewEvent { id, ..event(org, n + 2) };
        commit_at(store, moment("2026-02-01T00:00:01Z"), late).await;
        append_at(store, org, moment(FEBRUARY), n + 3).await;
        append_at(store, org, moment("2026-03-10T00:00:00Z"), n + 4).await;
        store.seal(org, leaf).await.unwrap();
    }
    orgs
}

on_both! {
    async fn a_log_is_read_across_its_months(db: Database) {
        let [org, other] = three_months(&db).await;

        let ascending = listed(&db, org, EventOrder::Ascending).await;
        let mut descending = listed(&db, org, EventOrder::Descending).await;

        assert_eq!(ascending.len(), 5);
        descending.reverse();
        assert_eq!(ascending, descending);
        for id in ascending {
            assert!(db.find_event(org, Visibility::All, id).await.unwrap().is_some());
            assert!(db.find_event(other, Visibility::All, id).await.unwrap().is_none());
        }
        if !db.is_sqlite() {
            let wanted = ["2026_01", "2026_02", "2026_01", "2026_02", "2026_03"].map(month);
            assert_eq!(places(&db).await, [wanted.clone(), wanted].concat());
        }
    }

    async fn an_event_is_recorded_once_also_where_no_month_was_made(db: Database) {
        let org = org(&db, 1).await;
        let at = moment("2031-07-01T00:00:00Z");
        append_at(&db, org, at, 1).await;
        let (writer, _tasks) = writer(&db);

        let twice = writer.append(NewEvent { id: id_at(at, 1), ..event(org, 2) }, soon()).await;

        assert!(matches!(twice, Err(StoreError::Conflict(_))), "{twice:?}");
    }

    async fn months_go_in_order_and_what_is_younger_keeps_its_proofs(db: Database) {
        let [org, other] = three_months(&db).await;
        let root = db.root_at(org, 5).await.unwrap();
        let all = listed(&db, org, EventOrder::Ascending).await;
        // Ten days into March, of which the tenth is too young.
        let before = moment("2026-03-05T00:00:00Z");

        let dropped = prune_months(&db, before).await;
        let again = prune_months(&db, before).await;
        let by_row = db.rows_before(before).await.unwrap();

        assert_eq!(again, 0);
        if db.is_sqlite() {
            assert_eq!((dropped, by_row), (0, before));
            return;
        }
        assert_eq!((dropped, by_row), (2, moment("2026-03-01T00:00:00Z")));
        assert!(!exists(&db, "audit_events_2026_01").await && !exists(&db, "audit_seals_2026_02").await);
        for org in [org, other] {
            assert_eq!(db.pruned_size(org).await.unwrap(), 4);
            db.seal(org, leaf).await.unwrap();
            // The one of March, and one for each month that went.
            assert_eq!(listed(&db, org, EventOrder::Ascending).await.len(), 3);
        }
        assert_eq!(listed(&db, org, EventOrder::Ascending).await[0], all[4]);
        assert_eq!(db.find_event(org, Visibility::All, all[1]).await.unwrap(), None);
        assert_eq!(db.root_at(org, 5).await.unwrap(), root);
    }
}

on_postgres! {
    async fn a_month_stays_for_a_hold_and_the_other_orgs_rows_go_one_by_one(db: Database) {
        let [org, held] = three_months(&db).await;
        let laid = hold(held, 1);
        db.lay_hold(&laid, &event(held, 900)).await.unwrap();
        let before = moment("2026-03-05T00:00:00Z");

        let dropped = prune_months(&db, before).await;
        let limit = db.rows_before(before).await.unwrap();
        let rows = prune(&db, org, limit, |it| pruning_event(org, it)).await;
        let kept = prune(&db, held, limit, |it| pruning_event(held, it)).await;

        assert_eq!(dropped, 0);
        assert_eq!(rows, Some(Pruned { first: 0, size: 4, held: false }));
        assert_eq!(kept, None);
        assert!(exists(&db, "audit_events_2026_01").await);
        db.lift_hold(held, laid.id, &event(held, 901)).await.unwrap();
        assert_eq!(prune_months(&db, before).await, 2);
        assert_eq!(db.pruned_size(held).await.unwrap(), 4);
    }

    async fn a_month_with_an_event_that_has_no_place_or_is_too_young_stays(db: Database) {
        let [org, _] = three_months(&db).await;
        // Of January by its id, recorded in the middle of February.
        let young = prune_months(&db, moment("2026-02-01T00:00:00Z")).await;
        let late = id_at(moment("2026-01-20T00:00:00Z"), 777);
        let (writer, _tasks) = writer(&db);
        writer.append(NewEvent { id: late, ..event(org, 777) }, soon()).await.unwrap();

        let unsealed =
            prune_months(&db, moment("2026-02-05T00:00:00Z")).await;

        assert_eq!((young, unsealed), (0, 0));
        let found = db.find_event(org, Visibility::All, late).await.unwrap();
        assert!(found.is_some());
        assert_eq!(db.pruned_size(org).await.unwrap(), 0);
    }

    async fn what_came_before_its_month_was_made_lies_in_it_afterwards(db: Database) {
        let org = org(&db, 1).await;
        append_at(&db, org, moment(FEBRUARY), 1).await;
        db.seal(org, leaf).await.unwrap();
        let before = places(&db).await;

        let mut nodes = JoinSet::new();
        for _ in 0..4 {
            let store = db.store.clone();
            nodes.spawn(async move { store.make_months(moment(FEBRUARY)).await.unwrap() });
        }
        nodes.join_all().await;

        assert_eq!(before, [month("other")]);
        assert_eq!(places(&db).await, [month("2026_02")]);
        assert!(exists(&db, "audit_seals_2026_05").await);
        assert!(!exists(&db, "audit_seals_2026_06").await);
    }
}
