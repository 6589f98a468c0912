//! Answers of tools.

use portcullis_core::refusal::{Executed, UpstreamReason};
use serde_json::{Map, Value};

use crate::{error::CallError, mcp::message::UNREADABLE};

/// The result of a `tools/call`, taken apart. Nothing of it has been looked at yet.
#[derive(Debug, Clone, PartialEq)]
pub struct CallAnswer {
    /// The content blocks, each an object.
    pub content: Vec<Value>,
    /// `structuredContent`: an object, or since 2026-07-28 any value.
    pub structured: Option<Value>,
    /// True if the tool says that it failed.
    pub is_error: bool,
    /// The result's other members, such as `_meta`.
    pub more: Map<String, Value>,
}

impl CallAnswer {
    /// Takes a result apart. Says no to results that ask for a conversation, and to those that
    /// are no result of a tool.
    pub(crate) fn from_result(mut result: Map<String, Value>) -> Result<Self, CallError> {
        let interaction = UpstreamReason::InteractionRequired;
        let garbage = CallError::protocol(Executed::Unknown);
        if result.contains_key(UNREADABLE) {
            return Err(garbage);
        }
        match result.remove("resultType") {
            None => {}
            Some(Value::String(kind)) if kind == "complete" => {}
            Some(Value::String(kind)) if kind == "input_required" || kind == "task" => {
                return Err(CallError::upstream(interaction, Executed::Unknown));
            }
            Some(_) => return Err(garbage),
        }
        let structured = result.remove("structuredContent");
        let content = match result.remove("content") {
            Some(Value::Array(blocks)) if blocks.iter().all(Value::is_object) => blocks,
            None if structured.is_some() => Vec::new(),
            None if result.get("task").is_some_and(Value::is_object) => {
                return Err(CallError::upstream(interaction, Executed::Unknown));
            }
            None | Some(_) => return Err(garbage),
        };
        let is_error = match result.remove("isError") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(failed)) => failed,
            Some(_) => return Err(garbage),
        };
        Ok(Self { content, structured, is_error, more: result })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(result: Value) -> Result<CallAnswer, CallError> {
        CallAnswer::from_result(serde_json::from_value(result).unwrap())
    }

    #[test]
    fn a_result_is_taken_apart_without_loss() {
        let found = answer(json!({
            "resultType": "complete", "content": [{"type": "text", "text": "x"}],
            "structuredContent": [1], "isError": true, "_meta": {"a": 1},
        }))
        .unwrap();

        assert_eq!(found.content, [json!({"type": "text", "text": "x"})]);
        assert_eq!(found.structured, Some(json!([1])));
        assert!(found.is_error);
        assert_eq!(Value::Object(found.more), json!({"_meta": {"a": 1}}));
    }

    #[test]
    fn a_conversation_is_refused() {
        for result in [
            json!({"resultType": "input_required", "inputRequests": {}}),
            json!({"resultType": "task", "taskId": "1"}),
            json!({"task": {"taskId": "1", "status": "working"}}),
        ] {
            let error = answer(result).unwrap_err();

            let expected = UpstreamReason::InteractionRequired;
            assert_eq!(error, CallError::upstream(expected, Executed::Unknown));
        }
    }

    #[test]
    fn what_is_no_result_of_a_tool_is_a_protocol_error() {
        for result in [
            json!({}),
            json!({"content": "x"}),
            json!({"content": ["x"]}),
            json!({"content": [], "isError": "no"}),
            json!({"content": [], "resultType": "other"}),
            json!({"content": [], "resultType": 1}),
        ] {
            let error = answer(result.clone()).unwrap_err();

            assert_eq!(error, CallError::protocol(Executed::Unknown), "{result}");
        }
    }
}
