//! Tools that can be invoked: names, definitions as upstream servers give them, and their schemas.

mod definition;
pub mod form;
mod schema;

pub use self::{
    definition::Difference,
    schema::{
        FLAT_STEPS, MAX_LIST_PATTERN_BYTES, MAX_SCHEMA_NODES, STEPS_PER_BYTE, SchemaError,
        Violation,
    },
};

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use self::schema::Schema;
use crate::{
    clock::Timestamp,
    did_you_mean,
    json::{self, JsonValue as _, Node},
};

/// Members of an input that are looked at for misspelt names.
const MAX_UNDECLARED: usize = 4;
/// Declared names that each of them is compared with.
const MAX_DECLARED: usize = 100;
/// Keywords by which a schema may declare names of members beside `properties`.
const DECLARING: [&str; 12] = [
    "$dynamicRef", "$ref", "allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if",
    "oneOf", "patternProperties", "propertyNames", "then",
];

/// A provider's short name: `[a-z0-9][a-z0-9-]{0,62}`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderSlug(Arc<str>);

/// A tool's name at its server: 1 to 256 of `[A-Za-z0-9_.:/-]`, and single spaces between them. MCP advises fewer,
/// but servers have them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

/// `<provider>:<tool_name>`, the one name that policy, audit and upstream all see.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolId {
    text: Arc<str>,
    colon: usize,
}

/// The text is no name of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NameError(&'static str);

impl FromStr for ProviderSlug {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = (1..=63).contains(&text.len())
            && text.bytes().all(|byte| letter(byte) || byte == b'-')
            && !text.starts_with('-');
        if fits {
            Ok(Self(text.into()))
        } else {
            Err(NameError("a provider slug is 1 to 63 of a-z, 0-9 and `-`, not beginning with `-`"))
        }
    }
}

impl FromStr for ToolName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:/-".contains(&byte);
        let fits = text.len() <= 256
            && text.split(' ').all(|word| !word.is_empty() && word.bytes().all(letter));
        if fits {
            Ok(Self(text.into()))
        } else {
            Err(NameError(
                "a tool name is 1 to 256 of A-Z, a-z, 0-9, `_`, `.`, `-`, `:` and `/`, and single spaces \
                 between them",
            ))
        }
    }
}

impl ToolId {
    /// The id of `name` at `provider`.
    #[must_use]
    pub fn new(provider: &ProviderSlug, name: &ToolName) -> Self {
        let text = [provider.as_str(), ":", name.as_str()].concat().into();
        Self { text, colon: provider.as_str().len() }
    }

    /// The whole id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part before the colon.
    #[must_use]
    pub fn provider(&self) -> &str {
        self.text.get(..self.colon).unwrap_or_default()
    }

    /// The part after the colon.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text.get(self.colon + 1..).unwrap_or_default()
    }
}

impl FromStr for ToolId {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let (provider, name) =
            text.split_once(':').ok_or(NameError("a tool id is `<provider>:<tool_name>`"))?;
        Ok(Self::new(&provider.parse()?, &name.parse()?))
    }
}

