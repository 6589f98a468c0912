//! The end of a connection: its credentials are deleted, then revoked upstream (RFC 7009).

use std::{collections::BTreeSet, sync::Arc};

use portcullis_core::{
    audit::EventType,
    capability::ProviderSlug,
    id::{OrgId, ProviderId},
    principal::Scope,
    refusal::Refusal,
    secret::Secret,
};
use portcullis_store::{ProviderOwner, ProviderRecord, StoreError};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::events::About;
use crate::{
    audit::events::row_of,
    catalogue::provider::Provider,
    providers::{
        Providers,
        credentials::{CredentialPlace, StoredCredential},
    },
    request::Ctx,
};

portcullis_core::words! {
    /// Result of revoking the credentials at the provider.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum UpstreamRevocation {
        /// The provider revoked them.
        Done = "done",
        /// The provider was asked and did not do it.
        Failed = "failed",
        /// There is no way to ask.
        Unsupported = "unsupported",
    }
}

/// A connection that is no more.
#[derive(Debug)]
pub struct Disconnected {
    pub id: ProviderId,
    pub slug: ProviderSlug,
    pub upstream_revocation: UpstreamRevocation,
}

impl Providers {
    /// Ends a connection. Its tools leave the catalogue at once; calls in flight end.
    pub async fn disconnect(
        self: &Arc<Self>,
        ctx: Ctx,
        id: String,
    ) -> Result<Disconnected, Refusal> {
        let this = Arc::clone(self);
        self.base.uncancelled(async move { this.disconnect_now(&ctx, &id).await }).await?
    }

    async fn disconnect_now(
        self: &Arc<Self>,
        ctx: &Ctx,
        id: &str,
    ) -> Result<Disconnected, Refusal> {
        let record = self.changeable(ctx, id).await?;
        let unknown = || Refusal::not_found("provider", id);
        let provider = Arc::clone(self.provider_of(&record).ok_or_else(unknown)?);
        // Read before it is deleted; one that does not open cannot be revoked, but goes as well.
        let stored = self.stored_credential(&record).await.ok().and_then(CredentialPlace::whole);
        let about = about(&record);
        let event = self.connection_event(ctx, EventType::ProviderDisconnected, &about, &json!({}));
        let told = row_of(&event);
        let org = record.org_id;
        let prv = record.id;
        let shared = provider.declared.auth.needs_nobody() && record.owner == ProviderOwner::Org;
        // Committed with its event: neither is there without the other.
        let removed = if shared {
            self.base.store.hide_provider(org, prv, &told).await
        } else {
            self.base.store.remove_provider(org, prv, &told).await
        };
        if !removed? {
            return Err(unknown());
        }
        self.leave(org, prv);
        let attempts = self.base.store.attempts_for(org, prv).await;
        for attempt in attempts? {
            self.give_up(&attempt, "disconnected").await;
        }
        let upstream_revocation = match stored {
            Some(stored) => self.revoke_upstream(&provider, &stored).await,
            None => UpstreamRevocation::Unsupported,
        };
        let slug = provider.declared.slug.clone();
        Ok(Disconnected { id: prv, slug, upstream_revocation })
    }

    /// Uses a connection that was removed no more.
    pub(super) fn leave(&self, org: OrgId, id: ProviderId) {
        self.quotas.tenants.revoked(org);
        if let Some(connection) = self.connections.forget(id)
            && let Some(own) = connection.own()
        {
            let server = own.server.clone();
            self.base.tasks.spawn(async move { server.shutdown().await });
        }
    }

    /// The record of a connection that the caller may change: its own, or any with `admin`.
    pub(super) async fn changeable(&self, ctx: &Ctx, id: &str) -> Result<ProviderRecord, Refusal> {
        let record = self.find_visible(ctx, id).await?;
        if record.owner != ProviderOwner::Principal(ctx.caller().principal_id) {
            ctx.require(Scope::Admin)?;
        }
        Ok(record)
    }

    /// Asks the provider to end a credential: the refresh token, with which all of its grant ends,
    /// and the access token.
    pub(crate) async fn revoke_upstream(
        &self,
        provider: &Provider,
        stored: &StoredCredential,
    ) -> UpstreamRevocation {
        let Some(settings) = provider.declared.auth.oauth() else {
            return UpstreamRevocation::Unsupported;
        };
        let Ok(server) = self.authorizer(provider, settings).await else {
            return UpstreamRevocation::Failed;
        };
        let Some(endpoint) = &server.revoke else { return UpstreamRevocation::Unsupported };
        if stored.issuer.as_deref() != Some(server.issuer.as_str()) {
            return UpstreamRevocation::Unsupported;
        }
        let Ok(client) = self.client_at(provider, settings, &server).await else {
            return UpstreamRevocation::Failed;
        };
        let tokens: [(Option<&Secret>, &str); 2] =
            [(stored.refresh.as_ref(), "refresh_token"), (Some(&stored.token), "access_token")];
        let mut done = true;
        for (token, hint) in tokens {
            let Some(token) = token else { continue };
            let form = [("token", token.expose()), ("token_type_hint", hint)];
            if let Err(error) = self.outbound.revoke_token(endpoint, &client, &form).await {
                tracing::warn!(provider = %provider.declared.slug, %error, "not revoked upstream");
                done = false;
            }
        }
        if done { UpstreamRevocation::Done } else { UpstreamRevocation::Failed }
    }
}

pub(super) fn about(record: &ProviderRecord) -> About {
    About {
        org: record.org_id,
        id: record.id,
        owner: record.owner,
        slug: record.slug.as_str().to_owned(),
    }
}

/// Connections that are forgotten in one transaction each, in one round.
const BATCH: u32 = 200;

impl Providers {
    /// Looks once for connections to providers that the configuration does not have any more: they
    /// cannot be used, and after a while their credentials are forgotten. Not at once: a line that
    /// was taken out by mistake must not cost everybody their connections.
    pub(crate) async fn forget_missing(self: &Arc<Self>) {
        if let Err(error) = self.forget_missing_now().await {
            error.log();
        }
    }

    async fn forget_missing_now(&self) -> Result<(), StoreError> {
        let now = self.base.clock.now();
        let configured: BTreeSet<&str> =
            self.catalogue.providers.keys().map(String::as_str).collect();
        for slug in self.base.store.note_missing_providers(&configured, now).await? {
            tracing::warn!(
                provider = slug,
                days = self.connecting.keep_missing_days,
                "the provider is not configured any more; the credentials of its connections are \
                 forgotten after this time unless it comes back"
            );
        }
        let since = now.plus_seconds(-24 * 60 * 60 * self.connecting.keep_missing_days);
        for record in self.base.store.missing_providers(since, BATCH).await? {
            self.forget_connection(&record).await?;
        }
        Ok(())
    }

    /// Without its configuration it is unknown where the provider takes revocations, and how the
    /// gateway authenticates there.
    async fn forget_connection(&self, record: &ProviderRecord) -> Result<(), StoreError> {
        let details = json!({
            "reason": "provider_not_configured", "upstream_revocation": "unsupported",
        });
        let event = self.gateway_event(EventType::ProviderDisconnected, &about(record), &details);
        let org = record.org_id;
        let id = record.id;
        if self.base.store.remove_provider(org, id, &row_of(&event)).await? {
            self.leave(org, id);
        }
        Ok(())
    }
}
