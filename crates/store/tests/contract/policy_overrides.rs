//! Policies that orgs switched off.

use portcullis_core::id::OrgId;
use portcullis_store::{MAX_POLICY_OVERRIDES, OverrideSet, PolicyOverride};

use crate::{
    database::{Database, on_both},
    given::{self, NOW, event},
};

/// A policy that is off for a minute.
fn off(org_id: OrgId, policy: &str) -> PolicyOverride {
    PolicyOverride {
        org_id,
        policy_id: policy.to_owned(),
        version: "sha256:1".to_owned(),
        reason: "incident".to_owned(),
        set_by: given::id("usr", 1),
        set_at: NOW,
        until: NOW.plus_seconds(60),
    }
}

on_both! {
    async fn an_override_is_set_replaced_and_taken_back_with_its_events(db: Database) {
        let org = given::org(&db.store, 1).await;
        let first = off(org, "a");
        let longer = PolicyOverride { until: NOW.plus_seconds(120), ..first.clone() };

        for (new, n) in [(&first, 1), (&longer, 2)] {
            let set = db.store.set_policy_override(new, &event(org, n)).await.unwrap();
            assert_eq!(set, OverrideSet::Done);
        }

        assert_eq!(db.store.policy_overrides(NOW).await.unwrap(), std::slice::from_ref(&longer));
        assert!(db.store.policy_overrides(longer.until).await.unwrap().is_empty(), "its time is over");
        let mut later = event(org, 3);
        later.occurred_at = NOW.plus_seconds(1);
        assert!(db.store.remove_policy_override(org, "a", &later).await.unwrap());
        assert!(!db.store.remove_policy_override(org, "a", &later).await.unwrap());
        assert!(db.store.policy_overrides(NOW).await.unwrap().is_empty());
    }

    async fn an_org_has_so_many_at_once_and_takes_no_place_of_another(db: Database) {
        let ours = given::org(&db.store, 1).await;
        let theirs = given::org(&db.store, 2).await;
        let most = u32::try_from(MAX_POLICY_OVERRIDES).unwrap();
        for n in 0..most {
            let set = db.store.set_policy_override(&off(ours, &format!("p{n}")), &event(ours, n)).await;
            assert_eq!(set.unwrap(), OverrideSet::Done);
        }

        let full = db.store.set_policy_override(&off(ours, "more"), &event(ours, 90)).await.unwrap();
        let again = db.store.set_policy_override(&off(ours, "p0"), &event(ours, 91)).await.unwrap();
        let other = db.store.set_policy_override(&off(theirs, "p0"), &event(theirs, 92)).await.unwrap();

        assert_eq!((full, again, other), (OverrideSet::Full, OverrideSet::Done, OverrideSet::Done));
        let mut later = off(ours, "more");
        later.set_at = NOW.plus_seconds(60);
        later.until = NOW.plus_seconds(90);
        let set = db.store.set_policy_override(&later, &event(ours, 93)).await.unwrap();
        assert_eq!(set, OverrideSet::Done, "those that are over make room");
        assert!(!db.store.remove_policy_override(theirs, "p1", &event(theirs, 94)).await.unwrap());
    }
}
