//! Tools, prompts and resources of the server, as tests declare them.

use serde_json::{Value, json};

use super::{HostileTool, Script};

impl HostileTool {
    /// A tool that takes any object.
    pub fn new(name: &str, script: Script) -> Self {
        let name = name.to_owned();
        let schema = json!({"type": "object"});
        Self {
            name,
            description: None,
            schema,
            output: None,
            script,
            prompt: None,
            resource: None,
            skill: None,
            meta: None,
        }
    }

    /// The same tool with a description.
    #[must_use]
    pub fn described(mut self, description: &str) -> Self {
        self.description = Some(description.to_owned());
        self
    }

    /// The same tool with an input schema of its own.
    #[must_use]
    pub fn taking(mut self, schema: Value) -> Self {
        self.schema = schema;
        self
    }

    /// A prompt with these arguments instead of a tool.
    #[must_use]
    pub fn prompting(mut self, arguments: Value) -> Self {
        self.prompt = Some(arguments);
        self
    }

    /// A resource of this URI, or a template, with these members instead of a tool.
    #[must_use]
    pub fn reading(mut self, members: Value) -> Self {
        self.resource = Some(members);
        self
    }

    /// A skill of this URI, with an entry of these members instead of a tool.
    #[must_use]
    pub fn instructing(mut self, entry: Value) -> Self {
        self.skill = Some(entry);
        self
    }

    /// The same tool with a `_meta`.
    #[must_use]
    pub fn meaning(mut self, meta: Value) -> Self {
        self.meta = Some(meta);
        self
    }

    /// The same tool with an output schema.
    #[must_use]
    pub fn giving(mut self, schema: Value) -> Self {
        self.output = Some(schema);
        self
    }
}
