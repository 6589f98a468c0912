//! New credentials before the old ones end (RFC 6749 §6).
//!
//! **Invariant:** of any number that want a connection's credentials renewed, on any number of
//! nodes, one asks the provider; the others wait and read what it got. A refresh token that is
//! spent twice ends the grant at careful providers.

use std::{sync::Arc, time::Duration};

use portcullis_core::{
    audit::EventType,
    clock::Timestamp,
    oauth::{MAX_TOKEN_BYTES, TokenGrant, TokenRefusal, is_same_issuer},
    random::{self, Random},
    refusal::Refusal,
};
use portcullis_store::{Grant, NewCredential, ProviderRecord, ProviderStatus};
use portcullis_upstream::{Client, OAuthError};
use serde_json::json;

use super::disconnect::about;
use crate::{
    catalogue::{
        auth::OAuthSettings,
        authorizer::Server,
        connection::{Connection, OwnRoute},
    },
    providers::{
        Providers,
        credentials::{CredentialPlace, StoredCredential},
        view::ProviderView,
    },
    request::Ctx,
};

/// Seconds for which one node alone may ask for a connection's credentials.
const LEASE_SECONDS: i64 = 30;
/// Time that the others wait for the result.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
const LONGEST_BACKOFF_SECONDS: i64 = 15 * 60;

/// When to renew what ends at `expires_at`: after about three quarters of its life, but not more
/// than ten minutes ahead; not for all at the same moment.
pub(super) fn due_at(now: Timestamp, expires_at: Timestamp, random: &dyn Random) -> Timestamp {
    let life = (expires_at.as_micros() - now.as_micros()).max(0) / 1_000_000;
    let ahead = (life / 4).clamp(0, 600);
    let [low] = random::bytes::<1>(random);
    let jitter = ahead * i64::from(low) / 512;
    expires_at.plus_seconds(-ahead - jitter).max(now.plus_seconds(1))
}

/// Seconds until the next try after so many failures: 2, 4, 8 … 15 minutes, with jitter.
fn backoff(failures: u32, random: &dyn Random) -> i64 {
    let seconds = 2_i64.saturating_pow(failures.clamp(1, 20)).min(LONGEST_BACKOFF_SECONDS);
    let [low] = random::bytes::<1>(random);
    seconds + seconds * i64::from(low) / 512
}

/// Result of a renewal.
#[derive(Debug)]
pub(crate) enum Renewal {
    /// There are newer credentials.
    Yes,
    /// The provider does not know the grant any more: a person must act.
    NeedsAuth,
    /// The request could not be made.
    Failed(Refusal),
}

/// Reason for renewing credentials.
#[derive(Debug, Clone)]
pub(crate) enum Reason {
    Due,
    /// The provider refused them.
    Refused,
    /// A caller wants it.
    Forced(Ctx),
}

impl Providers {
    /// Gets new credentials at a caller's wish and reads the tools anew.
    pub async fn refresh_connection(
        self: &Arc<Self>,
        ctx: Ctx,
        id: String,
    ) -> Result<ProviderView, Refusal> {
        let this = Arc::clone(self);
        let org = ctx.caller().org_id;
        // Its tools are listed: that may be much work.
        let work = async move { this.refresh_now(&ctx, &id).await };
        self.base.workers.spawn(org, &self.base.tasks, work).await.map_err(|_| Refusal::Internal)?
    }

    async fn refresh_now(self: &Arc<Self>, ctx: &Ctx, id: &str) -> Result<ProviderView, Refusal> {
        let record = self.changeable(ctx, id).await?;
        let unknown = || Refusal::not_found("provider", id);
        let auth_type = {
            let provider = self.provider_of(&record).ok_or_else(unknown)?;
            provider.declared.auth.kind().as_str()
        };
        let not_refreshable = || Refusal::NotRefreshable { auth_type };
        let connection = self.connection_of(record).await?.ok_or_else(not_refreshable)?;
        let own = connection.own().ok_or_else(not_refreshable)?;
        let live = own.live();
        if live.record.status == ProviderStatus::NeedsAuth && live.record.grant.refreshable {
            return Err(connection.unauthorized(Vec::new()));
        }
        if !live.record.grant.refreshable {
            return Err(not_refreshable());
        }
        let seen = live.record.revision;
        match self.renewed(&connection, seen, Reason::Forced(ctx.clone())).await {
            Renewal::Yes => {}
            Renewal::NeedsAuth => return Err(connection.unauthorized(Vec::new())),
            Renewal::Failed(refusal) => return Err(refusal),
        }
        self.list_again(&connection).await?;
        let record = self.base.store.find_provider(connection.org, connection.id).await;
        let record = record?.ok_or_else(unknown)?;
        self.view(record).ok_or_else(unknown)
    }

