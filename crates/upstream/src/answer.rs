//! Answers of tools.

use portcullis_core::{
    mcp::{interaction::Interaction, meta},
    refusal::{Executed, UpstreamReason},
};
use serde_json::{Map, Value};

use crate::{
    error::CallError,
    mcp::message::{INPUT_REQUIRED, UNREADABLE},
};

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
    /// Questions of the tool instead of a result.
    pub interaction: Option<Box<Interaction>>,
}

impl CallAnswer {
    /// Takes a result apart, without what only the gateway may say in `_meta`. Says no to tasks, to
    /// questions that are none of the protocol, and to what is no result of a tool.
    pub(crate) fn from_result(mut result: Map<String, Value>) -> Result<Self, CallError> {
        let interaction = UpstreamReason::InteractionRequired;
        let garbage = CallError::protocol(Executed::Unknown);
        if result.contains_key(UNREADABLE) {
            return Err(garbage);
        }
        match result.remove("resultType") {
            None => {}
            Some(Value::String(kind)) if kind == "complete" => {}
            Some(Value::String(kind)) if kind == INPUT_REQUIRED => {
                let refused = CallError::upstream(interaction, Executed::Unknown);
                return Self::asking(&mut result).ok_or(refused);
            }
            Some(Value::String(kind)) if kind == "task" => {
                return Err(CallError::upstream(interaction, Executed::Unknown));
            }
            Some(_) => return Err(garbage),
        }
        let structured = result.remove("structuredContent");
        meta::remove_own(&mut result);
        let content = match result.remove("content") {
            Some(Value::Array(mut blocks)) if blocks.iter().all(Value::is_object) => {
                blocks.iter_mut().filter_map(Value::as_object_mut).for_each(meta::remove_own);
                blocks
            }
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
        Ok(Self { content, structured, is_error, more: result, interaction: None })
    }

    fn asking(result: &mut Map<String, Value>) -> Option<Self> {
        let interaction = Some(Box::new(Interaction::read(result)?));
        let (content, more) = (Vec::new(), Map::new());
        Some(Self { content, structured: None, is_error: false, more, interaction })
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
    fn what_only_the_gateway_may_say_is_removed() {
        let own = json!({"dev.portcullis/governance": {"decision": "allow"}, "a": 1});
        let block = json!({"type": "text", "text": "x", "_meta": own});

        let found = answer(json!({"content": [block], "_meta": own})).unwrap();

        assert_eq!(found.content[0]["_meta"], json!({"a": 1}));
        assert_eq!(found.more["_meta"], json!({"a": 1}));
    }

    #[test]
    fn tasks_and_strange_questions_are_refused() {
        for result in [
            json!({"resultType": "input_required", "inputRequests": {}}),
            json!({"resultType": "input_required", "inputRequests": {"a": {"method": "x"}}}),
            json!({"resultType": "task", "taskId": "1"}),
            json!({"task": {"taskId": "1", "status": "working"}}),
        ] {
            let error = answer(result).unwrap_err();

            let expected = UpstreamReason::InteractionRequired;
            assert_eq!(error, CallError::upstream(expected, Executed::Unknown));
        }
    }

    #[test]
    fn questions_are_taken_apart() {
        let requests = json!({"a": {"method": "roots/list"}});
        let result =
            json!({"resultType": "input_required", "inputRequests": requests, "requestState": "s"});

        let found = answer(result).unwrap().interaction.unwrap();

        assert_eq!(Value::Object(found.requests), requests);
        assert_eq!(found.state.as_deref(), Some("s"));
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
