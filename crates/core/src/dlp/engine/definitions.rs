//! Scans of tool definitions: models read them, so they are scanned like an answer.

use serde_json::Value;

use crate::dlp::{
    engine::Engine,
    findings::{finding::Finding, fingerprint::FingerprintKey},
    limits::Unscannable,
    vocabulary::{Action, Direction},
};
use crate::tool::ToolDefinition;

/// Reason that a tool cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unshowable {
    /// Something stands where nothing may be changed, such as a name or the values that arguments
    /// are compared with, or must be blocked.
    #[error("DLP finds `{detector}` at `{path}`")]
    Found {
        /// The detector.
        detector: String,
        /// Place of it, as a JSON Pointer into the definition.
        path: String,
    },
    /// The definition cannot be scanned.
    #[error(transparent)]
    Unscannable(#[from] Unscannable),
}

/// Members of a definition that explain, and do not decide.
const WORDS: [&str; 6] = ["title", "description", "$comment", "examples", "example", "default"];

impl Engine {
    /// The definition as it may be shown: what would be redacted in an answer is masked in titles,
    /// descriptions and examples. Fails where that would change what the tool takes.
    pub fn clear_definition(
        &self,
        definition: ToolDefinition,
    ) -> Result<ToolDefinition, Unshowable> {
        let mut value = definition.to_json();
        // These fingerprints are never shown.
        let findings = self.scan(&value, &FingerprintKey::new([0; 32]))?;
        let action = |finding: &Finding| self.default_action(finding, Direction::Output);
        let mut grave =
            findings.iter().filter(|finding| action(finding) != Action::Flag).peekable();
        if grave.peek().is_none() {
            return Ok(definition);
        }
        if let Some(found) = grave.find(|it| action(it) == Action::Block || !is_in_words(it)) {
            let (detector, path) = (found.detector().to_owned(), found.pointer().to_owned());
            return Err(Unshowable::Found { detector, path });
        }
        let mask = |finding: &Finding| {
            (action(finding) == Action::Redact).then(|| self.default_mask(finding))
        };
        value = self.redact_value(&value, &findings, mask);
        let mut take = |name: &str| value.get_mut(name).map(Value::take).unwrap_or_default();
        let text = |value: Value| value.as_str().map(str::to_owned);
        Ok(ToolDefinition {
            title: text(take("title")),
            description: text(take("description")),
            input_schema: take("inputSchema"),
            output_schema: Some(take("outputSchema")).filter(|schema| !schema.is_null()),
            annotations: take("annotations"),
            name: definition.name,
        })
    }
}

fn is_in_words(finding: &Finding) -> bool {
    !finding.is_in_key() && finding.pointer().split('/').any(|step| WORDS.contains(&step))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dlp::settings::options::Settings;

    const KEY: &str = concat!("glpat-", "F4k3abcdefghijklmnop");

    fn clear(description: &str, schema: Value) -> Result<ToolDefinition, Unshowable> {
        let engine = Engine::new(&Settings::default()).unwrap();
        engine.clear_definition(ToolDefinition {
            name: "list".parse().unwrap(),
            title: None,
            description: Some(description.to_owned()),
            input_schema: schema,
            output_schema: None,
            annotations: Value::Null,
        })
    }

    #[test]
    fn a_secret_in_words_is_masked_and_the_rest_stays() {
        let schema = json!({"properties": {"a": {"description": KEY, "type": "string"}}});

        let cleared = clear(&format!("Use {KEY}, ask ada@example.org."), schema).unwrap();

        assert_eq!(
            cleared.description.as_deref(),
            Some("Use [REDACTED:gitlab_token], ask ada@example.org.")
        );
        assert_eq!(
            cleared.input_schema,
            json!({"properties": {"a": {"description": "[REDACTED:gitlab_token]", "type": "string"}}})
        );
        assert_eq!(cleared.output_schema, None);
    }

    #[test]
    fn a_secret_that_decides_makes_the_tool_unshowable() {
        for schema in [
            json!({"properties": {"a": {"enum": [KEY]}}}),
            json!({"properties": {KEY: {"description": "x"}}}),
        ] {
            let error = clear("Lists.", schema).unwrap_err().to_string();

            assert!(error.contains("gitlab_token") && !error.contains(KEY), "{error}");
        }
    }
}
