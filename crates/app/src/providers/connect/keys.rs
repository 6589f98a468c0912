//! Connections that need no browser: with a key, or with nothing.

use std::sync::Arc;

use portcullis_core::{
    audit::EventType,
    id::{OrgId, ProviderId},
    refusal::{Refusal, UpstreamReason},
    secret::Secret,
};
use portcullis_store::{Grant, NewCredential, ProviderOwner, ProviderRecord, ProviderStatus};
use portcullis_upstream::Credential;
use serde_json::json;

use super::{
    PermittedConnect,
    events::{About, failed},
    wrong,
};
use crate::{
    audit::outcome::outcome_of,
    catalogue::provider::Provider,
    providers::{
        Providers,
        capability_lists::UsableList,
        credentials::StoredCredential,
        view::{ProviderView, new_provider},
    },
};

/// The longest key.
const MAX_KEY_BYTES: usize = 8 << 10;

impl Providers {
    /// Connects a provider that needs no consent, once it answers.
    pub(super) async fn connect_open(
        self: &Arc<Self>,
        connect: PermittedConnect,
    ) -> Result<ProviderView, Refusal> {
        let PermittedConnect { ctx, provider, owner } = &connect;
        if !provider.declared.owners.me && *owner != ProviderOwner::Org {
            return Err(wrong("owner", "can only be `org` for this provider"));
        }
        let verified = self.tools.refresh(provider).await;
        let id = ProviderId::new(self.base.ids());
        if let Err(error) = verified {
            let refusal = error.refusal(|error| provider.failure(error));
            return Err(self.connect_failed(&connect, id, refusal).await);
        }
        let now = self.base.clock.now();
        let record = self.first_record(&connect, id).await?;
        let record = if record.removed_at.is_none() {
            record
        } else {
            let shown = self.base.store.unhide_provider(record.org_id, record.id, id, now).await;
            shown?;
            ProviderRecord { id, removed_at: None, created_at: now, ..record }
        };
        let about = About::of(&connect, record.id);
        self.audit
            .record(self.connection_event(ctx, EventType::ProviderConnected, &about, &json!({})))
            .await?;
        self.quotas.tenants.revoked(record.org_id);
        self.view(record).ok_or(Refusal::Internal)
    }

    /// Connects a provider with a key, once the provider has taken it for a call.
    pub(super) async fn connect_key(
        self: &Arc<Self>,
        connect: PermittedConnect,
        key: Secret,
    ) -> Result<ProviderView, Refusal> {
        let auth = &connect.provider.declared.auth;
        let fits = (1..=MAX_KEY_BYTES).contains(&key.expose().len());
        let header = fits.then(|| auth.header(&key)).flatten();
        let unusable = || wrong("api_key", "has to be 1 to 8192 bytes that a header can carry");
        header.ok_or_else(unusable)?;
        let credential = StoredCredential {
            token: key,
            refresh: None,
            server: connect.provider.declared.address().to_owned(),
            issuer: None,
            client_id: None,
            resource: None,
            consent: ProviderId::new(self.base.ids()).to_string(),
        };
        let record = self.first_record(&connect, ProviderId::new(self.base.ids())).await?;
        let id = record.id;
        let org = record.org_id;
        match self.take_into_use(&connect, record, &credential, Grant::default()).await {
            Ok(view) => Ok(view),
            Err(refusal) => {
                let _ = self.base.store.forget_pending_provider(org, id).await;
                Err(self.connect_failed(&connect, id, refusal).await)
            }
        }
    }

    /// The record of the owner's connection; a new one is `pending`.
    pub(super) async fn first_record(
        &self,
        connect: &PermittedConnect,
        id: ProviderId,
    ) -> Result<ProviderRecord, Refusal> {
        let org = connect.ctx.caller().org_id;
        let new = new_provider(id, org, connect.owner, &connect.provider.declared);
        let record = self.base.store.upsert_provider(&new, self.base.clock.now()).await;
        record.map_err(Refusal::from)
    }

