//! Oddities of a tool or its answer that do not stop a call: the event names them.

use std::sync::Arc;

use portcullis_core::{call::CallResult, json::Document, tool::Tool};
use portcullis_upstream::{CallAnswer, CallError};

use super::{Calls, invoke::Ready};
use crate::{providers::provider::Misfits, telemetry::counters};

/// One of these oddities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remark {
    /// Patterns of the tool's input schema were not enforced.
    PatternsUnenforced,
    /// Parts of the result's texts were no characters and became U+FFFD.
    CharactersReplaced,
    /// The result does not fit the output schema of the tool.
    OutputMismatch,
}

impl Remark {
    /// The word for it in events.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::PatternsUnenforced => "patterns_unenforced",
            Self::CharactersReplaced => "characters_replaced",
            Self::OutputMismatch => "output_mismatch",
        }
    }

    /// All that there is to say of a call of `tool` that was answered so, and whose result fits its output
    /// schema or not.
    pub(crate) fn of(
        tool: &Tool,
        answered: Result<&CallAnswer, &CallError>,
        fits: bool,
    ) -> Vec<Self> {
        let is_mended = matches!(answered, Ok(CallAnswer::Result(result)) if result.is_mended);
        let all = [
            (!tool.unenforced().is_empty(), Self::PatternsUnenforced),
            (is_mended, Self::CharactersReplaced),
            (!fits, Self::OutputMismatch),
        ];
        all.into_iter().filter_map(|(is_so, remark)| is_so.then_some(remark)).collect()
    }
}

impl Calls {
    /// Returns true unless the tool was answered by a result that does not fit its output schema, where
    /// anybody wants to know. Failures of a tool have no structured content.
    pub(super) async fn fits(
        &self,
        ready: &Ready,
        answered: Result<&CallAnswer, &CallError>,
    ) -> bool {
        let declared = &ready.visible.connection.provider.declared;
        let tool = &ready.visible.tool;
        let Ok(CallAnswer::Result(CallResult { structured, is_error: false, .. })) = answered
        else {
            return true;
        };
        if declared.misfits == Misfits::Ignore || !tool.declares_output() {
            return true;
        }
        let (tool, structured) = (Arc::clone(tool), structured.clone());
        let bytes = structured.as_ref().map_or(0, |it| it.root().raw().len());
        let check = move || tool.fits_output(structured.as_ref().map(Document::root));
        let fits = self.base.worked(ready.ctx.caller().org_id, bytes, check).await.unwrap_or(false);
        if !fits {
            counters::output_mismatched(declared.slug.as_str());
        }
        fits
    }
}