    /// Sees to it that a connection has credentials newer than those of revision `seen`.
    pub(crate) async fn renewed(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        seen: i64,
        reason: Reason,
    ) -> Renewal {
        let this = Arc::clone(self);
        let connection = Arc::clone(connection);
        let work = async move {
            let Some(own) = connection.own() else { return Renewal::NeedsAuth };
            let asked = this.base.clock.now();
            // One of this node at a time; a caller that waited finds newer ones, or shares the
            // failure: callers do not wait for a provider that hangs one after the other.
            let mut failed = own.renewing.lock().await;
            if let Some((_, refusal)) = failed.as_ref().filter(|(at, _)| *at > asked) {
                return Renewal::Failed(refusal.clone());
            }
            let renewing = this.renew(&connection, own, seen, reason);
            let outcome = tokio::time::timeout(PATIENCE + PATIENCE, renewing).await;
            let refusal = match outcome {
                Ok(Ok(renewed @ (Renewal::Yes | Renewal::NeedsAuth))) => return renewed,
                Ok(Ok(Renewal::Failed(refusal)) | Err(refusal)) => refusal,
                Err(_) => connection.provider.oauth_failure(&OAuthError::Timeout),
            };
            *failed = Some((this.base.clock.now(), refusal.clone()));
            Renewal::Failed(refusal)
        };
        // What the provider gives must not be lost because a caller hangs up.
        self.base.tasks.spawn(work).await.unwrap_or(Renewal::Failed(Refusal::Internal))
    }

