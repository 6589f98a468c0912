//! OAuth towards providers: metadata, registration, tokens, revocation, over the guarded way out.
//!
//! A thin client over the HTTP client there is. Whatever is asked is asked once, within
//! [`OAUTH_TIMEOUT`] and for at most 256 KiB; no redirect is followed, and a document that a server
//! sent cannot point the gateway into the operator's network.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{AUTHORIZATION, WWW_AUTHENTICATE},
};
use portcullis_core::{
    json::{self, Bounds},
    oauth::{Challenge, GrantError, TokenGrant, TokenMethod, TokenRefusal},
    secret::Secret,
};
use serde_json::Value;
use tokio::time::timeout;
use url::{Url, form_urlencoded};

use crate::{
    Outbound, SettingsError,
    http_client::{Answer, JSON, ReadError, accepting, sending},
    reach::Endpoint,
    settings::Credential,
};

/// The time for one question.
pub const OAUTH_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const MAX_BYTES: usize = 256 << 10;
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// Messages that an MCP server of either era refuses without a token. Some servers let
/// everybody begin and ask for a token after that.
const PROBES: [&str; 2] = [
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"portcullis","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":0,"method":"tools/list","params":{}}"#,
];

/// Failure of a request. Holds nothing that a server sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OAuthError {
    #[error("it cannot be reached")]
    Unreachable,
    #[error("it did not answer within {} s", OAUTH_TIMEOUT.as_secs())]
    Timeout,
    #[error("it answered with status {0}")]
    Status(u16),
    #[error("its answer is larger than {} KiB", MAX_BYTES >> 10)]
    TooLarge,
    #[error("`{member}` in its answer is longer than {kib} KiB")]
    TooLong { member: &'static str, kib: usize },
    #[error("its answer is not what the standard demands")]
    Form,
    #[error("it refused ({0:?})")]
    Refused(TokenRefusal),
    #[error("its address is not acceptable: {0}")]
    Address(#[from] SettingsError),
}

/// Client of the gateway at a token endpoint.
#[derive(Debug, Clone)]
pub struct Client {
    pub id: String,
    pub secret: Option<Secret>,
    pub method: TokenMethod,
}

impl Endpoint {
    /// An address that the server at `near` named. Only the host that the operator named may be
    /// private; any other has to be a public one over HTTPS.
    pub fn found(text: &str, near: &Self) -> Result<Self, SettingsError> {
        let same_host = Url::parse(text).is_ok_and(|url| {
            url.host() == near.url().host() && url.scheme() == near.url().scheme()
        });
        if same_host && near.reach() != crate::Reach::Public {
            Self::allowed(text)
        } else {
            Self::public(text)
        }
    }

    /// The address as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.url().as_str()
    }

    /// The address.
    #[must_use]
    pub fn address(&self) -> &Url {
        self.url()
    }
}

impl Outbound {
    /// The JSON document at an address.
    pub async fn fetch_json(&self, endpoint: &Endpoint) -> Result<Value, OAuthError> {
        self.fetch(endpoint, accepting(JSON)).await
    }

    /// The JSON document that an account is shown as, asked for with its own credential.
    pub async fn fetch_account(
        &self,
        endpoint: &Endpoint,
        credential: &Credential,
    ) -> Result<Value, OAuthError> {
        let mut headers = accepting(JSON);
        headers.insert(credential.name.clone(), credential.value.clone());
        self.fetch(endpoint, headers).await
    }

    async fn fetch(&self, endpoint: &Endpoint, headers: HeaderMap) -> Result<Value, OAuthError> {
        within(async {
            let answer = self.ask(Method::GET, endpoint, headers, Vec::new()).await?;
            document(answer).await
        })
        .await
    }

    /// Challenge of an MCP server to a request without a token; `None` if it asks for
    /// nothing.
    pub async fn challenge_of(&self, server: &Endpoint) -> Result<Option<Challenge>, OAuthError> {
        within(async {
            for probe in PROBES {
                let headers = sending(JSON, BOTH);
                let answer = self.ask(Method::POST, server, headers, probe.into()).await?;
                if answer.status() == StatusCode::UNAUTHORIZED {
                    return Ok(Some(challenge(answer.headers()).unwrap_or_default()));
                }
            }
            Ok(None)
        })
        .await
    }

    /// Asks a token endpoint for tokens of at most `most` bytes.
    pub async fn request_token(
        &self,
        endpoint: &Endpoint,
        client: &Client,
        form: &[(&str, &str)],
        most: usize,
    ) -> Result<TokenGrant, OAuthError> {
        within(async {
            let answer = self.post_form(endpoint, client, form).await?;
            let status = answer.status();
            if status.is_server_error() || status.is_redirection() {
                return Err(OAuthError::Status(status.as_u16()));
            }
            match TokenGrant::parse(&read(answer).await?, most) {
                Ok(grant) if status.is_success() => Ok(grant),
                Err(GrantError::Refused(why)) => Err(OAuthError::Refused(why)),
                Err(GrantError::Form) if status.is_success() => Err(OAuthError::Form),
                Err(GrantError::TooLong { member, kib }) if status.is_success() => {
                    Err(OAuthError::TooLong { member, kib })
                }
                Ok(_) | Err(GrantError::Form | GrantError::TooLong { .. }) => {
                    Err(OAuthError::Status(status.as_u16()))
                }
            }
        })
        .await
    }

