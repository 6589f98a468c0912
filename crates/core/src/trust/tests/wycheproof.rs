//! Signatures that broke other implementations: Project Wycheproof's vectors for the four algorithms.
//!
//! Keys take the way of an issuer's keys, through a JWK Set. Vectors of the same algorithms with other
//! parameters (a salt of another length, another hash for the mask) have to be refused.

use serde_json::{Value, json};
use wycheproof::{TestResult, ecdsa, eddsa, rsa_pkcs1_verify as pkcs1, rsa_pss_verify as pss};

use super::issuer::b64;
use crate::trust::{Algorithm, KeySet};

/// True if the signature is one by this key and algorithm.
fn verifies(jwk: &Value, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
    let keys = KeySet::parse(json!({ "keys": [jwk] }).to_string().as_bytes()).unwrap();
    let mut fitting = keys.fitting(None, algorithm);
    fitting.any(|key| key.verify_sig(message, signature).is_ok())
}

/// Verifies every test of these sets with the key of its group and compares the outcome with what the
/// vector says. Tests whose outcome is left to policy are skipped; at least `least` have to be valid, and as
/// many invalid.
macro_rules! holds {
    ($module:ident, $names:expr, $algorithm:expr, $least:literal, |$group:ident| $jwk:expr) => {
        let mut valid = 0;
        let mut invalid = 0;
        for name in $names {
            for $group in $module::TestSet::load(name).unwrap().test_groups {
                let jwk: Value = $jwk;
                for test in &$group.tests {
                    let found = verifies(&jwk, $algorithm, &test.msg, &test.sig);
                    let (count, wanted) = match test.result {
                        TestResult::Valid => (&mut valid, true),
                        TestResult::Invalid => (&mut invalid, false),
                        TestResult::Acceptable => continue,
                    };
                    *count += 1;
                    assert_eq!(found, wanted, "{name:?} {}: {}", test.tc_id, test.comment);
                }
            }
        }
        assert!(valid >= $least && invalid >= $least, "{valid} valid, {invalid} invalid");
    };
}

fn rsa(n: &[u8], e: &[u8]) -> Value {
    json!({"kty": "RSA", "n": b64(n), "e": b64(e)})
}

#[test]
fn es256() {
    holds!(ecdsa, [ecdsa::TestName::EcdsaSecp256r1Sha256P1363], Algorithm::Es256, 50, |group| {
        // An uncompressed point: 4, x, y.
        let (x, y) = group.key.key[1..].split_at(32);
        json!({"kty": "EC", "crv": "P-256", "x": b64(x), "y": b64(y)})
    });
}

#[test]
fn eddsa() {
    holds!(eddsa, [eddsa::TestName::Ed25519], Algorithm::EdDsa, 30, |group| {
        json!({"kty": "OKP", "crv": "Ed25519", "x": b64(&group.key.pk)})
    });
}

#[test]
fn rs256() {
    use pkcs1::TestName::{Rsa2048Sha256, Rsa3072Sha256, Rsa4096Sha256, Rsa8192Sha256};
    let names = [Rsa2048Sha256, Rsa3072Sha256, Rsa4096Sha256, Rsa8192Sha256];
    holds!(pkcs1, names, Algorithm::Rs256, 20, |group| rsa(&group.key.n, &group.key.e));
}

#[test]
fn ps256() {
    use pss::TestName::{
        RsaPss2048Sha256Mgf1SaltLen32, RsaPss3072Sha256Mgf1SaltLen32, RsaPss4096Sha256Mgf1SaltLen32,
    };
    let names = [
        RsaPss2048Sha256Mgf1SaltLen32, RsaPss3072Sha256Mgf1SaltLen32, RsaPss4096Sha256Mgf1SaltLen32,
    ];
    holds!(pss, names, Algorithm::Ps256, 20, |group| rsa(&group.key.n, &group.key.e));
}

#[test]
fn signatures_with_other_parameters_than_those_of_the_algorithm_are_refused() {
    use pss::TestName::{
        RsaPss2048Sha256Mgf1SaltLen0, RsaPss2048Sha256Mgf1Sha1_20, RsaPss2048Sha384Mgf1SaltLen48,
    };
    let mut refused = 0;
    for name in
        [RsaPss2048Sha256Mgf1SaltLen0, RsaPss2048Sha256Mgf1Sha1_20, RsaPss2048Sha384Mgf1SaltLen48]
    {
        for group in pss::TestSet::load(name).unwrap().test_groups {
            let jwk = rsa(&group.key.n, &group.key.e);
            for test in group.tests.iter().filter(|test| test.result == TestResult::Valid) {
                assert!(!verifies(&jwk, Algorithm::Ps256, &test.msg, &test.sig), "{name:?}");
                refused += 1;
            }
        }
    }
    assert!(refused > 100, "{refused}");
}
