//! Part of a request that is about questions of the tool.

use portcullis_core::{json::canonical, mcp::interaction::ClientCapabilities};
use serde_json::{Map, Value, json};

/// Questions that a caller is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Questions {
    /// None: its protocol knows no way to answer them.
    #[default]
    Refused,
    /// Questions that the declared capabilities answer.
    Declared,
    /// All questions. The capabilities only tell the upstream what it may ask for.
    All,
}

/// Part of a request that is about questions of the tool.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    pub capabilities: ClientCapabilities,
    pub questions: Questions,
    /// State of an earlier leg. Without one the call begins anew.
    pub state: Option<String>,
    /// Answers to the questions of that leg, by their names. Without a state they are ignored.
    pub responses: Map<String, Value>,
}

impl Conversation {
    /// Member of what an idempotency key stands for: legs of one call are different requests.
    pub(crate) fn fingerprint(&self) -> String {
        if self.state.is_none() && self.capabilities.is_empty() {
            return String::new();
        }
        let responses = self.state.as_ref().map(|_| &self.responses);
        let all = json!({
            "capabilities": self.capabilities, "responses": responses, "state": self.state,
        });
        format!(",\"interaction\":{}", canonical(&all))
    }
}
