//! Tools, prompts, resources and skills, which callers use: names, definitions as upstream servers give them, and their
//! schemas.

mod definition;
pub mod form;
mod id;
mod reading;
mod schema;

pub use self::{
    definition::Difference,
    id::{CapabilityId, CapabilityKind, CapabilityName, NameError, ProviderSlug, RESERVED_SLUGS},
    reading::{holding, is_among, unlisted},
    schema::{
        FLAT_STEPS, MAX_LIST_PATTERN_BYTES, MAX_SCHEMA_NODES, STEPS_PER_BYTE, SchemaError,
        Violation,
    },
};

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use self::schema::Schema;
use crate::{
    clock::Timestamp,
    did_you_mean,
    json::{self, JsonValue as _, Node},
    mcp::{
        skills::{self, ManifestEntry},
        uris::Template,
    },
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

/// A tool, prompt, resource or template as its server defines it. All of it is the upstream's claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub kind: CapabilityKind,
    pub name: CapabilityName,
    pub title: Option<String>,
    pub description: Option<String>,
    pub input_schema: Value,
    /// JSON Schema of `structuredContent`.
    pub output_schema: Option<Value>,
    /// Untrusted hints such as `readOnlyHint`; `null` or an object.
    pub annotations: Value,
    /// Members that its kind adds: the arguments of a prompt, of which its input schema is made, of a resource an object of
    /// its `name`, `mimeType` and `size`, and of a skill its frontmatter and manifest ([`skills`]); `null` for a tool.
    pub more: Value,
}

impl Definition {
    /// A definition of a tool with nothing but a name and an input schema.
    #[must_use]
    pub const fn new(name: CapabilityName, input_schema: Value) -> Self {
        Self {
            kind: CapabilityKind::Tool,
            name,
            title: None,
            description: None,
            input_schema,
            output_schema: None,
            annotations: Value::Null,
            more: Value::Null,
        }
    }

