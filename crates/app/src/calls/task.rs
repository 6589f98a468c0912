//! Calls that wait for people as tasks of MCP: their callers ask later for the answer.
//!
//! Nothing is kept of a task but its approval. The call stands in the id, sealed, so any node makes it
//! once people approved it. It is made under an idempotency key that follows from the approval and is
//! kept until the task ends: every later request is given the same answer, also one that the call was not
//! made.

use std::sync::Arc;

use portcullis_core::{
    approval::{Approval, Status},
    call::{Aim, TaskCall, TaskOwner},
    capability::CapabilityId,
    clock::Timestamp,
    id::ApprovalId,
    json::Document,
    refusal::{AskedApproval, Executed, Refusal, Unavailable},
};
use serde_json::Value;

use super::{
    Answered, Calls, Invocation, Stopped, TaskTerms, View, conversation::Conversation,
    idempotency::KeyMeaning,
};
use crate::{base::claim::Claim, request::Ctx};

/// Seconds for which an answer can be asked for after the last moment to use the approval: 24 hours.
const KEPT_SECONDS: i64 = 24 * 60 * 60;
/// Withdrawals that others overtake before one is given up.
const TRIES: u32 = 5;

/// A call that waits for people, as a task.
#[derive(Debug)]
pub struct Task {
    id: String,
    call: TaskCall,
    tool: CapabilityId,
}

impl Task {
    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The tool that is called.
    #[must_use]
    pub const fn tool(&self) -> &CapabilityId {
        &self.tool
    }

    /// When people were asked.
    #[must_use]
    pub const fn created_at(&self) -> Timestamp {
        self.call.created_at
    }

    /// Milliseconds for which its answer can be asked for.
    #[must_use]
    pub fn life_ms(&self) -> u64 {
        self.call.ends_at.as_millis().saturating_sub(self.call.created_at.as_millis())
    }
}

/// State of a task.
#[derive(Debug)]
pub struct TaskState {
    /// When people last decided something about it, or were asked.
    pub changed_at: Timestamp,
    pub step: TaskStep,
}

/// Next step of a task.
#[derive(Debug)]
pub enum TaskStep {
    /// People have to decide.
    Waits(Refusal),
    /// The tool is being called.
    UnderWay,
    /// The caller gave the task up.
    Cancelled,
    /// People decided, or cannot any more: the call is made or refused, if it was not already.
    Due(TaskTerms),
}

/// End of an attempt to make the call of a task.
#[derive(Debug)]
pub enum TaskRun {
    /// The call could not be made yet.
    Waits(Refusal),
    /// The call has this answer from now on.
    Ended(Result<Answered, Box<Stopped>>),
}

impl Calls {
    /// The task of a call that waits for this approval. `None` if the call is too large for one.
    pub async fn task_of(
        &self,
        ctx: &Ctx,
        approval: ApprovalId,
        tool: CapabilityId,
        input: Value,
        bytes: u64,
    ) -> Result<Option<Task>, Refusal> {
        let found = self.base.store.find_approval(ctx.caller().org_id, approval).await?;
        let Some(Approval { created_at, terms, .. }) = found.map(|it| it.approval) else {
            return Ok(None);
        };
        // The time to decide, then that to use the approval.
        let life = i64::from(terms.ttl_s).saturating_mul(2).saturating_add(KEPT_SECONDS);
        let ends_at = created_at.plus_seconds(life);
        let call = TaskCall { approval, bytes, created_at, ends_at, input, tool: tool.to_string() };
        let id = self.state_key.seal_task(&owner(ctx), &call, &*self.base.random);
        Ok(id.map(|id| Task { id, call, tool }))
    }

    /// The task of this id. `None` if the caller has none of it.
    #[must_use]
    pub fn task(&self, ctx: &Ctx, id: &str) -> Option<Task> {
        let call = self.state_key.open_task(&owner(ctx), id, self.base.now())?;
        let tool = call.tool.parse().ok()?;
        Some(Task { id: id.to_owned(), call, tool })
    }

