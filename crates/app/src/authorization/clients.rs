//! The clients that are known here.

use portcullis_core::authorization::{Client, OAuthError, RegistrationKey};

use super::Authorization;

impl Authorization {
    /// The client of this id: one of the configuration, one that was registered, or one that describes itself at
    /// the address that is its id.
    ///
    /// # Errors
    /// `invalid_client`.
    pub(super) async fn client(&self, id: &str) -> Result<Client, OAuthError> {
        if let Some(declared) = self.declared.iter().find(|it| it.reference().id == id) {
            return Ok(declared.clone());
        }
        if RegistrationKey::is_of_its_form(id) {
            let registration = self.registrations.open(id, self.base.now());
            let told =
                "the registration of this client is not known here, or too old: register anew";
            return registration.ok_or_else(|| OAuthError::client(told))?.client();
        }
        if Client::is_document_url(id) {
            return self.documents.client(id, self.base.now()).await;
        }
        Err(OAuthError::client("this client is not known here"))
    }

    /// The id by which tokens, policies and events name the client of a token request.
    ///
    /// # Errors
    /// `invalid_client`.
    pub(super) fn client_name_of(&self, client_id: &str) -> Result<String, OAuthError> {
        if !RegistrationKey::is_of_its_form(client_id) {
            return Ok(client_id.to_owned());
        }
        let registration = self.registrations.open(client_id, self.base.now());
        let told = "the registration of this client is not known here, or too old: register anew";
        let registration = registration.ok_or_else(|| OAuthError::client(told))?;
        Ok(registration.id.to_string())
    }
}
