//! Authentication of clients at the token endpoint: `private_key_jwt` (RFC 7523 §2.2), or none.

use std::{any::Any, collections::BTreeMap, sync::Arc};

use portcullis_core::{
    authorization::{Client, ClientAuthentication, ClientRef, OAuthError},
    refusal::Refusal,
    secret::Secret,
    trust::{ClientAssertion, KeySet, Rejection, SingleUse},
};
use portcullis_upstream::Outbound;
use tokio_util::task::TaskTracker;

use super::{Authorization, TokenAnswer, TokenClient, documents::Place};
use crate::{
    base::tenants::sources::LookUp,
    identity::access::{
        proofs::record_of,
        trust::{KeySource, keys::IssuerKeys},
    },
    request::Origin,
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
    /// Charge to its sender while the request is looked at.
    pub held: Box<dyn Any + Send + Sync>,
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
        let this = Arc::clone(self);
        let from = origin.clone();
        // What it holds and what it costs belong to the work, which ends no sooner because the client hangs up.
        let work = async move {
            let PresentedClient { id, assertion, held } = presented;
            let client = this.proved_client(id, assertion, &from).await;
            drop(held);
            client.map_err(|answer| this.charged(answer, &from))
        };
        self.base.uncancelled(work).await?
    }

    async fn proved_client(
        &self,
        id: Option<String>,
        assertion: Option<Secret>,
        origin: &Origin,
    ) -> Result<TokenClient, TokenAnswer> {
        let Some(assertion) = assertion else {
            let Some(id) = id else { return Ok(TokenClient::Unnamed) };
            return if self.has_to_prove_itself(&id, origin).await? {
                Err(OAuthError::unproved_client().into())
            } else {
                Ok(TokenClient::Public(id))
            };
        };
        let assertion = ClientAssertion::parse(assertion.expose()).map_err(|_| unproved())?;
        if id.is_some_and(|id| id != assertion.client()) {
            return Err(OAuthError::client("client_id is not the client of the assertion").into());
        }
        if !self.quotas.may_look_up(LookUp::Assertion, origin) {
            return Err(unproved().into());
        }
        let id = assertion.client();
        let (client, once) = match self.confidential.0.get(id) {
            Some((client, keys)) => {
                (client.clone(), self.checked(&assertion, keys, None, origin).await?)
            }
            None if Client::is_document_url(id) => {
                self.proved_by_document(&assertion, origin).await?
            }
            None => return Err(unproved().into()),
        };
        let first = self.base.store.use_assertion(record_of(&once)).await;
        if !first.map_err(Refusal::from)? {
            return Err(OAuthError::client("the assertion was used before").into());
        }
        Ok(TokenClient::Proved(client))
    }

    /// Returns true for a client that has a key. One with a metadata document is never taken for public while
    /// the document cannot be had.
    async fn has_to_prove_itself(&self, id: &str, origin: &Origin) -> Result<bool, TokenAnswer> {
        if self.confidential.has(id) || !Client::is_document_url(id) {
            return Ok(self.confidential.has(id));
        }
        if !self.quotas.may_look_up(LookUp::Assertion, origin) {
            return Err(unproved().into());
        }
        let fetched = self.described(id, origin).await?;
        Ok(*fetched.client()?.authentication() != ClientAuthentication::None)
    }

    /// The client of an assertion that is signed with a key of its metadata document.
    async fn proved_by_document(
        &self,
        assertion: &ClientAssertion,
        origin: &Origin,
    ) -> Result<(ClientRef, SingleUse), TokenAnswer> {
        let fetched = self.described(assertion.client(), origin).await?;
        let client = fetched.client()?;
        let once = self.checked(assertion, fetched.keys()?, Some(client), origin).await?;
        Ok((client.reference().clone(), once))
    }

    /// The place that is needed to fetch keys.
    async fn place(
        &self,
        described: Option<&Client>,
        origin: &Origin,
    ) -> Result<Option<Place>, OAuthError> {
        match described {
            Some(client) => self.documents.place_for_keys(client, origin).await,
            None => Ok(None),
        }
    }

    /// Checks an assertion with the keys of its client that are known, or with newer ones if it is of none of
    /// these, which takes a place if they are those of a client that describes itself.
    async fn checked(
        &self,
        assertion: &ClientAssertion,
        keys: &IssuerKeys,
        described: Option<&Client>,
        origin: &Origin,
    ) -> Result<SingleUse, TokenAnswer> {
        let now = origin.arrived;
        let recipient = self.access.recipient()?;
        let unreachable = || {
            let told = "the keys of the client cannot be fetched from the address that it names for them: see to \
                        that, and ask again after 10 seconds";
            OAuthError::client(told)
        };
        let check = |keys: &KeySet| assertion.check(keys, &recipient, now);
        let turn = if keys.is_fresh(now) { None } else { self.place(described, origin).await? };
        let known = keys.current(now).await.ok_or_else(unreachable)?;
        drop(turn);
        let checked = match check(&known) {
            Err(rejection) if assertion.may_be_of_newer_keys(&rejection) => {
                let _turn = self.place(described, origin).await?;
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
