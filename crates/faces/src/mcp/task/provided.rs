//! Tasks of providers: what is told of a call that its server goes on with.

use std::sync::Arc;

use portcullis_app::{Ctx, FollowUp, Followed, FollowedTask, Stopped};
use portcullis_core::{
    json::{Document, JsonValue as _, Node},
    mcp::{
        Era, ProtocolError,
        interaction::{MOST_QUESTIONS, responses},
    },
    refusal::Refusal,
};
use serde_json::{Map, Value, json};

use super::Question;
use crate::{
    exchange::{Outcome, message::TaskReply},
    gateway::Gateway,
    mcp::{question, reply},
};

/// Tells what is asked about the task. `None` if there is no such task any more.
pub(super) async fn tell(
    gateway: &Arc<Gateway>,
    ctx: Ctx,
    question: &Question<'_>,
    task: FollowedTask,
    follow_up: FollowUp,
) -> Option<Result<Outcome, Outcome>> {
    let slug = task.tool().provider().to_owned();
    let several = question.face.provider().is_none();
    if let Some(asked) = question.asked {
        asked.follows(&task.tool().to_string());
        asked.carries(several, &slug);
    }
    let capabilities = question.capabilities;
    let followed =
        match gateway.app.calls.follow(ctx, capabilities, task, follow_up, question.bytes).await {
            Ok(followed) => followed?,
            Err(stopped) => return Some(Ok(Outcome::of_call(Err(stopped)))),
        };
    Some(Ok(match followed {
        Followed::State(mut members) => {
            if let Some(requests) = members.remove("inputRequests") {
                let asks = Document::of(&json!({ "requests": requests }));
                let mut asks =
                    question::carrying(asks.root(), Some(slug.as_str()).filter(|_| several));
                let requests = asks.get_mut("requests").map(Value::take);
                members.extend(requests.map(|it| ("inputRequests".to_owned(), it)));
            }
            reply::result(Value::Object(members), Era::Modern)
        }
        Followed::Taken => reply::result(json!({}), Era::Modern),
        Followed::Ended(members, ended) => {
            // What could not be recorded is told again.
            let is_told =
                |stopped: &Stopped| !matches!(stopped.refusal, Refusal::Unavailable { .. });
            let asked =
                question.asked.filter(|_| ended.as_ref().err().is_none_or(|it| is_told(it)));
            if let Some(asked) = asked {
                asked.tells(TaskReply::Provided(members));
            }
            Outcome::of_call(ended)
        }
    }))
}

/// The answers to questions of a task, by their names.
pub(super) fn answers(params: Node<'_>) -> Result<Map<String, Value>, ProtocolError> {
    let told = params.get("inputResponses").map(Node::to_value).and_then(responses);
    let fits = |told: &Map<String, Value>| {
        told.len() <= MOST_QUESTIONS && told.values().all(Value::is_object)
    };
    told.filter(fits).ok_or_else(|| {
        let form = "has to be an object of at most 16 objects.";
        ProtocolError::bad_params(format!("`inputResponses` {form}"))
    })
}