    /// State of a task.
    pub async fn task_state(&self, ctx: &Ctx, task: &Task) -> Result<TaskState, Refusal> {
        let org = ctx.caller().org_id;
        let now = self.base.now();
        let found = self.base.store.find_approval(org, task.call.approval).await?;
        let approval = found.map(|it| it.approval);
        let status = approval.as_ref().map(|it| it.status_at(now));
        let decided = approval.as_ref().and_then(|it| it.decisions.last()).map(|it| it.at);
        let step = match approval {
            Some(approval) if status == Some(Status::Pending) => {
                TaskStep::Waits(self.awaited(&approval, Status::Pending))
            }
            other => match self.find_meaning(org, &claim(ctx, task)).await? {
                KeyMeaning::UnderWay(_) => TaskStep::UnderWay,
                KeyMeaning::Free if other.is_some_and(|it| it.withdrawn) => TaskStep::Cancelled,
                KeyMeaning::Free | KeyMeaning::Answered(_) | KeyMeaning::Reused(_) => {
                    TaskStep::Due(terms(task, status == Some(Status::Approved)))
                }
            },
        };
        Ok(TaskState { changed_at: decided.unwrap_or(task.call.created_at), step })
    }

    /// Makes the call of a task, once, or gives the answer that it had. It is judged anew, and made with
    /// the approval that it waited for or not at all.
    pub async fn run_task(self: &Arc<Self>, ctx: Ctx, task: &Task, terms: TaskTerms) -> TaskRun {
        let tool = task.tool.clone();
        let bytes = task.call.bytes;
        let input = Document::of(&task.call.input);
        let invocation = move || Invocation {
            tool: Ok(tool),
            aim: Aim::Use,
            view: Ok(View::Mcp),
            key: Ok(None),
            body: Ok((input, bytes)),
            conversation: Conversation::default(),
            task: Some(terms),
        };
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        match self.invoke(ctx, size, invocation).await {
            Err(stopped) if is_open(terms, &stopped) => TaskRun::Waits(stopped.refusal),
            ended => TaskRun::Ended(ended),
        }
    }

    /// Gives up a call, unless it was made or has ended otherwise.
    pub async fn cancel_task(&self, ctx: &Ctx, task: &Task) -> Result<(), Refusal> {
        let org = ctx.caller().org_id;
        for _ in 0..TRIES {
            let found = self.base.store.find_approval(org, task.call.approval).await?;
            let Some(found) = found else { return Ok(()) };
            // Looked at after the approval: a call that takes both changes the approval.
            if !matches!(self.find_meaning(org, &claim(ctx, task)).await?, KeyMeaning::Free) {
                return Ok(());
            }
            if self.approvals.withdrawn(ctx, found).await? {
                return Ok(());
            }
        }
        Err(Refusal::Unavailable { reason: Unavailable::Overloaded })
    }

    /// The refusal of a call whose approval has this status.
    pub(super) fn awaited(&self, approval: &Approval, status: Status) -> Refusal {
        Refusal::AwaitsApproval {
            policy: approval.policy.id.clone(),
            reason: approval.policy.reason.clone(),
            approval: AskedApproval { status, ..self.describe(approval) },
        }
    }
}

/// True if a later attempt may end otherwise: nothing was sent, or nothing of its end is recorded yet.
fn is_open(terms: TaskTerms, stopped: &Stopped) -> bool {
    let unrecorded = matches!(stopped.refusal, Refusal::Unavailable { .. });
    unrecorded || (stopped.executed == Executed::No && !terms.end_with(&stopped.refusal))
}

pub(super) fn owner(ctx: &Ctx) -> TaskOwner {
    let caller = ctx.caller();
    TaskOwner {
        org: caller.org_id,
        principal: caller.principal_id,
        actors: caller.via.into_iter().chain(caller.lineage.actors().to_vec()).collect(),
    }
}

const fn terms(task: &Task, usable: bool) -> TaskTerms {
    TaskTerms { approval: task.call.approval, usable, ends_at: task.call.ends_at }
}

fn claim(ctx: &Ctx, task: &Task) -> Claim {
    Claim::of_task(ctx.caller(), &task.tool, task.call.approval, task.call.ends_at)
}
