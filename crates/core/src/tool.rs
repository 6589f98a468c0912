//! What can be invoked: tool names, definitions as upstream servers give them, and their schemas.

mod definition;
mod growth;

pub use self::definition::Difference;

use std::{fmt, str::FromStr, sync::Arc};

use jsonschema::{Draft, Validator};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{clock::Timestamp, json, refusal::Violation};

/// A provider's short name: `[a-z0-9][a-z0-9-]{0,62}`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderSlug(Arc<str>);

/// A tool's name at its server: `[A-Za-z0-9_.-]{1,128}`.
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
        let fits = (1..=128).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
        if fits {
            Ok(Self(text.into()))
        } else {
            Err(NameError("a tool name is 1 to 128 of A-Z, a-z, 0-9, `_`, `.` and `-`"))
        }
    }
}

impl ToolId {
    /// The id of `name` at `provider`.
    #[must_use]
    pub fn new(provider: &ProviderSlug, name: &ToolName) -> Self {
        Self { text: format!("{provider}:{name}").into(), colon: provider.as_str().len() }
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
    /// The name to call it by.
    pub name: ToolName,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, for models and people.
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of `structuredContent`.
    pub output_schema: Option<Value>,
    /// Untrusted hints such as `readOnlyHint`; `null` or an object.
    pub annotations: Value,
}

impl ToolDefinition {
    /// SHA-256 of the canonical definition: the text a model sees and the schemas.
    #[must_use]
    pub fn version(&self) -> String {
        json::sha256(&[json::canonical(&self.to_json()).as_bytes()])
    }

    /// The value of a boolean hint; `None` when the server does not say.
    #[must_use]
    pub fn hint(&self, name: &str) -> Option<bool> {
        self.annotations.get(name).and_then(Value::as_bool)
    }
}

/// A tool of the catalogue: its definition, its version and its compiled input schema.
#[derive(Debug)]
pub struct Tool {
    /// What callers name.
    pub id: ToolId,
    /// What the upstream declared.
    pub definition: ToolDefinition,
    /// [`ToolDefinition::version`].
    pub version: String,
    /// When this version was first seen.
    pub updated_at: Timestamp,
    input: Validator,
}

/// The tool's input schema cannot be used; the tool stays out of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is not an object, or its `type` is something else than `object`.
    #[error("the input schema is not a schema of an object")]
    NotAnObject,
    /// It refers to something outside itself.
    #[error("the input schema refers to something outside itself")]
    RemoteReference,
    /// It is larger than we compile.
    #[error("the input schema has more than {MAX_SCHEMA_NODES} values")]
    TooLarge,
    /// It would take too long to apply.
    #[error("the input schema applies to itself without end, or too often")]
    Unbounded,
    /// It is not a valid JSON Schema.
    #[error("the input schema is not a valid JSON Schema")]
    Invalid,
}

/// The largest schema that is compiled, in JSON values.
pub const MAX_SCHEMA_NODES: usize = 5_000;
const MAX_VIOLATIONS: usize = 20;

impl Tool {
    /// Compiles the definition (JSON Schema 2020-12 unless it declares draft-07; no remote
    /// `$ref`). Says no to schemas that cannot be enforced.
    pub fn new(
        provider: &ProviderSlug,
        definition: ToolDefinition,
        updated_at: Timestamp,
    ) -> Result<Self, SchemaError> {
        let input = compile(&definition.input_schema)?;
        Ok(Self {
            id: ToolId::new(provider, &definition.name),
            version: definition.version(),
            definition,
            updated_at,
            input,
        })
    }

    /// How `input` breaks the tool's schema: at most 20 violations, none echoing a value. Empty
    /// means it fits.
    #[must_use]
    pub fn violations(&self, input: &Value) -> Vec<Violation> {
        if self.input.is_valid(input) {
            return Vec::new();
        }
        let errors = self.input.iter_errors(input).take(MAX_VIOLATIONS);
        errors
            .map(|error| Violation {
                path: error.instance_path().to_string(),
                keyword: Some(error.kind().keyword().to_owned()),
                message: error.masked_with("the value").to_string(),
            })
            .collect()
    }
}

fn compile(schema: &Value) -> Result<Validator, SchemaError> {
    let object = schema.as_object().ok_or(SchemaError::NotAnObject)?;
    if object.get("type").is_some_and(|kind| kind != "object") {
        return Err(SchemaError::NotAnObject);
    }
    let mut nodes = 0;
    inspect(schema, &mut nodes)?;
    growth::check(schema).map_err(|growth::Unbounded| SchemaError::Unbounded)?;
    let draft = match object.get("$schema").and_then(Value::as_str) {
        Some(uri) if uri.contains("draft-07") => Draft::Draft7,
        _ => Draft::Draft202012,
    };
    let options = jsonschema::options()
        .with_draft(draft)
        .with_pattern_options(jsonschema::PatternOptions::regex());
    options.build(schema).map_err(|_| SchemaError::Invalid)
}

