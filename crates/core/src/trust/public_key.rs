//! A public key that a client registers: a JWK (RFC 7517) or PEM (RFC 7468), named by its
//! thumbprint (RFC 7638).

mod pem;

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::{
    json::{self, Bounds},
    trust::{
        KeySet, Thumbprint,
        jwk::{MAX_KEY_ID, bytes, is_usable, number, text},
    },
};

/// The longest text that is read as a key: an RSA key of 8192 bits has 3 KiB.
pub const MAX_PUBLIC_KEY_BYTES: usize = 16 << 10;
const BOUNDS: Bounds =
    Bounds { depth: 4, nodes: 200, string_bytes: 8 << 10, number_chars: 32, ..Bounds::REQUEST };
/// Members that only private and shared keys have (RFC 7518 §6).
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// The text is no public key that can be registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeyError {
    #[error("the key is neither a JWK nor PEM with `BEGIN PUBLIC KEY`")]
    Form,
    #[error(
        "that is a private key: keep it with the client alone, make a new one if others could \
         read it, and register its public key"
    )]
    Private,
    #[error(
        "the key cannot verify RS256, PS256, ES256 or EdDSA: it has to be RSA of 2048 to 8192 \
         bits, P-256 or Ed25519, for signatures"
    )]
    Unusable,
    #[error("the key's `kid` is no text of 1 to {MAX_KEY_ID} characters")]
    KeyId,
}

/// A public key that can verify by an accepted algorithm.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    /// The required members, and `alg` and `kid` if it came with these.
    jwk: Value,
    name: Thumbprint,
    thumbprint: String,
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PublicKey").field(&self.thumbprint).finish()
    }
}

impl PublicKey {
    /// Reads a JWK or PEM. Rejects private keys, and keys that verify none of the accepted
    /// algorithms.
    pub fn parse(key: &str) -> Result<Self, PublicKeyError> {
        let key = key.trim();
        if key.len() > MAX_PUBLIC_KEY_BYTES {
            return Err(PublicKeyError::Form);
        }
        if key.starts_with("-----") {
            return Self::of_jwk(&pem::jwk(key)?);
        }
        let jwk = json::parse(key.as_bytes(), BOUNDS).map_err(|_| PublicKeyError::Form)?;
        Self::of_jwk(&jwk)
    }

    /// Reads a JWK.
    pub fn of_jwk(jwk: &Value) -> Result<Self, PublicKeyError> {
        if is_private(jwk) {
            return Err(PublicKeyError::Private);
        }
        if text(jwk, "kty").is_none() {
            return Err(PublicKeyError::Form);
        }
        if !is_usable(jwk) {
            return Err(PublicKeyError::Unusable);
        }
        let mut required = required(jwk).ok_or(PublicKeyError::Unusable)?;
        let name = Thumbprint::of(&required);
        for member in ["alg", "kid"] {
            if let (Some(value), Some(members)) = (jwk.get(member), required.as_object_mut()) {
                members.insert(member.to_owned(), value.clone());
            }
        }
        let named = jwk.get("kid").is_none_or(|id| {
            id.as_str().is_some_and(|id| (1..=MAX_KEY_ID).contains(&id.chars().count()))
        });
        if named {
            Ok(Self { jwk: required, name, thumbprint: name.to_string() })
        } else {
            Err(PublicKeyError::KeyId)
        }
    }

    /// The SHA-256 thumbprint in base64url (RFC 7638): 43 characters.
    #[must_use]
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// The same, as tokens that are bound to the key name it.
    #[must_use]
    pub const fn name(&self) -> Thumbprint {
        self.name
    }

    /// The JWK, without members that verification does not need.
    #[must_use]
    pub fn jwk(&self) -> &Value {
        &self.jwk
    }
}

impl KeySet {
    /// The set of some registered keys; each is found by its `kid` and by its thumbprint.
    #[must_use]
    pub fn of_registered<'a>(keys: impl IntoIterator<Item = &'a PublicKey>) -> Self {
        Self::with_thumbprints(keys.into_iter().map(|key| (&key.jwk, key.thumbprint())))
    }
}

/// Returns true if a JWK has a member that only private and shared keys have.
pub(super) fn is_private(jwk: &Value) -> bool {
    PRIVATE.iter().any(|member| jwk.get(member).is_some())
}

/// The members that a thumbprint is made of, in the order of their names (RFC 7638 §3.2, RFC 8037
/// §2), each number and point written in the one way that RFC 7518 allows.
pub(super) fn required(jwk: &Value) -> Option<Value> {
    let point = |member| bytes(jwk, member).map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
    let whole = |member| number(jwk, member).map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
    match text(jwk, "kty")? {
        "EC" => Some(json!({
            "crv": text(jwk, "crv")?, "kty": "EC", "x": point("x")?, "y": point("y")?,
        })),
        "OKP" => Some(json!({ "crv": text(jwk, "crv")?, "kty": "OKP", "x": point("x")? })),
        "RSA" => Some(json!({ "e": whole("e")?, "kty": "RSA", "n": whole("n")? })),
        _ => None,
    }
}
