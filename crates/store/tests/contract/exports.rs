//! Exports and the cursors of sinks.

use crate::prelude::*;

const QUOTA: ExportQuota = ExportQuota { running: 3, files: 5, bytes: 1000 };

const BEAT: ExportBeat = ExportBeat { scanned: 1, total: 2, bytes: 7 };

async fn begin_export(store: &Store, org: u32, n: u32) -> bool {
    store.create_export(&export(org, n), QUOTA, None).await.unwrap() == ExportBegan::Begun
}

fn export(org: u32, n: u32) -> NewExport {
    NewExport {
        id: id("exp", n),
        org_id: id("org", org),
        principal_id: id("usr", org),
        node: "node-1".to_owned(),
        request: r#"{"format":"csv"}"#.to_owned(),
        created_at: NOW,
        expires_at: NOW.plus_seconds(86_400),
    }
}

async fn tenant(store: &Store, n: u32) {
    let org = org(store, n).await;
    user(store, org, n).await;
}

on_both! {
    async fn of_many_exports_that_begin_at_once_three_do(db: Database) {
        tenant(&db, 1).await;
        tenant(&db, 2).await;
        let begun_here = at_once(0..12, |n| {
            let store = db.store.clone();
            async move { begin_export(&store, 1, n).await }
        })
        .await.into_iter().filter(|begun| *begun).count();

        assert_eq!(begun_here, 3);
        assert!(begin_export(&db, 2, 50).await, "another org's do not count");
    }

    async fn an_export_goes_from_pending_to_its_end_and_no_further(db: Database) {
        tenant(&db, 1).await;
        let org = id("org", 1);
        let id = id("exp", 1);
        assert!(begin_export(&db, 1, 1).await);

        assert!(db.beat_export(org, id, ExportBeat { scanned: 5, total: 10, bytes: 7 }, NOW).await.unwrap());
        let pending = db.find_export(org, id).await.unwrap().unwrap();
        assert!(db.finish_export(org, id, r#"{"events":10}"#, 9).await.unwrap());

        assert_eq!((pending.status, pending.scanned, pending.total), (ExportStatus::Pending, 5, 10));
        let ready = db.find_export(org, id).await.unwrap().unwrap();
        assert_eq!((ready.status, ready.scanned), (ExportStatus::Ready, 10));
        assert_eq!(ready.result.as_deref(), Some(r#"{"events":10}"#));
        assert!(!db.fail_export(org, id, "late").await.unwrap());
        assert!(!db.beat_export(org, id, ExportBeat { scanned: 6, total: 10, bytes: 7 }, NOW).await.unwrap());
        assert_eq!(db.find_export(org, id).await.unwrap().unwrap(), ready);
        assert_eq!(db.find_export(given::id("org", 2), id).await.unwrap(), None);
    }

    async fn what_a_dead_node_was_writing_fails_and_what_is_old_is_forgotten(db: Database) {
        tenant(&db, 1).await;
        let org = id("org", 1);
        let [mine, silent, living] = [1, 2, 3].map(|n| id("exp", n));
        for (n, node) in [(1, "node-1"), (2, "node-2"), (3, "node-3")] {
            let export = NewExport { node: node.to_owned(), ..export(1, n) };
            assert!(db.create_export(&export, QUOTA, None).await.unwrap() == ExportBegan::Begun);
        }
        assert!(db.beat_export(org, living, BEAT, NOW.plus_seconds(100)).await.unwrap());

        assert_eq!(db.fail_exports_of("node-1", "restarted").await.unwrap(), 1);
        assert_eq!(db.fail_silent_exports(NOW.plus_seconds(50), "silent").await.unwrap(), 1);

        for (id, error) in [(mine, Some("restarted")), (silent, Some("silent")), (living, None)] {
            let found = db.find_export(org, id).await.unwrap().unwrap();
            assert_eq!(found.error.as_deref(), error);
        }
        let later = NOW.plus_seconds(86_401);
        assert_eq!(db.export_expiry(mine).await.unwrap().unwrap().0, ExportStatus::Failed);
        assert_eq!(db.forget_exports(later).await.unwrap(), 2);
        assert_eq!(db.export_expiry(mine).await.unwrap(), None);
        assert_eq!(db.export_expiry(living).await.unwrap().unwrap().0, ExportStatus::Pending);
    }

    async fn a_sink_is_behind_until_it_has_everything_and_never_goes_back(db: Database) {
        let [ours, theirs] = orgs(&db).await;
        for (org, numbers) in [(ours, 0..3), (theirs, 3..5)] {
            append_all(&db, numbers.map(|n| event(org, n)).collect()).await;
            db.seal(org, leaf).await.unwrap();
        }

        let at_first = db.behind("siem").await.unwrap();
        db.advance_sink("siem", ours, 2).await.unwrap();
        db.advance_sink("siem", theirs, 2).await.unwrap();
        db.advance_sink("siem", ours, 1).await.unwrap();
        let then = db.behind("siem").await.unwrap();

        let places: Vec<_> = at_first.iter().map(|log| (log.org_id, log.next, log.size)).collect();
        assert_eq!(places, [(ours, 0, 3), (theirs, 0, 2)]);
        assert_eq!(at_first[0].since, Some(NOW));
        let places: Vec<_> = then.iter().map(|log| (log.org_id, log.next, log.size)).collect();
        assert_eq!(places, [(ours, 2, 3)]);
        assert_eq!(db.behind("other").await.unwrap().len(), 2);
    }

    async fn one_node_at_a_time_feeds_a_sink(db: Database) {
        let at = |second| NOW.plus_seconds(second);

        assert!(db.lease_sink("siem", "node-1", at(0), at(30)).await.unwrap());
        assert!(!db.lease_sink("siem", "node-2", at(29), at(59)).await.unwrap());
        assert!(db.lease_sink("siem", "node-1", at(29), at(59)).await.unwrap());
        assert!(db.lease_sink("siem", "node-2", at(59), at(89)).await.unwrap());
        db.release_sink("siem", "node-1").await.unwrap();
        assert!(!db.lease_sink("siem", "node-1", at(60), at(90)).await.unwrap());
        db.release_sink("siem", "node-2").await.unwrap();
        assert!(db.lease_sink("siem", "node-1", at(60), at(90)).await.unwrap());
    }

    async fn an_org_has_so_many_files_and_bytes_and_no_more_until_the_oldest_goes(db: Database) {
        tenant(&db, 1).await;
        tenant(&db, 2).await;
        let org = id("org", 1);
        let finished = async |n: u32, bytes: u64| {
            assert!(begin_export(&db, 1, n).await, "export {n}");
            assert!(db.finish_export(org, id("exp", n), "{}", bytes).await.unwrap());
        };
        for n in 1..=4 {
            finished(n, 100).await;
        }
        assert!(begin_export(&db, 1, 5).await);

        let full = db.create_export(&export(1, 6), QUOTA, None).await.unwrap();

        assert_eq!(full, ExportBegan::Full(NOW.plus_seconds(86_400)), "five files");
        assert!(db.fail_export(org, id("exp", 5), "no").await.unwrap());
        assert_eq!(db.export_bytes_beside(org, id("exp", 4), NOW).await.unwrap(), 300);
        finished(7, 600).await;
        let roomy = ExportQuota { files: 100, ..QUOTA };
        let full = db.create_export(&export(1, 8), roomy, None).await.unwrap();
        assert_eq!(full, ExportBegan::Full(NOW.plus_seconds(86_400)), "a thousand bytes");
        assert!(begin_export(&db, 2, 50).await, "another org has its own");
        let later = NewExport { created_at: NOW.plus_seconds(86_401), ..export(1, 9) };
        assert_eq!(db.create_export(&later, QUOTA, None).await.unwrap(), ExportBegan::Begun);
    }
}
