//! Signatures that count.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    claims,
    issuer::{Issuer, b64, mac, stranger},
    with,
};
use crate::trust::{Algorithm, CredentialCheck, Jwt, KeySet, Rejection};

/// The key of the issuer that fits the algorithm.
fn kid(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Rs256 | Algorithm::Ps256 => "rsa",
        Algorithm::Es256 => "ec",
        Algorithm::EdDsa => "ed",
    }
}

fn verified(text: &str) -> Result<(), Rejection> {
    Jwt::parse(text)?.verify(Issuer::get().keys()).map(|_| ())
}

#[test]
fn each_of_the_four_algorithms_verifies() {
    for algorithm in Algorithm::ALL {
        for header in [
            json!({"alg": algorithm.as_str(), "kid": kid(algorithm)}),
            json!({"alg": algorithm.as_str()}),
        ] {
            let text = Issuer::get().sign_with(algorithm, &header, &claims());

            assert_eq!(verified(&text), Ok(()), "{header}");
        }
    }
}

#[test]
fn a_header_cannot_choose_another_algorithm_than_that_of_the_key() {
    for by in Algorithm::ALL {
        for (alg, kid) in [("RS256", "rsa"), ("PS256", "rsa"), ("ES256", "ec"), ("EdDSA", "ed")] {
            let header = json!({"alg": alg, "kid": kid});
            let text = Issuer::get().sign_with(by, &header, &claims());

            assert_eq!(verified(&text).is_ok(), by.as_str() == alg, "{by:?} as {alg}");
        }
        for (alg, kid) in [("ES256", "rsa"), ("EdDSA", "rsa"), ("RS256", "ec"), ("ES256", "ed")] {
            let header = json!({"alg": alg, "kid": kid});
            let text = Issuer::get().sign_with(by, &header, &claims());

            assert_eq!(verified(&text), Err(Rejection::UnknownKey), "{by:?} as {alg} of {kid}");
        }
    }
}

#[test]
fn a_public_key_is_no_secret_of_a_mac() {
    let jwk = Issuer::get().rsa_jwk();
    let secrets = [
        jwk["n"].as_str().unwrap().as_bytes().to_vec(),
        jwk.to_string().into_bytes(),
        Issuer::get().jwks().to_string().into_bytes(),
        Vec::new(),
    ];
    for secret in secrets {
        for alg in ["HS256", "RS256", "ES256", "EdDSA"] {
            let text = mac(&secret, &json!({"alg": alg, "kid": "rsa"}), &claims());

            assert_eq!(verified(&text).unwrap_err().check(), CredentialCheck::Signature, "{alg}");
        }
    }
}

#[test]
fn without_a_signature_nothing_is_verified() {
    for alg in ["none", "RS256", "PS256", "ES256", "EdDSA"] {
        for kid in ["rsa", "ec", "ed"] {
            let header = json!({"alg": alg, "kid": kid}).to_string();
            for signature in [Vec::new(), vec![0], vec![0; 64], vec![0; 256], vec![255; 64]] {
                let text =
                    format!("{}.{}.{}", b64(&header), b64(claims().to_string()), b64(&signature));

                assert!(verified(&text).is_err(), "{alg} {kid} {}", signature.len());
            }
        }
    }
}

#[test]
fn a_key_that_the_token_brings_along_is_never_looked_at() {
    let stranger = stranger();
    let jwk = stranger.rsa_jwk();
    for header in [
        json!({"alg": "RS256", "jwk": jwk}),
        json!({"alg": "RS256", "jwk": jwk, "kid": "rsa"}),
        json!({"alg": "RS256", "jku": "https://attacker.example/jwks"}),
        json!({"alg": "RS256", "x5u": "https://attacker.example/x", "kid": "rsa"}),
        json!({"alg": "RS256", "x5c": ["MIIB"], "x5t": "AA", "kid": "rsa"}),
    ] {
        let text = stranger.sign_with(Algorithm::Rs256, &header, &claims());

        assert_eq!(verified(&text), Err(Rejection::WrongSignature), "{header}");
        let own = Issuer::get().sign_with(Algorithm::Rs256, &header, &claims());
        assert_eq!(verified(&own), Ok(()), "what is ignored does no harm: {header}");
    }
}

#[test]
fn a_key_id_is_nothing_but_a_name() {
    let names =
        ["RSA", "rsa ", "", "../rsa", "/dev/null", "rsa\u{0}", "' OR 1=1 --", "*", "http://x"];
    for kid in names {
        let header = json!({"alg": "RS256", "kid": kid});
        let text = Issuer::get().sign_with(Algorithm::Rs256, &header, &claims());

        assert_eq!(verified(&text), Err(Rejection::UnknownKey), "{kid}");
    }
}

#[test]
fn keys_of_one_name_are_all_tried() {
    let mut other = stranger().rsa_jwk();
    other["kid"] = json!("rsa");
    let set = json!({"keys": [other, Issuer::get().ec_jwk(), Issuer::get().rsa_jwk()]});
    let keys = KeySet::parse(set.to_string().as_bytes()).unwrap();

    let jwt = Jwt::parse(&Issuer::get().sign(&claims())).unwrap();

    assert!(jwt.verify(&keys).is_ok());
}

#[test]
fn claims_of_one_token_do_not_fit_the_signature_of_another() {
    let good = Issuer::get().sign(&claims());
    let other = Issuer::get().sign(&with(&json!({"repository_id": "1"})));
    let parts = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
    let good = parts(&good);
    let other = parts(&other);

    let mixed = format!("{}.{}.{}", good[0], other[1], good[2]);

    assert_eq!(verified(&mixed), Err(Rejection::WrongSignature));
}

#[test]
fn a_stranger_s_signature_is_refused_whatever_it_says() {
    let text = stranger().sign(&claims());

    assert_eq!(verified(&text), Err(Rejection::WrongSignature));
    let none = Jwt::parse(&text).unwrap();
    assert_eq!(none.verify(&KeySet::default()).unwrap_err(), Rejection::UnknownKey);
}

fn algorithms() -> impl Strategy<Value = Algorithm> {
    proptest::sample::select(Algorithm::ALL.to_vec())
}

fn header(algorithm: Algorithm) -> Value {
    json!({"alg": algorithm.as_str(), "kid": kid(algorithm)})
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn one_changed_character_is_never_accepted(
        algorithm in algorithms(), place in any::<prop::sample::Index>(), letter in "[0-9A-Za-z_.-]",
    ) {
        let good = Issuer::get().sign_with(algorithm, &header(algorithm), &claims());
        let place = place.index(good.len());
        let mut changed = good.clone();
        changed.replace_range(place..=place, &letter);
        prop_assume!(changed != good);

        prop_assert!(verified(&good).is_ok());
        prop_assert!(verified(&changed).is_err(), "{}", place);
    }

    #[test]
    fn no_made_up_signature_is_accepted(
        algorithm in algorithms(), signature in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let signed = format!("{}.{}", b64(header(algorithm).to_string()), b64(claims().to_string()));
        let made_up = format!("{signed}.{}", b64(signature));

        prop_assert!(verified(&made_up).is_err());
    }
}
