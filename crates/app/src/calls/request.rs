//! The request of a call, as a face hands it over.

use portcullis_core::{
    approval::Status, call::Aim, capability::CapabilityId, clock::Timestamp, id::ApprovalId,
    idempotency::IdempotencyKey, json::Document, refusal::Refusal,
};

use super::conversation::Conversation;

portcullis_core::words! {
    /// In which form the caller wants the result.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum View {
        /// Structured content stands for itself.
        #[default]
        Structured = "structured",
        /// Always the MCP form.
        Mcp = "mcp",
    }
}

/// One request to invoke. What the HTTP layer could not read arrives as its refusal, because the
/// token's scope is judged before the body is.
#[derive(Debug)]
pub struct Invocation {
    /// The tool, or that what was named can be none.
    pub tool: Result<CapabilityId, Refusal>,
    /// The use, or another request about it.
    pub aim: Aim,
    /// The form of the result, or what is wrong with the query or the headers.
    pub view: Result<View, Refusal>,
    /// The idempotency key, if there is one, or what is wrong with it.
    pub key: Result<Option<IdempotencyKey>, Refusal>,
    /// The `input` member and the size of the whole body in bytes.
    pub body: Result<(Document, u64), Refusal>,
    /// Questions of the tool that the caller answers, and answers to earlier ones.
    pub conversation: Conversation,
    /// The task whose call it is, if it is one.
    pub task: Option<TaskTerms>,
}

/// Conditions under which the call of a task is made.
#[derive(Debug, Clone, Copy)]
pub struct TaskTerms {
    pub(super) approval: ApprovalId,
    /// True while the approval can be used.
    pub(super) usable: bool,
    /// Until when its answer is kept.
    pub(super) ends_at: Timestamp,
}

impl TaskTerms {
    /// Returns true if the refusal of a call that reached no tool is the answer of its task for good.
    pub(super) fn end_with(self, refusal: &Refusal) -> bool {
        if let Refusal::AwaitsApproval { approval, .. } = refusal {
            return approval.status != Status::Pending;
        }
        let passes = matches!(
            refusal,
            Refusal::RateLimited { .. }
                | Refusal::Unavailable { .. }
                | Refusal::IdempotencyInProgress { .. }
                | Refusal::InsufficientScope { .. }
                | Refusal::Internal
        );
        let holds = match refusal.code() {
            "invalid_input" => true,
            // A rate has room later.
            "policy_denied" => !refusal.details().contains_key("retry_after"),
            _ => false,
        };
        !passes && (holds || !self.usable)
    }
}
