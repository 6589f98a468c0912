//! Pruning, holds, and the proofs that stay valid.

use crate::prelude::*;

/// The `n`th event of a principal, with what can be erased and with a payload.
fn whole(org: OrgId, n: u32, actor: PrincipalId) -> NewEvent {
    NewEvent {
        actor_id: Some(actor),
        texts: event(org, n)
            .texts
            .with(TextColumn::Detached, r#"{"actor_name":"ann","input":{"n":1.10},"output":null}"#)
            .with(TextColumn::Salts, r#"{"actor_name":"s1","input":"s2","output":"s3"}"#),
        has_payload: true,
        ..event(org, n)
    }
}

/// The event that tells of it, the `n`th.
fn change_event(org: OrgId, n: u32) -> NewEvent {
    NewEvent { kind: "audit.told".into(), ..event(org, n) }
}

async fn find(store: &Store, org: OrgId, n: u32) -> Option<(String, String, String)> {
    let id: EventId = id("evt", n);
    let found = store.find_event(org, Visibility::All, id).await.unwrap()?;
    Some((found.core, found.detached.unwrap(), found.salts.unwrap()))
}

fn names(members: &[&str]) -> Vec<String> {
    members.iter().map(|name| (*name).to_owned()).collect()
}

/// Removes what was recorded before this moment from the beginning of the log, as if it was proven. The `n`th event
/// tells of it.
pub(crate) async fn prune(
    store: &Store,
    org: OrgId,
    before: Timestamp,
    tell: impl Fn(&Pruned) -> NewEvent + Send,
) -> Option<Pruned> {
    store.prune(org, &old_events(store, org, before).await, tell).await.unwrap()
}

pub(crate) async fn old_events(store: &Store, org: OrgId, before: Timestamp) -> OldEvents {
    let first = store.pruned_size(org).await.unwrap();
    let events = store.indexed_events(org, first, i64::MAX).await.unwrap().events;
    let old = events.into_iter().take_while(|event| event.recorded_at < before.as_micros());
    let events = old.map(|event| OldEvent {
        position: event.positions.0,
        id: event.columns.texts[0].clone().unwrap(),
    });
    OldEvents { first, events: events.collect(), held: false }
}

/// The events at these places, as if they were proven.
async fn erasable(store: &Store, org: OrgId, places: &[i64]) -> Vec<ErasableEvent> {
    let events = store.indexed_events(org, 0, i64::MAX).await.unwrap().events;
    let at = events.into_iter().filter(|event| places.contains(&event.sequence));
    let event = |event: IndexedEvent| ErasableEvent {
        position: event.positions.0,
        id: event.columns.texts[0].clone().unwrap(),
        is_held: false,
    };
    at.map(event).collect()
}

/// Erases these members of what is selected behind a place of the log; the `n`th event tells of it. Gives the last
/// place that was selected, too.
async fn erase_behind(
    store: &Store,
    org: OrgId,
    selection: &Selection,
    members: &[&str],
    after: i64,
    n: u32,
) -> (Erased, Option<i64>) {
    store.seal(org, leaf).await.unwrap();
    let places = store.select_events(org, selection, after).await.unwrap();
    let events = erasable(store, org, &places).await;
    let parts = names(members);
    let parts = ErasedParts::Members(&parts);
    let tell = |_: &Erased| Some(change_event(org, n));
    (store.erase(org, &events, parts, tell).await.unwrap(), places.last().copied())
}

async fn erase(
    store: &Store,
    org: OrgId,
    selection: &Selection,
    members: &[&str],
    n: u32,
) -> Erased {
    erase_behind(store, org, selection, members, -1, n).await.0
}

/// Lets the payloads go that were kept before this moment; the `n`th event tells of it.
async fn let_payloads_go(store: &Store, org: OrgId, before: Timestamp, n: u32) -> u64 {
    let places = store.old_payloads(org, before).await.unwrap();
    let events = erasable(store, org, &places).await;
    let tell = |step: &Erased| (step.erased > 0).then(|| change_event(org, n));
    store.erase(org, &events, ErasedParts::Payloads, tell).await.unwrap().erased
}

pub(crate) fn hold(org_id: OrgId, n: u32) -> Hold {
    Hold {
        id: id("hld", n),
        org_id,
        reason: "a lawsuit".to_owned(),
        actor_id: None,
        from: None,
        to: None,
        created_at: NOW,
        released_at: None,
    }
}

/// Sequences of the events that are listed, and how many tell of what was done.
async fn listed(store: &Store, org: OrgId, order: EventOrder) -> Vec<i64> {
    let filter = EventFilter { from: Some(Timestamp::default()), ..EventFilter::default() };
    let page = store.list_events(org, Visibility::All, &filter, order, None, 200).await.unwrap();
    page.events.iter().map(|event| event.seal.unwrap().sequence).collect()
}

on_both! {
    async fn what_is_erased_is_gone_with_its_salt_and_the_record_stays(db: Database) {
        let org = org(&db, 1).await;
        let ann = id("usr", 1);
        let bob = id("usr", 2);
        append_all(&db, vec![whole(org, 1, ann), whole(org, 2, bob)]).await;
        let before = find(&db, org, 1).await.unwrap();
        let selection = Selection { actor: Some(ann), ..Selection::default() };

        let members = ["actor_name", "output"];
        let erased = erase(&db, org, &selection, &members, 9).await;

        assert_eq!(erased, Erased { erased: 1, held: 0 });
        let (core, detached, salts) = find(&db, org, 1).await.unwrap();
        assert_eq!(core, before.0);
        assert_eq!(detached, r#"{"actor_name":null,"input":{"n":1.10},"output":null}"#);
        assert_eq!(salts, r#"{"input":"s2"}"#);
        assert_eq!(find(&db, org, 2).await.unwrap().1, before.1);
        assert!(db.find_event(org, Visibility::All, id("evt", 9)).await.unwrap().is_some());
        let again = erase(&db, org, &selection, &members, 10).await;
        assert_eq!(again, Erased::default());
        assert!(db.find_event(org, Visibility::All, id("evt", 10)).await.unwrap().is_none());
    }

    async fn nothing_of_another_org_is_erased(db: Database) {
        let [org, other] = orgs(&db).await;
        append_all(&db, vec![whole(other, 1, id("usr", 1))]).await;

        let erased = erase(&db, org, &Selection::default(), &["input"], 9).await;

        assert_eq!(erased, Erased::default());
    }

    async fn events_are_erased_by_id_and_by_time(db: Database) {
        let org = org(&db, 1).await;
        let ann = id("usr", 1);
        append_all(&db, vec![whole(org, 1, ann), whole(org, 2, ann)]).await;
        let erase = async |selection: Selection, n| {
            erase(&db, org, &selection, &["actor_name"], n).await.erased
        };
        let one = Selection { event: Some(id("evt", 2)), ..Selection::default() };
        let earlier = Selection { to: Some(NOW), ..Selection::default() };
        let since = Selection { from: Some(NOW), ..Selection::default() };

        assert_eq!(erase(one, 10).await, 1);
        assert_eq!(erase(earlier, 11).await, 0);
        assert_eq!(erase(since, 12).await, 1);
    }

    async fn an_org_has_no_more_holds_than_it_may_however_many_are_laid_at_once(db: Database) {
        let [org, other] = orgs(&db).await;
        let add = async |first: u32, last: u32, lifted: &str| {
            db.execute_text(format!(
                "INSERT INTO audit_holds (id, org_id, reason, created_at, released_at) \
                 WITH RECURSIVE n (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last}) \
                 SELECT 'hld_000000000000000000000' || (10000 + i), '{org}', 'x', 1, {lifted} FROM n"
            )).await;
        };
        let lay = async |numbers: std::ops::Range<u32>| {
            let laid = at_once(numbers, |n| {
                let store = db.store.clone();
                async move { store.lay_hold(&hold(org, n), &change_event(org, n)).await.unwrap() }
            })
            .await;
            laid.into_iter().filter(|laid| *laid == HoldLaid::Done).count()
        };

        add(1, 97, "NULL").await;
        assert_eq!(lay(200..210).await, 3);
        assert_eq!(db.lay_hold(&hold(other, 300), &change_event(other, 300)).await, Ok(HoldLaid::Done));
        db.execute_text(format!("UPDATE audit_holds SET released_at = 1 WHERE org_id = '{org}'")).await;
        add(98, 996, "1").await;
        assert_eq!(lay(210..220).await, 10);
        assert_eq!(db.list_holds(org, None, 2_000).await.unwrap().len(), 10 + 900);
    }

    // What a hold keeps is passed over, and what is read again is looked at again.
    async fn payloads_behind_many_that_are_held_are_let_go(db: Database) {
        let org = org(&db, 1).await;
        let ann = id("usr", 1);
        let bob = id("usr", 2);
        append_all(&db, (0..600).map(|n| whole(org, n, ann)).collect()).await;
        append_all(&db, vec![whole(org, 600, bob)]).await;
        db.seal(org, leaf).await.unwrap();
        let held = Hold { actor_id: Some(ann), ..hold(org, 1) };
        db.lay_hold(&held, &change_event(org, 700)).await.unwrap();
        let later = NOW.plus_seconds(1);

        let gone = let_payloads_go(&db, org, later, 701).await;
        let more = let_payloads_go(&db, org, later, 702).await;

        assert_eq!((gone, more), (1, 0));
        assert!(find(&db, org, 600).await.unwrap().1.contains(r#""input":null"#));
        assert!(!find(&db, org, 0).await.unwrap().1.contains(r#""input":null"#));
    }

    async fn a_hold_beats_an_erasure_until_it_is_lifted(db: Database) {
        let org = org(&db, 1).await;
        let ann = id("usr", 1);
        let bob = id("usr", 2);
        append_all(&db, vec![whole(org, 1, ann), whole(org, 2, bob)]).await;
        let laid = Hold { actor_id: Some(ann), ..hold(org, 1) };
        db.lay_hold(&laid, &change_event(org, 10)).await.unwrap();
        let elsewhen = Hold { to: Some(NOW), ..hold(org, 2) };
        db.lay_hold(&elsewhen, &change_event(org, 11)).await.unwrap();
        let members = ["actor_name"];
        let all = Selection::default();

        let held = erase(&db, org, &all, &members, 12).await;

        assert_eq!(held, Erased { erased: 1, held: 1 });
        assert_eq!(db.list_holds(org, None, 10).await.unwrap(), [laid, elsewhen]);
        let other = given::org(&db, 2).await;
        let lift = async |org, n| {
            db.lift_hold(org, id("hld", 1), &change_event(org, n)).await.unwrap()
        };
        assert!(!lift(other, 13).await);
        assert!(lift(org, 14).await);
        assert!(!lift(org, 15).await, "it is lifted already");
        let free = erase(&db, org, &all, &members, 16).await;
        assert_eq!(free, Erased { erased: 1, held: 0 });
    }

    async fn payloads_go_before_their_events_and_commitments_stay(db: Database) {
        let org = org(&db, 1).await;
        let ann = id("usr", 1);
        let bob = id("usr", 2);
        let plain = NewEvent { has_payload: false, texts: event(org, 3).texts, ..whole(org, 3, ann) };
        append_all(&db, vec![whole(org, 1, ann), whole(org, 2, bob), plain]).await;
        db.seal(org, leaf).await.unwrap();
        let laid = Hold { actor_id: Some(bob), ..hold(org, 1) };
        db.lay_hold(&laid, &change_event(org, 10)).await.unwrap();
        let later = NOW.plus_seconds(1);

        assert_eq!(db.orgs_to_prune(NOW, NOW).await.unwrap(), []);
        assert_eq!(db.orgs_to_prune(later, NOW).await.unwrap(), [org]);
        let early = let_payloads_go(&db, org, NOW, 11).await;
        let gone = let_payloads_go(&db, org, later, 12).await;
        let again = let_payloads_go(&db, org, later, 13).await;

        assert_eq!((early, gone, again), (0, 1, 0));
        let (_, detached, salts) = find(&db, org, 1).await.unwrap();
        assert_eq!(detached, r#"{"actor_name":"ann","input":null,"output":null}"#);
        assert_eq!(salts, r#"{"actor_name":"s1","output":"s3"}"#);
        assert!(find(&db, org, 2).await.unwrap().1.contains("1.10"), "a hold keeps it");
        db.lift_hold(org, laid.id, &change_event(org, 14)).await.unwrap();
        assert_eq!(let_payloads_go(&db, org, later, 15).await, 1);
    }

    async fn a_payload_goes_once_its_event_has_a_place(db: Database) {
        let org = org(&db, 1).await;
        let ann = id("usr", 1);
        append_all(&db, (0..3).map(|n| whole(org, n, ann)).collect()).await;
        db.seal(org, leaf).await.unwrap();
        append_all(&db, vec![whole(org, 3, ann)]).await;
        let later = NOW.plus_seconds(1);

        assert_eq!(db.orgs_to_prune(NOW, NOW).await.unwrap(), []);
        assert_eq!(db.orgs_to_prune(later, NOW).await.unwrap(), [org]);
        assert_eq!(let_payloads_go(&db, org, NOW, 10).await, 0);
        assert_eq!(let_payloads_go(&db, org, later, 11).await, 3);
        assert_eq!(let_payloads_go(&db, org, later, 12).await, 0);
        db.seal(org, leaf).await.unwrap();
        assert_eq!(let_payloads_go(&db, org, later, 13).await, 1);
        assert_eq!(db.orgs_to_prune(later, NOW).await.unwrap(), []);

        for n in 0..4 {
            assert!(find(&db, org, n).await.unwrap().1.contains(r#""input":null"#));
        }
        if db.is_sqlite() {
            db.execute("CREATE TABLE none_is_left (kinds INTEGER CHECK (kinds = 0))").await;
            db.execute(
                "INSERT INTO none_is_left SELECT COUNT(*) FROM audit_index WHERE kind = 5",
            )
            .await;
        }
    }

    // What was proven is not what is there any more: of that nothing goes.
    async fn rows_that_changed_since_they_were_proven_stay(db: Database) {
        let org = org(&db, 1).await;
        let ann = id("usr", 1);
        for n in 0..4 {
            append_all(&db, vec![whole(org, n, ann)]).await;
        }
        db.seal(org, leaf).await.unwrap();
        let old = old_events(&db, org, NOW.plus_seconds(1)).await;
        let mut events = erasable(&db, org, &[0, 1]).await;
        let other = |event: &mut OldEvent| event.id = id::<EventId>("evt", 99).to_string();
        let mut changes = vec![old.clone(), old.clone(), old.clone()];
        changes[0].events.iter_mut().skip(2).for_each(other);
        changes[1].events[1].position += 1;
        changes[2].first = 1;

        for changed in changes {
            let told = |_: &Pruned| change_event(org, 10);
            assert_eq!(db.prune(org, &changed, told).await, Ok(None), "{changed:?}");
        }
        events[0].id = events[1].id.clone();
        let told = |_: &Erased| Some(change_event(org, 11));
        let erased = db.erase(org, &events, ErasedParts::Payloads, told).await.unwrap();

        assert_eq!(erased, Erased { erased: 1, held: 0 });
        assert_eq!(db.pruned_size(org).await.unwrap(), 0);
        assert!(find(&db, org, 0).await.unwrap().1.contains("1.10"));
        assert!(find(&db, org, 1).await.unwrap().1.contains(r#""input":null"#));
        assert!(find(&db, org, 10).await.is_none());
    }

    // In portions that go on behind the last event.
    async fn an_erasure_goes_through_the_log_once(db: Database) {
        let [org, other] = orgs(&db).await;
        let ann = id("usr", 1);
        for first in [0, 700] {
            let events = (first..first + 700).map(|n| {
                if n % 7 == 0 { whole(other, n, ann) } else { whole(org, n, ann) }
            });
            append_all(&db, events.collect()).await;
        }

        let mut erased = Vec::new();
        let mut after = Some(-1);
        while let Some(from) = after {
            let n = 5_000 + u32::try_from(erased.len()).unwrap();
            let (step, last) =
                erase_behind(&db, org, &Selection::default(), &["actor_name"], from, n).await;
            erased.extend(Some(step.erased).filter(|erased| *erased > 0));
            after = last;
        }

        assert_eq!(erased, [500, 500, 200]);
        assert_eq!(find(&db, org, 1399).await.unwrap().1.matches("null").count(), 2);
        assert!(find(&db, other, 7).await.unwrap().1.contains("ann"));
    }

    async fn a_log_is_pruned_from_its_beginning_and_goes_on_without_a_gap(db: Database) {
        let [org, other] = orgs(&db).await;
        let ann = id("usr", 1);
        let denied = |event| NewEvent {
            kind: "policy.changed".into(),
            decision: Some("deny".into()),
            dlp_result: Some("blocked".into()),
            outcome: Some("denied".into()),
            ..event
        };
        let events = (0..10).map(|n| denied(whole(org, n, ann)));
        append_all(&db, events.collect()).await;
        append_all(&db, vec![whole(other, 20, ann)]).await;
        db.seal(org, leaf).await.unwrap();
        db.seal(other, leaf).await.unwrap();
        let late = Hold { from: Some(NOW.plus_seconds(1)), ..hold(org, 1) };
        db.lay_hold(&late, &change_event(org, 30)).await.unwrap();
        db.seal(org, leaf).await.unwrap();

        let later = NOW.plus_seconds(1);
        assert_eq!(db.orgs_to_prune(NOW, NOW).await.unwrap(), []);
        assert_eq!(db.orgs_to_prune(NOW, later).await.unwrap(), [org, other]);
        let young = prune(&db, org, NOW, |_| change_event(org, 31)).await;
        let pruned = prune(&db, org, later, |_| change_event(org, 32)).await;

        assert_eq!(young, None);
        assert_eq!(pruned, Some(Pruned { first: 0, size: 11, held: false }));
        assert_eq!(db.pruned_size(org).await.unwrap(), 11);
        assert_eq!(db.orgs_to_prune(NOW, later).await.unwrap(), [other]);
        assert_eq!(find(&db, org, 1).await, None);
        assert!(find(&db, other, 20).await.is_some());
        db.seal(org, leaf).await.unwrap();
        append_all(&db, vec![event(org, 40)]).await;
        db.seal(org, leaf).await.unwrap();
        assert_eq!(listed(&db, org, EventOrder::Ascending).await, [11, 12]);
        assert_eq!(listed(&db, org, EventOrder::Descending).await, [12, 11]);
        assert_eq!(db.sealed_size(org).await.unwrap(), 13);
        if db.is_sqlite() {
            db.execute("CREATE TABLE none_is_left (entries INTEGER CHECK (entries = 0))").await;
            db.execute(
                "INSERT INTO none_is_left SELECT COUNT(*) FROM audit_index i WHERE NOT EXISTS \
                 (SELECT 1 FROM audit_events e WHERE e.position = i.position)",
            )
            .await;
        }
    }

    // Positions go on behind those that are gone, also after a start.
    async fn a_log_of_which_everything_was_pruned_goes_on(db: Database) {
        let org = org(&db, 1).await;
        for round in 0..3 {
            let store = Store::open(&db.settings).await.unwrap();
            append_all(&store, vec![event(org, round)]).await;
            store.seal(org, leaf).await.unwrap();
            let later = NOW.plus_seconds(1);
            let pruned = prune(&store, org, later, |_| change_event(org, 10 + round)).await;
            assert!(pruned.is_some());
            db.execute("DELETE FROM audit_events").await;
            assert_eq!(store.sealed_size(org).await.unwrap(), i64::from(round) + 1);
        }
    }

    async fn a_hold_stops_pruning_at_the_first_event_it_covers(db: Database) {
        let org = org(&db, 1).await;
        let ann = id("usr", 1);
        let bob = id("usr", 2);
        for n in 0..6 {
            let actor = if n == 3 { bob } else { ann };
            append_all(&db, vec![whole(org, n, actor)]).await;
        }
        db.seal(org, leaf).await.unwrap();
        let laid = Hold { actor_id: Some(bob), ..hold(org, 1) };
        db.lay_hold(&laid, &change_event(org, 10)).await.unwrap();
        let later = NOW.plus_seconds(1);

        let pruned = prune(&db, org, later, |_| change_event(org, 11)).await;
        let again = prune(&db, org, later, |_| change_event(org, 12)).await;

        assert_eq!(pruned, Some(Pruned { first: 0, size: 3, held: true }));
        assert_eq!(again, None);
        assert!(find(&db, org, 3).await.is_some());
    }
}
