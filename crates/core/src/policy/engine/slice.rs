//! The rules of one place, by what they ask of the principal.

use std::ops::Range;

use cedar_policy_core::ast::Expr;

use super::{Key, PrincipalKeys, Rule};

/// Rules that can apply in one place, by their numbers.
#[derive(Debug, Default)]
pub struct Slice {
    /// Ordered by key.
    lanes: Vec<Lane>,
    /// Every rule, lane by lane: what is evaluated together stands together.
    entries: Vec<SliceEntry>,
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
    pub fn new<'a>(
        rules: impl IntoIterator<Item = (u32, &'a Rule)>,
        keys: &mut PrincipalKeys,
    ) -> Self {
        let keyed =
            |(number, rule): (u32, &'a Rule)| (keys.intern(&rule.scope.principal), number, rule);
        let mut pairs: Vec<(Key, u32, &Rule)> = rules.into_iter().map(keyed).collect();
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
        Self { lanes, entries }
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
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
}
