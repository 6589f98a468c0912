//! Tasks: a client that declared them is given one in place of the refusal of a call that waits for
//! people, and asks later for its answer. The call is made by the request that asks once people approved.

mod heard;
mod provided;

use std::{sync::Arc, time::Duration};

use portcullis_app::{Conversation, Ctx, FollowUp, Task, TaskRun, TaskStep, TaskTerms, tool_named};
use portcullis_core::{
    approval::Status,
    capability::{CapabilityId, CapabilityKind},
    clock::Timestamp,
    json::{Document, JsonValue as _, Node},
    mcp::{
        Era, Method, ProtocolError, Request as Asking, code, interaction::ClientCapabilities, meta,
        refused, tasks,
    },
    principal::Scope,
    refusal::Refusal,
};
use serde_json::{Map, Value, json};

pub(super) use self::heard::HeardTasks;
use super::{Face, reply};
use crate::{
    exchange::{
        Exchange, Outcome,
        message::{McpMessage, TaskReply},
    },
    gateway::Gateway,
};

/// Time between two questions while people decide.
const DECIDING_MS: u64 = 5_000;
/// Time between two questions while the tool is called.
const CALLING_MS: u64 = 1_000;
/// Longest time for which a question waits for the tool.
const PATIENCE: Duration = Duration::from_secs(10);
/// Largest request in bytes whose input is kept for a task: no larger one fits into an id.
const LARGEST: usize = 16 << 10;
/// One answer to each id that names no task of this caller, whatever is wrong with it.
const UNKNOWN: &str = "There is no such task: it is over its time, was changed, or belongs to another \
                       caller or address. Make the call anew.";

/// A call that a task may come of.
pub(super) struct WaitingCall {
    ctx: Ctx,
    tool: CapabilityId,
    input: Document,
    bytes: usize,
}

/// Returns true if the client of a call asks later for its answer. One that still has to be shown an
/// address, and one that goes on with a conversation, does not.
pub(super) fn is_wanted(
    meta: Node<'_>,
    era: Era,
    conversation: &Conversation,
    to_be_shown: bool,
) -> bool {
    let declared = era == Era::Modern && tasks::is_declared(meta);
    declared && conversation.state.is_none() && !to_be_shown
}

impl WaitingCall {
    /// The call for its task, unless it is too large for one.
    pub(super) fn of(ctx: &Ctx, tool: &str, input: &Document, bytes: usize) -> Option<Self> {
        let tool = tool_named(tool).ok().filter(|_| bytes <= LARGEST)?;
        Some(Self { ctx: ctx.clone(), tool, input: input.clone(), bytes })
    }
}

/// The outcome of a call, which is answered by a task if it waits for people and its client wants one.
pub(super) async fn offered(
    gateway: &Gateway,
    exchange: &Exchange,
    waits: Option<WaitingCall>,
    outcome: Outcome,
) -> Outcome {
    let (Some(waits), Some(refusal), Some(asked)) = (waits, outcome.refusal(), exchange.message())
    else {
        return outcome;
    };
    let Refusal::AwaitsApproval { approval, .. } = refusal else { return outcome };
    if approval.status != Status::Pending {
        return outcome;
    }
    let WaitingCall { ctx, tool, input, bytes } = waits;
    let input = input.root().to_value();
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    // Without a task the client calls again, as one that declared none does.
    if let Ok(Some(task)) = gateway.app.calls.task_of(&ctx, approval.id, tool, input, bytes).await {
        let message = refused::task(refusal);
        let told = members_of(&task, task.created_at(), "working", DECIDING_MS, Some(message));
        asked.tells(TaskReply::Begun(told));
    }
    outcome
}

/// Returns true for a request about a task. Only the stateless era has them.
pub(super) fn is_about(asking: &Asking) -> bool {
    let method =
        matches!(asking.method, Some(Method::GetTask | Method::UpdateTask | Method::CancelTask));
    method && asking.era == Era::Modern
}

/// Rejects a client that wants to hear of tasks and did not declare them.
pub(super) fn may_listen(asking: &Asking) -> Result<(), ProtocolError> {
    let wanted = asking.params.root().get("notifications");
    let wanted = wanted.and_then(|wanted| wanted.get("taskIds"));
    if wanted.is_some() { declared(asking) } else { Ok(()) }
}

fn declared(asking: &Asking) -> Result<(), ProtocolError> {
    if tasks::is_declared(asking.meta.root()) {
        return Ok(());
    }
    let message = format!("Declare the extension `{}` to ask for tasks.", tasks::EXTENSION);
    let data = Some(json!({"requiredCapabilities": tasks::required()}));
    Err(ProtocolError { data, ..ProtocolError::bad(code::MISSING_CAPABILITY, message) })
}

/// Answers a request about a task.
pub(super) async fn answer(
    gateway: &Arc<Gateway>,
    ctx: Ctx,
    face: &Face,
    asking: &Asking,
    exchange: &Exchange,
) -> Result<Outcome, Outcome> {
    declared(asking)?;
    ctx.require(Scope::McpsInvoke)?;
    let params = asking.params.root();
    let Some(id) = params.get("taskId").and_then(Node::text) else {
        return Err(ProtocolError::bad_params("`taskId` has to be a text.").into());
    };
    let follow_up = match asking.method {
        Some(Method::UpdateTask) => FollowUp::Answers(provided::answers(params)?),
        Some(Method::CancelTask) => FollowUp::Cancel,
        Some(_) | None => FollowUp::State,
    };
    let question = Question::of(face, asking, exchange.message());
    tell(gateway, ctx, &question, id, follow_up).await
}

