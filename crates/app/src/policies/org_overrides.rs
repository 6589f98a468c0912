//! Policies that admins switched off for their own org, for a while. The store has them, so that every node follows
//! and a start forgets none.
//!
//! **Invariant:** what is unsure leaves a `forbid` in force: it is lifted only in the version that the admin looked
//! at, only while it is not locked, and only until its moment.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError},
};

use portcullis_core::{
    clock::Timestamp,
    id::OrgId,
    policy::{Changes, Effect, PolicyRecord, PolicySet, Status, SwitchedOff},
};
use portcullis_store::{PolicyOverride, StoreError};

use super::Policies;
use crate::base::low_priority::at_low_priority;

/// The set in force, and those of the orgs that switched something off.
#[derive(Debug, Default)]
pub(super) struct InForce {
    set: Option<Arc<PolicySet>>,
    of_orgs: HashMap<OrgId, OrgSet>,
}

/// The set of an org, and what is switched off in it.
#[derive(Debug)]
struct OrgSet {
    set: Arc<PolicySet>,
    off: BTreeMap<String, PolicyOverride>,
}

impl InForce {
    /// The set for everybody, and for each org the same without what it switched off. `written` is the set as its
    /// files say.
    pub(super) fn of(
        set: Arc<PolicySet>,
        written: &PolicySet,
        overrides: &[PolicyOverride],
        now: Timestamp,
    ) -> Self {
        let mut off: HashMap<OrgId, BTreeMap<String, PolicyOverride>> = HashMap::new();
        for one in overrides.iter().filter(|one| is_effective(one, written, now)) {
            off.entry(one.org_id).or_default().insert(one.policy_id.clone(), one.clone());
        }
        let org_set = |(org, off): (OrgId, BTreeMap<String, PolicyOverride>)| {
            let disabled = |id: &String| (id.clone(), Status::Disabled);
            let statuses = off.keys().filter(|id| set.find(id).is_some()).map(disabled).collect();
            let drafted = set.draft(&Changes { statuses, ..Changes::default() }, now);
            match drafted {
                Ok(drafted) => Some((org, OrgSet { set: Arc::new(drafted), off })),
                Err(errors) => {
                    tracing::error!(%org, ?errors, "the policies of an org that are switched off stay in force");
                    None
                }
            }
        };
        let of_orgs = off.into_iter().filter_map(org_set).collect();
        Self { set: Some(set), of_orgs }
    }
}

/// True if an override counts for the policy as its file says: a permit stays off whatever becomes of its text, a
/// `forbid` is lifted in one version only.
fn is_effective(one: &PolicyOverride, written: &PolicySet, now: Timestamp) -> bool {
    now < one.until
        && written.find(&one.policy_id).is_some_and(|record| {
            let same = record.version.as_deref() == Some(one.version.as_str());
            !record.locked && (record.effect == Effect::Permit || same)
        })
}

impl Policies {
    /// The set that calls of an org are decided by.
    pub(crate) fn current_of(&self, org: OrgId) -> Arc<PolicySet> {
        let in_force = self.current.load();
        match in_force.of_orgs.get(&org) {
            Some(own) => Arc::clone(&own.set),
            None => self.base_of(&in_force),
        }
    }

    /// The set of an org without overrides.
    pub(super) fn base_of(&self, in_force: &InForce) -> Arc<PolicySet> {
        in_force.set.clone().unwrap_or_else(|| self.written.load_full())
    }

    /// The state of the policy for the org, if it is switched off: by the operator for all, or by the org itself.
    #[must_use]
    pub fn switched_off(&self, org: OrgId, id: &str) -> Option<SwitchedOff> {
        let by_operator = self.switched_off_until(id).map(SwitchedOff::by_operator);
        by_operator.or_else(|| {
            let in_force = self.current.load();
            let one = in_force.of_orgs.get(&org)?.off.get(id)?;
            Some(SwitchedOff {
                status: Status::Disabled,
                until: one.until,
                reason: Some(one.reason.clone()),
                set_by: Some(one.set_by),
            })
        })
    }

