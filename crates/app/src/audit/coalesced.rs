//! Events that a stranger or a runaway client could multiply. The first one is recorded at once,
//! then at most one a minute for each org, kind, code and sender, with the count of all that it
//! stands for. So the log tells of every flood and is flooded by none.

use std::net::IpAddr;

use portcullis_core::{
    audit::{Actor, Detached, Event, EventType, Outcome},
    id::{EventId, OrgId, PrincipalId},
    principal::Caller,
    refusal::{Executed, Refusal},
};

use super::{
    Audit,
    events::{patience, row_of},
    outcome::outcome_of,
    repeats::{Noted, Runs},
};
use crate::{ctx::Origin, tenants::sources::subnet};

/// Seconds for which one event stands for all of its kind.
const SPAN: i64 = 60;

/// Identity of a repeated refusal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    org: OrgId,
    kind: EventType,
    code: &'static str,
    sender: Sender,
}

/// Sender of refused requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sender {
    Network(IpAddr),
    /// A known caller, from wherever it comes.
    Principal(PrincipalId),
}

/// The refusals of this node, by what they were.
pub(crate) type Coalesced = Runs<Key, (Actor, Outcome)>;

/// No refusals yet.
pub(crate) fn no_refusals() -> Coalesced {
    Runs::lasting(SPAN)
}

impl Audit {
    /// Notes that a request of a known org was refused before anything was looked at.
    pub(crate) fn note_refused(
        &self,
        kind: EventType,
        org: OrgId,
        actor: Actor,
        refusal: &Refusal,
        origin: &Origin,
    ) {
        let sender = Sender::Network(subnet(origin.source_ip));
        let key = Key { org, kind, code: refusal.code(), sender };
        self.note_repeated(key, actor, refusal, origin);
    }

    /// Notes that a caller asked for what it may not do.
    pub fn note_forbidden(&self, caller: &Caller, refusal: &Refusal, origin: &Origin) {
        let sender = Sender::Principal(caller.principal_id);
        let kind = EventType::AccessRefused;
        let key = Key { org: caller.org_id, kind, code: refusal.code(), sender };
        self.note_repeated(key, Actor::of(caller), refusal, origin);
    }

    fn note_repeated(&self, key: Key, actor: Actor, refusal: &Refusal, origin: &Origin) {
        let Key { org, kind, code, .. } = key;
        let outcome = outcome_of(refusal, Executed::No);
        match self.coalesced.note(key, &(actor.clone(), outcome), origin.arrived) {
            Noted::First => {}
            Noted::Again => return,
            Noted::TooMany => {
                return tracing::warn!(code, "too many senders to record each of their refusals");
            }
        }
        let mut event = self.refused_event(org, kind, actor, outcome, 1);
        event.request = Some(origin.recorded());
        event.detached = origin.detached(&self.screening);
        let writer = self.writer.clone();
        self.base.tasks.spawn(async move {
            if let Err(error) = writer.append(row_of(&event), patience()).await {
                tracing::error!(%error, event = kind.as_str(), "an event could not be recorded");
            }
        });
    }

    fn refused_event(
        &self,
        org_id: OrgId,
        kind: EventType,
        actor: Actor,
        outcome: Outcome,
        count: u64,
    ) -> Event {
        Event {
            id: EventId::new(self.base.ids()),
            org_id,
            kind,
            occurred_at: self.base.clock.now(),
            count: Some(count),
            actor,
            request: None,
            target: None,
            governance: None,
            outcome,
            detached: Detached::default(),
        }
    }

    /// Records what was counted in the minutes that are over.
    pub(crate) async fn record_coalesced(&self) {
        for (key, (actor, outcome), count) in self.coalesced.due(self.base.clock.now()) {
            let mut event = self.refused_event(key.org, key.kind, actor, outcome, count);
            let source = match key.sender {
                Sender::Network(network) => Some(network.to_string()),
                Sender::Principal(_) => None,
            };
            event.detached = Detached::default().keep("source_ip", source, &*self.base.random);
            if let Err(error) = self.writer.append(row_of(&event), patience()).await {
                let kind = key.kind.as_str();
                tracing::error!(%error, event = kind, count, "refusals could not be recorded");
            }
        }
    }
}
