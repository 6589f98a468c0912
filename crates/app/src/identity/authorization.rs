//! The authorization server for MCP clients: who asks, what a person consents to, and what comes of it.
//!
//! A code is given for a [`Consented`](portcullis_core::authorization::Consented) only, which is made step by
//! step; a step that is left out does not compile.

mod asking;
mod authentication;
pub(crate) mod clients;
mod codes;
mod consents;
mod documents;
mod events;
mod grants;
mod token_client;
mod tokens;

use std::sync::Arc;

use portcullis_core::{
    authorization::{
        Client, ClientRegistration, OAuthError, OAuthErrorCode, OwnHosts, RegistrationKey,
        SealedRegistration,
    },
    id::RegistrationId,
    refusal::Refusal,
};
use portcullis_upstream::Outbound;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use self::documents::Documents;
pub use self::{
    asking::{Answer, ConsentQuestion, Decision, Step, shown_digest},
    authentication::{ConfidentialClient, ConfidentialClients, PresentedClient},
    consents::ConsentView,
    documents::DocumentRules,
    grants::GrantRequest,
    token_client::TokenClient,
    tokens::{CodeRequest, RefreshRequest, TokenAnswer, proof_error},
};
use super::{access::Access, login::Logins};
use crate::{
    audit::Audit,
    base::Base,
    catalogue::Capabilities,
    policies::{Policies, limits::Quotas},
    providers::Providers,
    request::{Origin, screening::Screening},
};

/// Settings of the authorization server.
#[derive(Debug)]
pub struct AuthorizationParts {
    /// Offered or not; as people can log in when absent.
    pub enabled: Option<bool>,
    /// Names of the gateway besides that of its public address.
    pub hosts: OwnHosts,
    pub registrations: RegistrationKey,
    /// Clients of the configuration.
    pub declared: Vec<Client>,
    /// Clients that prove themselves with a key.
    pub confidential: ConfidentialClients,
    pub documents: DocumentRules,
    /// Schemes of programs that a client may return to unless it is declared, in small letters; any when absent.
    pub redirect_schemes: Option<Vec<String>>,
}

impl AuthorizationParts {
    /// No client is authorized.
    pub(crate) fn none(key: &[u8; 32], outbound: &Outbound, tasks: &TaskTracker) -> Self {
        let outbound = outbound.clone();
        Self {
            enabled: Some(false),
            hosts: OwnHosts::default(),
            registrations: RegistrationKey::new(key),
            declared: Vec::new(),
            confidential: ConfidentialClients::new(Vec::new(), &outbound, tasks),
            documents: DocumentRules { allowed: None, private_hosts: Vec::new(), outbound },
            redirect_schemes: None,
        }
    }
}

/// The authorization server of a node.
#[derive(Debug)]
pub struct Authorization {
    base: Arc<Base>,
    screening: Arc<Screening>,
    audit: Arc<Audit>,
    quotas: Arc<Quotas>,
    catalogue: Arc<Capabilities>,
    providers: Arc<Providers>,
    access: Arc<Access>,
    logins: Arc<Logins>,
    enabled: Option<bool>,
    hosts: OwnHosts,
    registrations: RegistrationKey,
    declared: Vec<Client>,
    confidential: ConfidentialClients,
    documents: Arc<Documents>,
    redirect_schemes: Option<Vec<String>>,
}

impl Authorization {
    /// Puts it together.
    pub(crate) fn open(
        policies: &Policies,
        providers: &Arc<Providers>,
        access: &Arc<Access>,
        logins: &Arc<Logins>,
        parts: AuthorizationParts,
    ) -> Arc<Self> {
        let Policies { base, screening, audit, quotas, catalogue, .. } = policies;
        let AuthorizationParts {
            enabled,
            hosts,
            registrations,
            declared,
            confidential,
            documents,
            redirect_schemes,
        } = parts;
        let documents = Documents::new(documents, base);
        Arc::new(Self {
            base: Arc::clone(base),
            screening: Arc::clone(screening),
            audit: Arc::clone(audit),
            quotas: Arc::clone(quotas),
            catalogue: Arc::clone(catalogue),
            providers: Arc::clone(providers),
            access: Arc::clone(access),
            logins: Arc::clone(logins),
            enabled,
            hosts,
            registrations,
            declared,
            confidential,
            documents,
            redirect_schemes,
        })
    }

    /// The issuer, if clients are authorized here: only where people can log in.
    #[must_use]
    pub fn issuer(&self) -> Option<&str> {
        let offered = self.logins.is_on() && self.enabled != Some(false);
        self.providers.public_url().filter(|_| offered)
    }

    /// The names of the gateway besides that of its public address.
    #[must_use]
    pub const fn hosts(&self) -> &OwnHosts {
        &self.hosts
    }

    /// Charges a failed request of a caller of whom nothing is known to its source.
    ///
    /// # Errors
    /// The refusal when its source has used up its requests.
    pub fn charge_stranger(&self, origin: &Origin) -> Result<(), Refusal> {
        self.quotas
            .sources
            .charge(origin.source_ip, origin.arrived)
            .map(drop)
            .map_err(|bucket| self.quotas.limited(bucket))
    }

    /// Counts a registration.
    ///
    /// # Errors
    /// The refusal when its source has made too many.
    pub fn admit_registration(&self, origin: &Origin) -> Result<(), Refusal> {
        let counted = self.quotas.sources.register(origin.source_ip, origin.arrived);
        counted.map_err(|bucket| self.quotas.limited(bucket))
    }

    /// Registers a client. Nothing is kept.
    ///
    /// # Errors
    /// `invalid_redirect_uri` and `invalid_client_metadata`.
    pub fn register(
        &self,
        document: &Value,
    ) -> Result<(ClientRegistration, SealedRegistration), OAuthError> {
        let id = RegistrationId::new(self.base.ids());
        let registration = ClientRegistration::read(document, id, self.base.now())?;
        registration.redirect_uris.iter().try_for_each(|uri| self.permits(uri))?;
        let sealed = self.registrations.seal(&registration, &*self.base.random)?;
        Ok((registration, sealed))
    }

    /// The registration of a client that shows its access token.
    ///
    /// # Errors
    /// `invalid_token`.
    pub fn registration(
        &self,
        client_id: &str,
        access_token: Option<&str>,
    ) -> Result<ClientRegistration, OAuthError> {
        let told = "the registration access token is not that of this client";
        let registration = self.registrations.open(client_id, self.base.now());
        registration
            .filter(|it| {
                access_token.is_some_and(|token| self.registrations.is_access_token(it, token))
            })
            .ok_or_else(|| OAuthError::new(OAuthErrorCode::InvalidToken, told))
    }
}