    /// A definition of a prompt with these arguments: objects with a `name`, and with `title`, `description` and
    /// `required` where they are known. Each argument is a text, as are others that a caller gives.
    #[must_use]
    pub fn prompt(name: CapabilityName, arguments: Value) -> Self {
        let all = arguments.as_array().map(Vec::as_slice).unwrap_or_default();
        let named = |it: &Value| it.get("name").and_then(Value::as_str).map(str::to_owned);
        let of = |argument: &Value| {
            let told = ["title", "description"].into_iter();
            let told = told.filter_map(|it| Some((it, argument.get(it)?.as_str()?)));
            let members = told.chain([("type", "string")]);
            let schema = members.map(|(name, text)| (name.to_owned(), Value::from(text)));
            Some((named(argument)?, Value::Object(schema.collect())))
        };
        let properties: Map<String, Value> = all.iter().filter_map(of).collect();
        let is_required = |it: &&Value| it.get("required") == Some(&Value::Bool(true));
        let required: Vec<String> = all.iter().filter(is_required).filter_map(named).collect();
        let input_schema = json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": { "type": "string" },
        });
        Self { kind: CapabilityKind::Prompt, more: arguments, ..Self::new(name, input_schema) }
    }

    /// A definition of a resource or a template. The input of a read is the URI.
    #[must_use]
    pub fn resource(kind: CapabilityKind, name: CapabilityName, more: Value) -> Self {
        let input_schema = json!({
            "type": "object", "properties": { "uri": { "type": "string" } }, "required": ["uri"],
            "additionalProperties": false,
        });
        Self { kind, more, ..Self::new(name, input_schema) }
    }

    /// A definition of a skill with the members that [`skills::of_entry`] gives. Its files are read by their URIs.
    #[must_use]
    pub fn skill(name: CapabilityName, more: Value) -> Self {
        let description = skills::description(&more).map(str::to_owned);
        Self { description, ..Self::resource(CapabilityKind::Skill, name, more) }
    }

    /// The definition of all resources that a provider does not list.
    #[must_use]
    pub fn unlisted() -> Self {
        Self::resource(CapabilityKind::Resource, CapabilityName::unlisted(), Value::Null)
    }

    /// The [`ui`](crate::mcp::apps) of a tool, if its provider exposes apps and it has any.
    #[must_use]
    pub fn ui(&self) -> Option<&Value> {
        Some(&self.more).filter(|ui| self.kind == CapabilityKind::Tool && ui.is_object())
    }

    /// Returns true if a prompt has an argument of this name.
    #[must_use]
    pub fn takes(&self, argument: &str) -> bool {
        let arguments = self.more.as_array().into_iter().flatten();
        arguments.filter_map(|it| it.get("name")?.as_str()).any(|name| name == argument)
    }

    /// Media type of a resource, as its server tells it.
    #[must_use]
    pub fn mime_type(&self) -> Option<&str> {
        self.more.get("mimeType")?.as_str()
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

/// A tool or prompt of the catalogue: its definition, its version and its compiled schemas.
#[derive(Debug)]
pub struct Capability {
    pub id: CapabilityId,
    /// Definition as the upstream declared it, which people accept and versions are of.
    pub definition: Definition,
    /// [`Definition::version`].
    pub version: String,
    /// When this version was first seen.
    pub updated_at: Timestamp,
    shown: Option<Box<Definition>>,
    template: Option<Template>,
    input: Arc<Schema>,
    output: Option<Result<Schema, SchemaError>>,
}

/// The schema of the input of every read, compiled once.
static READ: LazyLock<Option<Arc<Schema>>> = LazyLock::new(|| {
    let schema = Definition::unlisted().input_schema;
    Schema::compile(&schema).ok().map(Arc::new)
});

impl Capability {
    /// Compiles the definition (JSON Schema 2020-12 unless it declares draft-07; no remote `$ref`).
    /// Rejects input schemas that cannot be enforced within bounds.
    pub fn new(
        provider: &ProviderSlug,
        definition: Definition,
        updated_at: Timestamp,
    ) -> Result<Self, SchemaError> {
        let mut shown = definition.plain();
        let of_resource =
            matches!(definition.kind.governed(), CapabilityKind::Resource | CapabilityKind::Skill);
        let input = match READ.as_ref().filter(|_| of_resource) {
            Some(read) => Arc::clone(read),
            None => Arc::new(Schema::compile(&shown.input_schema)?),
        };
        let output = shown.output_schema.as_ref().map(Schema::compile_any);
        if let Some(Err(_)) = output {
            shown.output_schema = None;
        }
        let template = (definition.kind == CapabilityKind::Template)
            .then(|| Template::parse(definition.name.as_str()).ok());
        Ok(Self {
            template: template.flatten(),
            id: CapabilityId::new(definition.kind, provider, &definition.name),
            version: definition.version(),
            shown: (shown != definition).then(|| Box::new(shown)),
            definition,
            updated_at,
            input,
            output,
        })
    }

    /// The template of URIs, if it is one.
    #[must_use]
    pub const fn template(&self) -> Option<&Template> {
        self.template.as_ref()
    }

    /// Returns true if it is there for pages of apps, and models are not shown it.
    #[must_use]
    pub fn is_for_pages_alone(&self) -> bool {
        self.listed_definition().ui().is_some_and(crate::mcp::apps::is_for_pages_alone)
    }

    /// The URI of a resource that is listed.
    #[must_use]
    pub fn uri(&self) -> Option<&str> {
        let is_listed = self.id.kind() == CapabilityKind::Resource && !self.id.is_unlisted();
        is_listed.then(|| self.id.name())
    }

    /// The entry of a file in the manifest of a skill: `None` if this is no skill with such a file, and no entry if its
    /// files are dynamic.
    #[must_use]
    pub fn file(&self, uri: &str) -> Option<Option<ManifestEntry<'_>>> {
        let is_skill = self.id.kind() == CapabilityKind::Skill;
        is_skill.then(|| skills::file(self.id.name(), &self.definition.more, uri)).flatten()
    }

    /// Version of what policies are bound to: all resources of a provider are the same to them but for their URIs, and of
    /// a skill they are told the file.
    #[must_use]
    pub fn slot_version(&self) -> &str {
        match self.id.kind() {
            CapabilityKind::Tool | CapabilityKind::Prompt => &self.version,
            CapabilityKind::Resource | CapabilityKind::Template | CapabilityKind::Skill => "",
        }
    }

    /// The definition as clients and validators read it: with schemas in plain words, without an output
    /// schema that cannot be compiled, and without hints of another type than theirs.
    #[must_use]
    pub fn listed_definition(&self) -> &Definition {
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
    /// for it, or is missing. The check is bounded like that of [`Capability::violations`].
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
    pub fn admit(&mut self, tool: Capability) -> Result<Capability, SchemaError> {
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

    fn tool(input_schema: Value) -> Result<Capability, SchemaError> {
        let definition = Definition {
            description: Some("Lists items.".to_owned()),
            ..Definition::new("list_items".parse().unwrap(), input_schema)
        };
        Capability::new(&"sample".parse().unwrap(), definition, Timestamp::default())
    }

    #[test]
    fn a_tool_id_splits_at_the_first_colon() {
        let id: CapabilityId = "github:list.repos-v_2".parse().unwrap();

        assert_eq!((id.provider(), id.name()), ("github", "list.repos-v_2"));
        assert_eq!(id.as_str(), "github:list.repos-v_2");
        let odd: CapabilityId = "github:repos/list all:open".parse().unwrap();
        assert_eq!((odd.provider(), odd.name()), ("github", "repos/list all:open"));
    }

    #[test]
    fn an_id_of_a_prompt_is_none_of_a_tool() {
        let id: CapabilityId = "prompt:crm:greet:all".parse().unwrap();

        assert_eq!(
            (id.kind(), id.provider(), id.name()),
            (CapabilityKind::Prompt, "crm", "greet:all")
        );
        assert_eq!((id.as_str(), id.short()), ("prompt:crm:greet:all", "crm:greet:all"));
        assert_eq!(CapabilityId::of_kind(CapabilityKind::Prompt, "crm:greet:all").unwrap(), id);
        assert!(CapabilityId::of_kind(CapabilityKind::Tool, "prompt:crm:greet").is_err());
        for slug in RESERVED_SLUGS {
            assert!(format!("{slug}:x").parse::<CapabilityId>().is_err(), "{slug}");
        }
    }

    #[test]
    fn the_schema_of_a_prompt_follows_its_arguments() {
        let arguments = json!([
            {"name": "who", "title": "Who", "description": "Whom to greet.", "required": true},
            {"name": "tone", "required": "yes"}, {"description": "no name"}, 7,
        ]);
        let definition = Definition::prompt("greet".parse().unwrap(), arguments);
        let again = Definition::from_json(definition.to_json());
        let prompt =
            Capability::new(&"crm".parse().unwrap(), definition.clone(), Timestamp::default())
                .unwrap();

        assert_eq!(again, Some(definition));
        assert_eq!(prompt.id.as_str(), "prompt:crm:greet");
        for (input, fits) in [
            (json!({"who": "Ada"}), true),
            (json!({"who": "Ada", "tone": "warm", "more": "x"}), true),
            (json!({"tone": "warm"}), false),
            (json!({"who": 7}), false),
            (json!({"who": "Ada", "more": {}}), false),
        ] {
            let document = json::Document::of(&input);
            assert_eq!(prompt.violations(document.root()).is_empty(), fits, "{input}");
        }
    }

    #[test]
    fn names_outside_the_grammar_are_no_ids() {
        let long = format!("a:{}", "x".repeat(257));
        for text in [
            "", ":", "a:", ":b", "a", "A:b", "-a:b", "a: b", "a:b ", "a:b  c", "a:b\tc", "a:*",
            "a:b\"c", "a:b\\c", "a:\u{ff1a}", "a%3Ab", "a:b\0", "ä:b", &long,
        ] {
            assert!(text.parse::<CapabilityId>().is_err(), "{text}");
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
