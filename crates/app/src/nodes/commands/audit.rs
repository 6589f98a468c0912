//! Commands on the audit log: erase detached parts.

use portcullis_core::{
    audit::{EventType, Outcome, OutcomeStatus},
    id::OrgId,
    refusal::Executed,
};
use portcullis_store::{Erased, NewEvent, Selection};
use serde_json::json;

use super::{Operator, OperatorError};
use crate::{
    audit::{
        events::row_of,
        holds::{reason, span},
    },
    request::target_of,
};

/// The members of events that can be erased: persons and payloads.
pub const ERASABLE: [&str; 7] =
    ["actor_name", "decision_inputs", "input", "label", "output", "source_ip", "user_agent"];

/// Parts to erase, and the reason.
#[derive(Debug, Clone)]
pub struct ErasureRequest {
    pub org: OrgId,
    pub selection: Selection,
    /// Members to erase; all of [`ERASABLE`] if none is named.
    pub members: Vec<String>,
    pub reason: String,
}

impl Operator {
    /// Erases values and salts of the events selected. Those under a hold are left as they are and
    /// counted; both is recorded, in the transactions that erase.
    pub async fn erase(&self, request: &ErasureRequest) -> Result<Erased, OperatorError> {
        let reason = reason(&request.reason)?;
        let ErasureRequest { org, selection, .. } = request;
        span(selection.from, selection.to)?;
        let members = members(&request.members)?;
        let tell = |step: &Erased| self.erased(*org, selection, &members, reason, step);
        let mut all = Erased::default();
        let mut after = 0;
        loop {
            let step = self.store.erase(*org, selection, &members, after, tell).await?;
            all.erased += step.erased;
            all.held += step.held;
            match step.next {
                Some(next) => after = next,
                None => return Ok(all),
            }
        }
    }

    fn erased(
        &self,
        org: OrgId,
        selection: &Selection,
        members: &[String],
        reason: &str,
        step: &Erased,
    ) -> NewEvent {
        let target = match (selection.event, selection.actor) {
            (Some(event), _) => target_of("audit_event", event),
            (None, Some(actor)) => target_of("principal", actor),
            (None, None) => target_of("audit_log", org),
        };
        let mut event = self.event(EventType::AuditErased, org, target);
        event.count = Some(step.erased);
        if step.erased == 0 {
            event.outcome = Outcome {
                error_code: None,
                executed: Executed::No,
                http_status: 0,
                status: OutcomeStatus::Denied,
            };
        }
        let details = json!({
            "members": members, "erased": step.erased, "held": step.held, "reason": reason,
            "from": selection.from, "to": selection.to,
        });
        event.detached = event.detached.keep("erasure", Some(details), &*self.random);
        row_of(&event)
    }
}

fn members(named: &[String]) -> Result<Vec<String>, OperatorError> {
    if named.is_empty() {
        return Ok(ERASABLE.map(str::to_owned).to_vec());
    }
    match named.iter().find(|name| !ERASABLE.contains(&name.as_str())) {
        Some(unknown) => Err(OperatorError::NotErasable(unknown.clone())),
        None => Ok(named.to_vec()),
    }
}
