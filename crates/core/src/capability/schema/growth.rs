//! Schemas that would take for ever to look at one value.
//!
//! Some keywords apply a schema to the very value that is being looked at: `$ref`, `allOf`, `if` and
//! their like. A schema that leads back to itself through them never ends, and one that doubles at
//! each step (`allOf: [a, a]`, where `a` is `allOf: [b, b]`, …) ends too late. Both are refused.

mod unevaluated;

use std::collections::HashMap;

use serde_json::Value;

/// The most schemas that one value may meet at one place.
const MAX_APPLIED: u64 = 2_000;

/// The most of them that follow from one another: each is a step down the stack.
const MAX_STEPS: usize = 128;

/// The schema cannot be applied within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unbounded;

/// Cost of applying a schema to one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Growth {
    /// The most schemas that one value meets at one place.
    pub(super) applied: u64,
    /// The most of them that follow from one another.
    pub(super) steps: usize,
}

/// Rejects a schema of which some part meets a value too often.
pub(super) fn check(root: &Value) -> Result<Growth, Unbounded> {
    let mut walk = GrowthWalk { root, anchors: HashMap::new(), applied: HashMap::new() };
    walk.find_anchors(root, true)?;
    walk.visit(root)?;
    unevaluated::check(&walk)?;
    let all = || walk.applied.values().flatten();
    let applied = all().map(|(applied, _)| *applied).max().unwrap_or(1);
    Ok(Growth { applied, steps: all().map(|(_, steps)| *steps).max().unwrap_or(0) })
}

struct GrowthWalk<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    /// Number of schemas, and of steps, that a value meets once it meets this one; `None` while
    /// they are being counted.
    applied: HashMap<*const Value, Option<(u64, usize)>>,
}

/// Keywords whose schema meets the same value.
const ONE: [&str; 4] = ["not", "if", "then", "else"];
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

