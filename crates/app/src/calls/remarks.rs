//! Oddities of a tool or its answer that do not stop a call: the event names them.

use portcullis_core::capability::Capability;
use portcullis_upstream::{CallAnswer, CallError};

portcullis_core::words! {
    /// One of these oddities.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Remark {
        /// Patterns of the tool's input schema were not enforced.
        PatternsUnenforced = "patterns_unenforced",
        /// Parts of the result's texts were no characters and became U+FFFD.
        CharactersReplaced = "characters_replaced",
        /// The result does not fit the output schema of the tool.
        OutputMismatch = "output_mismatch",
        /// A page asked for more than the provider's apps may have.
        PageNarrowed = "page_narrowed",
    }
}

impl Remark {
    /// The oddities of a call of `tool` with this answer, whose result fits its output schema or not.
    pub(crate) fn of(
        tool: &Capability,
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
