//! One JWT (RFC 7519) in compact form (RFC 7515): what it looks like, and its signature.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

use crate::{
    json::{self, Bounds},
    oauth::MAX_LOGIN_TOKEN_BYTES,
    secret::Secret,
    trust::{
        Algorithm, Claims, KeySet, MAX_KEYS, Rejection,
        claims::{BOUNDS, ID_TOKEN_BOUNDS},
        jwk::MAX_KEY_ID,
    },
};

/// The longest JWT that a caller presents. An ID token from the issuer's own token endpoint may be longer.
pub const MAX_JWT_BYTES: usize = 16 << 10;
/// `typ` of an ID-JAG (draft-ietf-oauth-identity-assertion-authz-grant-04).
const ID_JAG: &str = "oauth-id-jag+jwt";
/// `typ` of a client's authentication (draft-ietf-oauth-rfc7523bis).
const CLIENT_AUTHENTICATION: &str = "client-authentication+jwt";

/// Returns true if a credential can only be meant as a JWT: three parts of base64url. Our own
/// tokens have no dot. Says nothing about its worth.
#[must_use]
pub fn is_jwt_shaped(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.bytes().filter(|byte| *byte == b'.').count() == 2 && text.bytes().all(letter)
}

/// Purpose of a JWT by the `typ` of its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JwtType {
    /// A JWT that tells its audience about a subject: no `typ`, `JWT`, `JOSE` or `at+jwt`.
    Identity,
    /// An Identity Assertion JWT Authorization Grant: `oauth-id-jag+jwt`, to the letter.
    IdJag,
    /// The authentication of a client: `client-authentication+jwt`.
    ClientAuthentication,
}

/// A well-formed JWT whose signature is unchecked.
#[derive(Clone)]
pub struct Jwt {
    kind: JwtType,
    algorithm: Algorithm,
    key_id: Option<String>,
    claims: Claims,
    signed: Secret,
    signature: Vec<u8>,
}

/// A JWT is a credential: it is not printed by accident.
impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwt").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

/// Claims under a signature of the issuer's key. Only [`Jwt::verify`] makes one.
#[derive(Debug, Clone, Copy)]
pub struct Verified<'a> {
    kind: JwtType,
    algorithm: Algorithm,
    claims: &'a Claims,
}

impl<'a> Verified<'a> {
    /// The claims.
    #[must_use]
    pub fn claims(self) -> &'a Claims {
        self.claims
    }

    /// The algorithm of the signature.
    pub(crate) const fn algorithm(self) -> Algorithm {
        self.algorithm
    }

    /// The claims of a JWT of this type.
    pub(crate) fn claims_of(self, kind: JwtType) -> Result<&'a Claims, Rejection> {
        if self.kind == kind { Ok(self.claims) } else { Err(OTHER_PURPOSE) }
    }
}

impl Jwt {
    /// Reads a JWT of the type [`JwtType::Identity`]. Rejects before any cryptography whatever is
    /// too large, is no strict JSON, is signed by an algorithm or declared as a type that is not
    /// accepted, or demands an extension (`crit`).
    pub fn parse(text: &str) -> Result<Self, Rejection> {
        let jwt = Self::parse_typed(text)?;
        if jwt.kind == JwtType::Identity { Ok(jwt) } else { Err(OTHER_PURPOSE) }
    }

    /// Reads a JWT of any known type; the caller decides by [`Jwt::kind`] which of them it takes.
    /// Rejects the same as [`Jwt::parse`] besides.
    pub fn parse_typed(text: &str) -> Result<Self, Rejection> {
        if text.len() > MAX_JWT_BYTES {
            return Err(Rejection::Malformed("it is longer than 16 KiB"));
        }
        Self::parse_within(text, BOUNDS)
    }

    /// Reads an ID token that came from the token endpoint of its issuer, of 64 KiB at most. Rejects the same as
    /// [`Jwt::parse`] besides.
    pub fn parse_id_token(text: &str) -> Result<Self, Rejection> {
        if text.len() > MAX_LOGIN_TOKEN_BYTES {
            return Err(Rejection::Malformed("it is longer than 64 KiB"));
        }
        let jwt = Self::parse_within(text, ID_TOKEN_BOUNDS)?;
        if jwt.kind == JwtType::Identity { Ok(jwt) } else { Err(OTHER_PURPOSE) }
    }

    fn parse_within(text: &str, claims: Bounds) -> Result<Self, Rejection> {
        let (signed, signature) = text.rsplit_once('.').ok_or(NOT_THREE)?;
        let (header, payload) = signed.split_once('.').ok_or(NOT_THREE)?;
        let header = Header::parse(&decoded(header)?)?;
        let signature = decoded(signature)?;
        let claims = Claims::parse(&decoded(payload)?, claims)?;
        let signed = Secret::new(signed.to_owned());
        let Header { kind, algorithm, key_id } = header;
        Ok(Self { kind, algorithm, key_id, claims, signed, signature })
    }

