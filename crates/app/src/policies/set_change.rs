//! Difference of two policy sets.

use std::{collections::BTreeMap, sync::Arc};

use portcullis_core::{
    audit::EventType,
    policy::{PolicyError, PolicySet},
};
use serde_json::json;

use super::Policies;
use crate::audit::events::installation;

/// Difference of two sets, by the names of policies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetChange {
    pub added: Vec<Arc<str>>,
    pub changed: Vec<Arc<str>>,
    pub removed: Vec<Arc<str>>,
}

impl SetChange {
    /// Changes that lead from `before` to `after`.
    #[must_use]
    pub fn between(before: &PolicySet, after: &PolicySet) -> Self {
        let before = before.records().iter();
        Self::since(before.filter_map(|it| Some((&*it.id, it.version.as_deref()?))), after)
    }

    /// Changes that lead from a set of these policies and versions to `after`.
    pub(crate) fn since<'a>(
        before: impl Iterator<Item = (&'a str, &'a str)>,
        after: &PolicySet,
    ) -> Self {
        let mut gone: BTreeMap<&str, &str> = before.collect();
        let mut change = Self::default();
        for record in after.records().iter().filter(|record| !record.builtin) {
            match gone.remove(&*record.id) {
                Some(version) if Some(version) == record.version.as_deref() => {}
                Some(_) => change.changed.push(Arc::clone(&record.id)),
                None => change.added.push(Arc::clone(&record.id)),
            }
        }
        change.removed = gone.into_keys().map(Arc::from).collect();
        change
    }

    /// The part of the change that concerns these policies.
    pub(crate) fn only(mut self, these: impl Fn(&Arc<str>) -> bool) -> Self {
        for part in [&mut self.added, &mut self.changed, &mut self.removed] {
            part.retain(&these);
        }
        self
    }
}

/// The most names or errors of one kind that an event tells.
const MAX_TOLD: usize = 100;

fn ids_as_text(ids: &[Arc<str>]) -> Vec<&str> {
    ids.iter().take(MAX_TOLD).map(|id| &**id).collect()
}

impl Policies {
    /// Tells every org's log which policy set is in force from now on, and what changed. Runs
    /// beside the reload: the set itself is in force at once, and every call names it.
    pub(crate) fn policy_set_changed(&self, set: &PolicySet, before: &str, change: &SetChange) {
        let details = json!({
            "previous": before,
            "added": ids_as_text(&change.added),
            "changed": ids_as_text(&change.changed),
            "removed": ids_as_text(&change.removed),
        });
        let target = installation("policy_set", set.version());
        self.audit.tell_every_org(EventType::PolicyChanged, target, Some(("change", details)));
    }

    /// Tells every org's log that a policy folder was not taken, and why.
    pub(crate) fn policy_reload_failed(&self, errors: &[PolicyError]) {
        let shown: Vec<&PolicyError> = errors.iter().take(MAX_TOLD).collect();
        let details = json!({ "count": errors.len(), "errors": shown });
        let set = self.current();
        let target = installation("policy_set", set.version());
        self.audit.tell_every_org(EventType::PolicyReloadFailed, target, Some(("reload", details)));
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::{
        clock::Timestamp,
        policy::{Catalogue, PolicyFile},
    };

    use super::*;

    fn set(text: &str) -> PolicySet {
        let file = PolicyFile { path: "test.cedar".to_owned(), text: text.to_owned() };
        PolicySet::load(vec![file], &Catalogue::default(), &[], Timestamp::default()).unwrap()
    }

    #[test]
    fn a_change_names_what_came_what_went_and_what_is_another() {
        let before = set("@id(\"a\") permit (principal, action, resource);
            @id(\"b\") permit (principal, action, resource);
            @id(\"c\") permit (principal, action, resource);");
        let after = set("@id(\"a\") permit   (principal, action, resource); // as it was
            @id(\"b\") forbid (principal, action, resource);
            @id(\"d\") permit (principal, action, resource);");

        let change = SetChange::between(&before, &after);

        assert_eq!(change.added, [Arc::<str>::from("d")]);
        assert_eq!(change.changed, [Arc::<str>::from("b")]);
        assert_eq!(change.removed, [Arc::<str>::from("c")]);
    }
}
