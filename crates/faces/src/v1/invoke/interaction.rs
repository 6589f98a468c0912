//! The member `interaction` of an invocation: what the caller can answer, and its answers.

use portcullis_app::{Conversation, Questions};
use portcullis_core::{
    mcp::interaction::{ClientCapabilities, responses},
    refusal::{Refusal, Violation},
};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::exchange::body;

const NAME: &str = "interaction";

/// Questions of a tool and the answers to them.
#[derive(Default, ToSchema)]
pub(crate) struct InteractionRequest {
    /// Capabilities of the caller, as `ClientCapabilities` of MCP: `elicitation` (`form`, `url`),
    /// `sampling`, `roots`. Exactly this is declared to the provider. Once in a conversation is enough.
    #[schema(value_type = Option<Object>)]
    capabilities: ClientCapabilities,
    /// `result.interaction.state` of the answer that asked, within 15 minutes and with the same input.
    state: Option<String>,
    /// Answers by the names of their questions, as results of MCP. Others are ignored, as are all without
    /// `state`.
    #[schema(value_type = Option<Object>)]
    responses: Map<String, Value>,
}

/// The part of a call that is about questions. A caller that says nothing is given the questions of a
/// tool, too, but its upstream is told of no capability, and then asks only if it ignores that.
pub(in crate::v1) fn conversation(request: Option<InteractionRequest>) -> Conversation {
    let InteractionRequest { mut capabilities, state, responses } = request.unwrap_or_default();
    // The gateway itself waits for tasks.
    capabilities.tasks = false;
    Conversation { capabilities, questions: Questions::All, state, responses }
}

impl InteractionRequest {
    /// Reads the member, if it is there. As in every body, `null` stands for absent.
    pub(in crate::v1) fn read(value: Option<Value>) -> Result<Option<Self>, Refusal> {
        let mut members = match value {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(members)) => members,
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                return Err(body::wrong_member(NAME, "has to be an object"));
            }
        };
        let known = ["capabilities", "state", "responses"];
        members.retain(|name, member| !(member.is_null() && known.contains(&name.as_str())));
        let mut request = Self::default();
        if let Some(capabilities) = members.remove("capabilities") {
            let declared = Some(&capabilities).filter(|it| it.is_object());
            let declared = declared.ok_or_else(|| wrong("capabilities", "has to be an object"))?;
            request.capabilities = ClientCapabilities::read(declared);
        }
        request.state = match members.remove("state") {
            None => None,
            Some(Value::String(state)) => Some(state),
            Some(_) => return Err(wrong("state", "has to be a text")),
        };
        let answers = members.remove("responses");
        if !members.is_empty() {
            let problem = "may hold `capabilities`, `state` and `responses` only";
            return Err(body::wrong_member(NAME, problem));
        }
        if let (Some(answers), Some(_)) = (answers, &request.state) {
            let read = responses(answers);
            request.responses = read.ok_or_else(|| wrong("responses", "has to be an object"))?;
        }
        Ok(Some(request))
    }
}

fn wrong(name: &str, problem: &str) -> Refusal {
    let path = format!("/{NAME}/{name}");
    Refusal::InvalidRequest {
        message: format!("The member `{NAME}.{name}` {problem}."),
        parameter: None,
        violations: vec![Violation { path, keyword: None, message: problem.to_owned() }],
    }
}
