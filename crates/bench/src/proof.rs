//! A proof of possession as a client makes it (DPoP, RFC 9449), under a new key of P-256.

use aws_lc_rs::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// A proof for a request with `GET` to an address by a token; `issued` are seconds.
pub(crate) fn prove(address: &str, token: &str, issued: i64) -> Option<String> {
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).ok()?;
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref()).ok()?;
    // A point without compression: the sign 4, then x and y.
    let (x, y) = pair.public_key().as_ref().get(1..)?.split_at_checked(32)?;
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let number = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let header = part(json!({
        "typ": "dpop+jwt", "alg": "ES256",
        "jwk": { "kty": "EC", "crv": "P-256", "x": number(x), "y": number(y) },
    }));
    let claims = part(json!({
        "jti": "01M754BKTKX1YB8Q05NMW9TP4G", "htm": "GET", "htu": address, "iat": issued,
        "ath": number(digest(&SHA256, token.as_bytes()).as_ref()),
    }));
    let signed = format!("{header}.{claims}");
    let signature = pair.sign(&random, signed.as_bytes()).ok()?;
    Some(format!("{signed}.{}", number(signature.as_ref())))
}
