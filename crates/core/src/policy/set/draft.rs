//! A set that is another set with changes: what simulation asks, and nothing puts in force.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use super::with_stack;
use crate::policy::{
    bind::{binding::Binding, index::Policies},
    files::{PolicyError, PolicyFile, sorted},
    load::{compiled::Placed, parser::Parser},
    set::PolicySet,
    terms::Status,
    tool::catalogue::ToolFacts,
    watch::{DraftBounds, DraftError, DraftSize, Unwatched, Watch},
};
use crate::{capability::Capability, clock::Timestamp};

/// Changes to a set. A policy that is both added and removed is added.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Policies that are added, or that take the place of those with their names. Errors name the
    /// path that is given here.
    pub upsert: Vec<PolicyFile>,
    /// Names of policies that are left out.
    pub remove: BTreeSet<String>,
    /// The status that policies get, whatever their `@mode` says.
    pub statuses: BTreeMap<String, Status>,
    /// Names of policies that are there and answered as if they were not, because they are of others.
    pub hidden: BTreeSet<String>,
}

impl PolicySet {
    /// The set with changes, bound to the same tools. Gives every error of what is added at once;
    /// a name that no policy has is an error too. What no longer fits among policies that stay is
    /// marked, as when a tool changes.
    pub fn draft(&self, changes: &Changes, now: Timestamp) -> Result<Self, Vec<PolicyError>> {
        let Ok(drafted) = with_stack(|| self.drafted(changes, now, &Unwatched));
        drafted
    }

    /// The same within bounds. Rejects a draft whose own policies need more checks against the
    /// tools than that, before any of them, and stops between two policies or tools.
    pub fn draft_within(
        &self,
        changes: &Changes,
        now: Timestamp,
        bounds: &DraftBounds<'_>,
    ) -> Result<Self, DraftError> {
        with_stack(|| self.drafted(changes, now, bounds))?.map_err(DraftError::Policies)
    }

    /// No policies, bound to the same tools: everything is denied.
    #[must_use]
    pub fn emptied(&self, now: Timestamp) -> Self {
        let around = self.environment.clone();
        let Ok(binding) = Binding::of(Arc::default(), around, Some(self.bound()), &Unwatched);
        Self::of(binding, Some(self), now)
    }

    /// Returns true if `other` decides everything about `tool` as this set does, because it has the
    /// same policies about it. A set and a draft of it share what they do not differ in, so this
    /// costs two look-ups.
    #[must_use]
    pub fn is_same_for(&self, other: &Self, tool: &Capability) -> bool {
        Arc::ptr_eq(&self.slot(tool), &other.slot(tool))
    }

    fn drafted<W: Watch>(
        &self,
        changes: &Changes,
        now: Timestamp,
        watch: &W,
    ) -> Result<Result<Self, Vec<PolicyError>>, W::Stop> {
        let parser = Parser { names: self.environment.names(), known: HashMap::new() };
        let (new, mut errors) = parser.parse(changes.upsert.clone(), watch)?;
        let replaced: HashSet<&str> = new.iter().map(|placed| &*placed.policy.id).collect();
        let stays = |placed: &&Placed| {
            let id = &*placed.policy.id;
            !replaced.contains(id) && !changes.remove.contains(id)
        };
        let mut all: Vec<Placed> = self.policies.iter().filter(stays).cloned().collect();
        all.extend(new.iter().cloned());
        all.sort_by(|a, b| a.policy.id.cmp(&b.policy.id));
        for placed in &mut all {
            if let Some(status) = changes.statuses.get(&*placed.policy.id)
                && placed.policy.annotations.status != *status
            {
                placed.policy = Arc::new(placed.policy.with_status(*status));
            }
        }
        errors.extend(self.unknown(changes, &replaced));
        self.admit(&all, watch)?;
        let policies = Arc::new(Policies::new(all));
        let binding = Binding::of(policies, self.environment.clone(), Some(self.bound()), watch)?;
        let is_new =
            |error: &PolicyError| error.policy.as_deref().is_some_and(|id| replaced.contains(id));
        errors.extend(binding.errors().into_iter().filter(is_new));
        Ok(if errors.is_empty() {
            Ok(Self::of(binding, Some(self), now))
        } else {
            Err(sorted(errors))
        })
    }

    /// Counts the checks of the policies that this set does not have against the tools.
    fn admit<W: Watch>(&self, all: &[Placed], watch: &W) -> Result<(), W::Stop> {
        let known = |placed: &Placed| {
            let here = self.policies.find(&placed.policy.id);
            here.is_some_and(|here| Arc::ptr_eq(&here.policy, &placed.policy))
        };
        let own = Policies::new(all.iter().filter(|placed| !known(placed)).cloned().collect());
        let catalogue = &self.environment.catalogue;
        let policies = own.len();
        let tools = catalogue.tools().count();
        let mut checks = 0;
        for tool in catalogue.tools() {
            watch.go_on()?;
            let labels = self.environment.declared.labels_of(&tool.id);
            checks += own.fitting(&ToolFacts::of(tool, &labels).place).len();
            watch.admit(DraftSize { policies, tools, checks })?;
        }
        Ok(())
    }

    /// Names of policies that are not there to be removed or changed.
    fn unknown(&self, changes: &Changes, new: &HashSet<&str>) -> Vec<PolicyError> {
        let is_there =
            |id: &String| self.policies.find(id).is_some() && !changes.hidden.contains(id);
        let removed = changes.remove.iter().filter(|id| !is_there(id));
        let stays = |id: &String| is_there(id) && !changes.remove.contains(id);
        let restated =
            changes.statuses.keys().filter(|id| !stays(id) && !new.contains(id.as_str()));
        let error = |place: &str, id: &String| PolicyError {
            path: place.to_owned(),
            line: 1,
            column: 1,
            code: "unknown_policy",
            policy: Some(id.clone()),
            message: format!("there is no policy `{id}`"),
        };
        let removed = removed.map(|id| error("remove", id));
        removed.chain(restated.map(|id| error("set_status", id))).collect()
    }
}
