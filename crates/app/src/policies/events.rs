//! Events of changes of the policy set, in the log of every org.

use std::sync::Arc;

use portcullis_core::{
    audit::EventType,
    policy::{PolicyError, PolicySet},
};
use serde_json::json;

use super::{Policies, set_change::SetChange};
use crate::audit::events::installation;

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
