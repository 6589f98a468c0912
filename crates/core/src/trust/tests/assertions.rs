//! Assertions of clients and workloads at the token endpoint, and what attackers make of them.

use serde_json::{Value, json};

use super::{
    AUDIENCE, NOW, SERVICE, changed, claims, expects, is,
    issuer::{Issuer, mac, stranger},
    now, recipient, rule, with,
};
use crate::trust::{
    Algorithm, ClientAssertion, Jwt, KeySet, PublicKey, Rejection, RoleMap, RuleSubject, SingleUse,
    Subject, TrustRule, TrustRules, TrustedSubject, expectation::Pattern,
};

const CLIENT: &str = "sa_01M754BKTK9KV856N96WMEHWY9";

fn of_client() -> Value {
    json!({
        "iss": CLIENT,
        "sub": CLIENT,
        "aud": AUDIENCE,
        "exp": NOW + 60,
        "iat": NOW,
        "jti": "one",
    })
}

fn registered() -> KeySet {
    let keys = [Issuer::get().rsa_jwk(), Issuer::get().ec_jwk(), Issuer::get().ed_jwk()];
    let keys: Vec<_> = keys.iter().map(|key| PublicKey::of_jwk(key).unwrap()).collect();
    KeySet::of_registered(&keys)
}

fn checked(text: &str, keys: &KeySet) -> Result<SingleUse, Rejection> {
    ClientAssertion::parse(text)?.check(keys, &recipient(), now())
}

fn signed(changes: &Value) -> String {
    Issuer::get().sign(&changed(of_client(), changes))
}

/// A client's assertion with these claims in place of others.
pub(super) fn proved(changes: &Value) -> Result<SingleUse, Rejection> {
    checked(&signed(changes), &registered())
}

#[test]
fn a_client_proves_itself_by_each_algorithm_and_each_name_of_its_key() {
    for (by, jwk) in [
        (Algorithm::Rs256, Issuer::get().rsa_jwk()),
        (Algorithm::Ps256, Issuer::get().rsa_jwk()),
        (Algorithm::Es256, Issuer::get().ec_jwk()),
        (Algorithm::EdDsa, Issuer::get().ed_jwk()),
    ] {
        let key = PublicKey::of_jwk(&jwk).unwrap();
        for kid in [json!(null), jwk["kid"].clone(), json!(key.thumbprint())] {
            for typ in [None, Some("JWT"), Some("client-authentication+jwt")] {
                let mut header = json!({ "alg": by.as_str() });
                if !kid.is_null() {
                    header["kid"] = kid.clone();
                }
                if let Some(typ) = typ {
                    header["typ"] = json!(typ);
                }
                let text = Issuer::get().sign_with(by, &header, &of_client());

                let once = checked(&text, &registered()).unwrap();

                assert_eq!(once.jti, "one");
                assert_eq!(once.until, now().plus_seconds(120));
                assert!(!once.issuer.contains("https"), "no issuer is named like a client");
            }
        }
    }
}

#[test]
fn an_assertion_under_no_key_of_its_client_is_refused() {
    let header = json!({ "alg": "RS256", "kid": "rsa" });
    let forged = stranger().sign_with(Algorithm::Rs256, &header, &of_client());
    assert_eq!(checked(&forged, &registered()).unwrap_err(), Rejection::WrongSignature);
    // A key of another name is not tried, though it is the one that signed.
    let header = json!({ "alg": "RS256", "kid": "ec" });
    let confused = Issuer::get().sign_with(Algorithm::Rs256, &header, &of_client());
    assert_eq!(checked(&confused, &registered()).unwrap_err(), Rejection::UnknownKey);
    assert_eq!(
        checked(&signed(&json!({})), &KeySet::default()).unwrap_err(),
        Rejection::UnknownKey
    );
    // The public key as the secret of a MAC, and no signature at all.
    let pem = Issuer::get().rsa_pem();
    for alg in ["HS256", "none", "None", "RS512", ""] {
        let text = mac(pem.as_bytes(), &json!({ "alg": alg, "kid": "rsa" }), &of_client());
        assert!(checked(&text, &registered()).unwrap_err().to_string().contains("`alg`"), "{alg}");
    }
    for header in [
        json!({ "alg": "RS256", "kid": "rsa", "jwk": stranger().rsa_jwk() }),
        json!({ "alg": "RS256", "kid": "rsa", "jku": "https://evil.example/jwks" }),
        json!({ "alg": "RS256", "x5c": ["AAAA"] }),
    ] {
        let text = stranger().sign_with(Algorithm::Rs256, &header, &of_client());
        assert_eq!(checked(&text, &registered()).unwrap_err(), Rejection::WrongSignature);
    }
}