    /// Ends a token upstream (RFC 7009).
    pub async fn revoke_token(
        &self,
        endpoint: &Endpoint,
        client: &Client,
        form: &[(&str, &str)],
    ) -> Result<(), OAuthError> {
        within(async {
            let answer = self.post_form(endpoint, client, form).await?;
            let status = answer.status();
            if status.is_success() { Ok(()) } else { Err(OAuthError::Status(status.as_u16())) }
        })
        .await
    }

    /// Registers the gateway with an authorization server (RFC 7591); gives its answer.
    pub async fn register_client(
        &self,
        endpoint: &Endpoint,
        metadata: &Value,
    ) -> Result<Value, OAuthError> {
        within(async {
            let body = metadata.to_string().into_bytes();
            let answer = self.ask(Method::POST, endpoint, sending(JSON, JSON), body).await?;
            document(answer).await
        })
        .await
    }

    async fn post_form(
        &self,
        endpoint: &Endpoint,
        client: &Client,
        form: &[(&str, &str)],
    ) -> Result<Answer, OAuthError> {
        let mut fields: Vec<(&str, &str)> = form.to_vec();
        let mut headers = sending(FORM, JSON);
        match (client.method, &client.secret) {
            (TokenMethod::Basic, Some(secret)) => {
                let mut value = basic(&client.id, secret)?;
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
            (TokenMethod::Post, Some(secret)) => {
                fields.push(("client_id", &client.id));
                fields.push(("client_secret", secret.expose()));
            }
            (TokenMethod::None, _) | (TokenMethod::Basic | TokenMethod::Post, None) => {
                fields.push(("client_id", &client.id));
            }
        }
        self.ask(Method::POST, endpoint, headers, encoded(&fields).into_bytes()).await
    }

    async fn ask(
        &self,
        method: Method,
        endpoint: &Endpoint,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Answer, OAuthError> {
        let client = self.client(endpoint.reach(), CONNECT_TIMEOUT)?;
        let sent = client.send(method, endpoint.uri()?, headers, body);
        sent.await.map_err(|_| OAuthError::Unreachable)
    }
}

/// RFC 6749 §2.3.1: both parts are form-encoded before they are joined.
fn basic(id: &str, secret: &Secret) -> Result<HeaderValue, OAuthError> {
    let pair = Secret::new(format!("{}:{}", component(id), component(secret.expose())));
    let value = format!("Basic {}", STANDARD.encode(pair.expose()));
    HeaderValue::from_str(&value).map_err(|_| OAuthError::Form)
}

fn component(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

pub(crate) fn encoded(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

async fn within<T>(work: impl Future<Output = Result<T, OAuthError>>) -> Result<T, OAuthError> {
    timeout(OAUTH_TIMEOUT, work).await.unwrap_or(Err(OAuthError::Timeout))
}

async fn read(answer: Answer) -> Result<Vec<u8>, OAuthError> {
    if answer.is_encoded() {
        return Err(OAuthError::Form);
    }
    answer.read(MAX_BYTES).await.map_err(|error| match error {
        ReadError::Broken => OAuthError::Unreachable,
        ReadError::TooLarge => OAuthError::TooLarge,
    })
}

/// The JSON object in an answer.
async fn document(answer: Answer) -> Result<Value, OAuthError> {
    if !answer.has_document() {
        return Err(OAuthError::Status(answer.status().as_u16()));
    }
    let body = read(answer).await?;
    let bounds = Bounds { string_bytes: 64 << 10, ..Bounds::REQUEST };
    json::parse(&body, bounds).ok().filter(Value::is_object).ok_or(OAuthError::Form)
}

/// The Bearer challenge of an answer.
pub(crate) fn challenge(headers: &HeaderMap) -> Option<Challenge> {
    let all = headers.get_all(WWW_AUTHENTICATE).iter();
    all.filter_map(|value| value.to_str().ok()).find_map(Challenge::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_names_and_secrets_are_encoded_before_they_are_joined() {
        let secret = Secret::new("p:a ss%".to_owned());

        let value = basic("https://gw.example/id", &secret).unwrap();

        let pair = STANDARD.decode(value.to_str().unwrap().strip_prefix("Basic ").unwrap());
        assert_eq!(pair.unwrap(), b"https%3A%2F%2Fgw.example%2Fid:p%3Aa+ss%25");
    }

    #[test]
    fn only_the_host_that_the_operator_named_may_be_private() {
        let named = Endpoint::allowed("http://127.0.0.1:1/mcp").unwrap();
        let public = Endpoint::public("https://mcp.example/mcp").unwrap();

        assert!(Endpoint::found("http://127.0.0.1:2/token", &named).is_ok());
        assert!(Endpoint::found("https://id.example/token", &named).is_ok());
        for (text, near) in [
            ("http://127.0.0.2/token", &named),
            ("http://169.254.169.254/latest", &named),
            ("http://127.0.0.1:2/token", &public),
            ("https://10.0.0.1/token", &public),
            ("http://mcp.example/token", &public),
            ("javascript:alert(1)", &public),
            ("file:///etc/passwd", &named),
        ] {
            assert!(Endpoint::found(text, near).is_err(), "{text}");
        }
    }
}
