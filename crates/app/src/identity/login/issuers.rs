//! The issuers at which people log in (OpenID Connect): their settings, and what they say about themselves.
//!
//! **Invariant:** however many people come, at most one fetch of an issuer's discovery document is under way, and
//! one follows a failed one only after 10 seconds.

use std::sync::Arc;

use portcullis_core::{
    clock::Timestamp,
    oauth::{MAX_LOGIN_TOKEN_BYTES, TokenGrant, TokenMethod, TokenRefusal},
    openid::{ClientKey, IssuerMetadata, IssuerMethod, LoginAttempt},
    random::Random,
    secret::Secret,
};
use portcullis_upstream::{Client, Discovery, Endpoint, OAuthError, Outbound};
use tokio::sync::Mutex;

use super::failure::LoginError;

/// Seconds for which a document is taken for the issuer's.
const FRESH_SECONDS: i64 = 10 * 60;
/// Seconds for which it is good while the issuer cannot be asked.
const STALE_SECONDS: i64 = 24 * 60 * 60;
/// Seconds after a failure before the next try.
const RETRY_SECONDS: i64 = 10;
const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

const SECRET_METHODS: [IssuerMethod; 2] = [IssuerMethod::SecretBasic, IssuerMethod::SecretPost];
const KEY_METHODS: [IssuerMethod; 1] = [IssuerMethod::PrivateKeyJwt];

/// State of an issuer, for those who check a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginIssuerState {
    pub name: String,
    pub issuer: String,
    /// Fault that keeps people from logging in there at this moment.
    pub error: Option<String>,
}

/// Proof by which an issuer knows the gateway.
#[derive(Debug)]
pub enum IssuerCredential {
    Secret(Secret),
    /// Signs an assertion for each request.
    Key(Box<ClientKey>),
}

/// Settings of an issuer.
#[derive(Debug)]
pub struct LoginIssuer {
    /// Name in addresses.
    pub name: String,
    /// Name on the page.
    pub label: String,
    pub discovery: Discovery,
    pub client_id: String,
    pub credential: IssuerCredential,
    pub scopes: Vec<String>,
    /// Levels of authentication that every login asks for.
    pub acr_values: Vec<String>,
    /// Seconds within which people have to have been asked for credentials.
    pub max_age: Option<i64>,
}

/// An issuer and the document that it was last found to publish.
#[derive(Debug)]
pub(super) struct KnownIssuer {
    pub(super) settings: LoginIssuer,
    held: Mutex<HeldMetadata>,
}

#[derive(Debug, Default)]
struct HeldMetadata {
    metadata: Option<(Arc<IssuerMetadata>, Timestamp)>,
    failed_at: Option<Timestamp>,
}

impl HeldMetadata {
    fn younger_than(&self, seconds: i64, now: Timestamp) -> Option<Arc<IssuerMetadata>> {
        let (metadata, fetched_at) = self.metadata.as_ref()?;
        (now < fetched_at.plus_seconds(seconds)).then(|| Arc::clone(metadata))
    }
}

impl KnownIssuer {
    pub(super) fn new(settings: LoginIssuer) -> Self {
        Self { settings, held: Mutex::default() }
    }

    /// The `iss` of its tokens.
    pub(super) fn issuer(&self) -> &str {
        self.settings.discovery.issuer()
    }

    /// Metadata of the issuer; for a day the last known one, if the issuer cannot be asked. Callers that come while
    /// it is asked wait for the answer.
    pub(super) async fn metadata(
        &self,
        outbound: &Outbound,
        now: Timestamp,
    ) -> Result<Arc<IssuerMetadata>, LoginError> {
        let mut held = self.held.lock().await;
        if let Some(fresh) = held.younger_than(FRESH_SECONDS, now) {
            return Ok(fresh);
        }
        let waits = |at: Timestamp| now < at.plus_seconds(RETRY_SECONDS);
        if !held.failed_at.is_some_and(waits) {
            match self.fetch(outbound).await {
                Ok(metadata) => {
                    let metadata = Arc::new(metadata);
                    *held = HeldMetadata {
                        metadata: Some((Arc::clone(&metadata), now)),
                        failed_at: None,
                    };
                    return Ok(metadata);
                }
                Err(error) => {
                    let issuer = self.issuer();
                    tracing::warn!(%issuer, %error, "the issuer's discovery document cannot be used");
                    held.failed_at = Some(now);
                }
            }
        }
        held.younger_than(STALE_SECONDS, now).ok_or(LoginError::IssuerDown)
    }

