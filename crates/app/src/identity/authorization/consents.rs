//! Consents: listed and withdrawn.

use std::sync::Arc;

use portcullis_core::{
    audit::{Actor, EventType},
    authorization::ClientRef,
    clock::Timestamp,
    id::{ConsentId, PrincipalId},
    principal::{Scope, ScopeSet},
    refusal::Refusal,
};
use portcullis_store::{Consent, ConsentQuery};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    Authorization,
    events::{Acting, EventSubject},
};
use crate::request::Ctx;

/// What a person let a client do.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConsentView {
    pub id: ConsentId,
    pub principal_id: PrincipalId,
    /// The name of the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal_name: Option<String>,
    pub client: ClientRef,
    /// The MCP endpoint that its tokens are good for.
    #[schema(example = "/mcp")]
    pub endpoint: String,
    /// The scopes, sorted, with spaces between.
    #[schema(value_type = String, example = "mcps:invoke mcps:read")]
    pub scope: ScopeSet,
    /// Where its browser was sent.
    pub returns_to: String,
    /// True if the person is not asked again for the same.
    pub remembered: bool,
    pub created_at: Timestamp,
    /// When the person last said yes.
    pub renewed_at: Timestamp,
}

impl From<Consent> for ConsentView {
    fn from(consent: Consent) -> Self {
        Self {
            id: consent.id,
            principal_id: consent.principal_id,
            principal_name: None,
            endpoint: consent.face.path(),
            client: consent.client,
            scope: consent.scopes,
            returns_to: consent.returns_to,
            remembered: consent.remembered,
            created_at: consent.created_at,
            renewed_at: consent.renewed_at,
        }
    }
}

impl Authorization {
    /// The caller's own consents, of a client the one that it has; those of its org with the scope `admin`. With
    /// the position after which the list goes on.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn consents(
        &self,
        ctx: &Ctx,
        mut query: ConsentQuery,
    ) -> Result<(Vec<ConsentView>, Option<ConsentId>), Refusal> {
        let caller = ctx.caller();
        let admin = caller.scopes.contains(Scope::Admin);
        if !admin {
            let asked = query.principal.replace(caller.principal_id);
            if asked.is_some_and(|asked| asked != caller.principal_id) {
                return Ok((Vec::new(), None));
            }
            if caller.is_handed_on() {
                return Ok((self.own_consent(ctx).await?.into_iter().collect(), None));
            }
        }
        let found = self.base.store.list_consents(caller.org_id, &query).await?;
        let next = (found.len() == query.limit).then(|| found.last().map(|last| last.id)).flatten();
        let people = found.iter().map(|it| it.principal_id).collect();
        let names = self.base.store.principals_among(caller.org_id, &people).await?;
        let view = |consent: Consent| {
            let principal_name = names.get(&consent.principal_id).cloned();
            ConsentView { principal_name, ..ConsentView::from(consent) }
        };
        Ok((found.into_iter().map(view).collect(), next))
    }

    /// The consent that the caller's token came of.
    async fn own_consent(&self, ctx: &Ctx) -> Result<Option<ConsentView>, Refusal> {
        let caller = ctx.caller();
        let Some(id) = caller.client.as_deref().and_then(|granted| granted.consent) else {
            return Ok(None);
        };
        let found = self.base.store.find_consent(caller.org_id, id).await?;
        let own = found.filter(|it| it.principal_id == caller.principal_id);
        let principal_name = Some(caller.principal_name.clone());
        Ok(own.map(|consent| ConsentView { principal_name, ..ConsentView::from(consent) }))
    }

    /// Withdraws a consent of the caller, or any of its org with the scope `admin`, and revokes the tokens that
    /// came of it. Gives the number of those that were live.
    ///
    /// # Errors
    /// `not_found` for a consent of another person or org; a failure of the store or of the audit log.
    pub async fn withdraw(self: &Arc<Self>, ctx: &Ctx, id: ConsentId) -> Result<usize, Refusal> {
        let this = Arc::clone(self);
        let ctx = ctx.clone();
        self.base.uncancelled(async move { this.withdraw_known(&ctx, id).await }).await?
    }

    async fn withdraw_known(&self, ctx: &Ctx, id: ConsentId) -> Result<usize, Refusal> {
        let caller = ctx.caller();
        let org = caller.org_id;
        let found = self.base.store.find_consent(org, id).await?;
        let may = |consent: &Consent| {
            let own = consent.principal_id == caller.principal_id && !caller.is_handed_on();
            own || caller.scopes.contains(Scope::Admin)
        };
        let unknown = || Refusal::not_found("consent", &id.to_string());
        let consent = found.filter(may).ok_or_else(unknown)?;
        let about = EventSubject { kind: "consent", id: id.to_string() };
        let name = caller.recorded_name();
        let kind = EventType::ConsentWithdrawn;
        let acting = Acting { actor: Actor::of(caller), name, client: &consent.client };
        let event = self.client_event(kind, org, acting, about, &ctx.origin);
        self.audit.record(event).await?;
        // A crash before this line leaves a consent that the log says was withdrawn; the next try does it.
        let revoked = self.base.store.withdraw_consent(org, id, self.base.now()).await?;
        self.quotas.tenants.revoked(org);
        Ok(revoked)
    }
}
