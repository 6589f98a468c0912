//! Dynamic client registration (RFC 7591) without a store: what a client says of itself is sealed into its id.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Client, ClientKind, MAX_CLIENT_ID, OAuthError, OAuthErrorCode, RedirectUri, client};
use crate::{
    clock::Timestamp, id::RegistrationId, idempotency::AnswerKey, random::Random, secret::Secret,
};

/// Purpose for which the key of registrations is derived.
pub const REGISTRATIONS: &str = "oauth-registrations";
/// Seconds for which a registration is good: longer than any grant.
const LIFE_SECONDS: i64 = 90 * 86_400;
const PREFIX: &str = "dcr_";
const ACCESS_PREFIX: &str = "rat_";
const CLIENT: &str = "client";
const ACCESS: &str = "access";

/// Seals registrations of one installation.
#[derive(Debug)]
pub struct RegistrationKey(AnswerKey);

/// Statements of a client about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRegistration {
    pub id: RegistrationId,
    pub issued_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub redirect_uris: Vec<RedirectUri>,
}

/// A registration as it is handed to its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRegistration {
    pub client_id: String,
    /// Opens the registration to its client.
    pub access_token: Secret,
}

impl ClientRegistration {
    /// Reads client metadata. Members that change nothing here are ignored (RFC 7591 §2).
    ///
    /// # Errors
    /// `invalid_redirect_uri` and `invalid_client_metadata`.
    pub fn read(document: &Value, id: RegistrationId, now: Timestamp) -> Result<Self, OAuthError> {
        let redirect_uris = client::redirect_uris(document)?;
        let name = match document.get("client_name") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(name.chars().take(200).collect()),
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                let told = "client_name has to be a text";
                return Err(OAuthError::new(OAuthErrorCode::InvalidClientMetadata, told));
            }
        };
        let registration = Self { id, issued_at: now, name, redirect_uris };
        registration.client().map(|_| registration)
    }

    /// The client.
    ///
    /// # Errors
    /// `invalid_redirect_uri` if it has none, or too many.
    pub fn client(&self) -> Result<Client, OAuthError> {
        let id = self.id.to_string();
        let name = self.name.as_deref();
        Client::new(id, ClientKind::Registered, name, self.redirect_uris.clone())
    }

    /// When it ends.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.issued_at.plus_seconds(LIFE_SECONDS)
    }
}

impl RegistrationKey {
    /// From 32 bytes that are used for nothing else.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        Self(AnswerKey::new(key))
    }

    /// Seals a registration.
    ///
    /// # Errors
    /// `invalid_client_metadata` if it does not fit into an id.
    pub fn seal(
        &self,
        registration: &ClientRegistration,
        source: &dyn Random,
    ) -> Result<SealedRegistration, OAuthError> {
        let seal = |prefix: &str, purpose: &str, text: &[u8]| {
            let sealed = self.0.seal_of_installation(purpose, text, source)?;
            Some(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(sealed)))
        };
        let told = "the metadata is too long";
        let too_long = || OAuthError::new(OAuthErrorCode::InvalidClientMetadata, told);
        let text = serde_json::to_vec(registration).map_err(|_| too_long())?;
        let client_id = seal(PREFIX, CLIENT, &text).filter(|id| id.len() <= MAX_CLIENT_ID);
        let access = seal(ACCESS_PREFIX, ACCESS, registration.id.to_string().as_bytes());
        let (Some(client_id), Some(access)) = (client_id, access) else { return Err(too_long()) };
        Ok(SealedRegistration { client_id, access_token: Secret::new(access) })
    }

    /// Opens a `client_id`. `None` if it was changed, is over its time, or was never sealed here.
    #[must_use]
    pub fn open(&self, client_id: &str, now: Timestamp) -> Option<ClientRegistration> {
        if client_id.len() > MAX_CLIENT_ID {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(client_id.strip_prefix(PREFIX)?).ok()?;
        let text = self.0.open_of_installation(CLIENT, &sealed)?;
        let registration: ClientRegistration = serde_json::from_slice(&text).ok()?;
        (now < registration.expires_at()).then_some(registration)
    }

    /// Returns true if `token` is the access token of this registration.
    #[must_use]
    pub fn is_access_token(&self, registration: &ClientRegistration, token: &str) -> bool {
        let opened = || {
            let sealed = URL_SAFE_NO_PAD.decode(token.strip_prefix(ACCESS_PREFIX)?).ok()?;
            self.0.open_of_installation(ACCESS, &sealed)
        };
        token.len() <= 256
            && opened().is_some_and(|id| id == registration.id.to_string().as_bytes())
    }

    /// Returns true for a text of the form of ids that are given here.
    #[must_use]
    pub fn is_of_its_form(client_id: &str) -> bool {
        client_id.starts_with(PREFIX)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::random::Sevens;

    const NOW: Timestamp = Timestamp::from_micros(1_795_172_535_000_000);

    fn registration(n: u8) -> ClientRegistration {
        let document = json!({"client_name": "App", "redirect_uris": ["http://127.0.0.1/cb"]});
        let id = format!("reg_{n:026}").parse().unwrap();
        ClientRegistration::read(&document, id, NOW).unwrap()
    }

    #[test]
    fn a_registration_opens_here_until_it_ends() {
        let key = RegistrationKey::new(&[1; 32]);
        let mine = registration(1);

        let SealedRegistration { client_id, access_token } = key.seal(&mine, &Sevens).unwrap();

        assert_eq!(key.open(&client_id, NOW), Some(mine.clone()));
        assert_eq!(key.open(&client_id, NOW.plus_seconds(LIFE_SECONDS)), None);
        assert_eq!(RegistrationKey::new(&[2; 32]).open(&client_id, NOW), None);
        assert_eq!(key.open(&client_id[..client_id.len() - 1], NOW), None);
        assert_eq!(key.open(access_token.expose(), NOW), None);
        assert!(key.is_access_token(&mine, access_token.expose()));
        assert!(!key.is_access_token(&registration(2), access_token.expose()));
        assert!(!key.is_access_token(&mine, &client_id));
    }

    #[test]
    fn metadata_that_describes_no_client_is_refused() {
        let key = RegistrationKey::new(&[1; 32]);
        let id = || format!("reg_{:026}", 1).parse().unwrap();
        for bad in [
            json!({}),
            json!({"redirect_uris": []}),
            json!({"redirect_uris": ["http://evil.example/"]}),
            json!({"redirect_uris": ["https://a.example/"], "client_name": 1}),
        ] {
            assert!(ClientRegistration::read(&bad, id(), NOW).is_err(), "{bad}");
        }
        let long: Vec<_> =
            (0..10).map(|n| format!("https://a.example/{n}{}", "x".repeat(900))).collect();
        let long = ClientRegistration::read(&json!({"redirect_uris": long}), id(), NOW).unwrap();
        assert!(key.seal(&long, &Sevens).is_err());
    }
}