    async fn renew(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        own: &OwnRoute,
        seen: i64,
        reason: Reason,
    ) -> Result<Renewal, Refusal> {
        if let Some(outcome) = standing(&own.live().record, seen) {
            return Ok(outcome);
        }
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            // Another node may have been at it: what the store knows counts.
            let found = self.base.store.find_provider(connection.org, connection.id).await;
            let found = found?;
            let Some(record) = found else { return Ok(Renewal::NeedsAuth) };
            if let Some(outcome) = standing(&record, seen) {
                self.connection_of(record).await?;
                return Ok(outcome);
            }
            let now = self.base.clock.now();
            let leased = self.base.store.lease_refresh(
                record.org_id,
                record.id,
                seen,
                &self.base.node,
                now,
                now.plus_seconds(LEASE_SECONDS),
            );
            if leased.await? {
                return self.ask_for_new(connection, record, reason).await;
            }
            if tokio::time::Instant::now() >= deadline {
                return Ok(Renewal::Failed(
                    connection.provider.oauth_failure(&OAuthError::Timeout),
                ));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Asks the provider, and keeps what it gives before anybody uses it.
    async fn ask_for_new(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        record: ProviderRecord,
        reason: Reason,
    ) -> Result<Renewal, Refusal> {
        let provider = &connection.provider;
        let stored = match self.stored_credential(&record).await? {
            CredentialPlace::Whole(stored) => Some(stored),
            CredentialPlace::Absent => None,
            // Its status says so already; a key that comes back heals it.
            CredentialPlace::Unreadable => {
                self.put_off(&record).await;
                return Ok(Renewal::Failed(connection.unauthorized(Vec::new())));
            }
        };
        let (Some(settings), Some(stored)) = (provider.declared.auth.oauth(), stored) else {
            return self.mark_lost(connection, &record, "there are no credentials").await;
        };
        let server = match self.authorizer(provider, settings).await {
            Ok(server) => server,
            Err(unknown) => {
                let refusal = provider.unknown(&unknown);
                self.refresh_failed(&record, false).await;
                return Ok(Renewal::Failed(refusal));
            }
        };
        let Some(refresh) = stored.refresh.clone() else {
            return self.mark_lost(connection, &record, "there is no refresh token").await;
        };
        if !stored.issuer.as_deref().is_some_and(|issuer| is_same_issuer(issuer, &server.issuer))
            || stored.server != provider.declared.address()
        {
            // A token is shown to none but the server that granted it.
            return self
                .mark_lost(connection, &record, "the provider is configured otherwise now")
                .await;
        }
        let client = self.client_at(provider, settings, &server).await?;
        let asked = ask(self, &server, settings, &client, stored, refresh.expose()).await;
        match asked {
            Ok((granted, stored)) => {
                self.keep_new(connection, record, stored, granted, reason).await
            }
            Err(OAuthError::Refused(TokenRefusal::InvalidGrant)) => {
                self.mark_lost(connection, &record, "the provider ended the grant").await
            }
            Err(OAuthError::Refused(TokenRefusal::InvalidClient))
                if self.forget_client(provider, &server, &client).await? =>
            {
                // The grant was that client's.
                self.mark_lost(connection, &record, "the authorization server forgot the gateway")
                    .await
            }
            Err(error) => {
                tracing::warn!(provider = connection.slug(), %error, "credentials are not renewed");
                self.refresh_failed(&record, matches!(error, OAuthError::Refused(_))).await;
                let refused = matches!(error, OAuthError::Refused(_));
                let told = if refused { OAuthError::Form } else { error };
                Ok(Renewal::Failed(connection.provider.oauth_failure(&told)))
            }
        }
    }

    async fn keep_new(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        record: ProviderRecord,
        stored: StoredCredential,
        granted: TokenGrant,
        reason: Reason,
    ) -> Result<Renewal, Refusal> {
        let now = self.base.clock.now();
        let expires_at = granted.expires_in.map(|seconds| now.plus_seconds(seconds));
        let credential = StoredCredential {
            token: granted.access_token,
            refresh: granted.refresh_token.or(stored.refresh),
            ..stored
        };
        let grant = Grant {
            scopes: granted.scopes.unwrap_or(record.grant.scopes),
            expires_at,
            refreshable: true,
            refreshed_at: Some(now),
            refresh_due_at: expires_at.map(|at| due_at(now, at, &*self.base.random)),
            refresh_failures: 0,
            audience: record.grant.audience,
        };
        let org = record.org_id;
        let id = record.id;
        let secret = self.sealed_credential(&org.to_string(), &id.to_string(), &credential)?;
        let new = NewCredential { secret, grant, account: None };
        let kept = self.base.store.keep_credential(org, id, &new, now).await;
        let kept = kept?;
        let Some(kept) = kept else {
            // It was disconnected meanwhile: these must not be used.
            self.revoke_upstream(&connection.provider, &credential).await;
            return Ok(Renewal::NeedsAuth);
        };
        let kind = EventType::ProviderRefreshed;
        let about = about(&kept);
        let event = match &reason {
            Reason::Forced(ctx) => self.connection_event(ctx, kind, &about, &json!({})),
            Reason::Due => self.gateway_event(kind, &about, &json!({ "reason": "due" })),
            Reason::Refused => self.gateway_event(kind, &about, &json!({ "reason": "refused" })),
        };
        self.connection_of(kept).await?;
        self.record_or_later(event).await;
        Ok(Renewal::Yes)
    }

    /// Notes that a connection needs a person, once, and says so in the log.
    pub(crate) async fn mark_lost(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        record: &ProviderRecord,
        why: &str,
    ) -> Result<Renewal, Refusal> {
        let status = ProviderStatus::NeedsAuth;
        let org = record.org_id;
        let id = record.id;
        let revision = record.revision;
        let now = self.base.clock.now();
        let set = self.base.store.set_status_of(org, id, revision, status, Some(why), now).await;
        if set? {
            let event = self.gateway_event(
                EventType::ProviderNeedsAuth,
                &about(record),
                &json!({ "reason": why }),
            );
            self.record_or_later(event).await;
        }
        if let Some(found) = self.base.store.find_provider(org, id).await? {
            self.connection_of(found).await?;
        }
        tracing::info!(provider = connection.slug(), connection = %id, why, "needs a person");
        Ok(Renewal::NeedsAuth)
    }

    /// Tries later, the later the oftener it failed.
    async fn put_off(&self, record: &ProviderRecord) {
        let failures = record.grant.refresh_failures.saturating_add(1);
        let next = self.base.clock.now().plus_seconds(backoff(failures, &*self.base.random));
        let org = record.org_id;
        let id = record.id;
        let revision = record.revision;
        if let Err(error) = self.base.store.refresh_failed(org, id, revision, Some(next)).await {
            error.log();
        }
    }

    async fn refresh_failed(&self, record: &ProviderRecord, refused: bool) {
        self.put_off(record).await;
        let now = self.base.clock.now();
        let org = record.org_id;
        let id = record.id;
        let revision = record.revision;
        let why = if refused {
            "the authorization server refuses to renew the credentials"
        } else {
            "the authorization server cannot be asked for new credentials"
        };
        let expired = record.grant.expires_at.is_some_and(|at| at <= now);
        let status = if expired { ProviderStatus::Error } else { record.status };
        let set = self.base.store.set_status_of(org, id, revision, status, Some(why), now).await;
        if let Err(error) = set {
            error.log();
        }
        self.quotas.tenants.revoked(org);
    }
}

/// Result that is known already: newer credentials than those of `seen`, or that there will be
/// none.
fn standing(record: &ProviderRecord, seen: i64) -> Option<Renewal> {
    match record.status {
        ProviderStatus::NeedsAuth => Some(Renewal::NeedsAuth),
        ProviderStatus::Connected
        | ProviderStatus::Error
        | ProviderStatus::Pending
        | ProviderStatus::Starting => (record.revision > seen).then_some(Renewal::Yes),
    }
}

/// New credentials, with what is remembered beside them. Some servers refuse to hear of a resource again; then
/// they are asked without, and that is remembered.
async fn ask(
    providers: &Providers,
    server: &Server,
    settings: &OAuthSettings,
    client: &Client,
    stored: StoredCredential,
    refresh: &str,
) -> Result<(TokenGrant, StoredCredential), OAuthError> {
    let ask = async |resource: Option<&str>| {
        let mut form = vec![("grant_type", "refresh_token"), ("refresh_token", refresh)];
        form.extend(resource.map(|resource| ("resource", resource)));
        let more = settings.token_parameters.iter();
        form.extend(more.map(|(name, value)| (name.as_str(), value.as_str())));
        providers.outbound.request_token(&server.token, client, &form, MAX_TOKEN_BYTES).await
    };
    match ask(stored.resource.as_deref()).await {
        Err(OAuthError::Refused(TokenRefusal::Other | TokenRefusal::InvalidScope))
            if stored.resource.is_some() =>
        {
            let granted = ask(None).await?;
            Ok((granted, StoredCredential { resource: None, ..stored }))
        }
        asked => asked.map(|granted| (granted, stored)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Same(u8);

    impl Random for Same {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }

    #[test]
    fn credentials_are_renewed_ahead_of_their_end_and_not_all_at_once() {
        let now = Timestamp::from_micros(1_000_000_000_000_000);
        let seconds = |life: i64, byte: u8| {
            let due = due_at(now, now.plus_seconds(life), &Same(byte));
            due.as_seconds() - now.as_seconds()
        };

        assert_eq!(seconds(3600, 0), 3000);
        assert!(seconds(3600, 255) < 3000 - 250);
        assert_eq!(seconds(100_000, 0), 99_400);
        assert_eq!(seconds(8, 0), 6);
        assert_eq!(seconds(0, 255), 1);
    }

    #[test]
    fn a_provider_that_is_down_is_asked_less_and_less() {
        let times: Vec<_> = (1..=12).map(|failures| backoff(failures, &Same(0))).collect();

        assert_eq!(times[..4], [2, 4, 8, 16]);
        assert_eq!(times.last(), Some(&LONGEST_BACKOFF_SECONDS));
        assert!(backoff(1, &Same(255)) >= 2);
    }
}
