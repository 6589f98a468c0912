//! Calls that their providers go on with as tasks (`io.modelcontextprotocol/tasks`).
//!
//! The first answer of such a call ends it with the outcome `task`. What its provider tells later is judged as an answer
//! to the same call, anew: by the policies and the detectors of then. Each request that has an effect is a call of its
//! own in the log; the end of the task is told there once, by `mcp.task_ended`, and later requests are given it again.

mod asking;
mod followed;
mod overdue;
mod state;

use std::{
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::FutureExt;
use portcullis_core::{
    audit::{EventType, Governance},
    call::{Aim, KeptTask, ProviderTask, Round},
    capability::CapabilityKind,
    clock::Timestamp,
    json::Document,
    mcp::{Method, interaction::ClientCapabilities},
    refusal::{Executed, Refusal, UpstreamReason},
};
use portcullis_lanes::offload;
use portcullis_store::StoredTask;
use portcullis_upstream::{CallErrorKind, ServerWords, ToldTask};
use serde_json::{Map, json};

pub use self::followed::{FollowUp, Followed, FollowedTask};
pub(crate) use self::overdue::EVERY;
use self::{asking::unfinished, state::TaskQuestion};
use super::{
    Calls, Stopped, View, approve,
    bracket::Bracketed,
    conversation::{Conversation, Questions},
    dispatch::Dispatch,
    event::{CallEvent, CallOutcome},
    invoke::crashed,
    steps::ParsedCall,
    task::owner,
    uninterrupted::Uninterrupted,
};
use crate::{
    base::admission::{Admission, overloaded},
    catalogue::Visible,
    request::Ctx,
};

/// Milliseconds for which a task can be asked about at most: 24 hours.
const LONGEST_MS: u64 = 24 * 60 * 60 * 1_000;
/// Largest request in bytes of a call that may become a task.
const LARGEST: u64 = 64 << 10;
impl Calls {
    /// Returns true if this call may become a task that its caller asks about: it declared so, its input is not too large to
    /// be kept, and it has not too many of them.
    pub(super) async fn may_be_task(
        &self,
        ctx: &Ctx,
        visible: &Visible,
        round: &Round,
        bytes: u64,
    ) -> Result<bool, Refusal> {
        let is_one = round.capabilities.tasks
            && bytes <= LARGEST
            && visible.tool.id.kind() == CapabilityKind::Tool
            && visible.connection.server().passes_tasks();
        let caller = ctx.caller();
        let store = &self.base.store;
        Ok(is_one && store.may_have_provider_task(caller.org_id, caller.principal_id).await?)
    }

    /// The outcome of a call that its provider goes on with: the task is durable before its id leaves.
    pub(super) async fn begin_task(
        &self,
        dispatch: &Dispatch,
        mut governance: Governance,
        told: ToldTask,
    ) -> CallOutcome {
        let ctx = &dispatch.ctx;
        let (org, principal) = (ctx.caller().org_id, ctx.caller().principal_id);
        let created_at = self.base.now().floor_to_millis();
        let life_ms = told.ttl_ms.unwrap_or(LONGEST_MS).min(LONGEST_MS);
        let life = i64::try_from(life_ms).unwrap_or_default().saturating_mul(1_000);
        let tool = dispatch.call.tool().id.clone();
        let task = ProviderTask {
            call: dispatch.event,
            connection: dispatch.visible.connection.id,
            created_at,
            ends_at: Timestamp::from_micros(created_at.as_micros().saturating_add(life)),
            tool: tool.to_string(),
        };
        let input = dispatch.original.as_ref().map(|input| input.root().to_value());
        let kept = KeptTask {
            task: task.clone(),
            bytes: dispatch.call.bytes(),
            input: input.unwrap_or_default(),
            upstream: told.id.clone(),
        };
        let random = &*self.base.random;
        let id = self.state_key.seal_provider_task(&owner(ctx), &task, random);
        let sealed = self.state_key.seal_kept_task(org, &kept, random);
        let Some((id, sealed)) = id.zip(sealed) else {
            return CallOutcome::of_refusal(governance, Refusal::Internal, Executed::Unknown);
        };
        let row = StoredTask {
            org_id: org,
            event_id: task.call,
            principal_id: principal,
            ends_at: task.ends_at,
            sealed,
            told: None,
            ended: None,
        };
        if let Err(error) = self.base.store.keep_provider_task(&row).await {
            self.give_up(dispatch, &told.id).await;
            return CallOutcome::of_refusal(governance, error.into(), Executed::Unknown);
        }
        let words = self.judge_words(dispatch, &told).await;
        let mut members = FollowedTask { id, task, tool }.members("working", Some(&told));
        if let Some((words, ruling)) = words {
            ruling.add_to(&mut governance);
            members.insert("statusMessage".to_owned(), words);
        }
        CallOutcome::of_task(governance, &members)
    }

    /// The task of this id that a provider goes on with. `None` if the caller has none of it.
    #[must_use]
    pub fn followed_task(&self, ctx: &Ctx, id: &str) -> Option<FollowedTask> {
        let task = self.state_key.open_provider_task(&owner(ctx), id, self.base.now())?;
        let tool = task.tool.parse().ok()?;
        Some(FollowedTask { id: id.to_owned(), task, tool })
    }

    /// Asks a provider about a task of the caller, in a request of so many bytes, and judges what it tells. `None` if there
    /// is no such task any more.
    pub async fn follow(
        self: &Arc<Self>,
        ctx: Ctx,
        capabilities: ClientCapabilities,
        task: FollowedTask,
        asked: FollowUp,
        bytes: usize,
    ) -> Result<Option<Followed>, Box<Stopped>> {
        let Some(admission) = self.admissions.admit(&ctx.session.tenant, bytes).await else {
            return Err(Stopped::uncounted(overloaded()));
        };
        let org = ctx.caller().org_id;
        let followed =
            Box::pin(Arc::clone(self).follow_judged(ctx, capabilities, task, asked, admission));
        let call = Uninterrupted::new(followed, org, &self.base.workers, &self.base.tasks);
        AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|_| Err(crashed()))
    }

    async fn follow_judged(
        self: Arc<Self>,
        ctx: Ctx,
        capabilities: ClientCapabilities,
        task: FollowedTask,
        asked: FollowUp,
        mut admission: Admission,
    ) -> Result<Option<Followed>, Box<Stopped>> {
        if admission.is_large() {
            offload().await;
        }
        let org = ctx.caller().org_id;
        let found = self.base.store.find_provider_task(org, task.task.call).await;
        let found = found.map_err(|error| Stopped::uncounted(error.into()))?;
        let opened = found.and_then(|row| {
            let kept = self.state_key.open_kept_task(org, row.event_id, &row.sealed)?;
            Some((row, kept))
        });
        let Some((row, kept)) = opened else { return Ok(None) };
        let (method, responses) = match asked {
            FollowUp::State => (Method::GetTask, Map::new()),
            FollowUp::Answers(told) => (Method::UpdateTask, told),
            FollowUp::Cancel => (Method::CancelTask, Map::new()),
        };
        let says_nothing = method == Method::UpdateTask && responses.is_empty();
        let conversation =
            Conversation { capabilities, questions: Questions::Declared, state: None, responses };
        let Some(parsed) = self.parsed_again(&ctx, &task, &kept, method, conversation) else {
            return Ok(None);
        };
        if method != Method::GetTask && (row.ended.is_some() || says_nothing) {
            return Ok(Some(Followed::Taken));
        }
        let mut event = CallEvent::open(&self, &ctx);
        event.set_about(EventType::McpInvocation, task.task.call);
        event.note_method(&self, method);
        event.set_target(parsed.visible.target());
        event.commit_input(&self, parsed.input.root());
        let is_call = method == Method::UpdateTask;
        let parsed = if is_call { self.admit_call(&ctx, Ok(parsed)).await } else { Ok(parsed) };
        let cleared = match parsed {
            Ok(parsed) => self.clear_parsed(&ctx, parsed, &mut event, &mut admission).await,
            Err(rejection) => Err(rejection),
        };
        let dispatch = match cleared {
            Ok(dispatch) => dispatch,
            Err(rejection) => return self.reject(&ctx, event, rejection).await.map(|_| None),
        };
        drop(admission);
        if method == Method::GetTask {
            if let Some(sealed) = &row.ended {
                return self.repeat_end(&ctx, &task, sealed).await;
            }
            let question =
                TaskQuestion { dispatch: &dispatch, task: &task, kept: &kept, row: &row };
            return Box::pin(self.state_of(event, &question)).await;
        }
        self.inform(event, &dispatch, method, &kept).await
    }

    /// The call as it was made, through the connection that it was made through. `None` if its tool, or that, is gone.
    fn parsed_again(
        &self,
        ctx: &Ctx,
        task: &FollowedTask,
        kept: &KeptTask,
        method: Method,
        conversation: Conversation,
    ) -> Option<ParsedCall> {
        let visible = self.tools.find_used(ctx, &task.tool, None).ok()?;
        (visible.connection.id == kept.task.connection).then(|| ParsedCall {
            visible,
            view: View::Mcp,
            claim: None,
            input: Document::of(&kept.input),
            aim: Aim::Use,
            bytes: kept.bytes,
            conversation,
            about: Some(method),
        })
    }

    /// Sends answers to a task, or that it is given up, between a durable intent and a durable outcome.
    async fn inform(
        &self,
        event: Box<CallEvent>,
        dispatch: &Dispatch,
        method: Method,
        kept: &KeptTask,
    ) -> Result<Option<Followed>, Box<Stopped>> {
        let uses = approve::uses(&dispatch.approvals);
        let is_gone = AtomicBool::new(false);
        let effect = pin!(async {
            if !dispatch.approvals.is_empty() {
                Box::pin(self.approvals.consumed(&dispatch.ctx, &dispatch.approvals)).await;
            }
            let governance = dispatch.governance();
            match self.ask(dispatch, method, &kept.upstream).await {
                Ok(_) => CallOutcome::of_result(governance, Document::of(&json!({})), false),
                Err(error) => {
                    let is_unknown = error.kind == CallErrorKind::NotFound;
                    is_gone.store(is_unknown, Ordering::Relaxed);
                    let unknown = unfinished(UpstreamReason::JsonrpcError);
                    let error = if is_unknown { unknown } else { error };
                    self.fail(dispatch, governance, &error, &ServerWords::default()).await
                }
            }
        });
        let ended = match self.bracket(event, None, uses, effect).await {
            Bracketed::Ended(ended) => ended,
            Bracketed::NotApproved(event) => {
                self.policies.give_back(&dispatch.ctx, dispatch.call.rates());
                self.lose_approvals(event, &dispatch.approvals).await
            }
            Bracketed::KeyTaken(event) => self.lose_key_race(event, None).await,
        };
        match ended {
            Ok(_) => Ok(Some(Followed::Taken)),
            Err(_) if is_gone.load(Ordering::Relaxed) => Ok(None),
            Err(stopped) => Err(stopped),
        }
    }
}
