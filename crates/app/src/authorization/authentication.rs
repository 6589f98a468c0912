//! Authentication of clients at the token endpoint: `private_key_jwt` (RFC 7523 §2.2), or none.

use std::{collections::BTreeMap, sync::Arc};

use portcullis_core::{
    authorization::{Client, ClientAuthentication, ClientRef, OAuthError},
    clock::Timestamp,
    refusal::{Refusal, Unavailable},
    secret::Secret,
    trust::{ClientAssertion, KeySet, Rejection, SingleUse},
};
use portcullis_upstream::Outbound;
use tokio_util::task::TaskTracker;

use super::{Authorization, TokenAnswer, TokenClient};
use crate::{
    access::{
        single_use::record_of,
        trust::{KeySource, keys::IssuerKeys},
    },
    ctx::Origin,
};

/// A client of the configuration that proves itself with a key.
#[derive(Debug)]
pub struct ConfidentialClient {
    pub reference: ClientRef,
    pub keys: KeySource,
}

/// The clients that prove themselves with a key, by id.
#[derive(Debug, Default)]
pub struct ConfidentialClients(BTreeMap<String, (ClientRef, IssuerKeys)>);

impl ConfidentialClients {
    /// Authenticates these clients. Keys are fetched on `tasks`.
    #[must_use]
    pub fn new(clients: Vec<ConfidentialClient>, outbound: &Outbound, tasks: &TaskTracker) -> Self {
        let clients = clients.into_iter().map(|ConfidentialClient { reference, keys }| {
            let id = reference.id.clone();
            let keys = IssuerKeys::new(id.clone(), keys, outbound.clone(), tasks.clone());
            (id, (reference, keys))
        });
        Self(clients.collect())
    }

    /// Returns true for the id of one of them.
    pub(super) fn has(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }
}

/// The client of a token request, as it presents itself.
#[derive(Debug)]
pub struct PresentedClient {
    /// The form's `client_id`.
    pub id: Option<String>,
    /// The form's `client_assertion`.
    pub assertion: Option<Secret>,
}

impl Authorization {
    /// The client of a token request. One that has keys has to prove itself with one of them; every rejection
    /// is charged to the source.
    ///
    /// # Errors
    /// `invalid_client`, `invalid_request`, and refusals of the gateway.
    pub async fn token_client(
        self: &Arc<Self>,
        presented: PresentedClient,
        origin: &Origin,
    ) -> Result<TokenClient, TokenAnswer> {
        let client = self.proved_client(presented, origin).await;
        client.map_err(|answer| self.charged(answer, origin))
    }

    async fn proved_client(
        &self,
        presented: PresentedClient,
        origin: &Origin,
    ) -> Result<TokenClient, TokenAnswer> {
        let PresentedClient { id, assertion } = presented;
        let Some(assertion) = assertion else {
            return match id {
                Some(id) if self.has_to_prove_itself(&id, origin.arrived) => {
                    Err(OAuthError::unproved_client().into())
                }
                Some(id) => Ok(TokenClient::Public(id)),
                None => Ok(TokenClient::Unnamed),
            };
        };
        let assertion = ClientAssertion::parse(assertion.expose()).map_err(|_| unproved())?;
        if id.is_some_and(|id| id != assertion.client()) {
            return Err(OAuthError::client("client_id is not the client of the assertion").into());
        }
        if !self.quotas.sources.may_look_up(origin.source_ip, origin.arrived) {
            return Err(unproved().into());
        }
        let id = assertion.client();
        let (client, once) = match self.confidential.0.get(id) {
            Some((client, keys)) => (client.clone(), self.checked(&assertion, keys, origin).await?),
            None if Client::is_document_url(id) => {
                let of_document = self.documents.keys_of(id, origin.arrived).await?;
                let once = self.checked(&assertion, &of_document.keys, origin).await?;
                (of_document.client, once)
            }
            None => return Err(unproved().into()),
        };
        let first = self.base.store.use_assertion(record_of(&once)).await;
        if !first.map_err(Refusal::from)? {
            return Err(OAuthError::client("the assertion was used before").into());
        }
        Ok(TokenClient::Proved(client))
    }

    /// Returns true for a client that is known to have a key. The metadata documents of others are not fetched
    /// for it: what they were granted says whether they had one at the consent.
    fn has_to_prove_itself(&self, id: &str, now: Timestamp) -> bool {
        let by_key = |client: Client| *client.authentication() != ClientAuthentication::None;
        self.confidential.has(id) || self.documents.find_loaded(id, now).is_some_and(by_key)
    }

    /// Checks an assertion with the keys of its client that are known, or with newer ones if it is of none of
    /// these.
    async fn checked(
        &self,
        assertion: &ClientAssertion,
        keys: &IssuerKeys,
        origin: &Origin,
    ) -> Result<SingleUse, TokenAnswer> {
        let now = origin.arrived;
        let recipient = self.access.recipient()?;
        let unreachable = || Refusal::Unavailable { reason: Unavailable::IssuerKeys };
        let check = |keys: &KeySet| assertion.check(keys, &recipient, now);
        let known = keys.current(now).await.ok_or_else(unreachable)?;
        let checked = match check(&known) {
            Err(rejection) if assertion.may_be_of_newer_keys(&rejection) => {
                let newer = keys.newer_than(&known, now).await.ok_or_else(unreachable)?;
                check(&newer)
            }
            checked => checked,
        };
        checked.map_err(|rejection| {
            if rejection == Rejection::WrongAudience {
                let told = "aud of the assertion is not this authorization server";
                return OAuthError::client(told).into();
            }
            unproved().into()
        })
    }
}

fn unproved() -> OAuthError {
    OAuthError::client("the assertion does not prove that it is of a client that is known here")
}
