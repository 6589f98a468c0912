//! Schemas that take too long to compile.
//!
//! For `unevaluatedProperties` and `unevaluatedItems` the validator compiles what stands beside them
//! once more, to know what they leave over. Where they stand within one another, that doubles at each
//! level.

use std::collections::HashMap;

use serde_json::Value;

use super::{GrowthWalk, Unbounded};

/// The most JSON values that are compiled of one schema, counting those that are compiled again.
const MAX_COMPILED: u64 = 50_000;

/// The keywords that ask what other keywords left over.
const LEFT_OVER: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// Keywords whose schemas are compiled again for those, beside the ones that meet the same value.
const AGAIN: [&str; 6] = [
    "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "items", "prefixItems",
    "contains",
];

/// Rejects a schema that would be compiled too often.
pub(super) fn check(walk: &GrowthWalk<'_>) -> Result<(), Unbounded> {
    let mut costs = Costs { walk, compiled: HashMap::new(), again: HashMap::new() };
    if costs.compiled(walk.root) > MAX_COMPILED { Err(Unbounded) } else { Ok(()) }
}

struct Costs<'w, 'a> {
    walk: &'w GrowthWalk<'a>,
    /// Values that are compiled with one, itself included; nothing while that is being counted.
    compiled: HashMap<*const Value, u64>,
    /// Those that are compiled to know what it leaves over.
    again: HashMap<*const Value, u64>,
}

impl<'a> Costs<'_, 'a> {
    fn compiled(&mut self, node: &'a Value) -> u64 {
        let key = std::ptr::from_ref(node);
        if let Some(known) = self.compiled.get(&key) {
            return *known;
        }
        self.compiled.insert(key, 0);
        let below: u64 = match node {
            Value::Object(members) => members.values().fold(0, |sum, it| self.added(sum, it)),
            Value::Array(items) => items.iter().fold(0, |sum, it| self.added(sum, it)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        };
        let again = if LEFT_OVER.iter().any(|name| node.get(name).is_some()) {
            self.again(node)
        } else {
            0
        };
        let sum = below.saturating_add(again).saturating_add(1);
        self.compiled.insert(key, sum);
        sum
    }

    fn again(&mut self, node: &'a Value) -> u64 {
        let key = std::ptr::from_ref(node);
        if let Some(known) = self.again.get(&key) {
            return *known;
        }
        self.again.insert(key, 0);
        let mut sum = 1_u64;
        for next in self.walk.same_value(node) {
            sum = self.added(sum, next).saturating_add(self.again(next));
        }
        for next in AGAIN.iter().filter_map(|name| node.get(name)) {
            sum = self.added(sum, next);
        }
        self.again.insert(key, sum);
        sum
    }

    fn added(&mut self, sum: u64, node: &'a Value) -> u64 {
        sum.saturating_add(self.compiled(node))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::capability::schema::growth::{Unbounded, check};

    #[test]
    fn what_is_left_over_within_what_is_left_over_is_refused_when_it_is_deep() {
        for keyword in ["allOf", "anyOf"] {
            let mut schema = json!({"properties": {"a": {}}});
            let mut refused = None;
            for depth in 0..40 {
                schema = json!({keyword: [schema], "unevaluatedProperties": false});
                if check(&schema) == Err(Unbounded) {
                    refused = refused.or(Some(depth));
                }
            }
            assert!(refused.is_some_and(|depth| (4..20).contains(&depth)), "{keyword} {refused:?}");
        }
    }

    #[test]
    fn it_is_fine_beside_other_schemas() {
        let many: Vec<_> =
            (0..200).map(|_| json!({"properties": {"a": {"type": "string"}}})).collect();
        let schema = json!({"allOf": many, "unevaluatedProperties": false, "properties": {
            "inner": {"anyOf": many, "unevaluatedProperties": {"type": "string"}}}});

        assert!(check(&schema).is_ok());
    }
}
