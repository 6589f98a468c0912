//! The member `interaction` of an invocation: what the caller can answer, and its answers.

use portcullis_app::{Conversation, Questions};
use portcullis_core::{
    mcp::interaction::{ClientCapabilities, responses},
    refusal::{Refusal, Violation},
};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::http::body;

const NAME: &str = "interaction";

/// Reads the member. A caller that says nothing is given the questions of a tool, too, but its upstream
/// is told of no capability, and then asks only if it ignores that.
pub(super) fn read(value: Option<Value>) -> Result<Conversation, Refusal> {
    let mut conversation = Conversation { questions: Questions::All, ..Conversation::default() };
    let mut members = match value {
        None => return Ok(conversation),
        Some(Value::Object(members)) => members,
        Some(
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_),
        ) => return Err(body::wrong_member(NAME, "has to be an object")),
    };
    if let Some(capabilities) = members.remove("capabilities") {
        let declared = Some(&capabilities).filter(|it| it.is_object());
        let declared = declared.ok_or_else(|| wrong("capabilities", "has to be an object"))?;
        conversation.capabilities = ClientCapabilities::read(declared);
    }
    conversation.state = match members.remove("state") {
        None => None,
        Some(Value::String(state)) => Some(state),
        Some(_) => return Err(wrong("state", "has to be a text")),
    };
    let answers = members.remove("responses");
    if !members.is_empty() {
        let problem = "may hold `capabilities`, `state` and `responses` only";
        return Err(body::wrong_member(NAME, problem));
    }
    if let (Some(answers), Some(_)) = (answers, &conversation.state) {
        let problem = "has to be an object of at most 16 objects";
        conversation.responses = responses(answers).ok_or_else(|| wrong("responses", problem))?;
    }
    Ok(conversation)
}

fn wrong(name: &str, problem: &str) -> Refusal {
    let path = format!("/{NAME}/{name}");
    Refusal::InvalidRequest {
        message: format!("The member `{NAME}.{name}` {problem}."),
        parameter: None,
        violations: vec![Violation { path, keyword: None, message: problem.to_owned() }],
    }
}

/// Questions of a tool and the answers to them.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the member is parsed strictly")]
pub(crate) struct InteractionRequest {
    /// Capabilities of the caller, as `ClientCapabilities` of MCP: `elicitation` (`form`, `url`),
    /// `sampling`, `roots`. Exactly this is declared to the provider. Once in a conversation is enough.
    #[schema(value_type = Option<Object>)]
    capabilities: Option<Map<String, Value>>,
    /// `result.interaction.state` of the answer that asked, within 15 minutes and with the same input.
    state: Option<String>,
    /// At most 16 answers by the names of their questions, as results of MCP. Without `state` they are
    /// ignored.
    #[schema(value_type = Option<Object>)]
    responses: Option<Map<String, Value>>,
}
