//! Audit events of consents and codes.

use portcullis_core::{
    audit::{Actor, ActorClient, Event, EventType},
    authorization::ClientRef,
    id::OrgId,
};

use super::Authorization;
use crate::{identity::login::person::Person, request::Origin};

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
        let EventSubject { kind: target, id } = about;
        let random = &*self.base.random;
        let label = (!origin.is_internal).then(|| self.screening.recordable(&client.name));
        let mut event = self.access.identity_event(org_id, kind, actor, target, id, origin);
        event.detached =
            event.detached.keep("actor_name", name, random).keep("label", label, random);
        event
    }
}

/// The actor of an event, its name, and the client that it is about.
pub(super) struct Acting<'a> {
    pub(super) actor: Actor,
    pub(super) name: Option<&'a str>,
    pub(super) client: &'a ClientRef,
}
