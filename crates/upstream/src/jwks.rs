//! The keys of token issuers: OpenID Connect Discovery 1.0 and JWK Sets over HTTPS.
//!
//! An issuer is trusted to identify its subjects, and with nothing else: its answers are bounded in
//! size and time, no redirect is followed, and its discovery document cannot point the gateway into
//! the operator's network.

use std::time::Duration;

use http::Method;
use portcullis_core::{
    json::{self, Bounds},
    trust::{KeySet, KeySetError},
};
use serde_json::Value;
use tokio::time::timeout;
use url::Url;

use crate::{
    Outbound, SettingsError,
    http_client::{JSON, ReadError, accepting},
    reach::{Endpoint, Reach},
};

/// The time for everything: discovery document and keys.
pub const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The largest document; real ones have a few KiB.
const MAX_BYTES: usize = 256 << 10;
const WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// Address of an issuer's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyLocation {
    /// Named by its discovery document.
    Discovery(Discovery),
    Jwks(Endpoint),
}

/// An issuer whose discovery document names its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovery {
    issuer: String,
    endpoint: Endpoint,
}

impl Discovery {
    /// The discovery document of `issuer`, which has to be a URL that `reach` accepts: one of
    /// [`Endpoint::public`] and [`Endpoint::allowed`].
    pub fn of(
        issuer: &str,
        reach: fn(&str) -> Result<Endpoint, SettingsError>,
    ) -> Result<Self, SettingsError> {
        if issuer.contains('?') {
            return Err(SettingsError::Url("an issuer must not have a `?` part"));
        }
        let address = format!("{}{WELL_KNOWN}", issuer.strip_suffix('/').unwrap_or(issuer));
        Ok(Self { issuer: issuer.to_owned(), endpoint: reach(&address)? })
    }

    /// The issuer.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Address of the document.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

/// Failure to fetch keys. Holds nothing that the issuer sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error("the issuer cannot be reached")]
    Unreachable,
    #[error("the issuer did not answer within {} s", FETCH_TIMEOUT.as_secs())]
    Timeout,
    #[error("the issuer answered with status {0} where 200 was due")]
    Status(u16),
    #[error("the issuer's answer is larger than {} KiB", MAX_BYTES >> 10)]
    TooLarge,
    #[error("the issuer's answer is encoded, which was not asked for")]
    Encoded,
    #[error("the issuer's discovery document is not one strict JSON object with a `jwks_uri`")]
    Discovery,
    #[error("the discovery document names another issuer")]
    WrongIssuer,
    #[error("the `jwks_uri` of the discovery document: {0}")]
    JwksUri(SettingsError),
    #[error(transparent)]
    Keys(#[from] KeySetError),
    #[error(transparent)]
    Client(SettingsError),
}

impl Outbound {
    /// Fetches an issuer's keys, once; gives up after [`FETCH_TIMEOUT`].
    pub async fn fetch_keys(&self, location: &KeyLocation) -> Result<KeySet, FetchError> {
        timeout(FETCH_TIMEOUT, self.keys_at(location)).await.unwrap_or(Err(FetchError::Timeout))
    }

    async fn keys_at(&self, location: &KeyLocation) -> Result<KeySet, FetchError> {
        let endpoint = match location {
            KeyLocation::Jwks(endpoint) => endpoint.clone(),
            KeyLocation::Discovery(discovery) => {
                let document = self.document(&discovery.endpoint).await?;
                discovery.keys(&document)?
            }
        };
        Ok(KeySet::parse(&self.document(&endpoint).await?)?)
    }

    async fn document(&self, endpoint: &Endpoint) -> Result<Vec<u8>, FetchError> {
        let client = self.client(endpoint.reach(), CONNECT_TIMEOUT).map_err(FetchError::Client)?;
        let uri = endpoint.uri().map_err(FetchError::Client)?;
        let sent = client.send(Method::GET, uri, accepting(JSON), Vec::new());
        let answer = sent.await.map_err(|_| FetchError::Unreachable)?;
        if !answer.has_document() {
            return Err(FetchError::Status(answer.status().as_u16()));
        }
        if answer.is_encoded() {
            return Err(FetchError::Encoded);
        }
        answer.read(MAX_BYTES).await.map_err(|error| match error {
            ReadError::Broken => FetchError::Unreachable,
            ReadError::TooLarge => FetchError::TooLarge,
        })
    }
}

impl Discovery {
    /// Address of the keys in the document. Only the host that the operator named may be
    /// private; any other has to be a public one over HTTPS.
    fn keys(&self, document: &[u8]) -> Result<Endpoint, FetchError> {
        let bounds = Bounds { string_bytes: 64 << 10, ..Bounds::REQUEST };
        let document = json::parse(document, bounds).map_err(|_| FetchError::Discovery)?;
        let text = |member: &str| document.get(member).and_then(Value::as_str);
        let issuer = text("issuer").ok_or(FetchError::Discovery)?;
        if issuer != self.issuer {
            return Err(FetchError::WrongIssuer);
        }
        let address = text("jwks_uri").ok_or(FetchError::Discovery)?;
        let same_host = Url::parse(address).is_ok_and(|url| {
            url.host() == self.endpoint.url().host() && url.scheme() == self.endpoint.url().scheme()
        });
        let endpoint = if same_host && self.endpoint.reach() != Reach::Public {
            Endpoint::allowed(address)
        } else {
            Endpoint::public(address)
        };
        endpoint.map_err(FetchError::JwksUri)
    }
}
