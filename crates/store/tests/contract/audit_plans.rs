//! Plans of PostgreSQL, as its statistics show them: what is looked for is found by its index.

use crate::prelude::*;

on_postgres! {
    async fn ends_of_intents_are_found_by_id_however_many_were_deleted_since_the_last_vacuum(db: Database) {
        let (org, writer, tasks) = start_writer(&db).await;
        for n in 0..20 {
            writer.intent(intent(org, n), soon()).await.unwrap();
            writer.finish(event(org, n), soon()).await.unwrap();
        }

        // The statistics of a connection are complete when it has ended.
        drop((writer, tasks));
        db.close().await;
        db.execute(
            "DO $$ BEGIN ASSERT (SELECT seq_scan < 5 AND idx_scan >= 20 FROM pg_stat_user_tables \
             WHERE relname = 'audit_intents'); END $$",
        )
        .await;
    }

    async fn an_actor_without_events_is_found_to_have_none_without_a_walk_of_the_log(db: Database) {
        let org = org(&db, 1).await;
        let mut events: Vec<_> = (0..6_000).map(|n| event(org, n)).collect();
        for event in &mut events {
            event.actor_id = Some(id("usr", 2));
        }
        append_all(&db, events).await;
        db.seal(org, leaf).await.unwrap();
        db.execute("ANALYZE audit_events").await;
        let stranger = EventActor::Principal(id("usr", 3));
        let filter = EventFilter { actor: Some(stranger), ..EventFilter::default() };

        // More often than a statement is planned anew while it stays prepared.
        for _ in 0..20 {
            let page =
                db.list_events(org, Visibility::All, &filter, EventOrder::Descending, None, 10);
            assert!(page.await.unwrap().events.is_empty());
        }

        // The statistics of a connection are complete when it has ended.
        db.close().await;
        db.execute(
            "DO $$ BEGIN ASSERT (SELECT SUM(idx_tup_read) < 30000 FROM pg_stat_user_indexes \
             WHERE relname LIKE 'audit_events%' AND indexrelname LIKE '%position_idx'); END $$",
        )
        .await;
    }
}
