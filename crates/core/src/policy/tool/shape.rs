//! JSON Schema as policy types.
//!
//! Only what the schema settles becomes a type: a member whose type is open (a union, no `type`,
//! a recursive reference, free-form members) is left out, and policies cannot read it. `null`
//! beside one type means that the member may be absent.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// The type of a value as policies see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::policy) enum Shape {
    Text,
    Long,
    Bool,
    /// A number with up to four decimal places.
    Decimal,
    Set(Box<Shape>),
    Record(Members),
}

/// The members of a record by name.
pub(in crate::policy) type Members = BTreeMap<String, Member>;

/// One member of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::policy) struct Member {
    pub(in crate::policy) required: bool,
    pub(in crate::policy) shape: Shape,
}

/// Depth to which types nest; deeper members are left out.
const MAX_DEPTH: usize = 12;
/// Maximum number of members of one schema; `$ref` can multiply them.
const MAX_MEMBERS: usize = 2_000;

/// The members that a schema of an object declares.
pub(in crate::policy) fn of_object(schema: &Value) -> Members {
    let mut reader = Reader { root: schema, left: MAX_MEMBERS };
    let mut facets = Facets::default();
    if !reader.gather(schema, &mut facets, &mut Trail::default()) {
        return Members::new();
    }
    reader.members(&facets, &Trail::default())
}

impl Shape {
    /// The type in Cedar's JSON schema format.
    pub(in crate::policy) fn to_json(&self) -> Value {
        match self {
            Self::Text => json!({ "type": "String" }),
            Self::Long => json!({ "type": "Long" }),
            Self::Bool => json!({ "type": "Boolean" }),
            Self::Decimal => json!({ "type": "Extension", "name": "decimal" }),
            Self::Set(element) => json!({ "type": "Set", "element": element.to_json() }),
            Self::Record(members) => record_json(members),
        }
    }
}

/// A record type in Cedar's JSON schema format.
pub(in crate::policy) fn record_json(members: &Members) -> Value {
    let attribute = |(name, member): (&String, &Member)| {
        let mut kind = member.shape.to_json();
        if let Value::Object(kind) = &mut kind {
            kind.insert("required".to_owned(), Value::Bool(member.required));
        }
        (name.clone(), kind)
    };
    let attributes: Map<String, Value> = members.iter().map(attribute).collect();
    json!({ "type": "Record", "attributes": attributes })
}

/// The types of JSON; `Fraction` is a number that is no integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum JsonType {
    Null,
    Text,
    Integer,
    Fraction,
    Bool,
    Array,
    Object,
}

/// Constraints of all parts of a schema on a value.
#[derive(Default)]
struct Facets<'a> {
    /// `None` while nothing names a type.
    kinds: Option<BTreeSet<JsonType>>,
    properties: BTreeMap<&'a str, Vec<&'a Value>>,
    required: BTreeSet<&'a str>,
    items: Vec<&'a Value>,
    /// Items are described by position.
    tuple: bool,
}

impl<'a> Facets<'a> {
    fn narrow(&mut self, kinds: BTreeSet<JsonType>) {
        self.kinds = Some(match self.kinds.take() {
            Some(known) => known.intersection(&kinds).copied().collect(),
            None => kinds,
        });
    }

    fn merge(&mut self, other: Facets<'a>) {
        if let Some(kinds) = other.kinds {
            self.narrow(kinds);
        }
        for (name, schemas) in other.properties {
            self.properties.entry(name).or_default().extend(schemas);
        }
        self.required.extend(other.required);
        self.items.extend(other.items);
        self.tuple |= other.tuple;
    }
}

/// The references followed to get here; one that comes again would never end.
#[derive(Clone, Default)]
struct Trail<'a> {
    references: Vec<&'a str>,
    depth: usize,
}

struct Reader<'a> {
    root: &'a Value,
    left: usize,
}

impl<'a> Reader<'a> {
    /// Adds what `schema` says; `false` when it cannot be followed.
    fn gather(&self, schema: &'a Value, facets: &mut Facets<'a>, trail: &mut Trail<'a>) -> bool {
        let Value::Object(schema) = schema else { return schema == &Value::Bool(true) };
        if let Some(kind) = schema.get("type") {
            let Some(kinds) = kinds(kind) else { return false };
            facets.narrow(kinds);
        }
        if let Some(Value::Object(properties)) = schema.get("properties") {
            for (name, property) in properties {
                facets.properties.entry(name).or_default().push(property);
            }
        }
        if let Some(Value::Array(required)) = schema.get("required") {
            facets.required.extend(required.iter().filter_map(Value::as_str));
        }
        match schema.get("items") {
            Some(Value::Array(_)) => facets.tuple = true,
            Some(items) => facets.items.push(items),
            None => {}
        }
        facets.tuple |= schema.contains_key("prefixItems");
        self.gather_reference(schema, facets, trail) && self.gather_parts(schema, facets, trail)
    }

