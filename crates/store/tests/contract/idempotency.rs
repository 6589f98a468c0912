//! A key stands for one call, from its intent to a day after its end.

use crate::prelude::*;

async fn find(store: &Store, org: OrgId, digest: &str) -> Option<KnownKey> {
    store.find_idempotency_key(org, digest, NOW).await.unwrap()
}

on_both! {
    async fn a_key_is_written_with_the_intent_and_answered_with_the_event(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        assert_eq!(find(&db, org, "k").await, None);

        let began = writer.intent(keyed_intent(org, 1, "k"), soon()).await.unwrap();
        let open = find(&db, org, "k").await.unwrap();
        let end = KeyEnd::Answered(vec![1, 2, 3]);
        writer.finish_keyed(event(org, 1), end, soon()).await.unwrap();
        let ended = find(&db, org, "k").await.unwrap();

        assert_eq!(began, Began::Begun);
        assert_eq!((open.fingerprint.as_str(), open.sealed), ("request 1", None));
        assert_eq!((open.subject, open.request_id), (ended.subject.clone(), id("req", 1)));
        assert_eq!(ended.subject, id::<EventId>("evt", 1).to_string());
        assert_eq!(ended.sealed, Some(vec![1, 2, 3]));
    }

    async fn a_taken_key_lets_no_second_intent_begin(db: Database) {
        let [org, other] = orgs(&db).await;
        let (writer, _tasks) = writer(&db);
        writer.intent(keyed_intent(org, 1, "k"), soon()).await.unwrap();

        let again = writer.intent(keyed_intent(org, 2, "k"), soon()).await.unwrap();
        let elsewhere = writer.intent(keyed_intent(other, 3, "k"), soon()).await.unwrap();

        assert_eq!((again, elsewhere), (Began::KeyTaken, Began::Begun));
        let open = db.abandoned_intents(10).await.unwrap();
        assert_eq!(open.iter().map(|it| it.id).collect::<Vec<_>>(), [id("evt", 1), id("evt", 3)]);
        assert_eq!(find(&db, org, "k").await.unwrap().fingerprint, "request 1");
    }

    async fn of_many_in_one_commit_one_begins_and_the_others_take_nothing_along(db: Database) {
        let org = org(&db, 1).await;
        let (writer, task) = idle_writer(&db);
        let mut jobs = JoinSet::new();
        for n in 0..60 {
            let writer = writer.clone();
            let intent = match n % 3 {
                0 => keyed_intent(org, n, "a"),
                1 => keyed_intent(org, n, "b"),
                _ => intent(org, n),
            };
            jobs.spawn(async move { (n % 3, writer.intent(intent, soon()).await.unwrap()) });
        }
        until_waiting(&writer, 60).await;

        let _tasks = running(task);
        let results = jobs.join_all().await;

        for (kind, begun) in [(0, 1), (1, 1), (2, 20)] {
            let of_kind = results.iter().filter(|(its, began)| *its == kind && *began == Began::Begun);
            assert_eq!(of_kind.count(), begun, "kind {kind}");
        }
        assert_eq!(writer.progress().commits, 1);
        assert_eq!(db.abandoned_intents(100).await.unwrap().len(), 22);
    }

    async fn of_many_writers_at_once_one_begins(db: Database) {
        let org = org(&db, 1).await;
        let results = at_once(0..40, |n| {
            let (writer, tasks) = writer(&db);
            async move {
                let _tasks = tasks;
                let digest = format!("k{}", n % 4);
                writer.intent(keyed_intent(org, n, &digest), soon()).await.unwrap()
            }
        })
        .await;

        assert_eq!(results.iter().filter(|began| **began == Began::Begun).count(), 4);
        assert_eq!(db.abandoned_intents(100).await.unwrap().len(), 4);
    }

    async fn a_released_key_is_free_again(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        writer.intent(keyed_intent(org, 1, "k"), soon()).await.unwrap();

        writer.finish_keyed(event(org, 1), KeyEnd::Released, soon()).await.unwrap();

        assert_eq!(find(&db, org, "k").await, None);
        let next = writer.intent(keyed_intent(org, 2, "k"), soon()).await.unwrap();
        assert_eq!(next, Began::Begun);
    }

    async fn an_event_that_is_refused_leaves_its_key_under_way(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        writer.append(event(org, 1), soon()).await.unwrap();
        writer.intent(keyed_intent(org, 1, "k"), soon()).await.unwrap();

        // As another process that finds the intent closes it.
        let again = Store::open(&db.settings).await.unwrap();
        let (later, _more) = given::writer(&again);
        let end = KeyEnd::Answered(vec![1]);
        let twin = later.finish_keyed(event(org, 1), end, soon()).await;

        assert!(matches!(twin, Err(StoreError::Conflict(_))), "{twin:?}");
        assert_eq!(find(&db, org, "k").await.unwrap().sealed, None);
    }

    async fn an_expired_key_is_free_before_and_after_it_is_forgotten(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        let mut old = keyed_intent(org, 1, "old");
        old.key.as_mut().unwrap().expires_at = NOW;
        writer.intent(old, soon()).await.unwrap();
        writer.intent(keyed_intent(org, 2, "young"), soon()).await.unwrap();
        writer.finish_keyed(event(org, 1), KeyEnd::Answered(vec![1]), soon()).await.unwrap();

        assert_eq!(find(&db, org, "old").await, None);
        let next = writer.intent(keyed_intent(org, 3, "old"), soon()).await.unwrap();

        assert_eq!(next, Began::Begun);
        let known = find(&db, org, "old").await.unwrap();
        assert_eq!((known.fingerprint.as_str(), known.sealed), ("request 3", None));
        let later = NOW.plus_seconds(3600);
        assert_eq!(db.forget_idempotency_keys(NOW).await.unwrap(), 0);
        assert_eq!(db.forget_idempotency_keys(later).await.unwrap(), 2);
        assert_eq!(find(&db, org, "young").await, None);
    }
}