    /// The policy as its file says, whatever is switched off.
    pub(crate) fn as_written(&self, id: &str) -> Option<PolicyRecord> {
        self.written.load().find(id).cloned()
    }

    /// Reads what orgs switched off, and puts it in force if it changed. While the store cannot be read, what was
    /// read last counts until its time.
    pub async fn read_org_overrides(self: &Arc<Self>) {
        // A reader that began earlier never takes the place of one that began later.
        let mut known = self.org_overrides.lock().await;
        let now = self.base.now();
        let found = self.base.store.policy_overrides(now).await.inspect_err(StoreError::log);
        let found =
            found.unwrap_or_else(|_| known.iter().filter(|one| now < one.until).cloned().collect());
        if **known == *found {
            return;
        }
        let found = Arc::new(found);
        let this = Arc::clone(self);
        let overrides = Arc::clone(&found);
        let changed = at_low_priority(move || {
            let _one_at_a_time = this.changing.lock().unwrap_or_else(PoisonError::into_inner);
            this.overrides_in_force.store(overrides);
            this.put_in_force(this.current());
        });
        if changed.await.is_some() {
            *known = found;
        } else {
            tracing::error!("what orgs switched off could not be put in force; it is tried again");
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::policy::{Catalogue, PolicyFile};

    use super::*;

    const NOON: Timestamp = Timestamp::from_micros(1_795_000_000_000_000);

    fn set(text: &str) -> Arc<PolicySet> {
        let file = PolicyFile { path: "test.cedar".to_owned(), text: text.to_owned() };
        Arc::new(PolicySet::load(vec![file], &Catalogue::default(), &[], NOON).unwrap())
    }

    fn off(set: &PolicySet, policy: &str, org: &str) -> PolicyOverride {
        PolicyOverride {
            org_id: org.parse().unwrap(),
            policy_id: policy.to_owned(),
            version: set.find(policy).unwrap().version.as_deref().unwrap().to_owned(),
            reason: "why".to_owned(),
            set_by: "usr_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap(),
            set_at: NOON,
            until: NOON.plus_seconds(60),
        }
    }

    const ORG: &str = "org_01M754BKTKX1YB8Q05NMW9TP4G";
    const TEXT: &str = "@id(\"p\") permit (principal, action, resource);
        @id(\"f\") forbid (principal, action, resource);
        @id(\"l\") @locked forbid (principal, action, resource);";

    #[test]
    fn an_override_counts_for_its_org_and_until_its_moment() {
        let set = set(TEXT);
        let one = off(&set, "f", ORG);
        let status = |at: Timestamp| {
            let in_force = InForce::of(Arc::clone(&set), &set, std::slice::from_ref(&one), at);
            let own = in_force.of_orgs.get(&one.org_id);
            own.map(|own| own.set.find("f").unwrap().status)
        };

        assert_eq!(status(NOON), Some(Status::Disabled));
        assert_eq!(status(one.until), None);
        assert_eq!(set.find("f").unwrap().status, Status::Active, "for all others");
    }

    #[test]
    fn what_is_unsure_leaves_a_forbid_in_force() {
        let before = set(TEXT);
        let changed = set("@id(\"p\") permit (principal, action, resource) when { true };
            @id(\"f\") forbid (principal, action, resource) when { true };
            @id(\"l\") forbid (principal, action, resource);");
        let counts =
            |id: &str, written: &PolicySet| is_effective(&off(&before, id, ORG), written, NOON);

        assert!(counts("f", &before) && counts("p", &before));
        assert!(!counts("l", &before), "locked");
        assert!(!counts("f", &changed), "another text");
        assert!(counts("p", &changed), "a permit stays off");
        let locked = set("@id(\"f\") @locked forbid (principal, action, resource);");
        assert!(!counts("f", &locked), "locked since");
        assert!(!counts("p", &locked), "gone");
    }
}
