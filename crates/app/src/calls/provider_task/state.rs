//! States of tasks: what a provider tells is judged, recorded, and told.

use std::mem;

use portcullis_core::{
    audit::{EventType, Governance, Outcome, OutcomeStatus},
    call::{Answer, Denial, KeptTask, Ruling},
    clock::Timestamp,
    idempotency::fingerprint,
    json::{Document, JsonValue as _, Node},
    mcp::{Method, interaction::Interaction},
    refusal::{Executed, Refusal, Unavailable, UpstreamReason},
};
use portcullis_store::{StoreError, StoredTask};
use portcullis_upstream::{
    CallAnswer, CallError, CallErrorKind, ServerWords, TaskEnd, TaskState, ToldTask,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    asking::{result_of, unfinished},
    followed::{Followed, FollowedTask},
};
use crate::{
    audit::events::patience,
    calls::{
        Answered, Calls, GovernanceView, Invoked, Replayed, Stopped,
        dispatch::Dispatch,
        event::{CallEvent, CallOutcome},
        idempotency::KeptAnswer,
        remarks::Remark,
    },
    request::Ctx,
};

/// Seconds for which the answer of a task is kept at most: an hour.
const KEPT_SECONDS: i64 = 60 * 60;
const WORDS: &str = "statusMessage";
const QUESTIONS: &str = "inputRequests";

/// A task that is asked about, and the call that it is judged as.
pub(super) struct TaskQuestion<'a> {
    pub(super) dispatch: &'a Dispatch,
    pub(super) task: &'a FollowedTask,
    pub(super) kept: &'a KeptTask,
    pub(super) row: &'a StoredTask,
}

/// Words and questions of a task that goes on, as far as they may leave.
struct StateNews<'a> {
    governance: Governance,
    ruling: Ruling,
    status: OutcomeStatus,
    /// Members of the task that hold them.
    told: &'a Map<String, Value>,
}

/// The end of a task, as its provider tells it.
struct Ending {
    governance: Governance,
    /// The members of the task.
    members: Map<String, Value>,
    end: TaskEnd,
    /// Until when its answer is kept.
    until: Timestamp,
}

/// The end of a task, as it is kept: the members of the task and the answer to its call.
#[derive(Serialize, Deserialize)]
struct KeptEnd<A> {
    members: Map<String, Value>,
    answer: A,
}

impl Calls {
    /// The sentence about the state of a task, as far as it may leave, with the ruling about it.
    pub(super) async fn judge_words(
        &self,
        dispatch: &Dispatch,
        told: &ToldTask,
    ) -> Option<(Value, Ruling)> {
        let server = dispatch.visible.connection.server();
        let message = server.without_credentials(told.message.as_deref()?);
        let words = Map::from_iter([(WORDS.to_owned(), json!(message))]);
        let cleared = self.judge_answer(dispatch, Answer::questions(words)).await.ok()?;
        let words = cleared.result().root().get(WORDS).map(Node::to_value)?;
        Some((words, cleared.into_parts().2))
    }