    /// Tells whether the issuer can be used at this moment; asks it anew.
    pub(super) async fn state(&self, outbound: &Outbound) -> LoginIssuerState {
        let methods: &[IssuerMethod] = match &self.settings.credential {
            IssuerCredential::Secret(_) => &SECRET_METHODS,
            IssuerCredential::Key(_) => &KEY_METHODS,
        };
        let usable = self.fetch(outbound).await.and_then(|metadata| {
            metadata.method(methods).map(drop).map_err(|error| error.to_string())
        });
        let name = self.settings.name.clone();
        LoginIssuerState { name, issuer: self.issuer().to_owned(), error: usable.err() }
    }

    async fn fetch(&self, outbound: &Outbound) -> Result<IssuerMetadata, String> {
        let document = outbound.fetch_json(self.settings.discovery.endpoint()).await;
        let document = document.map_err(|error| error.to_string())?;
        IssuerMetadata::parse(&document, self.issuer()).map_err(|error| error.to_string())
    }

    /// Exchanges a code for the tokens of a login. It is asked once: a code is good once.
    pub(super) async fn redeem(
        &self,
        outbound: &Outbound,
        metadata: &IssuerMetadata,
        code: IssuerCode<'_>,
    ) -> Result<TokenGrant, LoginError> {
        let unusable = |error: String| {
            let issuer = self.issuer();
            tracing::warn!(%issuer, %error, "a code cannot be exchanged at the issuer");
            LoginError::IssuerDown
        };
        let near = self.settings.discovery.endpoint();
        let endpoint = Endpoint::found(&metadata.token_endpoint, near);
        let endpoint = endpoint.map_err(|error| unusable(error.to_string()))?;
        let verifier = code.attempt.verifier();
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code.code.expose()),
            ("redirect_uri", code.redirect_uri),
            ("code_verifier", verifier.secret().expose()),
        ];
        let (client, assertion) = self.client(metadata, &code).map_err(&unusable)?;
        if let Some(assertion) = &assertion {
            form.push(("client_assertion_type", JWT_BEARER));
            form.push(("client_assertion", assertion.expose()));
        }
        let granted =
            outbound.request_token(&endpoint, &client, &form, MAX_LOGIN_TOKEN_BYTES).await;
        granted.map_err(|error| {
            if error == OAuthError::Refused(TokenRefusal::InvalidGrant) {
                return LoginError::CodeRefused;
            }
            let unusable = unusable(error.to_string());
            if let OAuthError::TooLong { member, kib } = error {
                return LoginError::TooLong { member, kib };
            }
            unusable
        })
    }

    /// The gateway at the token endpoint: with its secret, or with an assertion under its key.
    fn client(
        &self,
        metadata: &IssuerMetadata,
        code: &IssuerCode<'_>,
    ) -> Result<(Client, Option<Secret>), String> {
        let id = self.settings.client_id.clone();
        match &self.settings.credential {
            IssuerCredential::Secret(secret) => {
                let method = metadata.method(&SECRET_METHODS).map_err(|error| error.to_string())?;
                let method = match method {
                    IssuerMethod::SecretBasic => TokenMethod::Basic,
                    IssuerMethod::SecretPost | IssuerMethod::PrivateKeyJwt => TokenMethod::Post,
                };
                Ok((Client { id, secret: Some(secret.clone()), method }, None))
            }
            IssuerCredential::Key(key) => {
                metadata.method(&KEY_METHODS).map_err(|error| error.to_string())?;
                let audience = &metadata.token_endpoint;
                let assertion = key.assertion(&id, audience, code.now, code.random);
                let assertion = assertion.ok_or("the private key cannot sign")?;
                Ok((Client { id, secret: None, method: TokenMethod::None }, Some(assertion)))
            }
        }
    }
}

/// A code, and what it has to be exchanged with.
#[derive(Debug, Clone, Copy)]
pub(super) struct IssuerCode<'a> {
    pub(super) code: &'a Secret,
    pub(super) attempt: &'a LoginAttempt,
    pub(super) redirect_uri: &'a str,
    pub(super) now: Timestamp,
    pub(super) random: &'a dyn Random,
}
