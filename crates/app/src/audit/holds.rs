//! Holds to be laid, and their rules.

use portcullis_core::{
    clock::Timestamp,
    id::{HoldId, Ids, OrgId, PrincipalId},
};
use portcullis_store::Hold;
use serde_json::{Value, json};

/// The longest reason, in characters.
const MAX_REASON: usize = 500;

/// A hold to be laid.
#[derive(Debug, Clone)]
pub struct HoldRequest {
    pub org: OrgId,
    pub reason: String,
    /// Only what this principal did.
    pub actor: Option<PrincipalId>,
    /// Only from this moment on.
    pub from: Option<Timestamp>,
    /// Only until this moment.
    pub to: Option<Timestamp>,
}

/// A rule that a request for a hold breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HoldError {
    #[error("a reason has 1 to {MAX_REASON} characters, none of them a control character")]
    Reason,
    #[error("`from` has to be earlier than `to`")]
    Span,
}

impl HoldRequest {
    /// The hold with a new id. Fails if its reason is none, or its span is empty.
    pub(crate) fn made(self, ids: Ids<'_>, created_at: Timestamp) -> Result<Hold, HoldError> {
        let Self { org: org_id, reason: given, actor: actor_id, from, to } = self;
        span(from, to)?;
        let reason = reason(&given)?.to_owned();
        let id = HoldId::new(ids);
        Ok(Hold { id, org_id, reason, actor_id, from, to, created_at, released_at: None })
    }
}

/// A hold as it is shown.
pub(crate) fn record(hold: &Hold) -> Value {
    json!({
        "id": hold.id, "reason": hold.reason, "actor": hold.actor_id, "from": hold.from,
        "to": hold.to, "created_at": hold.created_at, "released_at": hold.released_at,
    })
}

/// A reason without the spaces around it.
pub(crate) fn reason(text: &str) -> Result<&str, HoldError> {
    let text = text.trim();
    let fits = (1..=MAX_REASON).contains(&text.chars().count());
    if fits && !text.chars().any(char::is_control) { Ok(text) } else { Err(HoldError::Reason) }
}

/// Rejects a span that holds no moment.
pub(crate) fn span(from: Option<Timestamp>, to: Option<Timestamp>) -> Result<(), HoldError> {
    match (from, to) {
        (Some(from), Some(to)) if from >= to => Err(HoldError::Span),
        _ => Ok(()),
    }
}
