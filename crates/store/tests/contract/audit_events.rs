//! Reading the log: filters, pages, visibility.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::prelude::*;

/// The numbers of the events on a page.
async fn list(store: &Store, org: OrgId, filter: &EventFilter, order: EventOrder) -> Vec<i64> {
    let page = store.list_events(org, Visibility::All, filter, order, None, 200).await.unwrap();
    page.events.iter().map(|event| event.seal.unwrap().sequence).collect()
}

fn with(event: &NewEvent, column: TextColumn, text: &str) -> NewEvent {
    NewEvent { texts: event.texts.clone().with(column, text), ..event.clone() }
}

const NODES: u32 = 3;
/// Events of each node, and of a batch of them.
const OF_NODE: u32 = 70;
const BATCH: u32 = 7;

/// The id of the `n`th event of a node.
fn id_of(node: u32, n: u32) -> EventId {
    id("evt", node * OF_NODE + n)
}

/// Commits the events of a node, every third that of one principal, and seals after each batch.
async fn write_and_seal(store: Store, org: OrgId, node: u32, committed: Arc<AtomicU32>) {
    for first in (0..OF_NODE).step_by(BATCH as usize) {
        let batch = (first..first + BATCH).map(|n| NewEvent {
            actor_id: (n % 3 == 0).then(|| id("usr", 1)),
            ..event(org, node * OF_NODE + n)
        });
        append_all(&store, batch.collect()).await;
        committed.fetch_add(BATCH, Ordering::SeqCst);
        store.seal(org, leaf).await.unwrap();
    }
}

/// Looks for the newest events of a node until all of them are there.
async fn find_what_was_committed(store: Store, org: OrgId, node: u32, committed: Arc<AtomicU32>) {
    let mut known = 0;
    while known < OF_NODE {
        known = committed.load(Ordering::SeqCst);
        for n in (0..known).rev().take(10) {
            let id = id_of(node, n);
            let found = store.find_event(org, Visibility::All, id).await.unwrap();
            assert_eq!(found.map(|event| event.id), Some(id), "{n} of {known}");
        }
        tokio::task::yield_now().await;
    }
}

