//! Keys of a JWK Set that are accepted.

use serde_json::{Value, json};

use super::issuer::{Issuer, b64};
use crate::trust::{KeySet, KeySetError, MAX_KEYS};

fn set(keys: &Value) -> KeySet {
    KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

fn changed(mut jwk: Value, member: &str, value: Value) -> Value {
    jwk[member] = value;
    jwk
}

fn names(set: &KeySet) -> Vec<String> {
    set.ids().map(|(id, alg)| format!("{} {}", id.unwrap_or("-"), alg.as_str())).collect()
}

#[test]
fn a_key_serves_the_algorithms_of_its_kind() {
    let issuer = Issuer::get();

    assert_eq!(names(issuer.keys()), ["rsa RS256", "rsa PS256", "ec ES256", "ed EdDSA"]);
    let bound = changed(issuer.rsa_jwk(), "alg", json!("PS256"));
    assert_eq!(names(&set(&json!([bound]))), ["rsa PS256"]);
    let nameless = json!({"kty": "OKP", "crv": "Ed25519", "x": issuer.ed_jwk()["x"]});
    assert_eq!(names(&set(&json!([nameless]))), ["- EdDSA"]);
}

#[test]
fn keys_that_are_not_for_such_signatures_are_left_out() {
    let issuer = Issuer::get();
    let rsa = issuer.rsa_jwk();
    let ec = issuer.ec_jwk();
    let ed = issuer.ed_jwk();
    let small = b64([0x80; 128]);
    let almost = b64([&[0x7f_u8][..], &[0xff; 255]].concat());
    let huge = b64([0x80; 1025]);
    for jwk in [
        json!({}),
        json!({"kty": "oct", "k": "c2VjcmV0", "kid": "rsa", "alg": "HS256"}),
        changed(rsa.clone(), "use", json!("enc")),
        changed(rsa.clone(), "use", json!(null)),
        changed(rsa.clone(), "key_ops", json!(["encrypt", "wrapKey"])),
        changed(rsa.clone(), "key_ops", json!("verify")),
        changed(rsa.clone(), "alg", json!("RSA-OAEP")),
        changed(rsa.clone(), "alg", json!("ES256")),
        changed(rsa.clone(), "alg", json!("RS512")),
        changed(rsa.clone(), "kty", json!("EC")),
        changed(rsa.clone(), "n", json!(small)),
        changed(rsa.clone(), "n", json!(almost)),
        changed(rsa.clone(), "n", json!(huge)),
        changed(rsa.clone(), "n", json!("")),
        changed(rsa.clone(), "n", json!("not base64url!")),
        changed(rsa.clone(), "e", json!("AQ")),
        changed(rsa.clone(), "e", json!("Ag")),
        changed(rsa.clone(), "e", json!("AAAA")),
        changed(rsa.clone(), "e", json!("AQAAAAAB")),
        changed(ec.clone(), "crv", json!("P-384")),
        changed(ec.clone(), "crv", json!("secp256k1")),
        changed(ec.clone(), "alg", json!("RS256")),
        changed(ec.clone(), "x", ec["y"].clone()),
        changed(ec.clone(), "x", json!(b64([0; 32]))),
        changed(ec.clone(), "x", json!("AQ")),
        changed(ed.clone(), "crv", json!("X25519")),
        changed(ed.clone(), "crv", json!("Ed448")),
        changed(ed.clone(), "x", json!("AQ")),
    ] {
        let found = set(&json!([jwk, ed]));

        assert_eq!((names(&found).len(), found.skipped()), (1, 1), "{jwk}: {found:?}");
    }
}

#[test]
fn a_zero_before_a_modulus_does_no_harm() {
    let rsa = Issuer::get().rsa_jwk();
    let padded = changed(rsa.clone(), "e", json!(b64([0, 1, 0, 1])));

    assert_eq!(names(&set(&json!([padded]))).len(), 2);
}

#[test]
fn a_key_that_verifies_among_other_things_is_taken() {
    let rsa = changed(Issuer::get().rsa_jwk(), "key_ops", json!(["sign", "verify"]));

    assert_eq!(names(&set(&json!([rsa]))).len(), 2);
}

#[test]
fn of_a_spiffe_bundle_the_keys_for_jwts_are_taken() {
    let ec = Issuer::get().ec_jwk();
    let [jwt, x509] = ["jwt-svid", "x509-svid"].map(|it| changed(ec.clone(), "use", json!(it)));

    let found = set(&json!([x509, jwt]));

    assert_eq!((names(&found), found.skipped()), (vec!["ec ES256".to_owned()], 1));
}

#[test]
fn an_empty_set_is_a_set_without_keys() {
    assert!(set(&json!([])).is_empty());
}

#[test]
fn what_is_no_jwk_set_is_refused() {
    let too_many = json!({"keys": vec![json!({}); MAX_KEYS + 1]}).to_string();
    for (text, error) in [
        ("", KeySetError::Json),
        ("<html>", KeySetError::Json),
        (r#"{"keys":[],"keys":[]}"#, KeySetError::Json),
        ("{}", KeySetError::Keys),
        ("[]", KeySetError::Keys),
        (r#"{"keys":{}}"#, KeySetError::Keys),
        (r#"{"keys":[1]}"#, KeySetError::Keys),
        (&too_many, KeySetError::Many),
    ] {
        assert_eq!(KeySet::parse(text.as_bytes()).unwrap_err(), error, "{text:.40}");
    }
}
