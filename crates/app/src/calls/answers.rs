//! Answers of an invocation, and the records of each ending.

use portcullis_core::{
    audit::{DlpResult, Governance, OutcomeStatus, RecordedDecision},
    id::EventId,
    json::{Bounds, Document},
    refusal::{Executed, Refusal},
};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value, value::RawValue};
use utoipa::ToSchema;

/// The `governance` member of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Governance)]
pub struct GovernanceView {
    /// `allow` or `deny`.
    pub decision: RecordedDecision,
    /// The policy that decided.
    #[schema(example = "no-prod-writes")]
    pub policy: String,
    /// Worst DLP outcome over input and output.
    pub dlp_result: DlpResult,
    /// The recorded event.
    pub audit_event_id: EventId,
}

impl GovernanceView {
    /// Present exactly when a decision was reached.
    pub(crate) fn of(governance: Option<&Governance>, event: EventId) -> Option<Self> {
        let governance = governance?;
        Some(Self {
            decision: governance.decision?,
            policy: governance.policy.clone()?,
            dlp_result: governance.dlp_result,
            audit_event_id: event,
        })
    }
}

/// A call that was answered by its tool.
#[derive(Debug)]
pub struct Invoked {
    /// Result of the tool, as far as it may leave the gateway.
    pub result: Document,
    pub governance: GovernanceView,
    /// `success`, `tool_error`, `input_required` or `task`.
    pub outcome: OutcomeStatus,
    /// True if the answer is so large that a worker writes it.
    pub large: bool,
    /// Sentences about the input for the caller.
    pub notes: Vec<String>,
}

/// Answer to a call that was not refused.
#[derive(Debug)]
pub enum Answered {
    /// The tool was called.
    Invoked(Invoked),
    /// The same request was made before, and this was its answer.
    Replayed(Box<Replayed>),
}

/// A call that was refused or failed.
#[derive(Debug)]
pub struct Stopped {
    pub refusal: Refusal,
    /// State of the upstream effect.
    pub executed: Executed,
    /// Governance of the call, if a decision was reached.
    pub governance: Option<GovernanceView>,
    /// In one word; absent when nothing could be recorded.
    pub outcome: Option<OutcomeStatus>,
}

impl Stopped {
    /// Before it was an invocation: there is no event of it.
    pub(crate) fn uncounted(refusal: Refusal) -> Box<Self> {
        let executed = Executed::No;
        let governance = None;
        let outcome = None;
        Box::new(Self { refusal, executed, governance, outcome })
    }
}

/// An answer that was given before.
#[derive(Debug, Serialize, Deserialize)]
pub struct Replayed {
    /// The event of the call.
    pub(super) event: EventId,
    pub http_status: u16,
    /// Result of the tool.
    #[serde(deserialize_with = "document")]
    pub result: Option<Document>,
    /// Error that was answered instead.
    pub error: Option<ReplayedError>,
    /// Governance of the call.
    pub governance: Option<GovernanceView>,
    /// In one word.
    pub outcome: OutcomeStatus,
    /// State of the upstream effect.
    pub executed: Executed,
    /// True if the answer is so large that a worker writes it.
    #[serde(skip)]
    pub large: bool,
}

/// The `error` of an answer that was given before, without `details.executed`.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReplayedError {
    /// `error.code`.
    pub code: String,
    /// `error.message`.
    pub message: String,
    /// `error.details`.
    pub details: Map<String, Value>,
}

/// A result that was kept, as it was answered.
fn document<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Document>, D::Error> {
    let kept = Option::<Box<RawValue>>::deserialize(from)?;
    let read = |raw: Box<RawValue>| Document::parse(raw.get().as_bytes(), Bounds::RECORDED);
    kept.map(read).transpose().map_err(D::Error::custom)
}

impl ReplayedError {
    /// The error of this refusal.
    pub(super) fn of(refusal: &Refusal) -> Self {
        Self {
            code: refusal.code().to_owned(),
            message: refusal.to_string(),
            details: refusal.details(),
        }
    }
}
