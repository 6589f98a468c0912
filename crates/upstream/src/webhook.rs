//! Messages to addresses that the operator configured: sent once, their answers not read.

use std::{fmt, time::Duration};

use http::header::CONTENT_TYPE;
use reqwest::{Client, Url};
use serde_json::Value;

use crate::{outbound::Outbound, reach::Endpoint, settings::SettingsError};

/// Time limit of a message.
const PATIENCE: Duration = Duration::from_secs(5);

/// Address of messages. It may hold a secret, so it is never shown.
#[derive(Clone)]
pub struct Webhook {
    client: Client,
    url: Url,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").finish_non_exhaustive()
    }
}

/// A message did not arrive, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// Nobody answered in time, or nobody could be reached.
    #[error("the webhook cannot be reached")]
    Unreachable,
    /// The answer was not a success.
    #[error("the webhook answered with status {0}")]
    Refused(u16),
}

impl Webhook {
    /// Prepares the way to `endpoint`; nothing is sent yet.
    pub fn new(outbound: &Outbound, endpoint: &Endpoint) -> Result<Self, SettingsError> {
        let client = outbound.client(endpoint.reach(), PATIENCE)?;
        Ok(Self { client, url: endpoint.url().clone() })
    }

    /// Posts `body` as JSON, once.
    pub async fn send(&self, body: &Value) -> Result<(), WebhookError> {
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .timeout(PATIENCE)
            .body(body.to_string());
        // The library's error holds the address.
        let answer = request.send().await.map_err(|_| WebhookError::Unreachable)?;
        if answer.status().is_success() {
            Ok(())
        } else {
            Err(WebhookError::Refused(answer.status().as_u16()))
        }
    }
}
