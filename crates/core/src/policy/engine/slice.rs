//! The rules of one place, by what they ask of the principal.

use std::sync::{Arc, OnceLock};

use super::{Key, Keys, Rule, promised::Buckets};

/// Rules that can apply in one place. A rule's number is its position.
#[derive(Debug, Default)]
pub struct Slice {
    pub(super) rules: Vec<Arc<Rule>>,
    /// Ordered by key.
    pub(super) lanes: Vec<(Key, Vec<u32>)>,
    /// Made when the promised interface first evaluates this slice.
    pub(super) buckets: OnceLock<Buckets>,
}

impl Slice {
    /// Sorts the rules, all of which fit the place, by their principal.
    pub fn new(rules: Vec<Arc<Rule>>, keys: &mut Keys) -> Self {
        let mut pairs: Vec<(Key, u32)> = Vec::with_capacity(rules.len());
        for (number, rule) in (0..).zip(&rules) {
            pairs.push((keys.intern(&rule.scope.principal), number));
        }
        pairs.sort_unstable();
        let mut lanes: Vec<(Key, Vec<u32>)> = Vec::new();
        for (key, number) in pairs {
            match lanes.last_mut() {
                Some((last, numbers)) if *last == key => numbers.push(number),
                _ => lanes.push((key, vec![number])),
            }
        }
        Self { rules, lanes, buckets: OnceLock::new() }
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

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The numbers of the rules whose scope matches a principal with these keys, in order.
    #[must_use]
    pub fn matching(&self, keys: &[Key]) -> Vec<u32> {
        let mut found = Vec::new();
        for numbers in self.lanes_of(keys) {
            found.extend_from_slice(numbers);
        }
        found.sort_unstable();
        found
    }

    fn lanes_of(&self, keys: &[Key]) -> impl Iterator<Item = &Vec<u32>> {
        let lane = |key: &Key| {
            let at = self.lanes.binary_search_by_key(key, |(key, _)| *key).ok()?;
            self.lanes.get(at).map(|(_, numbers)| numbers)
        };
        keys.iter().filter_map(lane)
    }

    /// Every key that a rule of this slice asks for, with how many ask.
    pub fn keys(&self) -> impl Iterator<Item = (Key, &[u32])> {
        self.lanes.iter().map(|(key, numbers)| (*key, numbers.as_slice()))
    }
}