/// Walks through the log over pages while it grows: one that ascends, up to its end, or those that descend
/// until it has its end.
async fn walks_while_it_grows(
    store: &Store,
    org: OrgId,
    filter: &EventFilter,
    order: EventOrder,
    limit: u32,
) -> Vec<Vec<EventId>> {
    let all = i64::from(NODES * OF_NODE);
    let mut walks = Vec::new();
    loop {
        let is_last =
            order == EventOrder::Ascending || store.sealed_size(org).await.unwrap() == all;
        let mut walk = Vec::new();
        let mut after = None;
        loop {
            let page = store.list_events(org, Visibility::All, filter, order, after, limit);
            let page = page.await.unwrap();
            walk.extend(page.events.into_iter().map(|event| event.id));
            after = page.reached.or(after);
            let is_over = match order {
                EventOrder::Ascending => after == Some(all - 1),
                EventOrder::Descending => !page.more,
            };
            if is_over {
                break;
            }
            // Readers that never rest leave two processors nothing for new connections.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        walks.push(walk);
        if is_last {
            return walks;
        }
    }
}

on_both! {
    async fn pages_meet_without_gap_or_overlap_while_events_arrive(db: Database) {
        let org = org(&db, 1).await;
        let all = Visibility::All;
        let filter = EventFilter::default();
        for order in [EventOrder::Ascending, EventOrder::Descending] {
            let base = u32::try_from(db.sealed_size(org).await.unwrap()).unwrap();
            sealed(&db, org, (0..10).map(|n| event(org, base + n)).collect()).await;
            let mut seen = Vec::new();
            let mut after = None;
            for arriving in 10..20 {
                let page = db.list_events(org, all, &filter, order, after, 3).await.unwrap();
                seen.extend(page.events.iter().map(|event| event.seal.unwrap().sequence));
                after = page.reached.or(after);
                sealed(&db, org, vec![event(org, base + arriving)]).await;
            }

            let count = i64::try_from(seen.len()).unwrap();
            let first = seen[0];
            let expected: Vec<_> = match order {
                EventOrder::Ascending => (0..count).collect(),
                EventOrder::Descending => (0..count).map(|n| first - n).collect(),
            };
            assert_eq!(seen, expected, "{order:?}");
            assert!(count >= 10, "{order:?}");
        }
    }

    async fn readers_skip_and_repeat_nothing_while_three_nodes_write_and_seal(db: Database) {
        let org = org(&db, 1).await;
        let me = EventActor::Principal(id("usr", 1));
        let mine = EventFilter { actor: Some(me), ..EventFilter::default() };
        // On SQLite they poll for their turn to write, which takes long on a busy machine.
        let settings = DatabaseSettings { wait: Duration::from_secs(30), ..db.settings.clone() };
        let mut stores = Vec::new();
        for _ in 0..NODES {
            stores.push(Store::open(&settings).await.unwrap());
        }
        let mut readers = JoinSet::new();
        for filter in [EventFilter::default(), mine] {
            for order in [EventOrder::Ascending, EventOrder::Descending] {
                for (limit, store) in [1, 7, 50].into_iter().zip(stores.iter().cloned()) {
                    let filter = filter.clone();
                    readers.spawn(async move {
                        let walks = walks_while_it_grows(&store, org, &filter, order, limit).await;
                        (filter.actor.is_some(), order, walks)
                    });
                }
            }
        }
        let mut nodes = JoinSet::new();
        for (node, here) in (0..NODES).zip(&stores) {
            let committed = Arc::new(AtomicU32::new(0));
            let elsewhere = stores.iter().cycle().nth(node as usize + 1).unwrap().clone();
            nodes.spawn(write_and_seal(here.clone(), org, node, Arc::clone(&committed)));
            nodes.spawn(find_what_was_committed(elsewhere, org, node, committed));
        }

        nodes.join_all().await;

        let log = whole_log(&db, org).await;
        let own: BTreeSet<EventId> = (0..NODES)
            .flat_map(|node| (0..OF_NODE).step_by(3).map(move |n| id_of(node, n)))
            .collect();
        assert_eq!(log.len(), usize::try_from(NODES * OF_NODE).unwrap());
        for (is_filtered, order, walks) in readers.join_all().await {
            let shown = log.iter().map(|event| event.id).filter(|id| !is_filtered || own.contains(id));
            let mut shown: Vec<EventId> = shown.collect();
            if order == EventOrder::Descending {
                shown.reverse();
            }
            assert!(walks.iter().all(|walk| shown.ends_with(walk)), "{order:?}: {walks:?}");
            assert_eq!(walks.last(), Some(&shown), "{order:?}");
        }
    }

    async fn a_place_that_is_missing_hides_no_others(db: Database) {
        let org = org(&db, 1).await;
        let actor = id("usr", 1);
        let of_actor = |n| NewEvent { actor_id: (n % 4 < 3).then_some(actor), ..event(org, n) };
        sealed(&db, org, (0..9).map(of_actor).collect()).await;
        let from = whole_log(&db, org).await[0].seal.map(|seal| seal.recorded_at);

        db.execute("DELETE FROM audit_seals WHERE sequence IN (0, 4, 8)").await;

        let since = EventFilter { from, ..EventFilter::default() };
        let listed = list(&db, org, &since, EventOrder::Ascending).await;
        assert_eq!(listed, [1, 2, 3, 5, 6, 7]);
        let narrowed = EventFilter { actor: Some(EventActor::Principal(actor)), ..since };
        let listed = list(&db, org, &narrowed, EventOrder::Ascending).await;
        assert_eq!(listed, [1, 2, 5, 6]);
        let listed = list(&db, org, &narrowed, EventOrder::Descending).await;
        assert_eq!(listed, [6, 5, 2, 1]);
    }

    async fn an_ascending_tail_resumes_where_it_stopped(db: Database) {
        let org = org(&db, 1).await;
        sealed(&db, org, (0..3).map(|n| event(org, n)).collect()).await;
        let all = Visibility::All;
        let filter = EventFilter::default();
        let order = EventOrder::Ascending;

        let first = db.list_events(org, all, &filter, order, None, 3).await.unwrap();
        let idle = db.list_events(org, all, &filter, order, first.reached, 3).await.unwrap();
        sealed(&db, org, vec![event(org, 3)]).await;
        let next = db.list_events(org, all, &filter, order, first.reached, 3).await.unwrap();

        assert_eq!((first.events.len(), first.reached, first.more), (3, Some(2), false));
        assert_eq!((idle.events.len(), idle.reached, idle.more), (0, None, false));
        assert_eq!((next.events.len(), next.reached, next.more), (1, Some(3), false));
    }

    async fn an_unsealed_event_is_found_by_id_and_not_listed(db: Database) {
        let org = org(&db, 1).await;
        append_all(&db, vec![event(org, 1)]).await;

        let before = db.find_event(org, Visibility::All, id("evt", 1)).await.unwrap();
        let listed = list(&db, org, &EventFilter::default(), EventOrder::Ascending).await;
        db.seal(org, leaf).await.unwrap();
        let after = db.find_event(org, Visibility::All, id("evt", 1)).await.unwrap();

        assert_eq!(before.unwrap().seal, None);
        assert!(listed.is_empty());
        assert_eq!(after.unwrap().seal.unwrap().sequence, 0);
    }

    async fn one_sees_what_one_did_or_had_done(db: Database) {
        let org = org(&db, 1).await;
        let me = id("usr", 1);
        let other = id("usr", 2);
        let mut events = [0, 1, 2, 3].map(|n| event(org, n));
        events[0].actor_id = Some(me);
        events[1].actor_id = Some(other);
        (events[2].actor_id, events[2].via) = (Some(other), Some(me));
        sealed(&db, org, events.to_vec()).await;
        let own = Visibility::Own(me);

        let filter = EventFilter::default();
        let page = db.list_events(org, own, &filter, EventOrder::Ascending, None, 10).await;

        let seen: Vec<_> = page.unwrap().events.iter().map(|event| event.id).collect();
        assert_eq!(seen, [id("evt", 0), id("evt", 2)]);
        for (n, visible) in [(0, true), (1, false), (2, true), (3, false)] {
            let found = db.find_event(org, own, id("evt", n)).await.unwrap();
            assert_eq!(found.is_some(), visible, "{n}");
        }
    }

    async fn every_filter_lets_through_what_it_names(db: Database) {
        let org = org(&db, 1).await;
        let mut events = [0, 1, 2, 3].map(|n| event(org, n));
        events[0].kind = "token.revoked".into();
        events[0] = with(&events[0], TextColumn::Target, "prompt:github:greet");
        events[1] = with(&events[1], TextColumn::Target, "github:list_repos");
        events[1].decision = Some("allow".into());
        events[1] = with(&events[1], TextColumn::Policy, "engineering read, \"quoted\"");
        events[1].dlp_result = Some("passed".into());
        events[1].outcome = Some("success".into());
        events[1].request_id = Some(id("req", 1));
        events[1].token_id = Some(id("tok", 1));
        events[2] = with(&events[2], TextColumn::Target, "github:list");
        events[2].actor_id = Some(id("sa", 1));
        events[3] = with(&events[3], TextColumn::Target, "gitlab:list");
        events[3].outcome = Some("denied".into());
        sealed(&db, org, events.to_vec()).await;
        let none = EventFilter::default();
        let text = |text: &str| vec![text.to_owned(), "another".to_owned()];
        let target = |target| EventFilter { target: Some(target), ..none.clone() };
        let actor = |actor| EventFilter { actor: Some(actor), ..none.clone() };
        let outcome = vec![OutcomeStatus::Success, OutcomeStatus::Denied];

        let cases: Vec<(EventFilter, &[i64])> = vec![
            (none.clone(), &[0, 1, 2, 3]),
            (EventFilter { kinds: text("token.revoked"), ..none.clone() }, &[0]),
            (EventFilter { kinds: text("token_revoked"), ..none.clone() }, &[]),
            (target(EventTarget::Is("github:list".to_owned())), &[2]),
            (target(EventTarget::StartsWith("github:".to_owned())), &[1, 2]),
            (target(EventTarget::StartsWith("GITHUB:".to_owned())), &[]),
            (target(EventTarget::OfProvider("github".to_owned())), &[0, 1, 2]),
            (target(EventTarget::OfProvider("git".to_owned())), &[]),
            (target(EventTarget::StartsWith("git%".to_owned())), &[]),
            (EventFilter { decision: vec![RecordedDecision::Allow], ..none.clone() }, &[1]),
            (EventFilter { policy: text("engineering read, \"quoted\""), ..none.clone() }, &[1]),
            (EventFilter { dlp_result: vec![DlpResult::Passed], ..none.clone() }, &[1]),
            (EventFilter { outcome, ..none.clone() }, &[1, 3]),
            (EventFilter { request_id: Some(id("req", 1)), ..none.clone() }, &[1]),
            (actor(EventActor::Token(id("tok", 1))), &[1]),
            (actor(EventActor::Principal(id("sa", 1))), &[2]),
        ];
        for (filter, expected) in cases {
            let mut expected = expected.to_vec();
            assert_eq!(list(&db, org, &filter, EventOrder::Ascending).await, expected);
            expected.reverse();
            assert_eq!(list(&db, org, &filter, EventOrder::Descending).await, expected);
        }
    }

    async fn a_span_of_time_includes_its_beginning_and_not_its_end(db: Database) {
        let org = org(&db, 1).await;
        let clock = clock_at(NOW);
        let (writer, _tasks) = writer_of(&db, "node-1", clock.clone());
        for (n, micros) in (0..).zip([10, 20, 20, 30, 40]) {
            clock.set(micros);
            writer.append(event(org, n), soon()).await.unwrap();
        }
        db.seal(org, leaf).await.unwrap();
        let span = |from: Option<i64>, to: Option<i64>| EventFilter {
            from: from.map(Timestamp::from_micros),
            to: to.map(Timestamp::from_micros),
            ..EventFilter::default()
        };

        let cases: [(EventFilter, &[i64]); 7] = [
            (span(Some(20), Some(30)), &[1, 2]),
            (span(Some(21), None), &[3, 4]),
            (span(None, Some(10)), &[]),
            (span(None, Some(11)), &[0]),
            (span(Some(0), Some(99)), &[0, 1, 2, 3, 4]),
            (span(Some(41), None), &[]),
            (span(Some(30), Some(20)), &[]),
        ];
        for (filter, expected) in cases {
            let found = list(&db, org, &filter, EventOrder::Ascending).await;
            assert_eq!(found, expected, "{filter:?}");
        }
    }

    async fn a_rare_match_is_found_behind_thousands_of_others(db: Database) {
        let org = org(&db, 1).await;
        let mut events: Vec<_> = (0..12_000).map(|n| event(org, n)).collect();
        for event in &mut events {
            event.decision = Some("allow".into());
            event.dlp_result = Some("passed".into());
            event.outcome = Some("success".into());
        }
        for place in [1, 11_999] {
            events[place].kind = "policy.changed".into();
            events[place].decision = Some("deny".into());
            events[place].dlp_result = Some("blocked".into());
            events[place].outcome = Some("denied".into());
        }
        events[6_000].dlp_result = Some("redacted".into());
        append_all(&db, events).await;
        db.seal(org, leaf).await.unwrap();
        let none = EventFilter::default();
        let denied = EventFilter { decision: vec![RecordedDecision::Deny], ..none.clone() };
        let elsewhere = Some(EventTarget::Is("github:list".to_owned()));
        let kinds = vec!["policy.changed".to_owned()];
        let outcome = vec![OutcomeStatus::Denied];
        let dlp_result = vec![DlpResult::Blocked, DlpResult::Redacted];

        for (filter, expected) in [
            (EventFilter { kinds, ..none.clone() }, 2),
            (denied.clone(), 2),
            (EventFilter { outcome, ..none.clone() }, 2),
            (EventFilter { dlp_result, ..none.clone() }, 3),
            (EventFilter { target: elsewhere, ..denied }, 0),
        ] {
            for order in [EventOrder::Ascending, EventOrder::Descending] {
                let page = db.list_events(org, Visibility::All, &filter, order, None, 10);

                let page = page.await.unwrap();
                assert_eq!((page.events.len(), page.more), (expected, false), "{filter:?}");
            }
        }
        let indexed = db.indexed_events(org, 0, 12_000).await.unwrap().events;
        assert!(indexed.iter().all(|event| event.is_indexed));
    }

    async fn ones_own_few_events_are_found_among_thousands(db: Database) {
        let org = org(&db, 1).await;
        let me = id("usr", 1);
        let mut events: Vec<_> = (0..6_000).map(|n| event(org, n)).collect();
        for event in &mut events {
            event.actor_id = Some(id("usr", 2));
        }
        events[0].actor_id = Some(me);
        events[3_000].via = Some(me);
        events[5_999].actor_id = Some(me);
        events[3_000].request_id = Some(id("req", 1));
        append_all(&db, events).await;
        db.seal(org, leaf).await.unwrap();
        let none = EventFilter::default();
        let mine = EventFilter { actor: Some(EventActor::Principal(me)), ..none.clone() };
        let request = EventFilter { request_id: Some(id("req", 1)), ..none.clone() };

        for order in [EventOrder::Ascending, EventOrder::Descending] {
            for (visibility, filter, expected) in [
                (Visibility::Own(me), &none, 3),
                (Visibility::All, &mine, 2),
                (Visibility::All, &request, 1),
                (Visibility::Own(me), &request, 1),
                (Visibility::Own(id("usr", 3)), &none, 0),
            ] {
                let page = db.list_events(org, visibility, filter, order, None, 10).await;

                let page = page.unwrap();
                assert_eq!((page.events.len(), page.more), (expected, false), "{order:?}");
                assert!(page.reached.is_some());
            }
        }
    }
}
