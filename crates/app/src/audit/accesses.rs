//! Records of reading everybody's events: the first look of a principal at once and before anything
//! is shown, further ones once an hour with their count.

use portcullis_core::{
    audit::{Actor, Detached, Event, EventType, Outcome, Target},
    clock::Timestamp,
    id::{EventId, OrgId, PrincipalId},
    refusal::{Executed, Refusal},
};

use super::{
    Audit,
    events::{patience, row_of},
    repeats::{Noted, Runs},
};
use crate::request::Ctx;

/// Seconds for which one event stands for all looks of a principal.
const SPAN: i64 = 60 * 60;

/// The looks of this node.
pub(crate) type Accessed = Runs<(OrgId, PrincipalId), Actor>;

/// No accesses recorded yet.
pub(crate) fn no_looks() -> Accessed {
    Runs::lasting(SPAN)
}

impl Audit {
    /// Records that the caller looks at the org's log, unless it is the operator, who could read the database itself.
    /// Fails if that cannot be recorded.
    pub(crate) async fn note_access(&self, ctx: &Ctx) -> Result<(), Refusal> {
        let caller = ctx.caller();
        if caller.is_operator {
            return Ok(());
        }
        let key = (caller.org_id, caller.principal_id);
        let actor = Actor::of(caller);
        if self.accessed.note(key, &actor, ctx.origin.arrived) == Noted::Again {
            return Ok(());
        }
        let mut event = self.accessed_event(caller.org_id, actor, 1, ctx.origin.arrived);
        event.request = Some(ctx.recorded_request());
        event.detached = ctx.detached(&self.screening);
        self.record(event).await.inspect_err(|_| self.accessed.forget(&key))
    }

    /// Records the further looks of the hours that are over.
    pub(crate) async fn record_accesses(&self) {
        let now = self.base.clock.now();
        for ((org, _), actor, count) in self.accessed.due(now) {
            let event = self.accessed_event(org, actor, count, now);
            if let Err(error) = self.writer.append(row_of(&event), patience()).await {
                tracing::error!(%error, count, "reads of the log could not be recorded");
            }
        }
    }

    fn accessed_event(&self, org: OrgId, actor: Actor, count: u64, at: Timestamp) -> Event {
        Event {
            id: EventId::new(self.base.ids()),
            org_id: org,
            kind: EventType::AuditAccessed,
            occurred_at: at,
            count: Some(count),
            actor,
            request: None,
            target: Some(Target {
                capability: None,
                credential: None,
                id: Some(org.to_string()),
                provider_id: None,
                kind: "audit_log",
                version: None,
            }),
            governance: None,
            outcome: Outcome::success(Executed::Yes),
            detached: Detached::default(),
        }
    }
}
