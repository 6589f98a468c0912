//! The writer: group commits, intents and their ends, waiters that give up.

use tokio::time::timeout_at;

use crate::prelude::*;

on_both! {
    async fn an_event_and_the_end_of_its_intent_are_one_commit(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        let id: EventId = id("evt", 1);

        writer.intent(intent(org, 1), soon()).await.unwrap();
        let open = db.abandoned_intents(10).await.unwrap();
        writer.finish(event(org, 1), soon()).await.unwrap();

        assert_eq!(open.iter().map(|intent| intent.id).collect::<Vec<_>>(), [id]);
        assert_eq!((open[0].record.core.as_str(), open[0].node.as_str()), (r#"{"n":1}"#, "node-1"));
        assert!(db.abandoned_intents(10).await.unwrap().is_empty());
        let found = db.find_event(org, Visibility::All, id).await.unwrap().unwrap();
        assert_eq!((found.core.as_str(), found.seal), (r#"{"n":1}"#, None));
    }

    // On SQLite the row of an intent goes later than its event comes: the event tells that it has ended.
    async fn an_intent_that_has_ended_is_never_found_open(db: Database) {
        let (org, writer, tasks) = start_writer(&db).await;
        for n in 1..=2 {
            writer.intent(intent(org, n), soon()).await.unwrap();
            writer.finish(event(org, n), soon()).await.unwrap();
            assert!(db.abandoned_intents(10).await.unwrap().is_empty(), "{n}");
        }
        drop((writer, tasks));

        let again = Store::open(&db.settings).await.unwrap();
        assert!(again.abandoned_intents(10).await.unwrap().is_empty());
        db.seal(org, leaf).await.unwrap();
        assert!(again.abandoned_intents(10).await.unwrap().is_empty());
        if db.is_sqlite() {
            db.execute("CREATE TABLE none_is_left (intents INTEGER CHECK (intents = 0))").await;
            db.execute("INSERT INTO none_is_left SELECT COUNT(*) FROM audit_intents").await;
        }
        let (later, _tasks) = given::writer(&again);
        later.intent(intent(org, 3), soon()).await.unwrap();
        let twin = later.finish(event(org, 2), soon()).await;
        assert!(matches!(twin, Err(StoreError::Conflict(_))), "{twin:?}");
        let open = again.abandoned_intents(10).await.unwrap();
        assert_eq!(open.iter().map(|it| it.id).collect::<Vec<_>>(), [id("evt", 3)]);
        db.execute("CREATE TABLE one_is_left (intents INTEGER CHECK (intents = 1))").await;
        db.execute("INSERT INTO one_is_left SELECT COUNT(*) FROM audit_intents").await;
    }

    async fn an_intent_that_was_added_or_changed_has_no_texts(db: Database) {
        let [org, other] = orgs(&db).await;
        let (writer, _tasks) = writer(&db);
        for n in 1..=4 {
            writer.intent(intent(org, n), soon()).await.unwrap();
        }
        let id = |n| id::<EventId>("evt", n);

        for change in [
            format!("UPDATE audit_intents SET org_id = '{other}' WHERE id = '{}'", id(1)),
            format!("UPDATE audit_intents SET mac = NULL WHERE id = '{}'", id(2)),
            format!(
                "UPDATE audit_intents SET packed = (SELECT packed FROM audit_intents WHERE id = '{}') \
                 WHERE id = '{}'",
                id(4), id(3)
            ),
            format!(
                "INSERT INTO audit_intents (id, org_id, node, opened_at, packed, mac) \
                 SELECT '{}', org_id, node, opened_at, packed, mac FROM audit_intents WHERE id = '{}'",
                id(5), id(4)
            ),
        ] {
            db.execute_text(change).await;
        }

        let open = db.abandoned_intents(10).await.unwrap();
        let texts: Vec<_> = open.iter().map(|intent| (intent.id, intent.record.core.as_str())).collect();
        let none = |n| (id(n), "");
        assert_eq!(texts, [none(1), none(2), none(3), (id(4), r#"{"n":4}"#), none(5)]);
        let refused = db.refuse_intents(org, &[2, 3, 5].map(id), &event(org, 9)).await;
        assert_eq!(refused, Ok(true));
        let again = db.refuse_intents(org, &[2, 3, 5].map(id), &event(org, 10)).await;
        assert_eq!(again, Ok(false));
        let left = db.abandoned_intents(10).await.unwrap();
        assert_eq!(left.iter().map(|it| it.id).collect::<Vec<_>>(), [1, 4].map(id));
        assert!(db.find_event(org, Visibility::All, id(9)).await.unwrap().is_some());
        assert!(db.find_event(org, Visibility::All, id(10)).await.unwrap().is_none());
    }

    async fn an_event_that_is_refused_leaves_its_intent_open(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        writer.intent(intent(org, 1), soon()).await.unwrap();

        // As another process that finds the intent closes it, and this one; there is no such org.
        let again = Store::open(&db.settings).await.unwrap();
        let (later, _more) = given::writer(&again);
        for writer in [later, writer] {
            let refused = writer.finish(event(id("org", 9), 1), soon()).await;
            assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
        }

        let left = db.abandoned_intents(10).await.unwrap();
        assert_eq!(left.len(), 1);
        db.drop_intent(id("org", 9), left[0].id).await.unwrap();
        assert_eq!(db.abandoned_intents(10).await.unwrap().len(), 1);
        db.drop_intent(org, left[0].id).await.unwrap();
        assert!(db.abandoned_intents(10).await.unwrap().is_empty());
    }

    async fn an_event_is_finished_once_wherever_it_is_found(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        for n in 1..=2 {
            writer.intent(intent(org, n), soon()).await.unwrap();
        }

        writer.finish(event(org, 1), soon()).await.unwrap();
        let unsealed = writer.finish(event(org, 1), soon()).await;
        db.seal(org, leaf).await.unwrap();
        let sealed = writer.finish(event(org, 1), soon()).await;
        let (one, other) = tokio::join!(
            writer.finish(event(org, 2), soon()),
            writer.finish(event(org, 2), soon()),
        );

        for twin in [unsealed, sealed] {
            assert!(matches!(twin, Err(StoreError::Conflict(_))), "{twin:?}");
        }
        assert_eq!([one, other].iter().filter(|done| done.is_ok()).count(), 1);
        assert_eq!(db.seal(org, leaf).await.unwrap(), 1);
    }

    async fn an_intent_of_an_earlier_life_ends_with_its_event(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        for n in 1..=3 {
            writer.intent(intent(org, n), soon()).await.unwrap();
        }

        let again = Store::open(&db.settings).await.unwrap();
        let (later, _more) = given::writer(&again);
        later.finish(event(org, 2), soon()).await.unwrap();
        later.intent(intent(org, 4), soon()).await.unwrap();
        later.finish(event(org, 1), soon()).await.unwrap();
        writer.finish(event(org, 3), soon()).await.unwrap();

        let left = again.abandoned_intents(10).await.unwrap();
        assert_eq!(left.iter().map(|it| it.id).collect::<Vec<_>>(), [id("evt", 4)]);
    }

    async fn a_closed_database_takes_nothing_more(db: Database) {
        let (org, writer, _tasks) = start_writer(&db).await;
        writer.append(event(org, 1), soon()).await.unwrap();

        db.close().await;
        let refused = writer.append(event(org, 2), soon()).await;

        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    }

    async fn all_that_wait_share_one_commit(db: Database) {
        let org = org(&db, 1).await;
        let (writer, task) = idle_writer(&db);
        let mut jobs = JoinSet::new();
        for n in 0..100 {
            let writer = writer.clone();
            jobs.spawn(async move {
                match n % 2 {
                    0 => writer.intent(intent(org, n), soon()).await.map(drop),
                    _ => writer.append(event(org, n), soon()).await,
                }
            });
        }
        until_waiting(&writer, 100).await;

        let _tasks = running(task);
        for result in jobs.join_all().await {
            result.unwrap();
        }

        let done = writer.progress();
        assert_eq!((done.commits, done.jobs, done.waiting), (1, 100, 0));
        assert_eq!(db.abandoned_intents(100).await.unwrap().len(), 50);
        assert_eq!(db.seal(org, leaf).await.unwrap(), 50);
    }

    async fn a_row_at_fault_takes_no_other_with_it(db: Database) {
        let org = org(&db, 1).await;
        let (writer, task) = idle_writer(&db);
        let mut jobs = JoinSet::new();
        for n in 0..10 {
            let writer = writer.clone();
            let org = if n == 6 { id("org", 9) } else { org };
            jobs.spawn(async move { (n, writer.append(event(org, n), soon()).await) });
        }
        until_waiting(&writer, 10).await;

        let _tasks = running(task);

        for (n, result) in jobs.join_all().await {
            assert_eq!(matches!(result, Err(StoreError::Conflict(_))), n == 6, "{n}: {result:?}");
            assert_eq!(result.is_ok(), n != 6, "{n}: {result:?}");
        }
        assert_eq!(db.seal(org, leaf).await.unwrap(), 9);
    }

    async fn a_job_whose_waiter_gave_up_is_never_written(db: Database) {
        let org = org(&db, 1).await;
        let (writer, task) = idle_writer(&db);

        let late = writer.intent(intent(org, 1), Instant::now()).await;
        let dropped = timeout_at(Instant::now(), writer.intent(intent(org, 2), soon())).await;
        drop(writer);
        task.run().await;

        assert!(matches!(late, Err(StoreError::Unavailable(_))), "{late:?}");
        assert!(dropped.is_err());
        assert!(db.abandoned_intents(10).await.unwrap().is_empty());
    }

    async fn a_full_queue_is_unavailable_at_the_deadline(db: Database) {
        let org = org(&db, 1).await;
        let mut settings = AuditSettings::new("node-1".to_owned());
        settings.queue = 1;
        let (writer, task) = AuditWriter::new(db.store.clone(), clock_at(NOW), settings);
        let first = writer.intent(intent(org, 1), Instant::now()).await;

        let second = writer.intent(intent(org, 2), Instant::now()).await;
        drop(task);
        let third = writer.intent(intent(org, 3), soon()).await;

        for refused in [first, second, third] {
            assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        }
    }

    async fn a_commit_that_outlasts_its_deadline_is_reported_as_unknown(db: Database) {
        let org = org(&db, 1).await;
        let (writer, mut tasks) = writer(&db);
        let blocked = db.block_writers().await;

        let soon_over = Instant::now() + Duration::from_secs(1);
        let outcome = writer.append(event(org, 1), soon_over).await;
        blocked.release().await;
        drop(writer);
        tasks.join_next().await;

        assert!(matches!(outcome, Err(StoreError::OutcomeUnknown(_))), "{outcome:?}");
        let found = db.find_event(org, Visibility::All, id("evt", 1)).await.unwrap();
        assert!(found.is_some());
    }

    async fn a_database_that_refuses_to_write_is_unavailable_and_recovers(db: Database) {
        let org = org(&db, 1).await;
        let mut settings = db.settings.clone();
        // Longer than it takes to connect.
        settings.wait = Duration::from_secs(1);
        let store = Store::open(&settings).await.unwrap();
        let (writer, _tasks) = writer(&store);
        let blocked = db.block_writers().await;

        let refused = writer.append(event(org, 1), soon()).await;
        blocked.release().await;
        let written = writer.append(event(org, 1), soon()).await;

        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        assert_eq!(written, Ok(()));
    }
}
