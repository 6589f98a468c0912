//! The second half of a connect: the caller who began brings the code that the browser was shown.

use std::sync::Arc;

use portcullis_core::{
    audit::{EventType, OutcomeStatus},
    oauth::Confirmation,
    refusal::Refusal,
    secret::Secret,
};
use portcullis_store::{ATTEMPT, Attempt};
use serde_json::json;

use super::{
    PermittedConnect,
    callback::{GRANTED, Pending},
    events::{About, failed},
    wrong,
};
use crate::providers::{Providers, credentials::CredentialPlace, view::ProviderView};

/// Wrong codes that end an attempt.
const MAX_WRONG_CODES: u32 = 5;

impl Providers {
    /// Completes the attempt whose code this is, of this caller and no other.
    pub(super) async fn confirm(
        self: &Arc<Self>,
        asked: PermittedConnect,
        code: &Secret,
    ) -> Result<ProviderView, Refusal> {
        let unknown = || wrong("confirm", "is wrong, used or too old; begin again");
        let attempt = self.attempt_of(&asked).await?.ok_or_else(unknown)?;
        let given = Confirmation::hash_of(code.expose());
        let right = given.is_some_and(|given| {
            let wanted = attempt.confirm_hash.as_deref().unwrap_or_default();
            // Both are digests of values that no attacker can choose bit by bit.
            wanted == given.as_slice()
        });
        if !right {
            let tries = self.base.store.count_wrong_code(&attempt).await;
            let tries = tries?;
            if tries >= MAX_WRONG_CODES {
                let refusal = wrong("confirm", "was wrong five times: begin again");
                self.give_up(&attempt, "wrong_code").await;
                return Err(self.connect_failed(&asked, attempt.provider_id, refusal).await);
            }
            return Err(unknown());
        }
        let org = attempt.org_id.to_string();
        let sealed = self.base.store.find_secret(&org, ATTEMPT, &attempt.id, GRANTED).await;
        let sealed = sealed?.ok_or_else(unknown)?;
        let pending = Pending::decode(&self.opened(&sealed)?).ok_or(Refusal::Internal)?;
        let record = self.base.store.find_provider(attempt.org_id, attempt.provider_id).await;
        let record = record?.ok_or_else(unknown)?;
        let id = record.id;
        let was_connected = Self::is_connected(&record);
        let grant = self.grant_of(&pending);
        match self.take_into_use(&asked, record, &pending.credential, grant).await {
            Ok(mut view) => {
                // The attempt is worth nothing any more, also if this is lost: its connection has
                // what it had.
                self.base.store.end_attempt(&attempt).await?;
                view.account = view.account.or_else(|| pending.account());
                Ok(view)
            }
            Err(refusal) => {
                if let Refusal::RejectedByProvider { .. } = refusal {
                    // The server does not take the very tokens that were granted for it.
                    self.give_up(&attempt, "rejected_by_provider").await;
                }
                if was_connected {
                    tracing::info!(provider = %id, "the credentials of before stay in use");
                }
                Err(self.connect_failed(&asked, id, refusal).await)
            }
        }
    }

    /// The attempt that the caller could complete now.
    async fn attempt_of(&self, asked: &PermittedConnect) -> Result<Option<Attempt>, Refusal> {
        let caller = asked.ctx.caller();
        let slug = asked.provider.declared.slug.as_str();
        let attempts =
            self.base.store.attempts_of(caller.org_id, caller.principal_id, slug, asked.owner);
        let attempts = attempts.await?;
        let now = self.base.clock.now();
        Ok(attempts.into_iter().find(|it| it.confirm_hash.is_some() && it.expires_at > now))
    }

    /// Ends an attempt that will not be completed: what was granted to it is revoked upstream.
    pub(crate) async fn give_up(self: &Arc<Self>, attempt: &Attempt, why: &'static str) {
        let org = attempt.org_id.to_string();
        let granted = self.base.store.find_secret(&org, ATTEMPT, &attempt.id, GRANTED).await;
        let ended = match self.base.store.end_attempt(attempt).await {
            Ok(ended) => ended,
            Err(error) => {
                error.log();
                return;
            }
        };
        if !ended {
            return;
        }
        let pending = granted.ok().flatten().and_then(|sealed| self.opened(&sealed).ok());
        let pending = pending.and_then(|bytes| Pending::decode(&bytes));
        let provider = self.catalogue.providers.get(&attempt.slug).map(Arc::clone);
        if let (Some(pending), Some(provider)) = (pending, provider)
            && !self.is_in_use(attempt, &pending).await
        {
            self.revoke_upstream(&provider, &pending.credential).await;
        }
        if let Err(error) =
            self.base.store.forget_pending_provider(attempt.org_id, attempt.provider_id).await
        {
            error.log();
        }
        if why == "expired" {
            let about = About {
                org: attempt.org_id,
                id: attempt.provider_id,
                owner: attempt.owner,
                slug: attempt.slug.clone(),
            };
            let details = json!({ "reason": why });
            let event = self.gateway_event(EventType::ProviderConnectFailed, &about, &details);
            let code = "provider_auth_required";
            self.record_or_later(failed(event, OutcomeStatus::Denied, code, 0)).await;
        }
    }

    /// True if the connection has the very consent of this attempt: the node died between taking
    /// it into use and ending the attempt.
    async fn is_in_use(&self, attempt: &Attempt, pending: &Pending) -> bool {
        let found = self.base.store.find_provider(attempt.org_id, attempt.provider_id).await;
        let Ok(Some(record)) = found else { return false };
        let stored = self.stored_credential(&record).await.ok().and_then(CredentialPlace::whole);
        stored.is_some_and(|stored| stored.consent == pending.credential.consent)
    }

    /// Ends an attempt to which nothing was granted.
    pub(super) async fn forget(self: &Arc<Self>, attempt: &Attempt) -> Result<(), Refusal> {
        let ended = async {
            self.base.store.end_attempt(attempt).await?;
            self.base.store.forget_pending_provider(attempt.org_id, attempt.provider_id).await
        };
        ended.await.map(|_| ()).map_err(Refusal::from)
    }
}
