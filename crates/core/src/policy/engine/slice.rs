//! The rules of one place, by what they ask of the principal.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    sync::{Arc, OnceLock},
};

use cedar_policy_core::ast::Expr;

use super::{Key, PrincipalKeys, Rule};

/// Rules that can apply in one place. A rule's number is its position.
#[derive(Debug, Default)]
pub struct Slice {
    rules: Vec<Arc<Rule>>,
    /// Ordered by key.
    lanes: Vec<Lane>,
    /// Every rule, lane by lane: what is evaluated together stands together.
    entries: Vec<SliceEntry>,
    /// Made when the promised interface first evaluates this slice.
    pub(super) buckets: OnceLock<Buckets>,
}

/// The rules of a slice as the authorizer takes them. Permits and forbids apart, because the
/// authorizer reports only those that decided.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    pub(super) sets: BTreeMap<(Key, bool), cedar_policy::PolicySet>,
    pub(super) numbers: HashMap<String, u32>,
}

/// The rules that ask one thing of the principal.
#[derive(Debug)]
struct Lane {
    key: Key,
    entries: Range<usize>,
}

/// Parts of a rule that evaluation needs.
#[derive(Debug)]
pub(super) struct SliceEntry {
    pub(super) number: u32,
    pub(super) condition: Option<Expr>,
}

impl Slice {
    /// Sorts the rules, all of which fit the place, by their principal.
    pub fn new(rules: Vec<Arc<Rule>>, keys: &mut PrincipalKeys) -> Self {
        let mut pairs: Vec<(Key, u32, &Rule)> = Vec::with_capacity(rules.len());
        for (number, rule) in (0..).zip(&rules) {
            pairs.push((keys.intern(&rule.scope.principal), number, rule));
        }
        pairs.sort_unstable_by_key(|(key, number, _)| (*key, *number));
        let mut lanes: Vec<Lane> = Vec::new();
        let mut entries = Vec::with_capacity(pairs.len());
        for (key, number, rule) in pairs {
            let at = entries.len();
            match lanes.last_mut() {
                Some(last) if last.key == key => last.entries.end = at + 1,
                _ => lanes.push(Lane { key, entries: at..at + 1 }),
            }
            entries.push(SliceEntry { number, condition: rule.lean().cloned() });
        }
        lanes.shrink_to_fit();
        Self { rules, lanes, entries, buckets: OnceLock::new() }
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// The rule of this number.
    #[must_use]
    pub fn rule(&self, number: u32) -> Option<&Rule> {
        self.rules.get(usize::try_from(number).ok()?).map(|rule| &**rule)
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns true if the scope of any rule matches a principal with these keys.
    #[must_use]
    pub fn concerns(&self, keys: &[Key]) -> bool {
        self.entries(keys).next().is_some()
    }

    /// The numbers of the rules whose scope matches a principal with these keys, in order.
    #[must_use]
    pub fn matching(&self, keys: &[Key]) -> Vec<u32> {
        let mut found: Vec<u32> = self.entries(keys).map(|entry| entry.number).collect();
        found.sort_unstable();
        found
    }

    /// The rules whose scope matches a principal with these keys.
    pub(super) fn entries(&self, keys: &[Key]) -> impl Iterator<Item = &SliceEntry> {
        let lane = |key: &Key| {
            let at = self.lanes.binary_search_by_key(key, |lane| lane.key).ok()?;
            self.entries.get(self.lanes.get(at)?.entries.clone())
        };
        keys.iter().filter_map(lane).flatten()
    }

    /// Every key that a rule of this slice asks for, with the numbers of those that ask.
    pub(super) fn lanes(&self) -> impl Iterator<Item = (Key, impl Iterator<Item = u32>)> {
        self.lanes.iter().map(|lane| {
            let entries = self.entries.get(lane.entries.clone()).unwrap_or_default();
            (lane.key, entries.iter().map(|entry| entry.number))
        })
    }
}
