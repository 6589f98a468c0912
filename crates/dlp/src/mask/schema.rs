//! Constraints of the tool's JSON Schema on a place, so that a masked value still fits.

use std::cell::Cell;

use serde_json::{Number, Value};

/// References and combinations are followed this deep and this far.
const DEPTH: usize = 8;
const WIDTH: usize = 32;
/// The most schemas that are asked whether they admit a type: a schema may double at each reference.
const ASKED: usize = 1_000;

/// The schemas that speak about one place. None at all: anything goes.
#[derive(Clone, Default)]
pub(crate) struct SchemaPlace<'a> {
    root: Option<&'a Value>,
    here: Vec<&'a Value>,
}

impl<'a> SchemaPlace<'a> {
    /// The whole value, as the schema describes it.
    pub(crate) fn root(schema: &'a Value) -> SchemaPlace<'a> {
        SchemaPlace { root: Some(schema), here: vec![schema] }
    }

    /// The member of an object.
    pub(crate) fn member(&self, key: &str) -> SchemaPlace<'a> {
        self.child(|schema| {
            let named = schema.get("properties").and_then(|properties| properties.get(key));
            named.or_else(|| schema.get("additionalProperties"))
        })
    }

    /// The element of an array.
    pub(crate) fn element(&self, index: usize) -> SchemaPlace<'a> {
        self.child(|schema| {
            let listed = schema.get("prefixItems").and_then(|items| items.get(index));
            match (listed, schema.get("items")) {
                (Some(listed), _) => Some(listed),
                // Draft 7 lists them in `items` itself.
                (None, Some(Value::Array(items))) => items.get(index),
                (None, items) => items,
            }
        })
    }

    fn child(&self, step: impl Fn(&'a Value) -> Option<&'a Value>) -> SchemaPlace<'a> {
        if self.here.is_empty() {
            return SchemaPlace::default();
        }
        let mut all = Vec::new();
        for schema in &self.here {
            self.gather(schema, DEPTH, &mut all);
        }
        SchemaPlace {
            root: self.root,
            here: all.into_iter().filter_map(step).take(WIDTH).collect(),
        }
    }

    /// A schema and those it refers to or combines.
    fn gather(&self, schema: &'a Value, depth: usize, into: &mut Vec<&'a Value>) {
        if into.len() >= WIDTH {
            return;
        }
        into.push(schema);
        let Some(depth) = depth.checked_sub(1) else { return };
        if let Some(target) = self.target(schema) {
            self.gather(target, depth, into);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for part in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
                self.gather(part, depth, into);
            }
        }
    }

    fn target(&self, schema: &Value) -> Option<&'a Value> {
        self.root?.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }

    /// Replacement of a masked number: a text where one fits, else the least number that does, else
    /// null. Where nothing fits, the text; the call is then refused.
    pub(crate) fn instead_of_number(&self, text: String) -> Value {
        if self.admits("string") {
            Value::String(text)
        } else if self.admits("number") || self.admits("integer") {
            Value::Number(self.least())
        } else if self.admits("null") {
            Value::Null
        } else {
            Value::String(text)
        }
    }

    /// A masked text, made as short as the schema wants it.
    pub(crate) fn instead_of_text(&self, text: String) -> String {
        let Some(most) = self.bound("maxLength").and_then(Number::as_u64) else { return text };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if text.chars().count() <= most {
            text
        } else if most >= "[REDACTED]".len() {
            "[REDACTED]".to_owned()
        } else {
            "*".repeat(most)
        }
    }

    fn admits(&self, kind: &str) -> bool {
        let left = Cell::new(ASKED);
        self.here.iter().all(|schema| self.lets(schema, kind, DEPTH, &left))
    }

    fn lets(&self, schema: &'a Value, kind: &str, depth: usize, left: &Cell<usize>) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return true };
        let Some(fewer) = left.get().checked_sub(1) else { return true };
        left.set(fewer);
        let types = match schema.get("type") {
            Some(Value::String(only)) => only == kind,
            Some(Value::Array(any)) => any.iter().any(|one| one == kind),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => true,
        };
        let parts = |keyword| schema.get(keyword).and_then(Value::as_array);
        let any = |keyword| {
            let lets = |part| self.lets(part, kind, depth, left);
            parts(keyword).is_none_or(|parts| parts.iter().any(lets))
        };
        types
            && self.target(schema).is_none_or(|target| self.lets(target, kind, depth, left))
            && parts("allOf")
                .is_none_or(|parts| parts.iter().all(|part| self.lets(part, kind, depth, left)))
            && any("anyOf")
            && any("oneOf")
    }

    fn least(&self) -> Number {
        let positive = |number: &&Number| number.as_f64().is_some_and(|least| least > 0.0);
        self.bound("minimum").filter(positive).cloned().unwrap_or_else(|| Number::from(0))
    }

    fn bound(&self, keyword: &str) -> Option<&'a Number> {
        let mut all = Vec::new();
        for schema in &self.here {
            self.gather(schema, DEPTH, &mut all);
        }
        all.into_iter().find_map(|schema| match schema.get(keyword) {
            Some(Value::Number(bound)) => Some(bound),
            Some(_) | None => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_masked_number_fits_where_the_schema_says_a_number() {
        let schema = json!({
            "properties": {
                "card": {"type": "integer", "minimum": 1000},
                "free": {},
                "both": {"type": ["string", "integer"]},
                "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "list": {"items": {"$ref": "#/$defs/amount"}},
            },
            "additionalProperties": {"type": "string"},
            "$defs": {"amount": {"type": "number"}},
        });
        let root = SchemaPlace::root(&schema);
        let instead = |place: SchemaPlace<'_>| place.instead_of_number("x".to_owned());

        assert_eq!(instead(root.member("card")), json!(1000));
        assert_eq!(instead(root.member("free")), json!("x"));
        assert_eq!(instead(root.member("both")), json!("x"));
        assert_eq!(instead(root.member("maybe")), json!(0));
        assert_eq!(instead(root.member("list").element(3)), json!(0));
        assert_eq!(instead(root.member("other")), json!("x"));
        assert_eq!(instead(SchemaPlace::default().member("a").element(0)), json!("x"));
    }

    #[test]
    fn a_schema_that_multiplies_at_each_reference_is_asked_a_bounded_number_of_times() {
        let mut schema = json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {}});
        for number in 0..8 {
            let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
            schema["$defs"][format!("d{number}")] = json!({"allOf": vec![next; 100]});
        }
        let root = SchemaPlace::root(&schema);

        assert_eq!(root.member("a").instead_of_number("x".to_owned()), json!("x"));
    }

    #[test]
    fn a_masked_text_is_as_short_as_the_schema_wants_it() {
        let schema = json!({"properties": {"a": {"maxLength": 12}, "b": {"maxLength": 3}}});
        let root = SchemaPlace::root(&schema);
        let long = || "[REDACTED:credit_card]".to_owned();

        assert_eq!(root.member("a").instead_of_text(long()), "[REDACTED]");
        assert_eq!(root.member("b").instead_of_text(long()), "***");
        assert_eq!(root.instead_of_text(long()), long());
    }
}
