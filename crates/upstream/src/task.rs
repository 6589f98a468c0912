//! Tasks of servers (`io.modelcontextprotocol/tasks`, SEP-2663): a server goes on with a call, and is asked for its
//! answer later.

use portcullis_core::{
    call::CallResult,
    clock::Timestamp,
    json::{Document, JsonValue, Node},
    mcp::{Method, apps, interaction::Interaction},
    refusal::{Executed, UpstreamReason},
};

use crate::{error::CallError, mcp::message::Reply, server_message::cut};

/// Longest id of a task in bytes: the id travels in a header.
const LONGEST_ID: usize = 1 << 10;

/// Request about a task.
#[derive(Debug, Clone, Copy)]
pub struct TaskRequest<'a> {
    /// `tasks/get`, `tasks/update` or `tasks/cancel`.
    pub method: Method,
    /// The id that the server gave.
    pub task: &'a str,
}

/// A task as its server tells of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToldTask {
    pub id: String,
    /// A sentence about its state.
    pub message: Option<String>,
    pub updated_at: Option<Timestamp>,
    /// Milliseconds from its beginning for which it is kept.
    pub ttl_ms: Option<u64>,
    /// Milliseconds after which to ask again.
    pub poll_ms: Option<u64>,
    pub state: TaskState,
}

/// State of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskState {
    Working,
    /// Questions that have to be answered before it goes on.
    Asks(Interaction),
    Ended(TaskEnd),
}

/// End of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskEnd {
    /// The result of its call.
    Completed(CallResult),
    /// The words of the error that ended it.
    Failed(String),
    Cancelled,
    /// The result that it gave is none of a tool.
    Unreadable,
}

impl ToldTask {
    /// A task that a server begins in place of a result.
    pub(crate) fn begun(reply: &Reply) -> Result<Self, CallError> {
        Self::of(reply, TaskState::Working)
    }

    /// The answer to a request for its state, in which `result_of` reads the result of its call.
    pub(crate) fn read(
        reply: &Reply,
        result_of: impl FnOnce(&Document, bool) -> Result<CallResult, CallError>,
    ) -> Result<Self, CallError> {
        let garbage = CallError::protocol(Executed::Unknown);
        let root = reply.result.root();
        let state = match root.get("status").and_then(Node::text) {
            Some("working") => TaskState::Working,
            Some("input_required") => {
                let unknown = UpstreamReason::InteractionRequired;
                let mut members = reply.members();
                // A task is continued by its id.
                members.remove("requestState");
                let asked = Interaction::read(&mut members);
                let unknown = CallError::upstream(unknown, Executed::Unknown);
                let mut asked = asked.ok_or(unknown)?;
                asked.requests.values_mut().for_each(|request| {
                    apps::remove_rights(request);
                });
                TaskState::Asks(asked)
            }
            Some("completed") => {
                let result = reply.result.member("result");
                let result = result.and_then(|it| result_of(&it, reply.is_mended).ok());
                TaskState::Ended(result.map_or(TaskEnd::Unreadable, TaskEnd::Completed))
            }
            Some("failed") => {
                let message = root.get("error").and_then(|error| error.get("message")?.text());
                TaskState::Ended(TaskEnd::Failed(cut(message.unwrap_or_default())))
            }
            Some("cancelled") => TaskState::Ended(TaskEnd::Cancelled),
            Some(_) | None => return Err(garbage),
        };
        Self::of(reply, state)
    }

    fn of(reply: &Reply, state: TaskState) -> Result<Self, CallError> {
        let garbage = CallError::protocol(Executed::Unknown);
        let told = &reply.result;
        let text = |name: &str| told.root().get(name).and_then(Node::text);
        let millis = |name: &str| told.root().get(name)?.to_value().as_u64();
        let id = text("taskId").filter(|id| !id.is_empty() && id.len() <= LONGEST_ID);
        Ok(Self {
            id: id.ok_or(garbage)?.to_owned(),
            message: text("statusMessage").map(cut),
            updated_at: text("lastUpdatedAt").and_then(Timestamp::parse_rfc3339),
            ttl_ms: millis("ttlMs"),
            poll_ms: millis("pollIntervalMs"),
            state,
        })
    }
}
