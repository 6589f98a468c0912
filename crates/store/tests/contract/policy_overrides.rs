//! Policies that orgs switched off.

use crate::prelude::*;

/// Switches a policy off with the `n`th event.
async fn set(store: &Store, new: &PolicyOverride, n: u32) -> OverrideSet {
    let event = event(new.org_id, n);
    store.set_policy_override(new, OverrideEnd::Any, &event).await.unwrap()
}

/// A policy that is off for a minute.
fn off(org_id: OrgId, policy: &str) -> PolicyOverride {
    PolicyOverride {
        org_id,
        policy_id: policy.to_owned(),
        version: "sha256:1".to_owned(),
        reason: "incident".to_owned(),
        set_by: id("usr", 1),
        set_at: NOW,
        until: NOW.plus_seconds(60),
    }
}

on_both! {
    async fn an_override_is_set_replaced_and_taken_back_with_its_events(db: Database) {
        let org = org(&db, 1).await;
        let first = off(org, "a");
        let longer = PolicyOverride { until: NOW.plus_seconds(120), ..first.clone() };

        for (new, n) in [(&first, 1), (&longer, 2)] {
            assert_eq!(set(&db, new, n).await, OverrideSet::Done);
        }

        assert_eq!(db.policy_overrides(NOW).await.unwrap(), std::slice::from_ref(&longer));
        assert!(db.policy_overrides(longer.until).await.unwrap().is_empty(), "its time is over");
        let mut later = event(org, 3);
        later.occurred_at = NOW.plus_seconds(1);
        assert!(db.remove_policy_override(org, "a", &later).await.unwrap());
        assert!(!db.remove_policy_override(org, "a", &later).await.unwrap());
        assert!(db.policy_overrides(NOW).await.unwrap().is_empty());
    }

    async fn an_override_takes_the_place_of_one_that_ends_later_only_if_it_may(db: Database) {
        let org = org(&db, 1).await;
        let first = off(org, "a");
        set(&db, &first, 1).await;
        let until = |seconds| PolicyOverride { until: NOW.plus_seconds(seconds), ..first.clone() };
        let extend = async |new: &PolicyOverride, n: u32| {
            db.set_policy_override(new, OverrideEnd::NotEarlier, &event(org, n)).await.unwrap()
        };

        let earlier = extend(&until(59), 2).await;
        let left = db.policy_overrides(NOW).await.unwrap();
        let same = extend(&until(60), 3).await;
        let later = extend(&until(61), 4).await;

        assert_eq!((earlier, same, later), (OverrideSet::Earlier, OverrideSet::Done, OverrideSet::Done));
        assert_eq!(left, std::slice::from_ref(&first));
        assert_eq!(set(&db, &until(1), 5).await, OverrideSet::Done);
    }

    async fn an_org_has_so_many_at_once_and_takes_no_place_of_another(db: Database) {
        let [ours, theirs] = orgs(&db).await;
        let most = u32::try_from(MAX_POLICY_OVERRIDES).unwrap();
        for n in 0..most {
            let set = set(&db, &off(ours, &format!("p{n}")), n).await;
            assert_eq!(set, OverrideSet::Done);
        }

        let full = set(&db, &off(ours, "more"), 90).await;
        let again = set(&db, &off(ours, "p0"), 91).await;
        let other = set(&db, &off(theirs, "p0"), 92).await;

        assert_eq!((full, again, other), (OverrideSet::Full, OverrideSet::Done, OverrideSet::Done));
        let mut later = off(ours, "more");
        later.set_at = NOW.plus_seconds(60);
        later.until = NOW.plus_seconds(90);
        let set = set(&db, &later, 93).await;
        assert_eq!(set, OverrideSet::Done, "those that are over make room");
        assert!(!db.remove_policy_override(theirs, "p1", &event(theirs, 94)).await.unwrap());
    }
}