    /// The type it declares.
    #[must_use]
    pub const fn kind(&self) -> JwtType {
        self.kind
    }

    /// The algorithm it claims to be signed by.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The id of the key it claims to be signed with: nothing but a key for a look-up.
    #[must_use]
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    /// Returns true if newer keys of its issuer could verify it: its `kid` is not known, or it has
    /// none and nothing fits.
    #[must_use]
    pub fn may_be_of_newer_keys(&self, rejection: &Rejection) -> bool {
        *rejection == Rejection::UnknownKey
            || (*rejection == Rejection::WrongSignature && self.key_id.is_none())
    }

    /// The claims as anybody may have written them: to find the issuer, and to explain.
    #[must_use]
    pub const fn unverified(&self) -> &Claims {
        &self.claims
    }

    /// Checks the signature with the keys that fit `kid` and `alg`; without a `kid`, with all that
    /// fit `alg`.
    pub fn verify(&self, keys: &KeySet) -> Result<Verified<'_>, Rejection> {
        self.verify_with(keys, MAX_KEYS)
    }

    /// The same with no more than `most` of the keys that fit, for sets that strangers publish.
    pub(crate) fn verify_with(
        &self,
        keys: &KeySet,
        most: usize,
    ) -> Result<Verified<'_>, Rejection> {
        let mut fitting = keys.fitting(self.key_id(), self.algorithm).take(most).peekable();
        if fitting.peek().is_none() {
            return Err(Rejection::UnknownKey);
        }
        let signed = self.signed.expose().as_bytes();
        if fitting.any(|key| key.verify_sig(signed, &self.signature).is_ok()) {
            Ok(Verified { kind: self.kind, algorithm: self.algorithm, claims: &self.claims })
        } else {
            Err(Rejection::WrongSignature)
        }
    }
}

const OTHER_PURPOSE: Rejection =
    Rejection::Malformed("its `typ` says that it is for another purpose");
const NOT_THREE: Rejection = Rejection::Malformed("it is no JWT: three parts with dots between");

/// A part of a JWT in compact form.
pub(super) fn decoded(part: &str) -> Result<Vec<u8>, Rejection> {
    let bytes = URL_SAFE_NO_PAD.decode(part);
    bytes.map_err(|_| Rejection::Malformed("a part of it is not base64url without padding"))
}

/// The members of the header that are read. Everything else in it (`jku`, `jwk`, `x5u`, `x5c`, …)
/// is never looked at: keys come from the issuer as the operator named it.
struct Header {
    kind: JwtType,
    algorithm: Algorithm,
    key_id: Option<String>,
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Self, Rejection> {
        let header = json::parse(bytes, BOUNDS)
            .map_err(|_| Rejection::Malformed("its header is not one strict JSON value"))?;
        if !header.is_object() {
            return Err(Rejection::Malformed("its header is no JSON object"));
        }
        if header.get("crit").is_some() {
            return Err(Rejection::Malformed("its header demands an extension (`crit`)"));
        }
        let kind = type_of(header.get("typ"))?;
        let algorithm = header.get("alg").and_then(Value::as_str).and_then(Algorithm::from_word);
        let algorithm = algorithm
            .ok_or(Rejection::Malformed("its `alg` is not one of RS256, PS256, ES256 and EdDSA"))?;
        Ok(Self { kind, algorithm, key_id: key_id(header.get("kid"))? })
    }
}

/// Reads `typ`. An issuer signs many other things with the same key (`logout+jwt`, `dpop+jwt`,
/// `secevent+jwt`, …); none of them proves who its bearer is (RFC 8725 §3.11).
fn type_of(kind: Option<&Value>) -> Result<JwtType, Rejection> {
    const IDENTITY: [&str; 3] = ["JWT", "JOSE", "at+jwt"];
    let Some(kind) = kind else { return Ok(JwtType::Identity) };
    let written = kind.as_str().ok_or(OTHER_PURPOSE)?;
    if written == ID_JAG {
        return Ok(JwtType::IdJag);
    }
    let name = strip_application(written.trim());
    if IDENTITY.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        Ok(JwtType::Identity)
    } else if name.eq_ignore_ascii_case(CLIENT_AUTHENTICATION) {
        Ok(JwtType::ClientAuthentication)
    } else {
        Err(OTHER_PURPOSE)
    }
}

/// A media type may be written with or without `application/` (RFC 7515 §4.1.9).
fn strip_application(name: &str) -> &str {
    match name.split_at_checked("application/".len()) {
        Some((start, rest)) if start.eq_ignore_ascii_case("application/") => rest,
        Some(_) | None => name,
    }
}

fn key_id(value: Option<&Value>) -> Result<Option<String>, Rejection> {
    match value {
        None => Ok(None),
        Some(Value::String(id)) if id.chars().count() <= MAX_KEY_ID => Ok(Some(id.clone())),
        Some(_) => Err(Rejection::Malformed("its `kid` is no text of at most 256 characters")),
    }
}