    fn gather_reference(
        &self,
        schema: &'a Map<String, Value>,
        facets: &mut Facets<'a>,
        trail: &mut Trail<'a>,
    ) -> bool {
        let Some(reference) = schema.get("$ref") else {
            return !schema.contains_key("$dynamicRef") && !schema.contains_key("$recursiveRef");
        };
        let Some(reference) = reference.as_str() else { return false };
        if trail.references.contains(&reference) || trail.references.len() > MAX_DEPTH {
            return false;
        }
        let Some(target) = reference.strip_prefix('#').and_then(|at| self.root.pointer(at)) else {
            return false;
        };
        trail.references.push(reference);
        self.gather(target, facets, trail)
    }

    /// `allOf`, and the `anyOf` or `oneOf` that only adds `null` to one type. Other alternatives
    /// can only narrow what is known already.
    fn gather_parts(
        &self,
        schema: &'a Map<String, Value>,
        facets: &mut Facets<'a>,
        trail: &mut Trail<'a>,
    ) -> bool {
        if let Some(Value::Array(parts)) = schema.get("allOf")
            && !parts.iter().all(|part| self.gather(part, facets, trail))
        {
            return false;
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(Value::Array(choices)) = schema.get(keyword) else { continue };
            let (nulls, rest): (Vec<_>, Vec<_>) = choices.iter().partition(|part| is_null(part));
            let [only] = rest.as_slice() else { continue };
            let mut inner = Facets::default();
            if !self.gather(only, &mut inner, trail) {
                return false;
            }
            if let (Some(kinds), false) = (&mut inner.kinds, nulls.is_empty()) {
                kinds.insert(JsonType::Null);
            }
            facets.merge(inner);
        }
        true
    }