/// Walks the schema once: counts its values and refuses references that leave it.
fn inspect(schema: &Value, nodes: &mut usize) -> Result<(), SchemaError> {
    *nodes += 1;
    if *nodes > MAX_SCHEMA_NODES {
        return Err(SchemaError::TooLarge);
    }
    match schema {
        Value::Object(members) => {
            for name in ["$ref", "$dynamicRef", "$recursiveRef"] {
                let target = members.get(name).and_then(Value::as_str);
                if target.is_some_and(|target| !target.starts_with('#')) {
                    return Err(SchemaError::RemoteReference);
                }
            }
            members.values().try_for_each(|member| inspect(member, nodes))
        }
        Value::Array(items) => items.iter().try_for_each(|item| inspect(item, nodes)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(input_schema: Value) -> Result<Tool, SchemaError> {
        let definition = ToolDefinition {
            name: "list_items".parse().unwrap(),
            title: None,
            description: Some("Lists items.".to_owned()),
            input_schema,
            output_schema: None,
            annotations: Value::Null,
        };
        Tool::new(&"sample".parse().unwrap(), definition, Timestamp::default())
    }

    #[test]
    fn a_tool_id_splits_at_the_first_colon() {
        let id: ToolId = "github:list.repos-v_2".parse().unwrap();

        assert_eq!((id.provider(), id.name()), ("github", "list.repos-v_2"));
        assert_eq!(id.as_str(), "github:list.repos-v_2");
    }

    #[test]
    fn names_outside_the_grammar_are_no_ids() {
        let long = format!("a:{}", "x".repeat(129));
        for text in [
            "",
            ":",
            "a:",
            ":b",
            "a",
            "A:b",
            "-a:b",
            "a:b:c",
            "a:b/c",
            "a:b c",
            "a:\u{ff1a}",
            "a%3Ab",
            "a:b\0",
            "ä:b",
            &long,
        ] {
            assert!(text.parse::<ToolId>().is_err(), "{text}");
        }
    }

    #[test]
    fn violations_name_path_and_keyword_and_echo_no_value() {
        let tool = tool(json!({
            "type": "object",
            "properties": {"limit": {"type": "integer", "maximum": 100}},
            "required": ["name"], "additionalProperties": false,
        }))
        .unwrap();

        let found = tool.violations(&json!({"limit": 4711, "hunter2": "hunter3"}));

        let keywords: Vec<_> = found.iter().filter_map(|v| v.keyword.as_deref()).collect();
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(keywords.contains(&"maximum") && keywords.contains(&"required"), "{keywords:?}");
        assert!(!format!("{found:?}").contains("4711"), "{found:?}");
        assert!(!format!("{found:?}").contains("hunter3"), "{found:?}");
    }

    #[test]
    fn both_drafts_are_understood() {
        let draft7 = tool(json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"p": {"type": "array", "items": [{"type": "string"}]}},
        }))
        .unwrap();
        let newer = tool(json!({
            "type": "object",
            "properties": {"p": {"type": "array", "prefixItems": [{"type": "string"}]}},
        }))
        .unwrap();

        for tool in [draft7, newer] {
            assert!(tool.violations(&json!({"p": ["x"]})).is_empty());
            assert_eq!(tool.violations(&json!({"p": [1]})).len(), 1);
        }
    }

    #[test]
    fn schemas_that_cannot_be_enforced_are_refused() {
        let huge = json!({"type": "object", "enum": vec![0; MAX_SCHEMA_NODES]});
        let remote = json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1/x"}}});

        assert_eq!(tool(json!(true)).err(), Some(SchemaError::NotAnObject));
        assert_eq!(tool(json!({"type": "string"})).err(), Some(SchemaError::NotAnObject));
        assert_eq!(
            tool(json!({"type": "object", "minimum": "x"})).err(),
            Some(SchemaError::Invalid)
        );
        assert_eq!(tool(remote).err(), Some(SchemaError::RemoteReference));
        assert_eq!(tool(huge).err(), Some(SchemaError::TooLarge));
        let looping = json!({"type": "object", "allOf": [{"$ref": "#"}]});
        assert_eq!(tool(looping).err(), Some(SchemaError::Unbounded));
    }

    #[test]
    fn a_recursive_schema_and_a_backtracking_pattern_stay_bounded() {
        let tool = tool(json!({
            "type": "object",
            "properties": {"next": {"$ref": "#"}, "s": {"type": "string", "pattern": "^(a+)+$"}},
        }))
        .unwrap();
        let trap = format!("{}!", "a".repeat(5_000));

        assert_eq!(tool.violations(&json!({"next": {"next": {"s": trap}}})).len(), 1);
    }

    #[test]
    fn the_version_changes_with_any_part_a_model_sees() {
        let first = tool(json!({"type": "object"})).unwrap();
        let second = tool(json!({"type": "object", "title": "x"})).unwrap();

        assert!(first.version.starts_with("sha256:"));
        assert_ne!(first.version, second.version);
    }
}
