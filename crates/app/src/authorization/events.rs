//! Audit events of consents and codes.

use portcullis_core::{
    audit::{Actor, ActorClient, Event, EventType, Outcome, Target},
    authorization::ClientRef,
    id::{EventId, OrgId},
    refusal::Executed,
};

use super::Authorization;
use crate::{ctx::Origin, login::person::Person};

/// The object of an event: its kind and its id.
#[derive(Debug)]
pub(super) struct EventSubject {
    pub(super) kind: &'static str,
    pub(super) id: String,
}

impl Authorization {
    /// An event of a person who uses a client.
    pub(super) fn person_event(
        &self,
        kind: EventType,
        person: &Person,
        client: &ClientRef,
        about: EventSubject,
        origin: &Origin,
    ) -> Event {
        let actor = Actor { client: Some(ActorClient::of(client)), ..person.actor() };
        let name = Some(person.name.as_str());
        let acting = Acting { actor, name, client };
        self.client_event(kind, person.session.org_id, acting, about, origin)
    }

    /// An event about a client. Its name is the label.
    pub(super) fn client_event(
        &self,
        kind: EventType,
        org_id: OrgId,
        acting: Acting<'_>,
        about: EventSubject,
        origin: &Origin,
    ) -> Event {
        let Acting { actor, name, client } = acting;
        let random = &*self.base.random;
        let label = self.screening.recordable(&client.name);
        let detached = origin.detached(&self.screening);
        let detached =
            detached.keep("actor_name", name, random).keep("label", Some(&*label), random);
        let EventSubject { kind: target, id } = about;
        Event {
            id: EventId::new(self.base.ids()),
            org_id,
            kind,
            occurred_at: origin.arrived,
            count: None,
            actor,
            request: Some(origin.recorded()),
            target: Some(Target {
                credential: None,
                id: Some(id),
                provider_id: None,
                kind: target,
                version: None,
            }),
            governance: None,
            outcome: Outcome::success(Executed::Yes),
            detached,
        }
    }
}

/// The actor of an event, its name, and the client that it is about.
pub(super) struct Acting<'a> {
    pub(super) actor: Actor,
    pub(super) name: Option<&'a str>,
    pub(super) client: &'a ClientRef,
}
