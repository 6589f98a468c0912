//! Approvals: calls that wait for people, and what people decide about them.
//!
//! The law of an approval is [`portcullis_core::approval`]; here its changes are recorded, each event
//! in one transaction with the change that it tells of.

mod asking;
mod counting;
mod deciding;
mod ending;
mod listing;
mod notices;
mod waiting;

pub(crate) use self::{asking::Obtained, ending::EVERY};
pub use self::{
    deciding::DecisionRequest,
    listing::{ApprovalPage, ApprovalView, EarlierApproval},
};

use std::sync::{Arc, OnceLock};

use portcullis_core::{
    approval::Approval,
    audit::{Event, EventType, Target},
    id::{ApprovalId, EventId},
    refusal::{Refusal, Unavailable},
};
use portcullis_store::{ApprovalChange, StoreError};
use serde_json::{Value, json};

use self::{notices::Notices, waiting::Waiting};
use crate::{
    audit::{
        Audit,
        events::{patience, row_of},
    },
    base::Base,
    catalogue::Capabilities,
    policies::Policies,
    request::screening::Screening,
};

/// Approvals of a node.
#[derive(Debug)]
pub struct Approvals {
    base: Arc<Base>,
    screening: Arc<Screening>,
    audit: Arc<Audit>,
    policies: Arc<Policies>,
    catalogue: Arc<Capabilities>,
    /// Public address of the gateway, once it is known.
    public_url: Arc<OnceLock<String>>,
    notices: Notices,
    waiting: Waiting,
}

impl Approvals {
    pub(crate) fn new(policies: &Arc<Policies>, public_url: &Arc<OnceLock<String>>) -> Self {
        let Policies { base, screening, audit, catalogue, .. } = &**policies;
        Self {
            base: Arc::clone(base),
            screening: Arc::clone(screening),
            audit: Arc::clone(audit),
            policies: Arc::clone(policies),
            catalogue: Arc::clone(catalogue),
            public_url: Arc::clone(public_url),
            notices: Notices::default(),
            waiting: Waiting::default(),
        }
    }

    /// The address at which people learn how to decide about an approval, once it is known where
    /// browsers find the gateway.
    pub(crate) fn url(&self, id: ApprovalId) -> Option<String> {
        self.public_url.get().map(|url| format!("{url}/approvals/{id}"))
    }

    /// Writes the next state of an approval with its event, and tells of it. `false` if it was changed
    /// meanwhile.
    async fn change(
        &self,
        approval: Approval,
        from: Option<i64>,
        event: Event,
    ) -> Result<bool, Refusal> {
        let id = event.id;
        let kind = event.kind;
        let change = ApprovalChange { approval: approval.clone(), from };
        let changed = self.audit.writer.change_approval(change, row_of(&event), patience()).await;
        let changed = changed.map_err(|error| unrecorded(id, &error))?;
        if changed {
            self.waiting.wake();
            counting::count(kind, &approval, self.base.now());
            self.tell(kind, id, &approval);
        }
        Ok(changed)
    }

    /// An event of the gateway itself about an approval.
    fn system_event(&self, approval: &Approval, kind: EventType) -> Event {
        let event = self.audit.system_event(approval.org_id, kind, target(approval));
        self.telling(event, approval)
    }

    /// The event with what it tells of the approval, in its erasable part.
    fn telling(&self, mut event: Event, approval: &Approval) -> Event {
        event.detached =
            event.detached.keep("approval", Some(approval_details(approval)), &*self.base.random);
        event
    }
}

/// Part of an approval that events tell.
fn approval_details(approval: &Approval) -> Value {
    json!({
        "approvals": approval.terms.approvals,
        "connection": approval.connection,
        "decisions": approval.decisions,
        "digest": approval.digest,
        "expires_at": approval.expires_at,
        "policy": approval.policy.id,
        "policy_version": approval.policy.version,
        "requester": approval.requester.principal_id,
        "status": approval.status,
        "tool": approval.tool.id,
        "tool_version": approval.tool.version,
    })
}

/// An approval as the object of an event.
fn target(approval: &Approval) -> Target {
    Target {
        capability: None,
        credential: None,
        id: Some(approval.id.to_string()),
        provider_id: Some(approval.connection),
        kind: "approval",
        version: None,
    }
}

fn unrecorded(event: EventId, error: &StoreError) -> Refusal {
    tracing::error!(%error, %event, "a change of an approval could not be recorded");
    Refusal::Unavailable { reason: Unavailable::Audit }
}
