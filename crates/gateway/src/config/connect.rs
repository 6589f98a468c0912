//! `[connect]`: what connecting a provider is like.

use portcullis_app::Connecting;
use portcullis_core::oauth::Origin;
use serde::Deserialize;

use super::{ConfigError, times::Seconds};

/// `[connect]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Connect {
    /// Origins that browsers may return to, besides `http://127.0.0.1`.
    return_to: Vec<String>,
    /// Requires the code that the browser was shown from the caller who began.
    confirmation: Confirmation,
    /// Seconds an attempt is good for.
    attempt_seconds: Seconds,
    /// Name of the gateway on consent pages.
    client_name: String,
    /// Days after which connections are forgotten whose provider is not configured any more.
    keep_missing_days: i64,
}

/// `connect.confirmation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Confirmation {
    Required,
    Off,
}

impl Default for Connect {
    fn default() -> Self {
        Self {
            return_to: Vec::new(),
            confirmation: Confirmation::Required,
            attempt_seconds: Seconds(600),
            client_name: "Portcullis".to_owned(),
            keep_missing_days: 7,
        }
    }
}

impl Connect {
    /// Returns true if a connect has to be confirmed.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.confirmation == Confirmation::Required
    }

    /// As the app takes it. Rejects what is no origin.
    pub(crate) fn connecting(&self) -> Result<Connecting, ConfigError> {
        let wrong = |message: String| ConfigError::Wrong(message);
        if !(5..=600).contains(&self.attempt_seconds.0) {
            return Err(wrong("`connect.attempt_seconds` has to be 5 to 600".to_owned()));
        }
        if !(0..=3650).contains(&self.keep_missing_days) {
            return Err(wrong("`connect.keep_missing_days` has to be 0 to 3650".to_owned()));
        }
        let origins = self.return_to.iter().map(|text| {
            Origin::parse(text).ok_or_else(|| {
                wrong(format!(
                    "`connect.return_to`: `{text}` has to be an origin such as \
                     https://app.acme.example"
                ))
            })
        });
        let origins: Result<Vec<_>, _> = origins.collect();
        let mut connecting =
            Connecting::new(origins?, self.attempt_seconds.0, self.client_name.clone());
        connecting.keep_missing_days = self.keep_missing_days;
        Ok(connecting)
    }
}
