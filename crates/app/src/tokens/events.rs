//! What is recorded about tokens.

use portcullis_core::{
    audit::{Actor, Event, EventType, Outcome, Target},
    id::{EventId, OrgId, TokenId},
    refusal::Executed,
};

use crate::{App, Origin};

/// What happened to a token, and through whom.
pub(super) struct TokenEvent<'a> {
    pub(super) kind: EventType,
    pub(super) actor: Actor,
    pub(super) name: Option<&'a str>,
    pub(super) label: Option<&'a str>,
    pub(super) token: TokenId,
}

impl App {
    pub(super) fn token_event(&self, org: OrgId, event: TokenEvent<'_>, origin: &Origin) -> Event {
        let TokenEvent { kind, actor, name, label, token } = event;
        Event {
            id: EventId::new(self.ids()),
            org_id: org,
            kind,
            occurred_at: origin.arrived,
            count: None,
            actor,
            request: Some(origin.recorded()),
            target: Some(Target {
                credential: None,
                id: Some(token.to_string()),
                provider_id: None,
                kind: "token",
                version: None,
            }),
            governance: None,
            outcome: Outcome::success(Executed::Yes),
            detached: origin.detached(&*self.random).keep("actor_name", name, &*self.random).keep(
                "label",
                label,
                &*self.random,
            ),
        }
    }
}
