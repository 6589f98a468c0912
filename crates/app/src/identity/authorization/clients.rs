//! The clients that are known here.

use std::sync::Arc;

use portcullis_core::{
    authorization::{
        Client, ClientRegistration, ClientRequest, OAuthError, RedirectUri, RegistrationKey,
    },
    id::{PrincipalId, PrincipalKind},
};

use super::{
    Authorization, TokenAnswer,
    documents::{FetchFor, FetchedClient},
};
use crate::request::Origin;

impl Authorization {
    /// The client of this id: one of the configuration, one that was registered, or one that describes itself at
    /// the address that is its id, which is fetched for `asker`.
    ///
    /// # Errors
    /// `invalid_client`, what is wrong with its document, and `temporarily_unavailable`.
    pub(super) async fn client(
        &self,
        id: &str,
        asker: FetchFor,
        origin: &Origin,
    ) -> Result<Client, OAuthError> {
        if let Some(declared) = self.declared.iter().find(|it| it.reference().id == id) {
            return Ok(declared.clone());
        }
        if RegistrationKey::is_of_its_form(id) {
            return self.registered(id)?.client();
        }
        if Client::is_document_url(id) {
            if let Some(known) = self.documents.known_client(id, origin.arrived)? {
                return known.client().cloned();
            }
            let whose = self.documents.fetch_for(id, asker).await?;
            return self.documents.fetched(id, whose, origin).await?.client().cloned();
        }
        Err(unknown())
    }

    /// The client of a token request that describes itself. Nobody asks for a token for a client to which nobody
    /// consented but who makes it up: the source pays before its document is fetched, whatever comes of that.
    ///
    /// # Errors
    /// As [`Self::client`], and the refusal of a source that has used up its requests.
    pub(super) async fn described(
        &self,
        id: &str,
        origin: &Origin,
    ) -> Result<Arc<FetchedClient>, TokenAnswer> {
        if let Some(known) = self.documents.known_client(id, origin.arrived)? {
            return Ok(known);
        }
        let whose = self.documents.fetch_for(id, FetchFor::Stranger).await?;
        if whose == FetchFor::Stranger {
            self.charge_stranger(origin)?;
        }
        Ok(self.documents.fetched(id, whose, origin).await?)
    }

    /// Returns true if the metadata document of the client has to be fetched.
    pub(super) fn is_unread(&self, id: &str) -> bool {
        Client::is_document_url(id) && !self.documents.is_loaded(id, self.base.now())
    }

    /// The id by which tokens, policies and events name the client of a token request. A service account is the
    /// client of its own tokens.
    ///
    /// # Errors
    /// `invalid_client`.
    pub(super) fn client_name_of(&self, client_id: &str) -> Result<String, OAuthError> {
        if RegistrationKey::is_of_its_form(client_id) {
            return Ok(self.registered(client_id)?.id.to_string());
        }
        let account = |id: PrincipalId| id.kind() == PrincipalKind::Service;
        let is_known = client_id.parse().is_ok_and(account)
            || Client::is_document_url(client_id)
            || self.confidential.has(client_id)
            || self.declared.iter().any(|it| it.reference().id == client_id);
        if is_known { Ok(client_id.to_owned()) } else { Err(unknown()) }
    }

    /// Returns true for the id of a client that is known here, or that describes itself.
    #[must_use]
    pub fn knows_client(&self, id: &str) -> bool {
        self.client_name_of(id).is_ok()
    }

    /// The request, unless its client is not declared and returns to a program whose scheme is not permitted.
    ///
    /// # Errors
    /// `invalid_redirect_uri`.
    pub(super) fn permitted(&self, request: ClientRequest) -> Result<ClientRequest, OAuthError> {
        if !request.client().is_declared() {
            self.permits(request.redirect_uri())?;
        }
        Ok(request)
    }

    /// Rejects an address of a program whose scheme the operator does not permit.
    ///
    /// # Errors
    /// `invalid_redirect_uri`.
    pub(super) fn permits(&self, uri: &RedirectUri) -> Result<(), OAuthError> {
        let (Some(permitted), Some(scheme)) = (&self.redirect_schemes, uri.scheme()) else {
            return Ok(());
        };
        if permitted.iter().any(|it| it == scheme) {
            return Ok(());
        }
        let wanted = "this gateway permits other schemes of programs only";
        Err(OAuthError::redirect_uri(uri.as_str(), wanted))
    }

    fn registered(&self, client_id: &str) -> Result<ClientRegistration, OAuthError> {
        let told = "the registration of this client is not known here, or too old: register anew";
        let registration = self.registrations.open(client_id, self.base.now());
        registration.ok_or_else(|| OAuthError::client(told))
    }
}

fn unknown() -> OAuthError {
    OAuthError::client("this client is not known here")
}
