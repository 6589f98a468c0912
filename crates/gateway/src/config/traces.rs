//! `[traces]`: which requests are traced, and who is told.

use portcullis_app::TraceSettings;
use portcullis_upstream::Outbound;
use serde::Deserialize;

use super::{ConfigError, otlp::Receiver, secrets::SecretSource, times};

/// `[traces]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Traces {
    /// The full address, that of `/v1/traces`; absent means that nothing is traced.
    url: Option<String>,
    /// The host may have a private or loopback address, and may be spoken to without TLS.
    allow_private: bool,
    token: Option<SecretSource>,
    /// The header that carries the token; `Authorization: Bearer` when absent.
    token_header: Option<String>,
    /// Seconds for a batch.
    #[serde(deserialize_with = "times::whole")]
    timeout_seconds: Option<u64>,
    /// The share of requests without a `traceparent` that are traced.
    ratio: f64,
    /// Lets the sampled flag of a caller decide.
    follow_callers: bool,
}

impl Default for Traces {
    fn default() -> Self {
        Self {
            url: None,
            allow_private: false,
            token: None,
            token_header: None,
            timeout_seconds: None,
            ratio: 0.01,
            follow_callers: true,
        }
    }
}

impl Traces {
    /// Settings of traces, if there are any. Errors say what to change.
    pub(crate) fn declare(
        &self,
        outbound: &Outbound,
    ) -> Result<Option<TraceSettings>, ConfigError> {
        let wrong = |text: String| ConfigError::Wrong(format!("[traces]: {text}"));
        let Some(url) = &self.url else {
            let lonely = self.allow_private || self.token.is_some() || self.token_header.is_some();
            let told = "there is no `url`, so nothing would be traced".to_owned();
            return if lonely { Err(wrong(told)) } else { Ok(None) };
        };
        if !(0.0..=1.0).contains(&self.ratio) {
            return Err(wrong("`ratio` has to be from 0.0 to 1.0".to_owned()));
        }
        let receiver = Receiver {
            url,
            allow_private: self.allow_private,
            token: self.token.as_ref(),
            token_header: self.token_header.as_deref(),
            timeout_seconds: self.timeout_seconds,
        };
        let receiver = receiver.declare(outbound).map_err(wrong)?;
        let per_million = per_million(self.ratio);
        let follow_callers = self.follow_callers;
        Ok(Some(TraceSettings { receiver, per_million, follow_callers }))
    }
}

/// Rounded up, so that a small share is not none at all.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a ratio is from 0 to 1, so this is a number from 0 to a million"
)]
fn per_million(ratio: f64) -> u32 {
    (ratio * 1_000_000.0).ceil() as u32
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::boot::SystemRandom;

    fn declared(text: &str) -> Result<Option<TraceSettings>, ConfigError> {
        let traces: Traces = toml::from_str(text).unwrap();
        traces.declare(&Outbound::new(Arc::new(SystemRandom)))
    }

    #[test]
    fn without_an_address_nothing_is_traced() {
        assert!(declared("").unwrap().is_none());
        assert!(declared("token = \"x\"").unwrap_err().to_string().contains("no `url`"));
    }

    #[test]
    fn a_ratio_is_a_share_of_a_million() {
        let told = |ratio: &str| {
            let text = format!("url = \"https://otel.example/v1/traces\"\nratio = {ratio}");
            declared(&text).map(|traces| traces.unwrap().per_million)
        };

        assert_eq!(told("0.0").unwrap(), 0);
        assert_eq!(told("0.01").unwrap(), 10_000);
        assert_eq!(told("0.00000001").unwrap(), 1);
        assert_eq!(told("1.0").unwrap(), 1_000_000);
        assert!(told("1.1").unwrap_err().to_string().contains("`ratio`"));
    }

    #[test]
    fn a_collector_without_tls_has_to_be_named_as_private() {
        let refused = declared("url = \"http://otel.example/v1/traces\"").unwrap_err();

        assert!(refused.to_string().contains("https"), "{refused}");
    }
}
