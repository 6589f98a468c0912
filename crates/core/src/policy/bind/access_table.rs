//! Access to tools as the scopes of policies alone decide it, for every key of a principal; to a resource also as
//! conditions on it do.

use std::collections::HashMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::policy::{
    bind::{
        binding::Slots,
        slot::{Candidate, Slot},
    },
    call::identity::Principal,
    engine::{Insight, Key, PrincipalKeys, Situation},
    language::context_paths::TAGS,
    load::compiled::Compiled,
    terms::{Effect, Phase, Status},
};

crate::words! {
    /// Access to a tool that a caller can expect; a hint, never a promise.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Access {
        /// Permitted whatever the input.
        Allow = "allow",
        /// Denied whatever the input.
        Deny = "deny",
        /// Depends on the input, the time or what DLP finds.
        Conditional = "conditional",
    }
}

impl Access {
    const fn of(said: [bool; 4]) -> Self {
        let [permit, may_permit, forbid, may_forbid] = said;
        if forbid || !(permit || may_permit) {
            Self::Deny
        } else if permit && !may_forbid {
            Self::Allow
        } else {
            Self::Conditional
        }
    }
}

/// Access to tools by the scopes of policies alone: one bit for each tool in each of four sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::policy) struct AccessRow {
    /// Permitted, may be permitted, forbidden, may be forbidden.
    sets: [Vec<u64>; 4],
}

/// The place of a policy's word among the four sets; none when it has no say in a request. Of a condition that looks at
/// nothing but the resource it may be known whether it `holds`.
fn column(candidate: &Candidate, holds: Option<Result<bool, &'static str>>) -> Option<usize> {
    let policy: &Compiled = &candidate.policy;
    let Status::Active = policy.annotations.status else { return None };
    let Phase::Request = policy.annotations.phase else { return None };
    let is_open = policy.has_condition() && holds.is_none();
    let depends = is_open || !policy.annotations.obligations.is_empty();
    match (policy.effect, candidate.is_valid(), holds) {
        (Effect::Permit, false, _)
        | (Effect::Permit, true, Some(Err(_)))
        | (_, true, Some(Ok(false))) => None,
        (Effect::Permit, true, Some(Ok(true)) | None) => Some(usize::from(depends)),
        (Effect::Forbid, false, _) | (Effect::Forbid, true, Some(Err(_))) => Some(2),
        (Effect::Forbid, true, Some(Ok(true)) | None) => Some(2 + usize::from(depends)),
    }
}

impl AccessRow {
    fn set(&mut self, column: usize, tool: usize, words: usize) {
        let Some(set) = self.sets.get_mut(column) else { return };
        set.resize(words, 0);
        if let Some(word) = set.get_mut(tool / 64) {
            *word |= 1 << (tool % 64);
        }
    }

    pub(in crate::policy) fn add(&mut self, other: &Self) {
        for (set, more) in self.sets.iter_mut().zip(&other.sets) {
            if set.len() < more.len() {
                set.resize(more.len(), 0);
            }
            for (word, more) in set.iter_mut().zip(more) {
                *word |= more;
            }
        }
    }

    pub(in crate::policy) fn access(&self, tool: usize) -> Access {
        let bit = |set: &Vec<u64>| set.get(tool / 64).is_some_and(|w| w & (1 << (tool % 64)) != 0);
        let [permit, may_permit, forbid, may_forbid] = &self.sets;
        Access::of([bit(permit), bit(may_permit), bit(forbid), bit(may_forbid)])
    }
}

/// Access to each tool by each key of a principal.
#[derive(Debug, Default)]
pub(in crate::policy) struct AccessTable {
    pub(in crate::policy) tools: Vec<String>,
    pub(in crate::policy) numbers: HashMap<String, usize>,
    pub(in crate::policy) rows: HashMap<Key, AccessRow>,
}

impl AccessTable {
    pub(in crate::policy) fn of(slots: &Slots, keys: &PrincipalKeys) -> Self {
        let mut tools: Vec<String> = slots.keys().cloned().collect();
        tools.sort_unstable();
        let words = tools.len().div_ceil(64);
        let mut rows: HashMap<Key, AccessRow> = HashMap::new();
        for (number, tool) in tools.iter().enumerate() {
            let candidates = slots.get(tool).into_iter().flat_map(|slot| &slot.candidates);
            for candidate in candidates {
                let scope = &candidate.policy.rule.scope.principal;
                if let (Some(column), Some(key)) = (column(candidate, None), keys.find(scope)) {
                    rows.entry(key).or_default().set(column, number, words);
                }
            }
        }
        let numbers = tools.iter().cloned().zip(0..).collect();
        Self { tools, numbers, rows }
    }
}

/// Access of a principal to what the slot is of. In a `situation` the resource is known, and with it what conditions say
/// that look at nothing else.
pub(in crate::policy) fn access(
    slot: &Slot,
    principal: &Principal,
    situation: Option<&Situation>,
) -> Access {
    let insight = situation.map(Insight::into);
    let mut said = [false; 4];
    for candidate in &slot.candidates {
        let scope = &candidate.policy.rule.scope.principal;
        if scope.means(principal.party.uid(), &principal.entities)
            && column(candidate, None).is_some()
            && let holds = insight.as_ref().and_then(|known| holds(&candidate.policy, known))
            && let Some(said) = column(candidate, holds).and_then(|column| said.get_mut(column))
        {
            *said = true;
        }
    }
    Access::of(said)
}

/// Returns what the condition of a policy says that looks at nothing but the resource and the principal.
fn holds(policy: &Compiled, known: &Insight<'_>) -> Option<Result<bool, &'static str>> {
    let condition = policy.rule.lean().filter(|_| policy.paths.is_within(&["resource", TAGS]))?;
    Some(known.holds(condition))
}
