//! Audit events about tokens, and about the people they are for.

use portcullis_core::{
    audit::{Actor, Event, EventType, Outcome},
    id::{EventId, OrgId, TokenId},
    refusal::Executed,
};

use crate::{
    identity::access::Access,
    request::{Origin, target_of},
};

/// An event of a token, and the actor behind it.
pub(super) struct TokenEvent<'a> {
    pub(super) kind: EventType,
    pub(super) actor: Actor,
    pub(super) name: Option<&'a str>,
    pub(super) label: Option<&'a str>,
    pub(super) token: TokenId,
}

impl Access {
    pub(super) fn token_event(&self, org: OrgId, event: TokenEvent<'_>, origin: &Origin) -> Event {
        let TokenEvent { kind, actor, name, label, token } = event;
        let mut event = self.identity_event(org, kind, actor, "token", token.to_string(), origin);
        event.detached = event
            .detached
            .keep("actor_name", name, &*self.base.random)
            .keep("label", label, &*self.base.random);
        event
    }

    /// Something was done to a token or a principal: the kind of target, and its id.
    pub(crate) fn identity_event(
        &self,
        org_id: OrgId,
        kind: EventType,
        actor: Actor,
        target: &'static str,
        id: String,
        origin: &Origin,
    ) -> Event {
        Event {
            id: EventId::new(self.base.ids()),
            org_id,
            kind,
            occurred_at: origin.arrived,
            count: None,
            actor,
            request: origin.noted(),
            target: Some(target_of(target, id)),
            governance: None,
            outcome: Outcome::success(Executed::Yes),
            detached: origin.detached(&self.screening),
        }
    }
}
