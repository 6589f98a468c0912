//! Browser sessions as the API shows and ends them.

use std::sync::Arc;

use portcullis_core::{
    audit::{Actor, EventType},
    clock::Timestamp,
    id::{PrincipalId, SessionId},
    principal::Scope,
    refusal::Refusal,
};
use portcullis_store::{BrowserSession, SessionQuery};
use serde::Serialize;
use utoipa::ToSchema;

use super::Logins;
use crate::request::Ctx;

/// A browser session as it is shown.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionView {
    pub id: SessionId,
    /// The person.
    pub principal_id: PrincipalId,
    /// The name of the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal_name: Option<String>,
    /// `operator` for a link of the operator, `oidc` for an issuer.
    pub method: &'static str,
    /// The issuer, if one said who it is.
    pub issuer: Option<String>,
    /// Level of authentication that the issuer named.
    pub acr: Option<String>,
    /// Methods of authentication that the issuer named (RFC 8176).
    pub amr: Vec<String>,
    /// When the person was last asked for credentials.
    pub auth_time: Timestamp,
    pub created_at: Timestamp,
    /// The minute it was last seen, about.
    pub last_seen_at: Timestamp,
    /// When it ends, unless it is used before.
    pub ends_at: Timestamp,
}

impl From<BrowserSession> for SessionView {
    fn from(session: BrowserSession) -> Self {
        Self {
            id: session.id,
            principal_id: session.principal_id,
            principal_name: None,
            method: session.method.name(),
            issuer: session.issuer,
            acr: session.acr,
            amr: session.amr.into_iter().collect(),
            auth_time: session.auth_time,
            created_at: session.created_at,
            last_seen_at: session.last_seen_at,
            ends_at: session.ends_at,
        }
    }
}

impl Logins {
    /// A page of the sessions that have not ended, by their beginning, and whether there are more: the
    /// caller's own, or with `admin` those of the org. Refuses a token that was handed on, and the
    /// sessions of others, without `admin`.
    pub async fn list(
        &self,
        ctx: &Ctx,
        mut query: SessionQuery,
    ) -> Result<(Vec<SessionView>, bool), Refusal> {
        let caller = ctx.caller();
        let admin = caller.scopes.contains(Scope::Admin);
        let own = Some(caller.principal_id);
        if !admin {
            query.principal = query.principal.or(own);
            if caller.is_handed_on() || query.principal != own {
                return Err(Refusal::InsufficientScope { required: Scope::Admin });
            }
        }
        let limit = query.limit;
        query.limit += 1;
        query.now = self.base.now();
        let mut found = self.base.store.list_sessions(caller.org_id, &query).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let people = found.iter().map(|it| it.principal_id).collect();
        let names = self.base.store.principals_among(caller.org_id, &people).await?;
        let view = |session: BrowserSession| {
            let principal_name = names.get(&session.principal_id).cloned();
            SessionView { principal_name, ..SessionView::from(session) }
        };
        Ok((found.into_iter().map(view).collect(), more))
    }

    /// Ends a session of the caller, or with `admin` any of the org. At once on this node, within five
    /// seconds on all.
    pub async fn end_by_id(self: &Arc<Self>, ctx: Ctx, id: SessionId) -> Result<(), Refusal> {
        let this = Arc::clone(self);
        self.uncancelled(async move { this.end_for(&ctx, id).await }).await
    }

    async fn end_for(&self, ctx: &Ctx, id: SessionId) -> Result<(), Refusal> {
        let caller = ctx.caller();
        let org = caller.org_id;
        let unknown = || Refusal::not_found("session", &id.to_string());
        let found = self.base.store.find_session(org, id).await?;
        let now = self.base.now();
        let live = |it: &BrowserSession| it.ended_at.is_none() && it.ends_at > now;
        let session = found.filter(live).ok_or_else(unknown)?;
        let own = session.principal_id == caller.principal_id && !caller.is_handed_on();
        if !own && !caller.scopes.contains(Scope::Admin) {
            return Err(unknown());
        }
        let kind = EventType::SessionEnded;
        let target = id.to_string();
        let actor = Actor::of(caller);
        let mut event =
            self.access.identity_event(org, kind, actor, "session", target, &ctx.origin);
        let random = &*self.base.random;
        event.detached = event.detached.keep("actor_name", caller.recorded_name(), random);
        event.detached = event.detached.keep("label", caller.label.as_deref(), random);
        self.audit.record(event).await?;
        self.base.store.end_session(org, id, now).await?;
        self.quotas.tenants.revoked(org);
        Ok(())
    }
}