    /// The state of a task. News of it, and its end, are recorded before they are told.
    pub(super) async fn state_of(
        &self,
        event: Box<CallEvent>,
        question: &TaskQuestion<'_>,
    ) -> Result<Option<Followed>, Box<Stopped>> {
        let TaskQuestion { dispatch, task, kept, .. } = question;
        let connection = &dispatch.visible.connection;
        // Its tool runs, whatever becomes of a request about it.
        let refused = |error: &CallError| {
            let executed = Executed::Unknown;
            Box::new(Stopped { executed, ..*Stopped::uncounted(connection.refusal(error)) })
        };
        let mut told = match self.ask(dispatch, Method::GetTask, &kept.upstream).await {
            Ok(CallAnswer::Task(told)) if told.id == kept.upstream => *told,
            Ok(_) => return Err(refused(&unfinished(UpstreamReason::ProtocolError))),
            Err(CallError { kind: CallErrorKind::NotFound, .. }) => return Ok(None),
            Err(error) => return Err(refused(&error)),
        };
        let mut governance = dispatch.governance();
        let mut more = Map::new();
        let mut news = None;
        if let Some((words, ruling)) = self.judge_words(dispatch, &told).await {
            ruling.add_to(&mut governance);
            news = Some(ruling).filter(|ruling| !ruling.findings.is_empty());
            more.insert(WORDS.to_owned(), words);
        }
        let status = match mem::replace(&mut told.state, TaskState::Working) {
            TaskState::Working => OutcomeStatus::Task,
            TaskState::Asks(asks) => {
                if let Some(required) = dispatch.leg.lacks(asks.needed) {
                    let provider = connection.provider.declared.slug.clone();
                    return Err(Stopped::uncounted(Refusal::Unanswerable { provider, required }));
                }
                let (questions, ruling) = match self.judge_questions(dispatch, asks).await {
                    Ok(judged) => judged,
                    Err(denial) => {
                        return Err(self
                            .refuse_questions(event, dispatch, governance, denial)
                            .await);
                    }
                };
                ruling.add_to(&mut governance);
                news = Some(ruling);
                more.insert(QUESTIONS.to_owned(), questions);
                OutcomeStatus::InputRequired
            }
            TaskState::Ended(end) => {
                let until = self.base.now().plus_seconds(KEPT_SECONDS).min(task.task.ends_at);
                let mut members = task.until(until).members("completed", Some(&told));
                members.extend(more);
                let end = Ending { governance, members, end, until };
                return self.end_task(event, question, end).await;
            }
        };
        if let Some(ruling) = news {
            let news = StateNews { governance, ruling, status, told: &more };
            self.note_state(event, question, news).await?;
        }
        let asks = status == OutcomeStatus::InputRequired;
        let mut members =
            task.members(if asks { "input_required" } else { "working" }, Some(&told));
        members.extend(more);
        Ok(Some(Followed::State(members)))
    }

    async fn judge_questions(
        &self,
        dispatch: &Dispatch,
        asks: Interaction,
    ) -> Result<(Value, Ruling), Denial> {
        let cleared = self.judge_answer(dispatch, Answer::questions(asks.requests)).await?;
        let (questions, _, ruling) = cleared.into_parts();
        Ok((questions.root().to_value(), ruling))
    }

    async fn refuse_questions(
        &self,
        mut event: Box<CallEvent>,
        dispatch: &Dispatch,
        governance: Governance,
        denial: Denial,
    ) -> Box<Stopped> {
        let mut outcome = self.withhold(dispatch, governance, denial);
        let recorded = outcome.recorded();
        event.take(self, &mut outcome);
        let refusal = outcome.end.err().map_or(Refusal::Internal, |(refusal, _)| refusal);
        self.refuse(event, refusal, recorded).await
    }

    /// Records what is told of a task that goes on, once, and sends its notices.
    async fn note_state(
        &self,
        mut event: Box<CallEvent>,
        question: &TaskQuestion<'_>,
        news: StateNews<'_>,
    ) -> Result<(), Box<Stopped>> {
        let TaskQuestion { dispatch, row, .. } = question;
        let StateNews { governance, ruling, status, told } = news;
        let told = json!(told);
        let print = fingerprint(&told.to_string());
        if row.told.as_ref() == Some(&print) {
            return Ok(());
        }
        self.follow_answer(&dispatch.ctx, &dispatch.visible.tool, &ruling);
        let outcome = CallOutcome::of_questions(governance, Document::of(&told));
        event.take(self, &mut outcome.with_ruling(ruling));
        let outcome = Outcome { status, ..Outcome::success(Executed::Yes) };
        let appended = self.audit.writer.append(event.row(&outcome), patience()).await;
        appended.map_err(|error| unrecorded(&error))?;
        let noted = self.base.store.note_provider_task(row.org_id, row.event_id, &print).await;
        noted.map_err(|error| Stopped::uncounted(error.into()))
    }

