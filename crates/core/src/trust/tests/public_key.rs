//! Public keys that clients register.

use jsonwebtoken::jwk::ThumbprintHash;
use serde_json::{Value, json};

use super::issuer::{Issuer, pem};
use crate::trust::{KeySet, KeySetError, PublicKey, PublicKeyError};

fn parsed(key: &Value) -> Result<PublicKey, PublicKeyError> {
    PublicKey::parse(&key.to_string())
}

#[test]
fn a_thumbprint_is_that_of_the_rfc() {
    // RFC 7638 §3.1 and RFC 8037 appendix A.3.
    let rsa = json!({
        "kty": "RSA",
        "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
        "e": "AQAB",
        "alg": "RS256",
        "kid": "2011-04-29",
    });
    let ed = json!({
        "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    });

    let rsa = parsed(&rsa).unwrap();

    assert_eq!(rsa.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    assert_eq!(rsa.jwk()["kid"], "2011-04-29");
    assert_eq!(parsed(&ed).unwrap().thumbprint(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
}

#[test]
fn pem_and_jwk_are_the_same_key() {
    let issuer = Issuer::get();
    for (pem, jwk) in [
        (issuer.rsa_pem(), issuer.rsa_jwk()),
        (issuer.ec_pem(), issuer.ec_jwk()),
        (issuer.ed_pem(), issuer.ed_jwk()),
    ] {
        let by_pem = PublicKey::parse(&pem).unwrap();
        assert_eq!(by_pem.thumbprint(), parsed(&jwk).unwrap().thumbprint());
        let library: jsonwebtoken::jwk::Jwk = serde_json::from_value(jwk).unwrap();
        assert_eq!(by_pem.thumbprint(), library.thumbprint(ThumbprintHash::SHA256).unwrap());
        assert_eq!(PublicKey::parse(&pem.replace('\n', "\r\n")).unwrap(), by_pem);
        assert_eq!(parsed(by_pem.jwk()).unwrap(), by_pem, "it is read back as it is kept");
    }
}

#[test]
fn a_private_key_is_told_apart_and_never_kept() {
    let mut jwk = Issuer::get().ec_jwk();
    jwk["d"] = json!("c2VjcmV0");
    assert_eq!(parsed(&jwk).unwrap_err(), PublicKeyError::Private);
    assert_eq!(
        parsed(&json!({ "kty": "oct", "k": "c2VjcmV0" })).unwrap_err(),
        PublicKeyError::Private
    );
    for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY"] {
        assert_eq!(
            PublicKey::parse(&pem(label, &[0; 40])).unwrap_err(),
            PublicKeyError::Private,
            "{label}"
        );
    }
}

#[test]
fn what_verifies_nothing_is_refused() {
    let rsa = Issuer::get().rsa_jwk();
    let with = |member: &str, value: Value| {
        let mut jwk = rsa.clone();
        jwk[member] = value;
        jwk
    };
    for jwk in [
        with("use", json!("enc")),
        with("alg", json!("RSA-OAEP")),
        with("n", json!("AQAB")),
        json!({ "kty": "EC", "crv": "P-384", "x": "AA", "y": "AA" }),
        json!({ "kty": "OKP", "crv": "X25519", "x": "AA" }),
        json!({ "kty": "EC", "crv": "P-256", "x": "AA", "y": "AA" }),
    ] {
        assert_eq!(parsed(&jwk).unwrap_err(), PublicKeyError::Unusable, "{jwk}");
    }
    for jwk in [with("kid", json!("")), with("kid", json!(1)), with("kid", json!("k".repeat(257)))]
    {
        assert_eq!(parsed(&jwk).unwrap_err(), PublicKeyError::KeyId);
    }
    for text in
        ["", "{}", "[]", "null", "{\"kty\":1}", "ssh-rsa AAAA", "-----BEGIN PUBLIC KEY-----"]
    {
        assert_eq!(PublicKey::parse(text).unwrap_err(), PublicKeyError::Form, "{text}");
    }
    assert_eq!(PublicKey::parse(&"x".repeat(20_000)).unwrap_err(), PublicKeyError::Form);
}

#[test]
fn broken_der_is_refused() {
    let whole = |der: &[u8]| PublicKey::parse(&pem("PUBLIC KEY", der));
    let good = {
        let mut der = vec![0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
        der.extend(
            base64::Engine::decode(
                &base64::engine::general_purpose::URL_SAFE_NO_PAD,
                Issuer::get().ed_jwk()["x"].as_str().unwrap(),
            )
            .unwrap(),
        );
        der
    };
    assert!(whole(&good).is_ok());
    for end in 0..good.len() {
        assert!(whole(&good[..end]).is_err(), "{end}");
    }
    for place in 0..12 {
        for bit in 0..8 {
            let mut der = good.clone();
            der[place] ^= 1 << bit;
            assert!(whole(&der).is_err(), "{place} {bit}");
        }
    }
    let mut longer = good;
    longer.push(0);
    assert!(whole(&longer).is_err());
}

#[test]
fn a_set_of_ten_thousand_keys_is_refused_before_any_is_built() {
    let keys = vec![json!({ "kty": "OKP" }); 10_000];
    let set = json!({ "keys": keys }).to_string();

    let refused = KeySet::parse(set.as_bytes()).unwrap_err();

    assert!(matches!(refused, KeySetError::Many | KeySetError::Json), "{refused}");
}
