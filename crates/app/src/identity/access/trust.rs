//! Maps a JWT of a trusted issuer to its subject: the issuer's keys, then the rules.

pub(crate) mod keys;

use std::{collections::BTreeMap, sync::Arc};

use portcullis_core::{
    clock::Timestamp,
    id::OrgId,
    refusal::{Refusal, Unavailable},
    trust::{
        IdTokenRequest, IdentifiedPerson, Jwt, KeySet, Recipient, Rejection, TrustRules,
        TrustedSubject,
    },
};
use portcullis_upstream::{FetchError, KeyLocation, Outbound};
use tokio_util::task::TaskTracker;

use self::keys::IssuerKeys;
use super::Access;

/// Source of the keys of one issuer.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// The operator wrote them down.
    Static(KeySet),
    Published {
        location: KeyLocation,
        /// Seconds for which keys are still good while the issuer is down and cannot confirm them.
        stale_seconds: i64,
    },
}

/// Reason that a JWT maps to no subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustRefusal {
    Invalid(Rejection),
    /// The keys of its issuer are not known and cannot be fetched.
    Unavailable,
}

impl From<Rejection> for TrustRefusal {
    fn from(rejection: Rejection) -> Self {
        Self::Invalid(rejection)
    }
}

impl From<TrustRefusal> for Refusal {
    fn from(refusal: TrustRefusal) -> Self {
        match refusal {
            TrustRefusal::Invalid(rejection) => {
                Self::InvalidCredential { check: rejection.check() }
            }
            TrustRefusal::Unavailable => Self::Unavailable { reason: Unavailable::IssuerKeys },
        }
    }
}

/// The trust rules of this installation and the keys of their issuers.
#[derive(Debug)]
pub struct Trust {
    rules: TrustRules,
    keys: BTreeMap<String, IssuerKeys>,
}

impl Trust {
    /// Rules, and for each of their issuers where its keys come from; a rule whose issuer has no
    /// source here has no keys. Fetches run on `tasks`, so that no caller who hangs up ends one.
    #[must_use]
    pub fn new(
        rules: TrustRules,
        sources: BTreeMap<String, KeySource>,
        outbound: &Outbound,
        tasks: &TaskTracker,
    ) -> Self {
        let keys = sources.into_iter().map(|(issuer, source)| {
            let keys = IssuerKeys::new(issuer.clone(), source, outbound.clone(), tasks.clone());
            (issuer, keys)
        });
        Self { keys: keys.collect(), rules }
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &TrustRules {
        &self.rules
    }

    /// Subject of `jwt` in `org`, or in the org of the one rule it matches.
    ///
    /// Nothing is fetched for an issuer that no rule names. For the others at most one fetch is
    /// under way at any time, and the wait for it is bounded.
    pub async fn verify(
        &self,
        jwt: &str,
        org: Option<OrgId>,
        now: Timestamp,
    ) -> Result<TrustedSubject, TrustRefusal> {
        let jwt = Jwt::parse(jwt)?;
        let keys = self.keys_for(&jwt, org, now).await?;
        Ok(self.rules.admit(jwt.verify(&keys)?, org, now)?)
    }

    /// Service account of a workload's JWT that is presented at the token endpoint of `recipient`.
    pub(super) async fn verify_workload(
        &self,
        jwt: &Jwt,
        recipient: &Recipient,
        now: Timestamp,
    ) -> Result<TrustedSubject, TrustRefusal> {
        let keys = self.keys_for(jwt, None, now).await?;
        Ok(self.rules.admit_workload(jwt.verify(&keys)?, recipient, None, now)?)
    }

    /// Person that an ID-JAG lets `client` act for, which has proved that it is that client.
    pub(super) async fn verify_id_jag(
        &self,
        jwt: &Jwt,
        client: &str,
        recipient: &Recipient,
        now: Timestamp,
    ) -> Result<TrustedSubject, TrustRefusal> {
        let keys = self.keys_for(jwt, None, now).await?;
        Ok(self.rules.admit_id_jag(jwt.verify(&keys)?, client, recipient, None, now)?)
    }

    /// Person that an ID token says has logged in, for this login.
    pub(super) async fn verify_id_token(
        &self,
        jwt: &str,
        request: &IdTokenRequest<'_>,
        now: Timestamp,
    ) -> Result<IdentifiedPerson, TrustRefusal> {
        let jwt = Jwt::parse_id_token(jwt)?;
        let keys = self.keys_for(&jwt, None, now).await?;
        Ok(self.rules.admit_id_token(jwt.verify(&keys)?, request, now)?)
    }

    /// The keys of an issuer as they are now, for those who check a configuration or explain a JWT.
    pub async fn try_keys(&self, issuer: &str) -> Result<Arc<KeySet>, FetchError> {
        match self.keys.get(issuer) {
            Some(keys) => keys.try_now().await,
            None => Ok(Arc::default()),
        }
    }

    /// The keys that a JWT is to be verified with: those that are known, or newer ones if it was
    /// not signed with one of these. Fails if no rule (of `org`) trusts its issuer.
    async fn keys_for(
        &self,
        jwt: &Jwt,
        org: Option<OrgId>,
        now: Timestamp,
    ) -> Result<Arc<KeySet>, TrustRefusal> {
        let issuer = jwt.unverified().issuer();
        self.rules.trusts(issuer, org)?;
        let keys = self.keys.get(issuer).ok_or(TrustRefusal::Unavailable)?;
        let known = keys.current(now).await.ok_or(TrustRefusal::Unavailable)?;
        match jwt.verify(&known) {
            Err(rejection) if jwt.may_be_of_newer_keys(&rejection) => {
                keys.newer_than(&known, now).await.ok_or(TrustRefusal::Unavailable)
            }
            Ok(_) | Err(_) => Ok(known),
        }
    }
}

impl Access {
    /// The trust rules and the keys of their issuers.
    #[must_use]
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Subject of a JWT of a trusted issuer, by exactly one trust rule; in `org` if one is given.
    /// Does not ask the store: the caller has to check whether the JWT was used before and whether
    /// the principal exists.
    pub async fn verify_subject(
        &self,
        jwt: &str,
        org: Option<OrgId>,
        now: Timestamp,
    ) -> Result<TrustedSubject, TrustRefusal> {
        self.trust.verify(jwt, org, now).await
    }
}
