//! The policies of a set, and which of them can concern a tool.

use std::{collections::HashMap, sync::Arc};

use cedar_policy::EntityUid;

use crate::policy::{
    engine::{ActionScope, Closeness, EntityScope, RequestTarget},
    load::compiled::{Compiled, Placed},
};

/// Ordered by name; a policy's number is its place here.
#[derive(Debug, Default)]
pub(in crate::policy) struct Policies {
    all: Vec<Placed>,
    reach: Reach,
}

/// Policies by the entities that they name, so that a tool finds its own without a search of all.
#[derive(Debug, Default)]
struct Reach {
    /// Rules that name neither an action nor a resource.
    everywhere: Vec<usize>,
    by_entity: HashMap<EntityUid, Vec<usize>>,
}

impl Policies {
    /// From policies of different names.
    pub(in crate::policy) fn new(mut all: Vec<Placed>) -> Self {
        all.sort_by(|a, b| a.policy.id.cmp(&b.policy.id));
        let mut reach = Reach::default();
        for (number, placed) in all.iter().enumerate() {
            reach.add(number, &placed.policy);
        }
        Self { all, reach }
    }

    pub(in crate::policy) fn iter(&self) -> impl Iterator<Item = &Placed> {
        self.all.iter()
    }

    pub(in crate::policy) fn len(&self) -> usize {
        self.all.len()
    }

    pub(in crate::policy) fn find(&self, id: &str) -> Option<&Placed> {
        self.all.get(self.number(id)?)
    }

    pub(in crate::policy) fn number(&self, id: &str) -> Option<usize> {
        self.all.binary_search_by(|placed| (*placed.policy.id).cmp(id)).ok()
    }

    /// The policies that can apply in `place`, ordered by name, and how closely they name it.
    pub(in crate::policy) fn fitting(
        &self,
        place: &RequestTarget,
    ) -> Vec<(Arc<Compiled>, Closeness)> {
        let mut numbers = self.reach.of(place);
        numbers.sort_unstable();
        numbers.dedup();
        let placed = numbers.into_iter().filter_map(|number| self.all.get(number));
        let fit =
            |placed: &Placed| Some((Arc::clone(&placed.policy), placed.policy.rule.fit(place)?));
        placed.filter_map(fit).collect()
    }

    /// Each policy that is as its text says, by its text.
    pub(in crate::policy) fn by_source(&self) -> HashMap<&str, &Arc<Compiled>> {
        let policies = self.all.iter().map(|placed| &placed.policy);
        let as_written = policies.filter(|policy| !policy.restated);
        as_written.map(|policy| (&*policy.source, policy)).collect()
    }
}

impl Reach {
    fn add(&mut self, number: usize, policy: &Compiled) {
        let scope = &policy.rule.scope;
        match (&scope.action, &scope.resource) {
            (ActionScope::In(uids), _) => uids.iter().for_each(|uid| self.name(uid, number)),
            (ActionScope::Any, EntityScope::Any | EntityScope::Is(_)) => {
                self.everywhere.push(number);
            }
            (ActionScope::Eq(uid), _)
            | (
                ActionScope::Any,
                EntityScope::Eq(uid) | EntityScope::In(uid) | EntityScope::IsIn(_, uid),
            ) => self.name(uid, number),
        }
    }

    fn name(&mut self, uid: &EntityUid, number: usize) {
        self.by_entity.entry(uid.clone()).or_default().push(number);
    }

    fn of(&self, place: &RequestTarget) -> Vec<usize> {
        let members = [&place.action, &place.resource].into_iter();
        let entities =
            members.flat_map(|member| std::iter::once(&member.uid).chain(&member.within));
        let named = entities.filter_map(|uid| self.by_entity.get(uid)).flatten();
        self.everywhere.iter().chain(named).copied().collect()
    }
}
