//! Calls that their providers go on with: kept until they end, which is written once and with its event.

use portcullis_store::{StoredTask, Visibility};

use crate::prelude::*;

fn task(org: OrgId, n: u32, ends_at: Timestamp) -> StoredTask {
    StoredTask {
        org_id: org,
        event_id: id("evt", n),
        principal_id: id("usr", 1),
        ends_at,
        sealed: vec![1, 2, 3],
        told: None,
        ended: None,
    }
}

async fn is_stored(db: &Store, org: OrgId, n: u32) -> bool {
    db.find_event(org, Visibility::All, id("evt", n)).await.unwrap().is_some()
}

on_both! {
    async fn a_task_ends_once_and_with_its_event(db: Database) {
        let [org, other] = orgs(&db).await;
        let (writer, _tasks) = writer(&db);
        let kept = task(org, 1, NOW);
        db.keep_provider_task(&kept).await.unwrap();
        assert_eq!(db.find_provider_task(org, id("evt", 1)).await.unwrap(), Some(kept.clone()));
        assert_eq!(db.find_provider_task(other, id("evt", 1)).await.unwrap(), None);
        db.note_provider_task(org, id("evt", 1), "sha256:1").await.unwrap();

        let mut ends = JoinSet::new();
        for n in 2..10 {
            let writer = writer.clone();
            ends.spawn(async move {
                writer.end_provider_task(id("evt", 1), vec![7], NOW, event(org, n), soon()).await.unwrap()
            });
        }
        let first = ends.join_all().await.into_iter().filter(|first| *first).count();

        assert_eq!(first, 1);
        let mut stored = 0;
        for n in 2..10 {
            stored += usize::from(is_stored(&db, org, n).await);
        }
        assert_eq!(stored, 1);
        let ended = StoredTask { told: Some("sha256:1".to_owned()), ended: Some(vec![7]), ..kept };
        assert_eq!(db.find_provider_task(org, id("evt", 1)).await.unwrap(), Some(ended));
        let unknown = writer.end_provider_task(id("evt", 1), vec![7], NOW, event(other, 20), soon());
        assert!(!unknown.await.unwrap());
        assert!(!is_stored(&db, other, 20).await);
    }

    async fn tasks_are_overdue_until_they_end_and_then_forgotten(db: Database) {
        let org = org(&db, 1).await;
        let (writer, _tasks) = writer(&db);
        let later = NOW.plus_seconds(1);
        for (n, ends_at) in [(1, later), (2, NOW), (3, NOW.plus_seconds(2))] {
            db.keep_provider_task(&task(org, n, ends_at)).await.unwrap();
        }
        let ids = |tasks: Vec<StoredTask>| tasks.into_iter().map(|it| it.event_id).collect::<Vec<_>>();

        assert_eq!(ids(db.overdue_provider_tasks(later, 9).await.unwrap()), [id("evt", 2), id("evt", 1)]);
        assert_eq!(ids(db.overdue_provider_tasks(later, 1).await.unwrap()), [id("evt", 2)]);
        assert_eq!(db.forget_provider_tasks(later).await.unwrap(), 0);
        assert!(writer.end_provider_task(id("evt", 2), vec![], NOW, event(org, 9), soon()).await.unwrap());
        assert_eq!(ids(db.overdue_provider_tasks(later, 9).await.unwrap()), [id("evt", 1)]);
        assert_eq!(db.forget_provider_tasks(later).await.unwrap(), 1);
        assert_eq!(db.find_provider_task(org, id("evt", 2)).await.unwrap(), None);
    }

    async fn a_principal_has_a_thousand_open_tasks_at_most(db: Database) {
        let org = org(&db, 1).await;
        for n in 0..1_000_u32 {
            assert!(db.may_have_provider_task(org, id("usr", 1)).await.unwrap());
            db.keep_provider_task(&task(org, n, NOW)).await.unwrap();
        }
        assert!(!db.may_have_provider_task(org, id("usr", 1)).await.unwrap());
        assert!(db.may_have_provider_task(org, id("usr", 2)).await.unwrap());
    }
}