#[test]
fn members_that_stand_twice_are_refused() {
    let twice = of_client().to_string().replacen('{', r#"{"sub":"usr_x","#, 1);
    let text = Issuer::get().sign_text(Algorithm::Rs256, r#"{"alg":"RS256"}"#, &twice);
    assert!(checked(&text, &registered()).unwrap_err().to_string().contains("strict JSON"));
    let header = r#"{"alg":"RS256","alg":"none"}"#;
    let text = Issuer::get().sign_text(Algorithm::Rs256, header, &of_client().to_string());
    assert!(checked(&text, &registered()).unwrap_err().to_string().contains("strict JSON"));
}

#[test]
fn jwts_for_other_purposes_authenticate_no_client() {
    for typ in ["oauth-id-jag+jwt", "logout+jwt", "dpop+jwt", "JWE", ""] {
        let header = json!({ "alg": "RS256", "typ": typ });
        let text = Issuer::get().sign_with(Algorithm::Rs256, &header, &of_client());
        assert!(checked(&text, &registered()).is_err(), "{typ}");
    }
}

#[test]
fn no_more_than_eight_keys_are_tried_for_an_assertion_that_names_none() {
    let others = (0..8).map(|_| {
        let mut jwk = stranger().ed_jwk();
        jwk["kid"] = json!(null);
        jwk.as_object_mut().unwrap().remove("kid");
        PublicKey::of_jwk(&jwk).unwrap()
    });
    let mut keys: Vec<_> = others.collect();
    keys.push(PublicKey::of_jwk(&Issuer::get().ed_jwk()).unwrap());
    let set = KeySet::of_registered(&keys);
    let nameless =
        Issuer::get().sign_with(Algorithm::EdDsa, &json!({"alg": "EdDSA"}), &of_client());
    let header = json!({"alg": "EdDSA", "kid": "ed"});
    let named = Issuer::get().sign_with(Algorithm::EdDsa, &header, &of_client());

    assert_eq!(checked(&nameless, &set).unwrap_err(), Rejection::WrongSignature);
    assert!(checked(&named, &set).is_ok());
}

fn workload(rules: Vec<TrustRule>, claims: &Value) -> Result<TrustedSubject, Rejection> {
    let jwt = Jwt::parse_typed(&Issuer::get().sign(claims)).unwrap();
    let verified = jwt.verify(Issuer::get().keys()).unwrap();
    TrustRules::new(rules).unwrap().admit_workload(verified, &recipient(), None, now())
}

fn of_person(name: &str) -> TrustRule {
    let roles = vec![(Pattern::Any, crate::principal::Role::Member)];
    TrustRule {
        who: RuleSubject::User {
            from: "sub".parse().unwrap(),
            roles: RoleMap::new("groups".parse().unwrap(), roles).unwrap(),
        },
        ..rule(name)
    }
}

#[test]
fn a_workload_is_the_service_account_of_its_rule() {
    let subject = workload(vec![rule("ci")], &claims()).unwrap();
    assert_eq!(subject.who, Subject::Fixed(SERVICE.parse().unwrap()));

    let endpoint = format!("{AUDIENCE}/oauth/token");
    let by_endpoint = TrustRule { audience: endpoint.clone(), ..rule("ci") };
    assert!(workload(vec![by_endpoint], &with(&json!({ "aud": endpoint }))).is_ok());
}

#[test]
fn a_workload_has_to_name_this_gateway() {
    let by_name = || TrustRule { audience: "mcp-gateway".to_owned(), ..rule("ci") };
    let both = with(&json!({ "aud": ["mcp-gateway", AUDIENCE] }));
    assert!(workload(vec![by_name()], &both).is_ok());
    for audience in ["mcp-gateway", "https://other.example"] {
        let refused = workload(vec![by_name()], &with(&json!({ "aud": audience })));
        assert_eq!(refused.unwrap_err(), Rejection::WrongAudience, "{audience}");
    }
}

#[test]
fn the_id_token_of_a_person_is_no_workload() {
    let fixed = TrustRule {
        who: RuleSubject::Fixed("usr_01M754BKTK9KV856N96WMEHWY9".parse().unwrap()),
        ..rule("ana")
    };
    for rule in [of_person("people"), fixed, TrustRule { id_jag: true, ..rule("jag") }] {
        assert_eq!(workload(vec![rule], &claims()).unwrap_err(), Rejection::NoRule);
    }
    let other = with(&json!({ "iss": "https://other.example" }));
    assert_eq!(workload(vec![rule("ci")], &other).unwrap_err(), Rejection::UnknownIssuer);
    let unmet = vec![TrustRule { expects: expects(&[("repository_id", is("1"))]), ..rule("ci") }];
    assert_eq!(workload(unmet, &claims()).unwrap_err(), Rejection::NoRule);
}
