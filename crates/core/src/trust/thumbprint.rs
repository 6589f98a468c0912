//! Name of a public key: its SHA-256 thumbprint (RFC 7638).

use std::{fmt, str::FromStr};

use aws_lc_rs::digest;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A thumbprint; written as 43 characters of base64url.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Thumbprint([u8; 32]);

/// The text is no thumbprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a thumbprint is the SHA-256 of a key's JWK (RFC 7638): 43 characters of base64url")]
pub struct ThumbprintError;

impl Thumbprint {
    /// The thumbprint of the required members of a JWK, in the order of their names.
    pub(crate) fn of(required: &Value) -> Self {
        let mut bytes = [0; 32];
        let digest = digest::digest(&digest::SHA256, required.to_string().as_bytes());
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }
}

impl fmt::Display for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl FromStr for Thumbprint {
    type Err = ThumbprintError;

    fn from_str(text: &str) -> Result<Self, ThumbprintError> {
        let bytes = if text.len() == 43 { URL_SAFE_NO_PAD.decode(text).ok() } else { None };
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or(ThumbprintError)
    }
}

impl TryFrom<String> for Thumbprint {
    type Error = ThumbprintError;

    fn try_from(text: String) -> Result<Self, ThumbprintError> {
        text.parse()
    }
}

impl From<Thumbprint> for String {
    fn from(thumbprint: Thumbprint) -> Self {
        thumbprint.to_string()
    }
}
