//! A call before its approvers: the approvals that it needs, and what they are shown of it.

use serde_json::Value;

use super::{
    Cleared, Use,
    approval::{RequiredApproval, path, required},
    ruling::action,
};
use crate::{
    approval::FoundInput,
    dlp::{Action, Category, Direction, Engine, Finding, Subject},
    hidden::spelled_value,
};

/// The most findings that approvers are shown.
const MAX_SHOWN: usize = 20;

/// A call as approvers see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownCall {
    /// The input, with the answers to questions of the tool if there are some.
    pub input: Value,
    /// Findings of DLP in it, and what was done about them before it is sent.
    pub findings: Vec<FoundInput>,
}

impl<Mode> Cleared<Use, Mode> {
    /// Approvals that policies ask for before the call may be made, in the order of the policies.
    pub fn required_approvals(&self) -> impl Iterator<Item = RequiredApproval<'_>> {
        required(&self.obligations)
    }

    /// The call as approvers see it: masked as the answer of a tool would be, but for hidden characters,
    /// which are sent and so are [written out](crate::hidden). `None` if it cannot be scanned.
    #[must_use]
    pub fn show(&self, engine: &Engine, subject: &Subject) -> Option<ShownCall> {
        let payload = &self.inner.payload;
        let findings = engine.scan_for(payload.root(), subject).ok()?;
        let masks = |finding: &Finding| {
            let stays = finding.category() == Category::Hidden
                || engine.default_action(finding, Direction::Output) == Action::Flag;
            (!stays).then(|| engine.default_mask(finding))
        };
        let masked = engine.redact(payload, &findings, None, masks);
        let found = |finding: &Finding| FoundInput {
            action: action(engine, finding, Direction::Input, &self.obligations),
            count: finding.count(),
            detector: finding.detector().to_owned(),
            path: path(finding.pointer()),
        };
        Some(ShownCall {
            input: spelled_value(masked.root().to_value()),
            findings: self.findings.iter().take(MAX_SHOWN).map(found).collect(),
        })
    }
}
