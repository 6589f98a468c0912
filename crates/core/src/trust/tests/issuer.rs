//! An issuer for tests: one key of each kind, and any JWT that an attacker may write.

use std::sync::LazyLock;

use aws_lc_rs::{
    encoding::{AsDer, PublicKeyX509Der},
    hmac,
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
        RSA_PSS_SHA256, RsaKeyPair,
    },
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};

use crate::trust::{Algorithm, KeySet};

static ISSUER: LazyLock<Issuer> = LazyLock::new(Issuer::new);

/// The keys `rsa`, `ec` and `ed`.
pub(super) struct Issuer {
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
    ed: Ed25519KeyPair,
    keys: KeySet,
}

pub(super) fn b64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Modulus and exponent of an RSA key, from its PKCS #1 form.
fn rsa_parts(key: &RsaKeyPair) -> (Vec<u8>, Vec<u8>) {
    let der = key.public_key().as_ref();
    let end = der.len() - 5;
    let bytes = key.public_modulus_len();
    (der[end - bytes..end].to_vec(), der[end + 2..].to_vec())
}

/// PEM with lines of 64 characters.
pub(super) fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(|it| str::from_utf8(it).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

impl Issuer {
    fn new() -> Self {
        let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let ec = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let ed = Ed25519KeyPair::generate().unwrap();
        let mut issuer = Self { rsa, ec, ed, keys: KeySet::default() };
        issuer.keys = KeySet::parse(issuer.jwks().to_string().as_bytes()).unwrap();
        issuer
    }

    /// The one issuer of all tests.
    pub(super) fn get() -> &'static Self {
        &ISSUER
    }

    pub(super) fn keys(&self) -> &KeySet {
        &self.keys
    }

    /// The RSA key in PEM.
    pub(super) fn rsa_pem(&self) -> String {
        let key = AsDer::<PublicKeyX509Der<'_>>::as_der(self.rsa.public_key()).unwrap();
        pem("PUBLIC KEY", key.as_ref())
    }

    /// The P-256 key in PEM.
    pub(super) fn ec_pem(&self) -> String {
        let key = AsDer::<PublicKeyX509Der<'_>>::as_der(self.ec.public_key()).unwrap();
        pem("PUBLIC KEY", key.as_ref())
    }

    /// The Ed25519 key in PEM.
    pub(super) fn ed_pem(&self) -> String {
        let key = AsDer::<PublicKeyX509Der<'_>>::as_der(self.ed.public_key()).unwrap();
        pem("PUBLIC KEY", key.as_ref())
    }

    /// Its JWK Set.
    pub(super) fn jwks(&self) -> Value {
        json!({"keys": [self.rsa_jwk(), self.ec_jwk(), self.ed_jwk()]})
    }

    pub(super) fn rsa_jwk(&self) -> Value {
        let (n, e) = rsa_parts(&self.rsa);
        json!({"kty": "RSA", "kid": "rsa", "use": "sig", "n": b64(n), "e": b64(e)})
    }

    pub(super) fn ec_jwk(&self) -> Value {
        let point = self.ec.public_key().as_ref();
        let x = b64(&point[1..33]);
        let y = b64(&point[33..]);
        json!({"kty": "EC", "crv": "P-256", "kid": "ec", "alg": "ES256", "x": x, "y": y})
    }

    pub(super) fn ed_jwk(&self) -> Value {
        let x = b64(self.ed.public_key().as_ref());
        json!({"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": x})
    }

    /// An RS256 JWT as issuers make them.
    pub(super) fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": "rsa"});
        self.sign_text(Algorithm::Rs256, &header.to_string(), &claims.to_string())
    }

    /// A JWT with this header, signed by this algorithm whatever the header says.
    pub(super) fn sign_with(&self, by: Algorithm, header: &Value, claims: &Value) -> String {
        self.sign_text(by, &header.to_string(), &claims.to_string())
    }

    /// A JWT of these texts, JSON or not.
    pub(super) fn sign_text(&self, by: Algorithm, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", b64(header), b64(claims));
        let signature = self.signature(by, signed.as_bytes());
        format!("{signed}.{}", b64(signature))
    }

    fn signature(&self, by: Algorithm, signed: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        let mut rsa = vec![0; self.rsa.public_modulus_len()];
        match by {
            Algorithm::Rs256 => {
                self.rsa.sign(&RSA_PKCS1_SHA256, &random, signed, &mut rsa).unwrap();
                rsa
            }
            Algorithm::Ps256 => {
                self.rsa.sign(&RSA_PSS_SHA256, &random, signed, &mut rsa).unwrap();
                rsa
            }
            Algorithm::Es256 => self.ec.sign(&random, signed).unwrap().as_ref().to_vec(),
            Algorithm::EdDsa => self.ed.sign(signed).as_ref().to_vec(),
        }
    }
}

/// A JWT under a MAC with `secret`.
pub(super) fn mac(secret: &[u8], header: &Value, claims: &Value) -> String {
    let signed = format!("{}.{}", b64(header.to_string()), b64(claims.to_string()));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
    format!("{signed}.{}", b64(tag))
}

/// An RSA key of 2048 bits that no issuer lists.
pub(super) fn stranger() -> Issuer {
    Issuer::new()
}