    /// Tries a credential with one call, and keeps it for the connection in the place of the one
    /// before: not until it works.
    pub(super) async fn take_into_use(
        self: &Arc<Self>,
        connect: &PermittedConnect,
        record: ProviderRecord,
        credential: &StoredCredential,
        grant: Grant,
    ) -> Result<ProviderView, Refusal> {
        let PermittedConnect { ctx, provider, .. } = connect;
        let org = record.org_id;
        let id = record.id;
        let header = provider.declared.auth.header(&credential.token).ok_or(Refusal::Internal)?;
        let tried_at = self.base.clock.now();
        let listed = self.tried(org, provider, &header, &grant.scopes).await?;
        let account = self.account_of(provider, &header).await;
        let about = About::of(connect, id);
        let details = json!({ "scopes": grant.scopes, "issuer": credential.issuer });
        self.audit
            .record(self.connection_event(ctx, EventType::ProviderConnected, &about, &details))
            .await?;
        let secret = self.sealed_credential(&org.to_string(), &id.to_string(), credential)?;
        let new = NewCredential { secret, grant, account };
        let kept = self.base.store.keep_credential(org, id, &new, self.base.clock.now()).await;
        // It was disconnected meanwhile, or the attempt was forgotten.
        let gone = || Refusal::not_found("provider", &id.to_string());
        let kept = kept?.ok_or_else(gone)?;
        self.keep_list(org, id, &listed).await?;
        let tools = listed.count_tools();
        let kept = ProviderRecord { tool_list: Some(listed.digest), tools, ..kept };
        self.adopt(kept.clone(), tried_at).await?;
        self.view(kept).ok_or(Refusal::Internal)
    }

    /// The tools that a new credential shows: it works.
    pub(super) async fn tried(
        self: &Arc<Self>,
        org: OrgId,
        provider: &Arc<Provider>,
        header: &Credential,
        granted: &[String],
    ) -> Result<UsableList, Refusal> {
        let server = provider.server().beside(Some(header.clone()));
        match self.list_through(org, provider, &server, Vec::new()).await {
            Ok(listed) => Ok(listed),
            Err(error) => {
                let challenge = server.challenge();
                provider.authorizer.refused(challenge.as_deref(), granted).await;
                Err(error.refusal(|error| provider.failure(error)))
            }
        }
    }

    /// Account of a credential, as far as the provider reports it; without an answer nothing fails.
    pub(super) async fn account_of(
        &self,
        provider: &Provider,
        header: &Credential,
    ) -> Option<portcullis_store::Account> {
        let source = provider.declared.account.as_ref()?;
        match self.outbound.fetch_account(&source.endpoint, header).await {
            Ok(answer) => {
                let tell = |pointer: &str| {
                    let text = portcullis_core::oauth::who(&answer, pointer)?;
                    Some(self.screening.recordable(&text))
                };
                let id = tell(&source.id);
                let name = tell(&source.name);
                Some(portcullis_store::Account { id, name })
            }
            Err(error) => {
                tracing::warn!(provider = %provider.declared.slug, %error, "the account is unknown");
                None
            }
        }
    }

    /// Records that a connect failed; gives what to answer.
    pub(super) async fn connect_failed(
        &self,
        connect: &PermittedConnect,
        id: ProviderId,
        refusal: Refusal,
    ) -> Refusal {
        let about = About::of(connect, id);
        let outcome = outcome_of(&refusal, portcullis_core::refusal::Executed::No);
        let details = json!({ "reason": reason(&refusal) });
        let event =
            self.connection_event(&connect.ctx, EventType::ProviderConnectFailed, &about, &details);
        let event = failed(event, outcome.status, refusal.code(), refusal.http_status());
        match self.audit.record(event).await {
            Ok(()) => refusal,
            Err(unrecorded) => unrecorded,
        }
    }

    /// True if an owner's connection to this provider can be called through.
    pub(crate) fn is_connected(record: &ProviderRecord) -> bool {
        record.status == ProviderStatus::Connected && record.removed_at.is_none()
    }
}

/// The reason of a failed connect: the refusal's code, or the word of the callback for the same.
fn reason(refusal: &Refusal) -> &'static str {
    if let Refusal::UpstreamError { reason: UpstreamReason::IssuerMismatch, .. } = refusal {
        UpstreamReason::IssuerMismatch.as_str()
    } else {
        refusal.code()
    }
}
