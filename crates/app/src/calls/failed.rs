//! The end of a call that its upstream did not answer.

use portcullis_core::{
    audit::Governance,
    call::{Answer, CallResult},
    hidden::spelled,
    json::Document,
    refusal::Refusal,
};
use portcullis_upstream::{CallError, ServerWords, text::one_line};
use serde_json::{Value, json};

use super::{Calls, dispatch::Dispatch, event::CallOutcome};

impl Calls {
    /// The end of a call without an answer. What its server said instead goes to the caller and into the
    /// log, if it may leave as the text of a result could.
    pub(super) async fn fail(
        &self,
        dispatch: &Dispatch,
        mut governance: Governance,
        error: &CallError,
        said: &ServerWords,
    ) -> CallOutcome {
        let connection = &dispatch.visible.connection;
        let mut refusal = connection.refusal(error);
        if let (Refusal::UpstreamError { said: told, .. }, Some(text)) = (&mut refusal, said.text())
        {
            let text = connection.server().without_credentials(text);
            *told = self.cleared(dispatch, &mut governance, text).await;
            if let Some(text) = told {
                let tool = &dispatch.visible.tool.id;
                let request = dispatch.ctx.origin.request_id;
                let line = one_line(text, text.len());
                tracing::info!(%tool, %request, "the server of a tool answered with an error: {line}");
            }
        }
        CallOutcome::of_refusal(governance, refusal, error.executed)
    }

    /// A text of the server as far as it may leave; `None` if it may not.
    async fn cleared(
        &self,
        dispatch: &Dispatch,
        governance: &mut Governance,
        text: String,
    ) -> Option<String> {
        let content = Some(Document::of(&json!([{"type": "text", "text": text}])));
        let answer = Answer::mcp(CallResult { content, is_error: true, ..CallResult::default() });
        let (result, _, ruling) = self.judge_answer(dispatch, answer).await.ok()?.into_parts();
        ruling.add_to(governance);
        let result = result.root().to_value();
        let text = result.pointer("/content/0/text").and_then(Value::as_str)?;
        Some(spelled(text).into_owned())
    }
}
