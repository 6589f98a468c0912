//! Public keys of service accounts, as an org's administrators register and remove them.

use std::sync::Arc;

use portcullis_core::{
    audit::{Actor, EventType},
    id::{PrincipalId, PrincipalKind},
    refusal::Refusal,
    trust::PublicKey,
};
use portcullis_store::{KeyAdded, MAX_PRINCIPAL_KEYS, PrincipalKey};

use super::Access;
use crate::request::Ctx;

/// A key that was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovedKey {
    /// Live tokens that fell with it.
    pub tokens_revoked: u64,
}

/// Id of a key in events: its principal and its thumbprint.
pub(crate) fn target(principal: PrincipalId, thumbprint: &str) -> String {
    format!("{principal}/{thumbprint}")
}

impl Access {
    /// The keys of a service account of the caller's org, the oldest first.
    pub async fn principal_keys(
        &self,
        ctx: &Ctx,
        principal: PrincipalId,
    ) -> Result<Vec<PrincipalKey>, Refusal> {
        self.account_of(ctx, principal).await?;
        Ok(self.base.store.list_principal_keys(ctx.caller().org_id, principal).await?)
    }

    /// Registers a key for a service account of the caller's org. The same key again is no error.
    pub async fn add_principal_key(
        self: &Arc<Self>,
        ctx: Ctx,
        principal: PrincipalId,
        key: PublicKey,
    ) -> Result<PrincipalKey, Refusal> {
        let this = Arc::clone(self);
        self.base.uncancelled(async move { this.add_key(&ctx, principal, key).await }).await?
    }

    async fn add_key(
        &self,
        ctx: &Ctx,
        principal: PrincipalId,
        key: PublicKey,
    ) -> Result<PrincipalKey, Refusal> {
        let known = self.principal_keys(ctx, principal).await?;
        if let Some(known) = known.iter().find(|it| it.key.thumbprint() == key.thumbprint()) {
            return Ok(known.clone());
        }
        let full = || {
            let message = format!(
                "The service account has {MAX_PRINCIPAL_KEYS} keys; remove one that is not used."
            );
            Refusal::bad_request(message)
        };
        if known.len() >= MAX_PRINCIPAL_KEYS {
            return Err(full());
        }
        let org_id = ctx.caller().org_id;
        let created_at = self.base.clock.now();
        let new =
            PrincipalKey { org_id, principal_id: principal, key, created_at, last_used_at: None };
        self.record_key(EventType::PrincipalKeyAdded, ctx, principal, new.key.thumbprint()).await?;
        match self.base.store.add_principal_key(&new).await? {
            KeyAdded::Done | KeyAdded::Known => Ok(new),
            KeyAdded::Full => Err(full()),
        }
    }

    /// Removes a key and revokes the tokens that it bought, at once on this node and within
    /// 5 seconds on others.
    pub async fn remove_principal_key(
        self: &Arc<Self>,
        ctx: Ctx,
        principal: PrincipalId,
        thumbprint: String,
    ) -> Result<RemovedKey, Refusal> {
        let this = Arc::clone(self);
        let removed = async move { this.remove_key(&ctx, principal, &thumbprint).await };
        self.base.uncancelled(removed).await?
    }

    async fn remove_key(
        &self,
        ctx: &Ctx,
        principal: PrincipalId,
        thumbprint: &str,
    ) -> Result<RemovedKey, Refusal> {
        self.account_of(ctx, principal).await?;
        self.principal_key(ctx, principal, thumbprint).await?;
        self.record_key(EventType::PrincipalKeyRemoved, ctx, principal, thumbprint).await?;
        let org = ctx.caller().org_id;
        let now = self.base.clock.now();
        let removed = self.base.store.remove_principal_key(org, principal, thumbprint, now).await?;
        self.quotas.tenants.revoked(org);
        let tokens_revoked = removed.ok_or_else(|| Refusal::not_found("key", thumbprint))?;
        Ok(RemovedKey { tokens_revoked })
    }

    /// Fails unless the principal is a service account of the caller's org.
    async fn account_of(&self, ctx: &Ctx, principal: PrincipalId) -> Result<(), Refusal> {
        let found = self.base.store.find_principal(ctx.caller().org_id, principal).await?;
        found.ok_or_else(|| Refusal::not_found("principal", &principal.to_string()))?;
        match principal.kind() {
            PrincipalKind::Service => Ok(()),
            PrincipalKind::User => Err(Refusal::bad_request("Only service accounts have keys.")),
        }
    }

    async fn principal_key(
        &self,
        ctx: &Ctx,
        principal: PrincipalId,
        thumbprint: &str,
    ) -> Result<PrincipalKey, Refusal> {
        let keys = self.base.store.list_principal_keys(ctx.caller().org_id, principal).await?;
        let found = keys.into_iter().find(|it| it.key.thumbprint() == thumbprint);
        found.ok_or_else(|| Refusal::not_found("key", thumbprint))
    }

    async fn record_key(
        &self,
        kind: EventType,
        ctx: &Ctx,
        principal: PrincipalId,
        thumbprint: &str,
    ) -> Result<(), Refusal> {
        let caller = ctx.caller();
        let id = target(principal, thumbprint);
        let actor = Actor::of(caller);
        let mut event =
            self.identity_event(caller.org_id, kind, actor, "principal_key", id, &ctx.origin);
        let name = caller.recorded_name();
        event.detached = event.detached.keep("actor_name", name, &*self.base.random);
        self.audit.record(event).await
    }
}
