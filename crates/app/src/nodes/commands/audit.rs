//! Commands on the audit log: erase detached parts.

use portcullis_core::{audit::EventType, id::OrgId};
use portcullis_store::{Erased, ErasedParts, NewEvent, Selection};
use serde_json::{Value, json};

use super::{LogIdentity, Operator, OperatorError};
use crate::{
    audit::{
        events::{patience, row_of},
        evidence::Evidence,
        faults::Unproven,
        holds::{reason, span},
        log::REFUSED,
        retention::open_log,
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
    /// counted; both is recorded, in the transactions that erase. Where the log does not prove what is to be erased,
    /// nothing more is, and that is recorded, too.
    pub async fn erase(
        &self,
        identity: LogIdentity,
        request: &ErasureRequest,
    ) -> Result<Erased, OperatorError> {
        reason(&request.reason)?;
        span(request.selection.from, request.selection.to)?;
        let members = members(&request.members)?;
        match self.erase_proven(identity, request, &members).await {
            Ok(erased) => Ok(erased),
            Err(Unproven::Store(error)) => Err(error.into()),
            Err(Unproven::Fault(fault)) => {
                let told = Some(fault.to_string());
                let event = self.erased(request, &members, &Erased::default(), told);
                self.writer.append(event, patience()).await?;
                Err(OperatorError::Unproven(fault))
            }
        }
    }

    async fn erase_proven(
        &self,
        identity: LogIdentity,
        request: &ErasureRequest,
        members: &[String],
    ) -> Result<Erased, Unproven> {
        let signer = self.signer(identity);
        let mut evidence = Evidence::default();
        let reader = self.reader(&signer);
        let parts = ErasedParts::Members(members);
        let tell = |step: &Erased| Some(self.erased(request, members, step, None));
        let mut all = Erased::default();
        let mut after = -1;
        loop {
            let log = open_log(&reader, request.org, &mut evidence).await?;
            let places = self.store.select_events(request.org, &request.selection, after).await?;
            let (events, reached) = evidence.erasable(&log, &places, |_| true).await?;
            let Some(reached) = reached else { return Ok(all) };
            let step = self.store.erase(request.org, &events, parts, tell).await?;
            all.erased += step.erased;
            all.held += step.held;
            after = reached;
        }
    }

    fn erased(
        &self,
        request: &ErasureRequest,
        members: &[String],
        step: &Erased,
        fault: Option<String>,
    ) -> NewEvent {
        let ErasureRequest { org, selection, reason, .. } = request;
        let target = match (selection.event, selection.actor) {
            (Some(event), _) => target_of("audit_event", event),
            (None, Some(actor)) => target_of("principal", actor),
            (None, None) => target_of("audit_log", *org),
        };
        let mut event = self.event(EventType::AuditErased, *org, target);
        event.count = Some(step.erased);
        if step.erased == 0 {
            event.outcome = REFUSED;
        }
        let mut details = json!({
            "members": members, "erased": step.erased, "held": step.held, "reason": reason.trim(),
            "from": selection.from, "to": selection.to,
        });
        if let (Value::Object(details), Some(fault)) = (&mut details, fault) {
            details.insert("fault".to_owned(), Value::String(fault));
        }
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