    /// The type that several schemas agree on, and whether the value may be `null`.
    fn shape(&mut self, schemas: &[&'a Value], trail: &Trail<'a>) -> Option<(Shape, bool)> {
        self.left = self.left.checked_sub(1)?;
        let mut trail = Trail { depth: trail.depth + 1, ..trail.clone() };
        if trail.depth > MAX_DEPTH {
            return None;
        }
        let mut facets = Facets::default();
        if !schemas.iter().all(|schema| self.gather(schema, &mut facets, &mut trail)) {
            return None;
        }
        let mut kinds = facets.kinds.take()?;
        let nullable = kinds.remove(&JsonType::Null);
        let kinds: Vec<JsonType> = kinds.into_iter().collect();
        let shape = match kinds.as_slice() {
            [JsonType::Text] => Shape::Text,
            [JsonType::Integer] => Shape::Long,
            [JsonType::Integer, JsonType::Fraction] => Shape::Decimal,
            [JsonType::Bool] => Shape::Bool,
            [JsonType::Array] => self.set(&facets, &trail)?,
            [JsonType::Object] => Shape::Record(self.record(&facets, &trail)?),
            _ => return None,
        };
        Some((shape, nullable))
    }

    fn set(&mut self, facets: &Facets<'a>, trail: &Trail<'a>) -> Option<Shape> {
        if facets.tuple || facets.items.is_empty() {
            return None;
        }
        match self.shape(&facets.items, trail)? {
            (element, false) => Some(Shape::Set(Box::new(element))),
            (_, true) => None,
        }
    }

    fn record(&mut self, facets: &Facets<'a>, trail: &Trail<'a>) -> Option<Members> {
        let members = self.members(facets, trail);
        // Free-form members have no type that policies could read.
        (!members.is_empty()).then_some(members)
    }

    fn members(&mut self, facets: &Facets<'a>, trail: &Trail<'a>) -> Members {
        let mut members = Members::new();
        for (name, schemas) in &facets.properties {
            if let Some((shape, nullable)) = self.shape(schemas, trail) {
                let required = facets.required.contains(name) && !nullable;
                members.insert((*name).to_owned(), Member { required, shape });
            }
        }
        members
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

/// The value of the keyword `type`.
fn kinds(kind: &Value) -> Option<BTreeSet<JsonType>> {
    let names: Vec<&str> = match kind {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    let mut kinds = BTreeSet::new();
    for name in names {
        let meant: &[JsonType] = match name {
            "null" => &[JsonType::Null],
            "string" => &[JsonType::Text],
            "integer" => &[JsonType::Integer],
            "number" => &[JsonType::Integer, JsonType::Fraction],
            "boolean" => &[JsonType::Bool],
            "array" => &[JsonType::Array],
            "object" => &[JsonType::Object],
            _ => return None,
        };
        kinds.extend(meant);
    }
    Some(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(properties: &Value) -> Members {
        of_object(&json!({ "type": "object", "properties": properties }))
    }

    fn only(schema: &Value) -> Option<Shape> {
        shapes(&json!({ "x": schema })).remove("x").map(|member| member.shape)
    }

    #[test]
    fn each_type_of_json_schema_has_its_policy_type() {
        let text = || Box::new(Shape::Text);
        let table = [
            (json!({"type": "string"}), Some(Shape::Text)),
            (json!({"type": "string", "enum": ["a"]}), Some(Shape::Text)),
            (json!({"type": "integer"}), Some(Shape::Long)),
            (json!({"type": "number"}), Some(Shape::Decimal)),
            (json!({"type": "boolean"}), Some(Shape::Bool)),
            (json!({"type": ["integer", "null"]}), Some(Shape::Long)),
            (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), Some(Shape::Text)),
            (json!({"allOf": [{"type": "integer"}, {"type": "number"}]}), Some(Shape::Long)),
            (json!({"type": "array", "items": {"type": "string"}}), Some(Shape::Set(text()))),
            (json!({"type": "null"}), None),
            (json!({}), None),
            (json!(true), None),
            (json!(false), None),
            (json!({"enum": [1, "a"]}), None),
            (json!({"type": ["string", "integer"]}), None),
            (json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), None),
            (json!({"allOf": [{"type": "string"}, {"type": "integer"}]}), None),
            (json!({"type": "array"}), None),
            (json!({"type": "array", "items": {"type": ["string", "null"]}}), None),
            (json!({"type": "array", "items": [{"type": "string"}]}), None),
            (json!({"type": "array", "prefixItems": [], "items": {"type": "string"}}), None),
            (json!({"type": "object"}), None),
            (json!({"type": "object", "additionalProperties": {"type": "string"}}), None),
            (json!({"$ref": "http://elsewhere/"}), None),
            (json!({"$ref": "#/nowhere"}), None),
            (json!({"$dynamicRef": "#x", "type": "string"}), None),
        ];
        for (schema, expected) in table {
            assert_eq!(only(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn parts_of_all_of_are_one_object() {
        let members = of_object(&json!({
            "type": "object",
            "allOf": [
                {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"$ref": "#/$defs/more"},
            ],
            "$defs": {"more": {"properties": {"b": {"type": "integer"}}, "required": ["b", "c"]}},
        }));

        assert_eq!(members["a"], Member { required: true, shape: Shape::Text });
        assert_eq!(members["b"], Member { required: true, shape: Shape::Long });
        assert_eq!(members.len(), 2);
    }

    #[test]
    fn a_required_member_that_may_be_null_may_be_absent() {
        let members = of_object(&json!({
            "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"],
        }));

        assert_eq!(members["a"], Member { required: false, shape: Shape::Text });
    }

    #[test]
    fn a_recursive_reference_is_left_out_where_it_comes_again() {
        let members = of_object(&json!({
            "type": "object",
            "properties": {"name": {"type": "string"}, "next": {"$ref": "#"}},
        }));

        let Shape::Record(next) = &members["next"].shape else { panic!("{members:?}") };
        assert_eq!(next.keys().collect::<Vec<_>>(), ["name"]);
    }

    #[test]
    fn references_that_multiply_stay_bounded() {
        let mut defs = Map::new();
        for level in 0..30 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            let wide: Map<String, Value> =
                (0..8).map(|number| (format!("p{number}"), next.clone())).collect();
            defs.insert(format!("d{level}"), json!({"type": "object", "properties": wide}));
        }
        defs.insert("d30".to_owned(), json!({"type": "string"}));

        let members =
            of_object(&json!({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs}));

        assert!(members.is_empty(), "nothing below settles on a type");
    }

    #[test]
    fn a_name_is_any_text() {
        let members = shapes(&json!({
            "": {"type": "string"}, "a b\"\n\u{202e}": {"type": "string"}, "__extn": {"type": "string"},
        }));

        assert_eq!(members.len(), 3);
    }
}
