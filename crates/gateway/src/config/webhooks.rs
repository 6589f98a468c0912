//! `[webhooks.<name>]`: where the notices go that policies ask for.

use portcullis_upstream::{Endpoint, Outbound, SigningSecret, Webhook};
use serde::Deserialize;

use super::{ConfigError, secrets::SecretSource};

/// One `[webhooks.<name>]` table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookSettings {
    /// The address; it may hold a secret.
    url: SecretSource,
    /// The host may have a private or loopback address, and may be spoken to without TLS.
    #[serde(default)]
    allow_private: bool,
    /// Messages are signed with it: `whsec_…`.
    secret: Option<SecretSource>,
    /// The secret before it, with which messages are also signed until receivers know the new one.
    previous_secret: Option<SecretSource>,
}

impl WebhookSettings {
    /// The webhook, ready to be used. The error says what to change.
    pub(crate) fn declare(&self, name: &str, outbound: &Outbound) -> Result<Webhook, ConfigError> {
        self.declared(outbound)
            .map_err(|error| ConfigError::Wrong(format!("webhook `{name}`: {error}")))
    }

    fn declared(&self, outbound: &Outbound) -> Result<Webhook, String> {
        let url = self.url.read()?;
        let endpoint = if self.allow_private {
            Endpoint::allowed(url.expose())
        } else {
            Endpoint::public(url.expose())
        };
        let endpoint = endpoint.map_err(|error| error.to_string())?;
        let mut secrets = Vec::new();
        for source in [&self.secret, &self.previous_secret].into_iter().flatten() {
            let secret = SigningSecret::parse(source.read()?.expose());
            secrets.push(secret.map_err(|error| error.to_string())?);
        }
        Webhook::new(outbound, &endpoint, secrets).map_err(|error| error.to_string())
    }
}
