//! A receiver of OTLP over HTTP, as `[[audit.sink]]` and `[traces]` name one.

use std::time::Duration;

use portcullis_upstream::{Credential, Endpoint, OtlpReceiver, Outbound};

use super::secrets::SecretSource;

const USUAL_TIMEOUT: u64 = 10;

/// Settings of it.
pub(super) struct Receiver<'a> {
    pub(super) url: &'a str,
    pub(super) allow_private: bool,
    pub(super) token: Option<&'a SecretSource>,
    pub(super) token_header: Option<&'a str>,
    pub(super) timeout_seconds: Option<u64>,
}

impl Receiver<'_> {
    /// The way to it. The error says what to change.
    pub(super) fn declare(&self, outbound: &Outbound) -> Result<OtlpReceiver, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let endpoint = if self.allow_private {
            Endpoint::allowed(self.url)
        } else {
            Endpoint::public(self.url)
        };
        let endpoint = endpoint.map_err(|error| text(&error))?;
        let credential = match (self.token, self.token_header) {
            (None, None) => None,
            (None, Some(_)) => return Err("`token_header` needs a `token`".to_owned()),
            (Some(token), None) => Some(Credential::bearer(&token.read()?)),
            (Some(token), Some(header)) => Some(Credential::header(header, &token.read()?)),
        };
        let credential = credential.transpose().map_err(|error| text(&error))?;
        let seconds = self.timeout_seconds.unwrap_or(USUAL_TIMEOUT);
        if !(1..=300).contains(&seconds) {
            return Err("`timeout_seconds` has to be from 1 to 300".to_owned());
        }
        let timeout = Duration::from_secs(seconds);
        OtlpReceiver::new(outbound, &endpoint, credential, timeout).map_err(|error| text(&error))
    }
}