    /// Records the end of a task, with the answer that is given from now on. Of several requests one does.
    async fn end_task(
        &self,
        mut event: Box<CallEvent>,
        question: &TaskQuestion<'_>,
        end: Ending,
    ) -> Result<Option<Followed>, Box<Stopped>> {
        let Ending { governance, members, end, until } = end;
        let (org, call) = (question.row.org_id, question.row.event_id);
        event.set_about(EventType::McpTaskEnded, call);
        let mut ended = self.judge_end(question.dispatch, governance, end).await;
        let outcome = ended.recorded();
        event.take(self, &mut ended);
        let governance = GovernanceView::of(event.governance.as_ref(), event.id);
        let answer = ended.end.as_ref().map(|(result, _)| result).map_err(|(refusal, _)| refusal);
        let answer = KeptAnswer::new(event.id, answer, governance.clone(), &outcome);
        let text = serde_json::to_vec(&KeptEnd { members: members.clone(), answer });
        let sealed = text.ok().and_then(|text| {
            self.answer_key.seal(org, &call.to_string(), &text, &*self.base.random)
        });
        let sealed = sealed.unwrap_or_default();
        let row = event.row(&outcome);
        let writer = &self.audit.writer;
        let is_first = writer.end_provider_task(call, sealed, until, row, patience()).await;
        if !is_first.map_err(|error| unrecorded(&error))? {
            let found = self.base.store.find_provider_task(org, call).await;
            let found = found.map_err(|error| Stopped::uncounted(error.into()))?;
            let Some(sealed) = found.and_then(|row| row.ended) else { return Ok(None) };
            return self.repeat_end(&event.ctx, question.task, &sealed).await;
        }
        let ended = match (ended.end, governance) {
            (Ok((result, outcome)), Some(governance)) => {
                let (large, notes) = (false, Vec::new());
                Ok(Answered::Invoked(Invoked { result, governance, outcome, large, notes }))
            }
            (Err((refusal, executed)), _) => Err(event.stopped(refusal, executed, outcome.status)),
            (Ok(_), None) => Err(event.stopped(Refusal::Internal, Executed::Yes, outcome.status)),
        };
        Ok(Some(Followed::Ended(members, ended)))
    }

    /// The outcome of a task that ended.
    async fn judge_end(
        &self,
        dispatch: &Dispatch,
        governance: Governance,
        end: TaskEnd,
    ) -> CallOutcome {
        let said = ServerWords::default();
        match result_of(end, &said) {
            Ok(result) => {
                let answered = CallAnswer::Result(result.clone());
                let fits = self.fits(dispatch, Ok(&answered)).await;
                let remarks = Remark::of(&dispatch.visible.tool, Ok(&answered), fits);
                let outcome = self.decide_result(dispatch, governance, result, fits).await;
                outcome.with_remarks(remarks)
            }
            Err(error) => self.fail(dispatch, governance, &error, &said).await,
        }
    }

    /// The end that was told of a task, given once more.
    pub(super) async fn repeat_end(
        &self,
        ctx: &Ctx,
        task: &FollowedTask,
        sealed: &[u8],
    ) -> Result<Option<Followed>, Box<Stopped>> {
        let call = task.task.call.to_string();
        let kept = self.answer_key.open(ctx.caller().org_id, &call, sealed);
        let kept: Option<KeptEnd<Replayed>> = kept.and_then(|it| serde_json::from_slice(&it).ok());
        let Some(KeptEnd { members, answer }) = kept else { return Ok(None) };
        let ended = self.replay(ctx, Box::new(answer)).await;
        Ok(Some(Followed::Ended(members, ended)))
    }
}

/// The answer when the log cannot be written: nothing is told, and the task can be asked about again.
fn unrecorded(error: &StoreError) -> Box<Stopped> {
    tracing::error!(%error, "what a provider tells of a task could not be recorded");
    Stopped::uncounted(Refusal::Unavailable { reason: Unavailable::Audit })
}
