//! The keys of an issuer: a JWK Set (RFC 7517).

use std::fmt;

use aws_lc_rs::signature::{ParsedPublicKey, RsaPublicKeyComponents};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

use crate::{
    json::{self, Bounds},
    trust::algorithm::{Algorithm, Verification},
};

/// Characters of a `kid`.
pub(super) const MAX_KEY_ID: usize = 256;
/// Keys of one issuer at most.
pub const MAX_KEYS: usize = 100;
const BOUNDS: Bounds =
    Bounds { depth: 8, nodes: 10_000, string_bytes: 32 << 10, number_chars: 32, ..Bounds::REQUEST };
/// Bits of an RSA modulus.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// The text is no JWK Set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    #[error("the JWK Set is not one strict JSON value")]
    Json,
    #[error("the JWK Set has no list `keys` of objects")]
    Keys,
    #[error("the JWK Set has more than {MAX_KEYS} keys")]
    Many,
}

/// The keys that can verify a signature by an accepted algorithm. There may be none of them: an
/// issuer that publishes an empty set has withdrawn all its keys.
#[derive(Clone, Default)]
pub struct KeySet {
    keys: Vec<VerifyingKey>,
    skipped: usize,
}

/// One key for one algorithm.
#[derive(Clone)]
struct VerifyingKey {
    id: Option<String>,
    /// The thumbprint, by which a registered key is named as well.
    thumbprint: Option<String>,
    algorithm: Algorithm,
    public: ParsedPublicKey,
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.keys.iter().map(|key| (&key.id, key.algorithm)).collect();
        f.debug_struct("KeySet").field("keys", &keys).field("skipped", &self.skipped).finish()
    }
}

impl KeySet {
    /// Reads a JWK Set. Keys that cannot verify one of the accepted algorithms are left out: other
    /// types and curves, RSA below 2048 bits, keys for encryption.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeySetError> {
        let set = json::parse(bytes, BOUNDS).map_err(|_| KeySetError::Json)?;
        let listed = set.get("keys").and_then(Value::as_array).ok_or(KeySetError::Keys)?;
        if listed.len() > MAX_KEYS {
            return Err(KeySetError::Many);
        }
        let mut set = Self::default();
        for jwk in listed {
            if !jwk.is_object() {
                return Err(KeySetError::Keys);
            }
            let before = set.keys.len();
            set.keys.extend(keys_of(jwk));
            set.skipped += usize::from(set.keys.len() == before);
        }
        Ok(set)
    }

    /// The set of some JWKs, each with the thumbprint by which it is found besides its `kid`.
    pub(crate) fn with_thumbprints<'a>(jwks: impl Iterator<Item = (&'a Value, &'a str)>) -> Self {
        let keys = jwks.flat_map(|(jwk, thumbprint)| {
            let named = move |key| VerifyingKey { thumbprint: Some(thumbprint.to_owned()), ..key };
            keys_of(jwk).into_iter().map(named)
        });
        Self { keys: keys.collect(), skipped: 0 }
    }

    /// Number of keys that were left out.
    #[must_use]
    pub const fn skipped(&self) -> usize {
        self.skipped
    }

    /// Returns true if there is none that can be used.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Id and algorithm of each key; an RSA key for both its algorithms is told twice.
    pub fn ids(&self) -> impl Iterator<Item = (Option<&str>, Algorithm)> {
        self.keys.iter().map(|key| (key.id.as_deref(), key.algorithm))
    }

    pub(crate) fn fitting<'a>(
        &'a self,
        id: Option<&'a str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &'a ParsedPublicKey> {
        let fits = move |key: &&VerifyingKey| {
            let is_named =
                |id: &str| [&key.id, &key.thumbprint].into_iter().flatten().any(|it| it == id);
            key.algorithm == algorithm && id.is_none_or(is_named)
        };
        self.keys.iter().filter(fits).map(|key| &key.public)
    }
}

/// A JWK as a key for each algorithm it is for; none if it is for none.
fn keys_of(jwk: &Value) -> Vec<VerifyingKey> {
    if !is_for_verifying(jwk) {
        return Vec::new();
    }
    let declared = jwk.get("alg");
    let fits = |algorithm: &Algorithm| {
        declared.is_none_or(|name| name.as_str() == Some(algorithm.as_str()))
    };
    // No JWT names a longer one.
    let id = text(jwk, "kid").filter(|id| id.chars().count() <= MAX_KEY_ID).map(str::to_owned);
    let key = |algorithm: Algorithm| {
        let public = public_key(jwk, algorithm)?;
        Some(VerifyingKey { id: id.clone(), thumbprint: None, algorithm, public })
    };
    Algorithm::ALL.into_iter().filter(fits).filter_map(key).collect()
}

/// `jwt-svid` is how SPIFFE writes `sig` in its trust bundles.
fn is_for_verifying(jwk: &Value) -> bool {
    let signs = jwk.get("use").is_none_or(|usage| usage == "sig" || usage == "jwt-svid");
    let verifies = jwk.get("key_ops").is_none_or(|operations| {
        operations.as_array().is_some_and(|all| all.iter().any(|one| one == "verify"))
    });
    signs && verifies
}

/// The key of a JWK for this algorithm, if it is one.
pub(super) fn public_key(jwk: &Value, algorithm: Algorithm) -> Option<ParsedPublicKey> {
    match (algorithm.verification(), text(jwk, "kty")?, text(jwk, "crv")) {
        (Verification::Rsa(parameters), "RSA", _) => {
            let n = number(jwk, "n")?;
            let e = number(jwk, "e")?;
            let fits = RSA_BITS.contains(&bits(&n)) && is_sane_exponent(&e);
            let parts = RsaPublicKeyComponents { n, e };
            if fits { parts.to_parsed_public_key(parameters).ok() } else { None }
        }
        (Verification::Point(algorithm), "EC", Some("P-256")) => {
            let x = bytes(jwk, "x")?;
            let y = bytes(jwk, "y")?;
            let point = [&[4], x.as_slice(), y.as_slice()].concat();
            if (x.len(), y.len()) != (32, 32) {
                return None;
            }
            ParsedPublicKey::new(algorithm, point).ok()
        }
        (Verification::Point(algorithm), "OKP", Some("Ed25519")) => {
            ParsedPublicKey::new(algorithm, bytes(jwk, "x")?).ok()
        }
        (Verification::Rsa(_) | Verification::Point(_), _, _) => None,
    }
}

/// Odd, at least 3, at most 32 bits: what every library makes.
fn is_sane_exponent(e: &[u8]) -> bool {
    bits(e) >= 2 && bits(e) <= 32 && e.last().is_some_and(|byte| byte % 2 == 1)
}

/// Returns true if the JWK can verify a signature by an accepted algorithm.
pub(crate) fn is_usable(jwk: &Value) -> bool {
    !keys_of(jwk).is_empty()
}

pub(crate) fn text<'a>(jwk: &'a Value, member: &str) -> Option<&'a str> {
    jwk.get(member).and_then(Value::as_str)
}

pub(crate) fn bytes(jwk: &Value, member: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text(jwk, member)?).ok()
}

/// A number in as few bytes as it takes; some issuers put a zero in front.
pub(crate) fn number(jwk: &Value, member: &str) -> Option<Vec<u8>> {
    let bytes = bytes(jwk, member)?;
    let start = bytes.iter().position(|byte| *byte != 0)?;
    bytes.get(start..).map(<[u8]>::to_vec)
}

fn bits(number: &[u8]) -> usize {
    let unused = number.first().map_or(0, |byte| byte.leading_zeros());
    number.len() * 8 - usize::try_from(unused).unwrap_or(0)
}
