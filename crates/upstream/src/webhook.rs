//! Messages to addresses that the operator configured, with the headers of
//! [Standard Webhooks](https://www.standardwebhooks.com); their answers are not read.

mod signature;

pub use self::signature::{SigningSecret, SigningSecretError};

use std::{fmt, time::Duration};

use http::{HeaderValue, Method, Uri};
use portcullis_core::clock::Timestamp;
use tokio::time::timeout;

use crate::{
    error::SettingsError,
    http_client::{ANYTHING, HttpClient, JSON, sending},
    outbound::Outbound,
    reach::Endpoint,
};

/// Time limit of a message.
const PATIENCE: Duration = Duration::from_secs(5);

/// Address of messages. It may hold a secret, so it is never shown.
#[derive(Clone)]
pub struct Webhook {
    client: HttpClient,
    uri: Uri,
    secrets: Vec<SigningSecret>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").finish_non_exhaustive()
    }
}

/// A message did not arrive, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// The webhook could not be reached, or did not answer in time.
    #[error("the webhook cannot be reached")]
    Unreachable,
    #[error("the webhook answered with status {0}")]
    Refused(u16),
}

/// A message. Sent again, it is the same one, by which receivers know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its id, of visible ASCII characters without a `.`.
    pub id: String,
    /// JSON, as it is sent and signed.
    pub body: String,
}

impl Webhook {
    /// Prepares the way to `endpoint`; nothing is sent yet. Messages are signed with each of
    /// `secrets`, of which a receiver needs one.
    pub fn new(
        outbound: &Outbound,
        endpoint: &Endpoint,
        secrets: Vec<SigningSecret>,
    ) -> Result<Self, SettingsError> {
        let client = outbound.client(endpoint.reach(), PATIENCE)?;
        Ok(Self { client, uri: endpoint.uri()?, secrets })
    }

    /// Posts the message, once.
    pub async fn send(&self, message: &Message, now: Timestamp) -> Result<(), WebhookError> {
        let Message { id, body } = message;
        let seconds = now.as_seconds();
        let value = |text: &str| HeaderValue::from_str(text).map_err(|_| WebhookError::Unreachable);
        let mut headers = sending(JSON, ANYTHING);
        headers.insert("webhook-id", value(id)?);
        headers.insert("webhook-timestamp", HeaderValue::from(seconds));
        if !self.secrets.is_empty() {
            let signatures: Vec<String> =
                self.secrets.iter().map(|secret| secret.sign(id, seconds, body)).collect();
            headers.insert("webhook-signature", value(&signatures.join(" "))?);
        }
        let body = body.clone().into_bytes();
        let sent = self.client.send(Method::POST, self.uri.clone(), headers, body);
        let Ok(Ok(answer)) = timeout(PATIENCE, sent).await else {
            return Err(WebhookError::Unreachable);
        };
        if answer.status().is_success() {
            Ok(())
        } else {
            Err(WebhookError::Refused(answer.status().as_u16()))
        }
    }
}
