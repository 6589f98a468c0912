//! A second request with the same key is the first one: it is given the answer of
//! the first and reaches no tool.
//!
//! A key is taken by the intent of its call and answered by its event, in their transactions, so
//! nothing is lost between the two. Until the intent is written a key is not held: what is refused
//! before leaves it free.

use portcullis_core::{
    audit::{Event, EventType, Outcome, OutcomeStatus},
    capability::{CapabilityId, ProviderSlug},
    id::{EventId, OrgId, RequestId},
    json::Document,
    refusal::{Executed, Refusal},
};
use portcullis_lanes::{LARGE, is_offloaded, offload};
use portcullis_store::{KeyEnd, NewEvent, TextColumn};
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::{Answered, Calls, GovernanceView, Replayed, ReplayedError, Stopped};
use crate::{
    audit::events::object,
    base::claim::Claim,
    request::{Ctx, target_of},
    telemetry::{counters, stages::Stage},
};

#[derive(Debug)]
pub(crate) enum KeyMeaning {
    /// Nothing.
    Free,
    /// The same request, and this was its answer.
    Answered(Box<Replayed>),
    /// The same request, still under way.
    UnderWay(RequestId),
    /// Another request.
    Reused(RequestId),
}

impl KeyMeaning {
    /// Refuses a request whose key is taken.
    pub(crate) fn free(&self) -> Result<(), Refusal> {
        match self {
            Self::Free | Self::Answered(_) => Ok(()),
            Self::UnderWay(first) => Err(Refusal::IdempotencyInProgress { first: *first }),
            Self::Reused(first) => Err(Refusal::IdempotencyKeyReused { first: *first }),
        }
    }
}

/// An answer to be kept: reads back as [`Replayed`].
#[derive(Serialize)]
pub(crate) struct KeptAnswer {
    event: EventId,
    http_status: u16,
    result: Option<Box<RawValue>>,
    error: Option<ReplayedError>,
    governance: Option<GovernanceView>,
    outcome: OutcomeStatus,
    executed: Executed,
}

impl KeptAnswer {
    /// The answer of the call with this event and outcome.
    pub(crate) fn new(
        event: EventId,
        end: Result<&Document, &Refusal>,
        governance: Option<GovernanceView>,
        outcome: &Outcome,
    ) -> Self {
        let (result, error) = match end {
            // The text of a document is JSON.
            Ok(result) => (RawValue::from_string(result.root().raw().to_owned()).ok(), None),
            Err(refusal) => (None, Some(ReplayedError::of(refusal))),
        };
        let (outcome, executed, http_status) =
            (outcome.status, outcome.executed, outcome.http_status);
        Self { event, http_status, result, error, governance, outcome, executed }
    }
}

/// Codes that a call can end with after it was dispatched.
const CODES: [&str; 5] =
    ["policy_denied", "upstream_error", "upstream_timeout", "unavailable", "internal_error"];

impl Calls {
    /// Meaning of the key of a claim.
    pub(crate) async fn find_meaning(
        &self,
        org: OrgId,
        claim: &Claim,
    ) -> Result<KeyMeaning, Refusal> {
        let found =
            self.base.store.find_idempotency_key(org, &claim.digest, self.base.clock.now()).await;
        let Some(found) = found? else {
            return Ok(KeyMeaning::Free);
        };
        if found.fingerprint != claim.fingerprint {
            return Ok(KeyMeaning::Reused(found.request_id));
        }
        let Some(sealed) = found.sealed else { return Ok(KeyMeaning::UnderWay(found.request_id)) };
        if sealed.len() > LARGE {
            offload().await;
        }
        let answer = self.answer_key.open(org, &found.subject, &sealed);
        let answer = answer.and_then(|text| serde_json::from_slice(&text).ok());
        let large = is_offloaded();
        let answered = |answer| KeyMeaning::Answered(Box::new(Replayed { large, ..answer }));
        answer.map(answered).ok_or_else(|| {
            // Never dispatched again: a caller that needs the call again takes another key.
            tracing::error!(
                request = %found.request_id,
                "the answer kept for an idempotency key cannot be opened: was the key file changed?"
            );
            Refusal::Internal
        })
    }

    /// State of a key after the answer of its call: a call that reached no tool leaves it free, unless
    /// every end is kept.
    pub(crate) fn key_end(&self, org: OrgId, kept: &KeptAnswer, every: bool) -> KeyEnd {
        if kept.executed == Executed::No && !every {
            return KeyEnd::Released;
        }
        let subject = kept.event.to_string();
        let text = serde_json::to_vec(kept).unwrap_or_default();
        let sealed = self.answer_key.seal(org, &subject, &text, &*self.base.random);
        KeyEnd::Answered(sealed.unwrap_or_default())
    }

    /// State of the key of a call that a crash cut off, if it had one.
    pub(crate) fn interrupted(&self, event: &NewEvent) -> Option<KeyEnd> {
        let core = Value::Object(object(event.texts.core())?);
        if core.pointer("/request/idempotent") != Some(&Value::Bool(true)) {
            return None;
        }
        let target = event.texts.of(TextColumn::Target)?;
        let target = target.parse::<CapabilityId>().ok()?;
        let provider = target.provider().parse::<ProviderSlug>().ok()?;
        let declared = self.catalogue.providers.get(provider.as_str());
        let patience = declared.map(|declared| declared.server().call_timeout());
        let timeout_ms = patience.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(0));
        let refusal = Refusal::Interrupted { provider, timeout_ms };
        let outcome = Outcome {
            error_code: Some(refusal.code()),
            executed: Executed::Unknown,
            http_status: refusal.http_status(),
            status: OutcomeStatus::Unknown,
        };
        let mut governance = core.pointer("/governance").cloned().unwrap_or_default();
        if let Value::Object(members) = &mut governance {
            members.insert("audit_event_id".to_owned(), Value::from(event.id.to_string()));
        }
        let governance = serde_json::from_value(governance).ok();
        let kept = KeptAnswer::new(event.id, Err(&refusal), governance, &outcome);
        Some(self.key_end(event.org_id, &kept, false))
    }

    /// Gives an answer again. It leaves the gateway again, so that is recorded before.
    pub(crate) async fn replay(
        &self,
        ctx: &Ctx,
        replayed: Box<Replayed>,
    ) -> Result<Answered, Box<Stopped>> {
        self.enter_stage(ctx, Stage::Outcome);
        let code = replayed.error.as_ref().map(|error| error.code.as_str());
        let target = target_of("audit_event", replayed.event);
        let event = Event {
            request: Some(ctx.recorded_request().protected()),
            outcome: Outcome {
                error_code: code.and_then(|code| CODES.into_iter().find(|known| *known == code)),
                // Of this request nothing was sent to the tool.
                executed: Executed::No,
                http_status: replayed.http_status,
                status: replayed.outcome,
            },
            ..ctx.event(&self.screening, EventType::McpReplayed, target)
        };
        match self.audit.record(event).await {
            Ok(()) => {
                counters::replayed();
                Ok(Answered::Replayed(replayed))
            }
            Err(refusal) => Err(Box::new(Stopped {
                refusal,
                executed: replayed.executed,
                governance: None,
                outcome: None,
            })),
        }
    }
}
