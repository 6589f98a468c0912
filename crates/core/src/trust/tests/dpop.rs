//! Proofs of possession, and what attackers make of them.

use serde_json::{Value, json};

use super::{
    NOW, changed,
    issuer::{Issuer, b64, mac},
    now,
};
use crate::{
    oauth,
    trust::{
        Algorithm, DpopProof, MAX_PROOF_BYTES, PROOF_SECONDS, ProofFault, ProofTarget, PublicKey,
        TargetUri,
    },
};

const ADDRESS: &str = "https://gateway.acme.example/v1/mcps";
const TOKEN: &str = "mcp_live_token";

fn claims() -> Value {
    json!({
        "jti": "1", "htm": "GET", "htu": ADDRESS, "iat": NOW,
        "ath": b64(oauth::digest(TOKEN)),
    })
}

fn header() -> Value {
    json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": Issuer::get().ec_jwk() })
}

fn checked(proof: &str) -> Result<DpopProof, ProofFault> {
    let address = TargetUri::parse(ADDRESS);
    let target = ProofTarget { method: "GET", addresses: address.as_slice(), token: Some(TOKEN) };
    DpopProof::check(proof, target, now())
}

fn of(header: &Value, claims: &Value) -> Result<DpopProof, ProofFault> {
    checked(&Issuer::get().sign_with(Algorithm::Es256, header, claims))
}

#[test]
fn a_proof_names_its_key() {
    let issuer = Issuer::get();
    for (algorithm, jwk) in [
        (Algorithm::Es256, issuer.ec_jwk()),
        (Algorithm::EdDsa, issuer.ed_jwk()),
        (Algorithm::Rs256, issuer.rsa_jwk()),
        (Algorithm::Ps256, issuer.rsa_jwk()),
    ] {
        let header = json!({ "typ": "dpop+jwt", "alg": algorithm.as_str(), "jwk": jwk });
        let claims = changed(claims(), &json!({ "nonce": "n" }));

        let proof = checked(&issuer.sign_with(algorithm, &header, &claims)).unwrap();

        assert_eq!(proof.key, PublicKey::of_jwk(&jwk).unwrap().name());
        assert_eq!((proof.once.jti.as_str(), proof.nonce.as_deref()), ("1", Some("n")));
        assert_eq!(proof.key.to_string().parse(), Ok(proof.key));
    }
}

#[test]
fn a_proof_is_good_for_its_request_only() {
    for (changes, fault) in [
        (json!({ "htm": "POST" }), ProofFault::Method),
        (json!({ "htm": "get" }), ProofFault::Method),
        (json!({ "htm": null }), ProofFault::Form),
        (json!({ "htu": "https://gateway.acme.example/mcp" }), ProofFault::Address),
        (json!({ "htu": "http://gateway.acme.example/v1/mcps" }), ProofFault::Address),
        (json!({ "htu": "https://evil.example/v1/mcps" }), ProofFault::Address),
        (json!({ "htu": "/v1/mcps" }), ProofFault::Address),
        (json!({ "htu": null }), ProofFault::Form),
        (json!({ "iat": null }), ProofFault::Form),
        (json!({ "iat": NOW.to_string() }), ProofFault::Form),
        (json!({ "ath": null }), ProofFault::Token),
        (json!({ "ath": b64(oauth::digest("another")) }), ProofFault::Token),
        (json!({ "jti": null }), ProofFault::Form),
        (json!({ "jti": "x".repeat(256) }), ProofFault::Form),
        (json!({ "nonce": 1 }), ProofFault::Form),
    ] {
        assert_eq!(of(&header(), &changed(claims(), &changes)), Err(fault), "{changes}");
    }
    for same in [
        json!({ "htu": format!("{ADDRESS}?limit=1#x") }),
        json!({ "htu": "HTTPS://GATEWAY.acme.example:443/v1/mcps" }),
        json!({ "more": true }),
    ] {
        assert!(of(&header(), &changed(claims(), &same)).is_ok(), "{same}");
    }
    for (iat, is_timely, until) in [
        (NOW - PROOF_SECONDS, true, 1),
        (NOW + PROOF_SECONDS, true, 2 * PROOF_SECONDS + 1),
        (NOW - PROOF_SECONDS - 1, false, PROOF_SECONDS + 1),
        (NOW + PROOF_SECONDS + 1, false, PROOF_SECONDS + 1),
        (0, false, PROOF_SECONDS + 1),
    ] {
        let proof = of(&header(), &changed(claims(), &json!({ "iat": iat }))).unwrap();
        let expected = (is_timely, now().plus_seconds(until));
        assert_eq!((proof.is_timely, proof.once.until), expected, "{iat}");
    }
}

#[test]
fn only_the_signature_of_the_key_inside_makes_a_proof() {
    let mut private = Issuer::get().ec_jwk();
    private["d"] = json!("c2VjcmV0");
    let secret = json!({ "kty": "oct", "k": "c2VjcmV0" });
    for (changes, fault) in [
        (json!({ "typ": "JWT" }), ProofFault::Form),
        (json!({ "typ": "application/dpop+jwt" }), ProofFault::Form),
        (json!({ "typ": null }), ProofFault::Form),
        (json!({ "alg": "none" }), ProofFault::Form),
        (json!({ "alg": "HS256" }), ProofFault::Form),
        (json!({ "alg": "ES384" }), ProofFault::Form),
        (json!({ "crit": ["b64"] }), ProofFault::Form),
        (json!({ "jwk": null }), ProofFault::Form),
        (json!({ "jwk": "x" }), ProofFault::Form),
        (json!({ "jwk": private }), ProofFault::Key),
        (json!({ "jwk": secret }), ProofFault::Key),
        (json!({ "jwk": Issuer::get().ed_jwk() }), ProofFault::Key),
        (json!({ "alg": "RS256" }), ProofFault::Key),
        (json!({ "jwk": super::issuer::stranger().ec_jwk() }), ProofFault::Signature),
    ] {
        assert_eq!(of(&changed(header(), &changes), &claims()), Err(fault), "{changes}");
    }
    let unsigned = Issuer::get().sign_with(Algorithm::Es256, &header(), &claims());
    let (signed, _) = unsigned.rsplit_once('.').unwrap();
    assert_eq!(checked(&format!("{signed}.")), Err(ProofFault::Signature));
    let none = changed(header(), &json!({ "alg": "none" }));
    let parts = format!("{}.{}.", b64(none.to_string()), b64(claims().to_string()));
    assert_eq!(checked(&parts), Err(ProofFault::Form));
    let shared = json!({ "typ": "dpop+jwt", "alg": "HS256", "jwk": { "kty": "oct", "k": "eA" } });
    assert_eq!(checked(&mac(b"x", &shared, &claims())), Err(ProofFault::Form));
    for text in ["", ".", "..", "a.b.c", &"x".repeat(MAX_PROOF_BYTES + 1)] {
        assert_eq!(checked(text), Err(ProofFault::Form));
    }
}