macro_rules! text {
    ($($name:ident),+) => { $(
        impl $name {
            /// The name itself.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        text!(@show $name);
    )+ };
    (@show $name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

text!(ProviderSlug, ToolName);
text!(@show ToolId);

/// A tool as its server defines it. All of it is the upstream's claim.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    pub name: ToolName,
    pub title: Option<String>,
    pub description: Option<String>,
    pub input_schema: Value,
    /// JSON Schema of `structuredContent`.
    pub output_schema: Option<Value>,
    /// Untrusted hints such as `readOnlyHint`; `null` or an object.
    pub annotations: Value,
}

impl ToolDefinition {
    /// A definition of nothing but a name and an input schema.
    #[must_use]
    pub const fn new(name: ToolName, input_schema: Value) -> Self {
        Self {
            name,
            title: None,
            description: None,
            input_schema,
            output_schema: None,
            annotations: Value::Null,
        }
    }

    /// SHA-256 of the canonical definition: the text a model sees and the schemas.
    #[must_use]
    pub fn version(&self) -> String {
        json::sha256(&[json::canonical(&self.to_json()).as_bytes()])
    }

    /// The definition as clients and validators read it.
    fn plain(&self) -> Self {
        let mut annotations = self.annotations.clone();
        if let Value::Object(members) = &mut annotations {
            members.retain(|name, value| match name.as_str() {
                "title" => value.is_string(),
                name if name.ends_with("Hint") => value.is_boolean(),
                _ => true,
            });
        }
        Self {
            input_schema: schema::plain(&self.input_schema),
            output_schema: self.output_schema.as_ref().map(schema::plain),
            annotations,
            ..self.clone()
        }
    }

    /// The value of a boolean hint; `None` when the server does not say.
    #[must_use]
    pub fn hint(&self, name: &str) -> Option<bool> {
        self.annotations.get(name).and_then(Value::as_bool)
    }
}

/// A tool of the catalogue: its definition, its version and its compiled schemas.
#[derive(Debug)]
pub struct Tool {
    pub id: ToolId,
    /// Definition as the upstream declared it, which people accept and versions are of.
    pub definition: ToolDefinition,
    /// [`ToolDefinition::version`].
    pub version: String,
    /// When this version was first seen.
    pub updated_at: Timestamp,
    shown: Option<Box<ToolDefinition>>,
    input: Schema,
    output: Option<Result<Schema, SchemaError>>,
}

impl Tool {
    /// Compiles the definition (JSON Schema 2020-12 unless it declares draft-07; no remote `$ref`).
    /// Rejects input schemas that cannot be enforced within bounds.
    pub fn new(
        provider: &ProviderSlug,
        definition: ToolDefinition,
        updated_at: Timestamp,
    ) -> Result<Self, SchemaError> {
        let mut shown = definition.plain();
        let input = Schema::compile(&shown.input_schema)?;
        let output = shown.output_schema.as_ref().map(Schema::compile_any);
        if let Some(Err(_)) = output {
            shown.output_schema = None;
        }
        Ok(Self {
            id: ToolId::new(provider, &definition.name),
            version: definition.version(),
            shown: (shown != definition).then(|| Box::new(shown)),
            definition,
            updated_at,
            input,
            output,
        })
    }

    /// The definition as clients and validators read it: with schemas in plain words, without an output
    /// schema that cannot be compiled, and without hints of another type than theirs.
    #[must_use]
    pub fn listed_definition(&self) -> &ToolDefinition {
        self.shown.as_deref().unwrap_or(&self.definition)
    }

    /// JSON Pointers to the patterns of the input schema that are not enforced, because they take more than
    /// linear time.
    #[must_use]
    pub fn unenforced(&self) -> &[String] {
        self.input.unenforced()
    }

    /// Reason to leave its output schema out, if it has one that cannot be compiled.
    #[must_use]
    pub fn output_error(&self) -> Option<&SchemaError> {
        self.output.as_ref()?.as_ref().err()
    }

    /// Returns true if the tool declares what its structured content holds, in a schema that can be used.
    #[must_use]
    pub const fn declares_output(&self) -> bool {
        matches!(self.output, Some(Ok(_)))
    }

    /// Returns true unless the structured content of a result does not fit the schema that the tool declares
    /// for it, or is missing. The check is bounded like that of [`Tool::violations`].
    #[must_use]
    pub fn fits_output(&self, structured: Option<Node<'_>>) -> bool {
        match &self.output {
            Some(Ok(schema)) => structured.is_some_and(|value| schema.accepts(value)),
            Some(Err(_)) | None => true,
        }
    }

    /// Bytes that the patterns of its schemas count for.
    fn pattern_bytes(&self) -> usize {
        let output = self.output.as_ref().and_then(|output| output.as_ref().ok());
        self.input.pattern_bytes() + output.map_or(0, Schema::pattern_bytes)
    }

    /// Sentences about members of `input` that the schema does not declare and whose names are near to those of
    /// optional ones that `input` lacks. None where the schema may declare names beside `properties`.
    #[must_use]
    pub fn misspelt(&self, input: Node<'_>) -> Vec<String> {
        let schema = &self.listed_definition().input_schema;
        let is_open = |more: &Value| {
            more == &Value::Bool(true) || more.as_object().is_some_and(Map::is_empty)
        };
        if DECLARING.iter().any(|keyword| schema.get(*keyword).is_some())
            || schema.get("additionalProperties").is_some_and(|more| !is_open(more))
        {
            return Vec::new();
        }
        let declared = schema.get("properties").and_then(Value::as_object);
        let (Some(declared), Some(members)) = (declared, input.members()) else {
            return Vec::new();
        };
        let undeclared = members.map(|(name, _)| name).filter(|name| !declared.contains_key(*name));
        let notes = undeclared.take(MAX_UNDECLARED).filter_map(|name| {
            let known = declared.keys().take(MAX_DECLARED).map(String::as_str);
            let near = did_you_mean(name, known.filter(|known| input.get(known).is_none()));
            let is_near = !near.is_empty();
            is_near.then(|| format!("`{name}` is no argument that the tool declares{near}."))
        });
        notes.collect()
    }

    /// Violations of the tool's schema in `input`: at most 20, none echoing a value. Empty means it
    /// fits. Takes at most [`FLAT_STEPS`], or [`STEPS_PER_BYTE`] for each byte of `input`, and
    /// refuses what takes more.
    #[must_use]
    pub fn violations(&self, input: Node<'_>) -> Vec<Violation> {
        self.input.violations(input)
    }
}

/// Bytes that the patterns of the tools of one list count for.
#[derive(Debug, Default)]
pub struct PatternBudget {
    taken: usize,
}

impl PatternBudget {
    /// Counts the patterns of a tool. Rejects one with which they are more than
    /// [`MAX_LIST_PATTERN_BYTES`].
    pub fn admit(&mut self, tool: Tool) -> Result<Tool, SchemaError> {
        let taken = self.taken.saturating_add(tool.pattern_bytes());
        if taken > MAX_LIST_PATTERN_BYTES {
            return Err(SchemaError::ListPatternsTooLarge);
        }
        self.taken = taken;
        Ok(tool)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(input_schema: Value) -> Result<Tool, SchemaError> {
        let definition = ToolDefinition {
            description: Some("Lists items.".to_owned()),
            ..ToolDefinition::new("list_items".parse().unwrap(), input_schema)
        };
        Tool::new(&"sample".parse().unwrap(), definition, Timestamp::default())
    }

    #[test]
    fn a_tool_id_splits_at_the_first_colon() {
        let id: ToolId = "github:list.repos-v_2".parse().unwrap();

        assert_eq!((id.provider(), id.name()), ("github", "list.repos-v_2"));
        assert_eq!(id.as_str(), "github:list.repos-v_2");
        let odd: ToolId = "github:repos/list all:open".parse().unwrap();
        assert_eq!((odd.provider(), odd.name()), ("github", "repos/list all:open"));
    }

    #[test]
    fn names_outside_the_grammar_are_no_ids() {
        let long = format!("a:{}", "x".repeat(257));
        for text in [
            "", ":", "a:", ":b", "a", "A:b", "-a:b", "a: b", "a:b ", "a:b  c", "a:b\tc", "a:*",
            "a:b\"c", "a:b\\c", "a:\u{ff1a}", "a%3Ab", "a:b\0", "ä:b", &long,
        ] {
            assert!(text.parse::<ToolId>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_patterns_of_a_list_count_together() {
        let heavy = |number: usize| {
            let pattern = format!("{number}[ab]{{900}}c");
            tool(json!({"properties": {"x": {"pattern": pattern}}})).unwrap()
        };
        let mut budget = PatternBudget::default();

        let refused = (0..400).map(|number| budget.admit(heavy(number))).find_map(Result::err);

        assert_eq!(refused, Some(SchemaError::ListPatternsTooLarge));
        assert!(budget.admit(tool(json!({"type": "object"})).unwrap()).is_ok());
    }

    #[test]
    fn misspelt_names_of_optional_arguments_are_noted() {
        let names = json!({"limit": {}, "page_limit": {}, "user_id": {}, "q": {}});
        let open = json!({"type": "object", "required": ["q"], "properties": names});
        let with = |name: &str, value: Value| {
            let mut schema = open.clone();
            schema[name] = value;
            schema
        };
        let many = (0..150).map(|number| format!("a{number:03}")).chain(["zebra".to_owned()]);
        let many: Value = many.map(|name| (name, json!({}))).collect();
        let many = json!({"type": "object", "properties": many});
        let userid = "`userId` is no argument that the tool declares (did you mean `user_id`?).";
        let limits = "`limt` is no argument that the tool declares (did you mean `limit`?).";
        for (schema, input, wanted) in [
            (&open, json!({"q": 1, "userId": 1}), &[userid][..]),
            (&open, json!({"q": 1, "userId": 1, "limt": 2}), &[userid, limits]),
            (&open, json!({"q": 1, "userId": 1, "user_id": 1}), &[]),
            (&open, json!({"q": 1, "colour": 1}), &[]),
            (&open, json!({"q": 1, "limit": 1}), &[]),
            (&with("additionalProperties", json!(true)), json!({"q": 1, "limt": 1}), &[limits]),
            (&with("additionalProperties", json!({})), json!({"q": 1, "limt": 1}), &[limits]),
            (&with("additionalProperties", json!({"minimum": 0})), json!({"q": 1, "limt": 1}), &[]),
            (&with("patternProperties", json!({"^l": {}})), json!({"q": 1, "limt": 1}), &[]),
            (&with("anyOf", json!([{}])), json!({"q": 1, "limt": 1}), &[]),
            (&json!({"type": "object"}), json!({"limt": 1}), &[]),
            // Beyond the names that are compared.
            (&many, json!({"zebr": 1}), &[]),
        ] {
            let tool = tool(schema.clone()).unwrap();
            let input = json::Document::of(&input);
            assert_eq!(tool.misspelt(input.root()), wanted, "{schema} {}", input.root().raw());
        }
        let undeclared: Value = (10..30).map(|number| (format!("a0{number}x"), json!(1))).collect();
        let input = json::Document::of(&undeclared);
        assert_eq!(tool(many).unwrap().misspelt(input.root()).len(), MAX_UNDECLARED);
    }

    #[test]
    fn the_version_changes_with_any_part_a_model_sees() {
        let first = tool(json!({"type": "object"})).unwrap();
        let second = tool(json!({"type": "object", "title": "x"})).unwrap();

        assert!(first.version.starts_with("sha256:"));
        assert_ne!(first.version, second.version);
    }
}
