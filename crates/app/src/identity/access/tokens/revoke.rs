//! `DELETE /v1/auth/token`: a token and all that came of it.

use std::sync::Arc;

use portcullis_core::{
    audit::{Actor, EventType},
    id::TokenId,
    principal::{Caller, Scope},
    refusal::Refusal,
};
use portcullis_store::TokenRecord;

use super::events::TokenEvent;
use crate::{identity::access::Access, request::Ctx};

impl Access {
    /// Revokes the Bearer's own token, or `token_id`: what descends from it; other tokens of its
    /// principal unless it was handed on itself; any of the org with `admin`. Gives
    /// the number of tokens that fell with it.
    pub async fn revoke_token(
        self: &Arc<Self>,
        ctx: Ctx,
        token_id: Option<TokenId>,
    ) -> Result<(TokenId, u64), Refusal> {
        let this = Arc::clone(self);
        self.base.uncancelled(async move { this.revoke(&ctx, token_id).await }).await?
    }

    async fn revoke(
        &self,
        ctx: &Ctx,
        token_id: Option<TokenId>,
    ) -> Result<(TokenId, u64), Refusal> {
        let caller = ctx.caller();
        let missing = || Refusal::bad_request("`token_id` is required: this session has no token.");
        let target = token_id.or(caller.token_id).ok_or_else(missing)?;
        let unknown = || Refusal::not_found("token", &target.to_string());
        let found = self.base.store.find_token(caller.org_id, target).await;
        let token = found?.ok_or_else(unknown)?;
        if !self.may_revoke(caller, &token).await? {
            return Err(unknown());
        }
        let event = TokenEvent {
            kind: EventType::TokenRevoked,
            actor: Actor::of(caller),
            name: caller.recorded_name(),
            label: caller.label.as_deref(),
            token: target,
        };
        self.audit.record(self.token_event(caller.org_id, event, &ctx.origin)).await?;
        let revoked =
            self.base.store.revoke_token(caller.org_id, target, self.base.clock.now()).await;
        let revoked = revoked?.ok_or_else(unknown)?;
        self.quotas.tenants.revoked(caller.org_id);
        Ok((target, revoked))
    }

    /// A token that was handed on ends with its holder's task: it reaches down, never up or aside.
    async fn may_revoke(&self, caller: &Caller, token: &TokenRecord) -> Result<bool, Refusal> {
        let own = token.principal_id == caller.principal_id && !caller.is_handed_on();
        if own || caller.scopes.contains(Scope::Admin) {
            return Ok(true);
        }
        let Some(own) = caller.token_id else { return Ok(false) };
        Ok(self.base.store.descends(caller.org_id, token.id, own).await?)
    }
}
