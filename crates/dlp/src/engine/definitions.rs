//! Scans of tool definitions: models read them, so they are scanned like an answer.

use serde_json::Value;

use crate::{
    engine::Engine,
    findings::{finding::Finding, fingerprint::FingerprintKey},
    limits::Unscannable,
    vocabulary::{Action, Category, Direction, Likelihood},
};

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
    /// The definition of a tool as it may be shown: what would be redacted in an answer is masked in
    /// titles, descriptions and examples. `None` if it may be shown as it is. Fails where masking would
    /// change what the tool takes.
    pub fn mask_definition(&self, definition: &Value) -> Result<Option<Value>, Unshowable> {
        // These fingerprints are never shown.
        let findings = self.scan(definition, &FingerprintKey::new([0; 32]))?;
        let action = |finding: &Finding| self.default_action(finding, Direction::Output);
        let mut grave =
            findings.iter().filter(|finding| action(finding) != Action::Flag).peekable();
        if grave.peek().is_none() {
            return Ok(None);
        }
        if let Some(found) = grave.find(|it| action(it) == Action::Block || !is_in_words(it)) {
            let detector = found.detector().to_owned();
            let path = found.pointer().to_owned();
            return Err(Unshowable::Found { detector, path });
        }
        let mask = |finding: &Finding| {
            (action(finding) == Action::Redact).then(|| self.default_mask(finding))
        };
        Ok(Some(self.redact_value(definition, &findings, mask)))
    }

    /// Returns true if a definition likely holds instructions to a model, or cannot be scanned for them.
    #[must_use]
    pub fn holds_instructions(&self, definition: &Value) -> bool {
        let Ok(findings) = self.scan(definition, &FingerprintKey::new([0; 32])) else {
            return true;
        };
        findings.iter().any(|finding| {
            finding.category() == Category::Injection && finding.likelihood() >= Likelihood::Likely
        })
    }
}

fn is_in_words(finding: &Finding) -> bool {
    !finding.is_in_key() && finding.pointer().split('/').any(|step| WORDS.contains(&step))
}
