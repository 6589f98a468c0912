//! Signatures of [Standard Webhooks](https://www.standardwebhooks.com): HMAC-SHA256 with a secret
//! that sender and receiver share.

use std::{fmt, ops::RangeInclusive};

use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_STANDARD};

/// Prefix of secrets as they are written.
const PREFIX: &str = "whsec_";
/// Bytes of a secret.
const BYTES: RangeInclusive<usize> = 24..=64;

/// Secret that messages to a webhook are signed with. It is never shown.
#[derive(Clone)]
pub struct SigningSecret(hmac::Key);

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(…)")
    }
}

/// The text is no secret to sign with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a signing secret is `whsec_` and 24 to 64 random bytes in Base64")]
pub struct SigningSecretError;

impl SigningSecret {
    /// Reads `whsec_…`.
    pub fn parse(text: &str) -> Result<Self, SigningSecretError> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SigningSecretError)?;
        let bytes = BASE64_STANDARD.decode(encoded).map_err(|_| SigningSecretError)?;
        if BYTES.contains(&bytes.len()) {
            Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
        } else {
            Err(SigningSecretError)
        }
    }

    /// `v1,…` over id, moment and body of a message.
    pub(super) fn sign(&self, id: &str, seconds: i64, body: &str) -> String {
        let tag = hmac::sign(&self.0, format!("{id}.{seconds}.{body}").as_bytes());
        format!("v1,{}", BASE64_STANDARD.encode(tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example of the specification's libraries.
    #[test]
    fn a_signature_is_that_of_the_published_example() {
        let secret = SigningSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();

        let signature =
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);

        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_is_prefixed_base64_of_a_sufficient_length() {
        let of = |bytes: usize| format!("whsec_{}", BASE64_STANDARD.encode(vec![7; bytes]));

        for (text, fits) in [
            (of(24), true),
            (of(64), true),
            (of(23), false),
            (of(65), false),
            (BASE64_STANDARD.encode([7; 32]), false),
            ("whsec_not base64".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(SigningSecret::parse(&text).is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        let secret = SigningSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();

        assert_eq!(format!("{secret:?}"), "SigningSecret(…)");
    }
}
