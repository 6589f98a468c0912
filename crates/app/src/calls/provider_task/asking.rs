//! Requests to providers about tasks, and the wait for the end of one.

use std::time::Duration;

use portcullis_core::{
    call::CallResult,
    mcp::Method,
    refusal::{Executed, UpstreamReason},
};
use portcullis_upstream::{
    CallAnswer, CallError, CallErrorKind, ServerWords, TaskEnd, TaskRequest, TaskState, ToldTask,
    Trace,
};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::followed::pause_ms;
use crate::calls::{Calls, dispatch::Dispatch};

/// Longest time for telling a provider that a task is given up.
const FAREWELL: Duration = Duration::from_secs(1);

impl Calls {
    /// The answer of a call: that of its task, if it became one and the gateway waits for that.
    pub(in crate::calls) async fn awaited_task(
        &self,
        dispatch: &Dispatch,
        answered: Result<CallAnswer, CallError>,
        until: Instant,
        said: &ServerWords,
    ) -> Result<CallAnswer, CallError> {
        match answered {
            Ok(CallAnswer::Task(told)) if dispatch.waits => {
                Box::pin(self.await_task(dispatch, &told, until, said)).await
            }
            // Its caller declared tasks; this call may not become one.
            Err(CallError { kind: CallErrorKind::Unanswerable(needed), .. })
                if needed.tasks && dispatch.leg.capabilities.tasks =>
            {
                Err(unfinished(UpstreamReason::InteractionRequired))
            }
            answered => answered,
        }
    }

    /// Asks for the end of a task until this moment. Then it is given up.
    async fn await_task(
        &self,
        dispatch: &Dispatch,
        begun: &ToldTask,
        until: Instant,
        said: &ServerWords,
    ) -> Result<CallAnswer, CallError> {
        let mut pause = pause_ms(begun.poll_ms);
        loop {
            let next = Instant::now() + Duration::from_millis(pause);
            sleep_until(next.min(until)).await;
            let asked = self.ask(dispatch, Method::GetTask, &begun.id);
            let told = match timeout_at(until, asked).await {
                Err(_) => break,
                Ok(Ok(CallAnswer::Task(told))) if told.id == begun.id => *told,
                // The task goes on, whatever becomes of a request about it.
                Ok(Err(error)) if error.kind != CallErrorKind::NotFound => {
                    if Instant::now() >= until {
                        break;
                    }
                    continue;
                }
                // It has forgotten the task, or tells of another.
                Ok(_) => return Err(unfinished(UpstreamReason::ProtocolError)),
            };
            pause = pause_ms(told.poll_ms);
            match told.state {
                TaskState::Working => {}
                TaskState::Ended(end) => return result_of(end, said).map(CallAnswer::Result),
                TaskState::Asks(_) => {
                    self.give_up(dispatch, &begun.id).await;
                    return Err(unfinished(UpstreamReason::InteractionRequired));
                }
            }
        }
        self.give_up(dispatch, &begun.id).await;
        let after = dispatch.visible.connection.server().call_timeout();
        Err(CallError { kind: CallErrorKind::Timeout { after }, executed: Executed::Unknown })
    }

    /// Tells a provider that a task is given up. The provider need not hear.
    pub(super) async fn give_up(&self, dispatch: &Dispatch, upstream: &str) {
        let told = timeout(FAREWELL, self.ask(dispatch, Method::CancelTask, upstream)).await;
        if !matches!(told, Ok(Ok(_))) {
            tracing::debug!(tool = %dispatch.visible.tool.id, "a task could not be cancelled");
        }
    }

    pub(super) async fn ask(
        &self,
        dispatch: &Dispatch,
        method: Method,
        upstream: &str,
    ) -> Result<CallAnswer, CallError> {
        let request = TaskRequest { method, task: upstream };
        let trace = Trace {
            traceparent: dispatch.ctx.origin.stages.parent().or(dispatch.ctx.origin.traceparent),
            ..Trace::default()
        };
        let connection = &dispatch.visible.connection;
        self.providers.call_through(connection, &dispatch.call, Some(request), trace).await
    }
}

/// The result of a task that ended with one.
pub(super) fn result_of(end: TaskEnd, said: &ServerWords) -> Result<CallResult, CallError> {
    Err(unfinished(match end {
        TaskEnd::Completed(result) => return Ok(result),
        TaskEnd::Failed(words) => {
            said.hear(&words);
            UpstreamReason::JsonrpcError
        }
        TaskEnd::Cancelled => UpstreamReason::Cancelled,
        TaskEnd::Unreadable => UpstreamReason::ProtocolError,
    }))
}

/// A task that gave no result.
pub(super) const fn unfinished(reason: UpstreamReason) -> CallError {
    CallError { kind: CallErrorKind::Upstream(reason), executed: Executed::Unknown }
}