/// Surroundings of a request about a task.
struct Question<'a> {
    face: &'a Face,
    capabilities: ClientCapabilities,
    asked: Option<&'a McpMessage>,
    /// Size of its parameters.
    bytes: usize,
}

impl<'a> Question<'a> {
    fn of(face: &'a Face, asking: &Asking, asked: Option<&'a McpMessage>) -> Self {
        let declared = asking.meta.root().get(meta::CLIENT_CAPABILITIES);
        let mut capabilities = declared.map(ClientCapabilities::read).unwrap_or_default();
        capabilities.ui &= face.provider().is_some();
        let bytes = asking.params.root().raw().len();
        Self { face, capabilities, asked, bytes }
    }

    fn is_of(&self, tool: &CapabilityId) -> bool {
        self.face.provider().is_none_or(|slug| tool.provider() == slug)
    }
}

/// Returns true for the id of a task of the caller here that a provider goes on with.
fn is_known(gateway: &Gateway, ctx: &Ctx, question: &Question<'_>, id: &str) -> bool {
    let task = gateway.app.calls.followed_task(ctx, id);
    task.is_some_and(|task| question.is_of(task.tool()))
}

/// Tells what is asked about the task of this id.
async fn tell(
    gateway: &Arc<Gateway>,
    ctx: Ctx,
    question: &Question<'_>,
    id: &str,
    follow_up: FollowUp,
) -> Result<Outcome, Outcome> {
    let calls = &gateway.app.calls;
    let unknown = || ProtocolError::bad_params(UNKNOWN);
    if let Some(task) = calls.followed_task(&ctx, id) {
        let task = Some(task).filter(|task| question.is_of(task.tool())).ok_or_else(unknown)?;
        let told = provided::tell(gateway, ctx, question, task, follow_up).await;
        return match told {
            Some(told) => told,
            None => Err(unknown().into()),
        };
    }
    let task = calls.task(&ctx, id).filter(|task| question.is_of(task.tool()));
    let task = task.ok_or_else(unknown)?;
    match follow_up {
        FollowUp::State => {
            if let Some(asked) = question.asked {
                asked.carries(question.face.provider().is_none(), task.tool().provider());
            }
            return polled(gateway, ctx, task, question.asked).await;
        }
        FollowUp::Cancel => calls.cancel_task(&ctx, &task).await?,
        // Nothing is asked of such a task, so an update says nothing.
        FollowUp::Answers(_) => {}
    }
    Ok(reply::result(json!({}), Era::Modern))
}

/// The state of a task, with its answer once there is one.
async fn polled(
    gateway: &Arc<Gateway>,
    ctx: Ctx,
    task: Task,
    asked: Option<&McpMessage>,
) -> Result<Outcome, Outcome> {
    let state = gateway.app.calls.task_state(&ctx, &task).await?;
    let changed_at = state.changed_at;
    let told = match state.step {
        TaskStep::Waits(refusal) => {
            members_of(&task, changed_at, "working", DECIDING_MS, Some(refused::task(&refusal)))
        }
        TaskStep::UnderWay => under_way(&task, changed_at),
        TaskStep::Cancelled => {
            let message = "The call was given up; the tool was not called.".to_owned();
            members_of(&task, changed_at, "cancelled", DECIDING_MS, Some(message))
        }
        TaskStep::Due(terms) => {
            return Ok(run(gateway, ctx, &task, changed_at, terms, asked).await);
        }
    };
    Ok(reply::result(Value::Object(told), Era::Modern))
}

/// Makes the call of a task. One that takes long goes on, and its answer is given to a later question.
async fn run(
    gateway: &Arc<Gateway>,
    ctx: Ctx,
    task: &Task,
    changed_at: Timestamp,
    terms: TaskTerms,
    asked: Option<&McpMessage>,
) -> Outcome {
    let run = gateway.app.calls.run_task(ctx, task, terms);
    let told = match tokio::time::timeout(PATIENCE, run).await {
        Err(_) => under_way(task, changed_at),
        Ok(TaskRun::Waits(refusal)) => {
            members_of(task, changed_at, "working", DECIDING_MS, Some(refused::task(&refusal)))
        }
        Ok(TaskRun::Ended(ended)) => {
            if let Some(asked) = asked {
                asked.uses(CapabilityKind::Tool, &task.tool().to_string());
                let told = members_of(task, changed_at, "completed", DECIDING_MS, None);
                asked.tells(TaskReply::Ended(told));
            }
            return Outcome::of_call(ended);
        }
    };
    reply::result(Value::Object(told), Era::Modern)
}

fn under_way(task: &Task, changed_at: Timestamp) -> Map<String, Value> {
    members_of(
        task,
        changed_at,
        "working",
        CALLING_MS,
        Some("The tool is being called.".to_owned()),
    )
}

/// The members of a task.
fn members_of(
    task: &Task,
    changed_at: Timestamp,
    status: &str,
    poll_ms: u64,
    message: Option<String>,
) -> Map<String, Value> {
    let mut told = Map::from_iter([
        ("taskId".to_owned(), json!(task.id())),
        ("status".to_owned(), json!(status)),
        ("createdAt".to_owned(), json!(task.created_at())),
        ("lastUpdatedAt".to_owned(), json!(changed_at)),
        ("ttlMs".to_owned(), json!(task.life_ms())),
        ("pollIntervalMs".to_owned(), json!(poll_ms)),
    ]);
    if let Some(message) = message {
        told.insert("statusMessage".to_owned(), json!(message));
    }
    told
}
