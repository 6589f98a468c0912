//! Audit events of connections.

use portcullis_core::{
    audit::{Actor, Credential, Event, EventType, Outcome, OutcomeStatus, Target},
    id::{OrgId, ProviderId},
    refusal::Executed,
};
use portcullis_store::ProviderOwner;
use serde_json::{Value, json};

use super::PermittedConnect;
use crate::{
    providers::Providers,
    request::{Ctx, Origin},
};

/// Connection that an event is about.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) org: OrgId,
    pub(crate) id: ProviderId,
    pub(crate) owner: ProviderOwner,
    pub(crate) slug: String,
}

impl About {
    pub(crate) fn of(asked: &PermittedConnect, id: ProviderId) -> Self {
        let slug = asked.provider.declared.slug.as_str().to_owned();
        Self { org: asked.ctx.caller().org_id, id, owner: asked.owner, slug }
    }

    fn target(&self) -> Target {
        Target {
            capability: None,
            credential: Some(match self.owner {
                ProviderOwner::Org => Credential::Org,
                ProviderOwner::Principal(_) => Credential::Own,
            }),
            id: Some(self.id.to_string()),
            provider_id: Some(self.id),
            kind: "provider",
            version: None,
        }
    }

    fn details(&self, more: &Value) -> Value {
        let owner = match self.owner {
            ProviderOwner::Org => "org".to_owned(),
            ProviderOwner::Principal(id) => id.to_string(),
        };
        let mut details = json!({ "slug": self.slug, "owner": owner });
        if let (Some(details), Some(more)) = (details.as_object_mut(), more.as_object()) {
            details.extend(more.clone());
        }
        details
    }
}

impl Providers {
    /// Event that a caller caused on a connection.
    pub(crate) fn connection_event(
        &self,
        ctx: &Ctx,
        kind: EventType,
        about: &About,
        more: &Value,
    ) -> Event {
        let event = ctx.event(&self.screening, kind, about.target());
        let details = Some(about.details(more));
        let detached = event.detached.keep("connection", details, &*self.base.random);
        Event { org_id: about.org, detached, ..event }
    }

    /// Event that a browser of an unknown user caused.
    pub(crate) fn browser_event(
        &self,
        origin: &Origin,
        kind: EventType,
        about: &About,
        more: &Value,
    ) -> Event {
        let details = Some(about.details(more));
        Event {
            occurred_at: origin.arrived,
            actor: Actor { kind: "anonymous", ..Actor::system() },
            request: Some(origin.recorded()),
            detached: origin
                .detached(&self.screening)
                .keep("connection", details, &*self.base.random),
            ..self.audit.system_event(about.org, kind, about.target())
        }
    }

    /// Event that the gateway itself caused.
    pub(crate) fn gateway_event(&self, kind: EventType, about: &About, more: &Value) -> Event {
        let mut event = self.audit.system_event(about.org, kind, about.target());
        event.detached =
            event.detached.keep("connection", Some(about.details(more)), &*self.base.random);
        event
    }

    /// Records an event; if the log cannot be written, it is recorded late.
    pub(crate) async fn record_or_later(&self, event: Event) {
        if self.audit.record(event.clone()).await.is_err() {
            self.audit.late_events.keep(crate::audit::events::row_of(&event), None);
        }
    }
}

/// The outcome of a connect that failed.
pub(crate) fn failed(event: Event, status: OutcomeStatus, code: &'static str, http: u16) -> Event {
    let outcome =
        Outcome { error_code: Some(code), executed: Executed::No, http_status: http, status };
    Event { outcome, ..event }
}