impl<'a> GrowthWalk<'a> {
    /// Notes the names that references may use. A resource inside the schema would have references
    /// of its own meaning.
    fn find_anchors(&mut self, node: &'a Value, is_root: bool) -> Result<(), Unbounded> {
        match node {
            Value::Object(members) => {
                for name in ["$anchor", "$dynamicAnchor"] {
                    let anchor = members.get(name).and_then(Value::as_str);
                    // Of two with one name it is unknown which is meant.
                    if anchor.is_some_and(|anchor| self.anchors.insert(anchor, node).is_some()) {
                        return Err(Unbounded);
                    }
                }
                if !is_root && members.get("$id").is_some_and(Value::is_string) {
                    return Err(Unbounded);
                }
                members.values().try_for_each(|member| self.find_anchors(member, false))
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.find_anchors(item, false)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn visit(&mut self, node: &'a Value) -> Result<(), Unbounded> {
        match node {
            Value::Object(members) => {
                self.count(node, 0)?;
                members.values().try_for_each(|member| self.visit(member))
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn count(&mut self, node: &'a Value, above: usize) -> Result<(u64, usize), Unbounded> {
        let key = std::ptr::from_ref(node);
        match self.applied.get(&key) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Err(Unbounded),
            None => {}
        }
        self.applied.insert(key, None);
        let (mut applied, mut steps): (u64, usize) = (1, 0);
        for next in self.same_value(node) {
            if above > MAX_STEPS {
                return Err(Unbounded);
            }
            let (more, further) = self.count(next, above + 1)?;
            (applied, steps) = (applied.saturating_add(more), steps.max(further + 1));
            if applied > MAX_APPLIED || steps > MAX_STEPS {
                return Err(Unbounded);
            }
        }
        self.applied.insert(key, Some((applied, steps)));
        Ok((applied, steps))
    }

    /// The schemas that meet the same value as this one does.
    fn same_value(&self, node: &'a Value) -> Vec<&'a Value> {
        let Value::Object(members) = node else { return Vec::new() };
        let mut found: Vec<&Value> = ONE.iter().filter_map(|name| members.get(*name)).collect();
        let lists = LISTS.iter().filter_map(|name| members.get(*name)?.as_array());
        found.extend(lists.flatten());
        let maps = MAPS.iter().filter_map(|name| members.get(*name)?.as_object());
        found.extend(maps.flat_map(serde_json::Map::values));
        let texts = REFERENCES.iter().filter_map(|name| members.get(*name)?.as_str());
        found.extend(texts.filter_map(|text| self.target(text)));
        found
    }

    /// Returns the target of a reference within the schema.
    fn target(&self, reference: &str) -> Option<&'a Value> {
        let fragment = reference.strip_prefix('#')?;
        let fragment = percent_encoding::percent_decode_str(fragment).decode_utf8().ok()?;
        if fragment.is_empty() || fragment.starts_with('/') {
            self.root.pointer(&fragment)
        } else {
            self.anchors.get(&*fragment).copied()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    /// A chain of definitions, each of which applies the next one `times` times.
    fn chain(length: usize, times: usize) -> Value {
        let mut defs = Map::new();
        for number in 0..length {
            let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
            defs.insert(format!("d{number}"), json!({"allOf": vec![next; times]}));
        }
        defs.insert(format!("d{length}"), json!({"type": "object"}));
        json!({"type": "object", "$defs": defs, "properties": {"x": {"$ref": "#/$defs/d0"}}})
    }

    #[test]
    fn what_leads_back_to_itself_without_a_step_into_the_value_is_refused() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"properties": {"a": {"$ref": "#/properties/a"}}}),
            json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
            json!({"$anchor": "here", "if": {"$ref": "#here"}}),
            json!({"$dynamicAnchor": "n", "then": {"$dynamicRef": "#n"}}),
            json!({"$defs": {"a b": {"$ref": "#/$defs/a%20b"}}}),
            json!({"dependentSchemas": {"x": {"$recursiveRef": "#"}}}),
        ] {
            assert_eq!(check(&schema), Err(Unbounded), "{schema}");
        }
    }

    #[test]
    fn what_doubles_at_each_step_or_never_comes_to_an_end_is_refused() {
        assert_eq!(check(&chain(40, 2)), Err(Unbounded));
        assert_eq!(check(&chain(11, 2)), Err(Unbounded));
        assert_eq!(check(&chain(8, 2)), Ok(Growth { applied: 1_022, steps: 17 }));
        assert_eq!(check(&chain(50, 1)).map(|growth| growth.steps), Ok(101));
        assert_eq!(check(&chain(100, 1)), Err(Unbounded));
        let mut backwards = chain(0, 1);
        let defs = (1..1_000).rev().map(|number| {
            (format!("d{number}"), json!({"$ref": format!("#/$defs/d{}", number + 1)}))
        });
        backwards["$defs"] = Value::Object(defs.collect());
        assert_eq!(check(&backwards), Err(Unbounded), "whatever is counted first");
    }

    #[test]
    fn schemas_that_recurse_into_the_value_are_fine() {
        for schema in [
            json!({"properties": {"next": {"$ref": "#"}}}),
            json!({"$defs": {"n": {"anyOf": [{"type": "null"}, {"properties": {
                "left": {"$ref": "#/$defs/n"}, "right": {"$ref": "#/$defs/n"}}}]}},
                "properties": {"tree": {"$ref": "#/$defs/n"}}}),
            json!({"properties": {"$id": {"type": "string"}, "$ref": {"type": "string"}}}),
            json!({"items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}}),
        ] {
            assert!(check(&schema).is_ok(), "{schema}");
        }
        let inner = json!({"properties": {"a": {"$id": "https://x.test/y", "$ref": "#"}}});
        assert_eq!(check(&inner), Err(Unbounded), "a resource of its own");
        let twice = json!({"$defs": {"a": {"$anchor": "x"}, "b": {"$dynamicAnchor": "x"}}});
        assert_eq!(check(&twice), Err(Unbounded), "two meanings of one name");
    }
}
