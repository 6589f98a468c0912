//! The private key with which the gateway proves itself to an issuer (`private_key_jwt`, OpenID Connect Core §9,
//! RFC 7523).

use std::fmt;

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
    },
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::json;

use crate::{
    clock::Timestamp,
    random::{self, Random},
    secret::Secret,
};

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
/// Seconds for which an assertion is good.
const LIFE_SECONDS: i64 = 60;

/// The text is no private key that can sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the key has to be PEM with `BEGIN PRIVATE KEY` (PKCS #8) of an RSA key of 2048 to 8192 bits, a P-256 or an \
     Ed25519 key"
)]
pub struct ClientKeyError;

/// A private key, and the id by which the issuer finds its public key.
pub struct ClientKey {
    pair: SigningPair,
    key_id: Option<String>,
}

enum SigningPair {
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientKey").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

impl ClientKey {
    /// Reads a key in PEM.
    pub fn parse(pem: &str, key_id: Option<String>) -> Result<Self, ClientKeyError> {
        let body = pem.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
        let body: String = body.ok_or(ClientKeyError)?.split_ascii_whitespace().collect();
        let body = Secret::new(body);
        let der = STANDARD.decode(body.expose()).map_err(|_| ClientKeyError)?;
        let pair = SigningPair::parse(&zeroize::Zeroizing::new(der)).ok_or(ClientKeyError)?;
        Ok(Self { pair, key_id })
    }

    /// An assertion of the client for this audience: good for a minute, and once. `None` if it cannot be signed.
    #[must_use]
    pub fn assertion(
        &self,
        client_id: &str,
        audience: &str,
        now: Timestamp,
        source: &dyn Random,
    ) -> Option<Secret> {
        let mut header = json!({ "alg": self.pair.algorithm(), "typ": "JWT" });
        if let (Some(id), Some(header)) = (&self.key_id, header.as_object_mut()) {
            header.insert("kid".to_owned(), json!(id));
        }
        let claims = json!({
            "iss": client_id,
            "sub": client_id,
            "aud": audience,
            "iat": now.as_seconds(),
            "exp": now.plus_seconds(LIFE_SECONDS).as_seconds(),
            "jti": URL_SAFE_NO_PAD.encode(random::bytes::<16>(source)),
        });
        let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = self.pair.sign(signed.as_bytes())?;
        Some(Secret::new(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))))
    }
}

impl SigningPair {
    fn parse(der: &[u8]) -> Option<Self> {
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der) {
            return Some(Self::Ec(pair));
        }
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8(der) {
            return Some(Self::Ed(pair));
        }
        RsaKeyPair::from_pkcs8(der).ok().map(|pair| Self::Rsa(Box::new(pair)))
    }

    const fn algorithm(&self) -> &'static str {
        match self {
            Self::Ec(_) => "ES256",
            Self::Ed(_) => "EdDSA",
            Self::Rsa(_) => "RS256",
        }
    }

    fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        // The library mixes randomness of its own into signatures and takes no other.
        let source = SystemRandom::new();
        match self {
            Self::Ec(pair) => pair.sign(&source, text).ok().map(|it| it.as_ref().to_vec()),
            Self::Ed(pair) => Some(pair.sign(text).as_ref().to_vec()),
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &source, text, &mut signature).ok()?;
                Some(signature)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::{
        encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der},
        rsa::KeySize,
        signature::KeyPair as _,
    };
    use serde_json::Value;

    use super::*;
    use crate::{
        random::Sevens,
        trust::{ClientAssertion, KeySet, PublicKey, Recipient},
    };

    const NOW: Timestamp = Timestamp::from_micros(1_795_172_535_000_000);
    const TOKEN: &str = "https://id.example/token";

    fn pem(der: &[u8]) -> String {
        format!("{BEGIN}\n{}\n{END}\n", STANDARD.encode(der))
    }

    /// The public key in this DER as a JWK.
    fn jwk(der: &[u8]) -> Value {
        let der = STANDARD.encode(der);
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{der}\n-----END PUBLIC KEY-----");
        PublicKey::parse(&pem).unwrap().jwk().clone()
    }

    /// A key of each kind, and its public key as a JWK.
    fn keys() -> Vec<(String, Value)> {
        let ec = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let point_der = AsDer::<PublicKeyX509Der<'_>>::as_der(ec.public_key()).unwrap();
        let ed = Ed25519KeyPair::generate().unwrap();
        let edwards_der = AsDer::<PublicKeyX509Der<'_>>::as_der(ed.public_key()).unwrap();
        let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let rsa_der = AsDer::<PublicKeyX509Der<'_>>::as_der(rsa.public_key()).unwrap();
        let rsa_private = AsDer::<Pkcs8V1Der<'_>>::as_der(&rsa).unwrap();
        vec![
            (pem(ec.to_pkcs8v1().unwrap().as_ref()), jwk(point_der.as_ref())),
            (pem(ed.to_pkcs8v1().unwrap().as_ref()), jwk(edwards_der.as_ref())),
            (pem(rsa_private.as_ref()), jwk(rsa_der.as_ref())),
        ]
    }

    /// The claims of an assertion for `TOKEN`, as another library verifies it.
    fn by_library(assertion: &str, jwk: &Value) -> Option<Value> {
        let header = jsonwebtoken::decode_header(assertion).ok()?;
        let mut checks = jsonwebtoken::Validation::new(header.alg);
        checks.set_audience(&[TOKEN]);
        // The clock of the library is not that of the test.
        checks.validate_exp = false;
        let jwk: jsonwebtoken::jwk::Jwk = serde_json::from_value(jwk.clone()).unwrap();
        let key = jsonwebtoken::DecodingKey::from_jwk(&jwk).unwrap();
        let read = jsonwebtoken::decode(assertion, &key, &checks).ok()?;
        (header.kid == jwk.common.key_id).then_some(read.claims)
    }

    #[test]
    fn a_recipient_accepts_the_assertion_of_a_key_of_each_kind() {
        let recipient =
            Recipient { issuer: "https://id.example".to_owned(), token_endpoint: TOKEN.to_owned() };
        for (pem, mut jwk) in keys() {
            let key = ClientKey::parse(&pem, Some("k1".to_owned())).unwrap();
            jwk["kid"] = json!("k1");
            let set = KeySet::parse(json!({"keys": [jwk]}).to_string().as_bytes()).unwrap();

            let text = key.assertion("gateway", TOKEN, NOW, &Sevens).unwrap();

            let assertion = ClientAssertion::parse(text.expose()).unwrap();
            assert_eq!(assertion.client(), "gateway");
            assertion.check(&set, &recipient, NOW).unwrap();
            let claims = by_library(text.expose(), &jwk).unwrap();
            assert_eq!((&claims["iss"], &claims["sub"]), (&json!("gateway"), &json!("gateway")));
            assert_eq!(claims["exp"], NOW.as_seconds() + LIFE_SECONDS);
            let signature = text.expose().rfind('.').unwrap() + 10;
            let mut changed = text.expose().to_owned();
            let letter = if changed.as_bytes()[signature] == b'A' { "B" } else { "A" };
            changed.replace_range(signature..=signature, letter);
            assert_eq!(by_library(&changed, &jwk), None);
            assert!(!format!("{key:?}").contains("SigningPair"));
        }
    }

    #[test]
    fn other_texts_are_no_keys() {
        let other = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----";
        let public = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----";
        for text in ["", "secret", other, public, &pem(b"no key"), &format!("{BEGIN}%%{END}")] {
            assert_eq!(ClientKey::parse(text, None).err(), Some(ClientKeyError), "{text}");
        }
    }
}
