//! Orgs and their plans.

use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::prelude::*;

on_both! {
    async fn an_org_that_lists_much_at_once_holds_up_neither_others_nor_its_calls(db: Database) {
        let (busy, other) = (org(&db, 1).await, org(&db, 2).await);
        let listed = Arc::new(AtomicUsize::new(0));
        let mut lists = JoinSet::new();
        for _ in 0..1_200 {
            let (store, listed) = (db.store.clone(), Arc::clone(&listed));
            lists.spawn(async move {
                let found = store.list_principals(busy).await;
                listed.fetch_add(usize::from(found.is_ok()), Ordering::SeqCst);
                found
            });
        }

        let (list, call) = tokio::join!(
            db.list_principals(other),
            db.find_idempotency_key(busy, "x", NOW)
        );
        let before = listed.load(Ordering::SeqCst);
        let all = lists.join_all().await;

        assert!(list.is_ok() && call.is_ok(), "{list:?} {call:?}");
        assert!(before < 300, "they waited for {before} lists");
        let refused = all.iter().filter(|it| matches!(it, Err(StoreError::Crowded))).count();
        let answered = all.iter().filter(|it| it.is_ok()).count();
        assert!(refused > 0 && answered > 900, "{refused} refused, {answered} answered");
        assert_eq!(refused + answered, all.len());
    }

    async fn an_org_reads_back_as_it_was_stored(db: Database) {
        let plan = Plan::Enterprise {
            requests: NonZeroU32::new(u32::MAX).unwrap(),
            invocations: NonZeroU32::MIN,
        };
        let id = id("org", 1);
        let org = Org { id, name: "Ácme".to_owned(), plan, created_at: NOW, disabled_at: None };

        db.create_org(&org).await.unwrap();

        assert_eq!(db.find_org(id).await.unwrap(), Some(org.clone()));
        assert_eq!(db.find_org_by_name("Ácme").await.unwrap(), Some(org.clone()));
        assert_eq!(db.find_org_by_name("acme").await.unwrap(), None);
        assert_eq!(db.list_orgs().await.unwrap(), [org]);
    }

    async fn an_id_or_name_that_exists_is_a_conflict(db: Database) {
        let id = org(&db, 1).await;
        let mut org = db.find_org(id).await.unwrap().unwrap();

        let same_id = db.create_org(&org).await;
        org.id = given::id("org", 2);
        let same_name = db.create_org(&org).await;

        assert!(matches!(same_id, Err(StoreError::Conflict(_))), "{same_id:?}");
        assert!(matches!(same_name, Err(StoreError::Conflict(_))), "{same_name:?}");
        assert_eq!(db.list_orgs().await.unwrap().len(), 1);
    }

    async fn a_plan_can_be_changed(db: Database) {
        let id = org(&db, 1).await;

        assert!(db.set_plan(id, Plan::Free).await.unwrap());

        assert_eq!(db.find_org(id).await.unwrap().unwrap().plan, Plan::Free);
        assert!(!db.set_plan(given::id("org", 2), Plan::Free).await.unwrap());
    }

    async fn an_org_is_disabled_since_the_first_time_until_enabled(db: Database) {
        let id = org(&db, 1).await;

        assert!(db.disable_org(id, NOW).await.unwrap());
        assert!(db.disable_org(id, NOW.plus_seconds(9)).await.unwrap());
        let disabled = db.find_org(id).await.unwrap().unwrap().disabled_at;
        assert!(db.enable_org(id).await.unwrap());

        assert_eq!(disabled, Some(NOW));
        assert_eq!(db.find_org(id).await.unwrap().unwrap().disabled_at, None);
    }
}
