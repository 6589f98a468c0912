//! Calls whose caller attends them: their progress is told while they run, as far as it may leave,
//! and they end when their caller has left.

use std::{future::pending, pin::Pin, time::Duration};

use portcullis_core::{
    call::{Answer, CallResult, Cleared, Denial, Ruling},
    capability::CapabilityKind,
    json::Document,
};
use portcullis_upstream::{CallAnswer, CallError, Progress};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{Calls, dispatch::Dispatch};
use crate::request::attendance::{Attendance, Attended, ClearedProgress};

/// Time for what a tool told right before its answer.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Rulings on progress that the event of a call keeps.
const KEPT: usize = 16;

impl Calls {
    /// Waits for the answer of a call and meanwhile tells its progress. Also gives the rulings on
    /// what was told, for the event.
    pub(super) async fn attended(
        &self,
        dispatch: &Dispatch,
        call: Pin<&mut (impl Future<Output = Result<CallAnswer, CallError>> + Send)>,
    ) -> (Result<CallAnswer, CallError>, Vec<Ruling>) {
        match &dispatch.ctx.attendance {
            None => (call.await, Vec::new()),
            // Boxed, so that calls without an attending caller carry no room for it.
            Some(Attendance(attended)) => Box::pin(self.telling(dispatch, attended, call)).await,
        }
    }

    async fn telling(
        &self,
        dispatch: &Dispatch,
        attended: &Attended,
        call: Pin<&mut (impl Future<Output = Result<CallAnswer, CallError>> + Send)>,
    ) -> (Result<CallAnswer, CallError>, Vec<Ruling>) {
        let mut rulings = Vec::new();
        attended.live.dispatch();
        let mut heard = attended.heard.lock().await;
        let telling = async {
            while let Some(progress) = heard.recv().await {
                rulings.extend(self.tell(dispatch, attended, progress).await);
            }
            pending().await
        };
        let answered = tokio::select! {
            biased;
            answered = call => answered,
            never = telling => never,
        };
        let rest = async {
            while let Ok(progress) = heard.try_recv() {
                rulings.extend(self.tell(dispatch, attended, progress).await);
            }
        };
        // What is late is left out, as if the tool had not told it.
        let _ = timeout(LAST_WORDS, rest).await;
        rulings.truncate(KEPT);
        (answered, rulings)
    }

    /// Tells progress, once DLP and policies let it pass as they would an answer. What they do not
    /// let pass is dropped. Gives the ruling if anything was found.
    async fn tell(
        &self,
        dispatch: &Dispatch,
        attended: &Attended,
        progress: Progress,
    ) -> Option<Ruling> {
        let Progress { progress, total, message } = progress;
        // A model would take words beside a skill for some of it, and its manifest has none of them.
        let is_skill = dispatch.visible.tool.id.kind() == CapabilityKind::Skill;
        let message = message.filter(|_| !is_skill);
        let block = message.map(|text| json!({"type": "text", "text": text}));
        let mut more = Map::from_iter([("progress".to_owned(), Value::Number(progress))]);
        more.extend(total.map(|total| ("total".to_owned(), Value::Number(total))));
        let content = Document::of(&block.into_iter().collect::<Value>());
        let more = more.iter().map(|(name, it)| (name.clone(), Document::of(it))).collect();
        let content = Some(content);
        let answer = Answer::mcp(CallResult { content, more, ..CallResult::default() });
        let (result, _, ruling) = self.judge_progress(dispatch, answer).await.ok()?.into_parts();
        let result = result.root().to_value();
        let number = |name: &str| result.get(name).and_then(Value::as_number).cloned();
        let text = result.pointer("/content/0/text").and_then(Value::as_str);
        if let Some(progress) = number("progress") {
            let total = number("total");
            let message = text.map(str::to_owned);
            // A caller who does not read hears less.
            let _ = attended.told.try_send(ClearedProgress { progress, total, message });
        }
        (!ruling.findings.is_empty()).then_some(ruling)
    }

    async fn judge_progress(
        &self,
        dispatch: &Dispatch,
        progress: Answer,
    ) -> Result<Cleared<Answer>, Denial> {
        let subject = self.screening.subject(&dispatch.ctx.session.tenant, dispatch.call.tool());
        let scanned = dispatch.dlp.scan_answer(progress, &subject).await?;
        let engine = dispatch.dlp.engine();
        let asker = dispatch.ctx.asker(self.capture);
        let permitted = scanned.decide(&dispatch.call, &*dispatch.policies, engine, asker)?;
        permitted.fulfil(engine, dispatch.call.tool())
    }
}
