//! ID-JAGs: the one that is right, and everything that is not quite one.

use serde_json::{Value, json};

use super::{
    AUDIENCE, ISSUER, NOW, ORG, changed, expects, is,
    issuer::{Issuer, mac, stranger},
    now, recipient, rule,
};
use crate::{
    principal::{Role, Scope, ScopeSet},
    trust::{
        Algorithm, Jwt, JwtType, Rejection, RoleMap, RuleSubject, Subject, TrustRule, TrustRules,
        TrustedSubject, expectation::Pattern,
    },
};

const CLIENT: &str = "https://agent.example/client.json";
const FACE: &str = "https://gateway.acme.example/mcp";

fn id_jag() -> Value {
    json!({
        "iss": ISSUER,
        "sub": "U019488227",
        "aud": AUDIENCE,
        "client_id": CLIENT,
        "jti": "9e43f81b64a33f20116179",
        "exp": NOW + 300,
        "iat": NOW,
        "scope": "mcps:read mcps:invoke",
        "resource": FACE,
        "groups": ["eng"],
    })
}

fn header() -> Value {
    json!({ "alg": "RS256", "typ": "oauth-id-jag+jwt", "kid": "rsa" })
}

fn enterprise(name: &str) -> TrustRule {
    let roles = vec![("eng".parse::<Pattern>().unwrap(), Role::Member)];
    TrustRule {
        expects: expects(&[("groups", is("eng"))]),
        who: RuleSubject::User {
            from: "sub".parse().unwrap(),
            roles: RoleMap::new("groups".parse().unwrap(), roles).unwrap(),
        },
        id_jag: true,
        ..rule(name)
    }
}

fn admitted_by(rules: Vec<TrustRule>, claims: &Value) -> Result<TrustedSubject, Rejection> {
    let text = Issuer::get().sign_with(Algorithm::Rs256, &header(), claims);
    let jwt = Jwt::parse_typed(&text)?;
    let rules = TrustRules::new(rules).unwrap();
    let verified = jwt.verify(Issuer::get().keys())?;
    rules.admit_id_jag(verified, CLIENT, &recipient(), None, now())
}

pub(super) fn admitted(changes: &Value) -> Result<TrustedSubject, Rejection> {
    admitted_by(vec![enterprise("acme")], &changed(id_jag(), changes))
}

fn scopes(all: &[Scope]) -> ScopeSet {
    all.iter().copied().collect()
}

#[test]
fn an_id_jag_speaks_for_a_person_with_what_its_issuer_left() {
    let subject = admitted(&json!({})).unwrap();

    let Subject::User(user) = &subject.who else { panic!("{subject:?}") };
    assert_eq!((user.issuer.as_str(), user.subject.as_str()), (ISSUER, "U019488227"));
    assert_eq!(subject.scopes(), scopes(&[Scope::McpsRead, Scope::McpsInvoke]));
    assert_eq!(subject.resources, [FACE]);
    assert_eq!(subject.org().to_string(), ORG);
    let once = subject.single_use.unwrap();
    assert_eq!((once.issuer.as_str(), once.jti.as_str()), (ISSUER, "9e43f81b64a33f20116179"));
    assert_eq!(once.until, now().plus_seconds(360), "remembered while it would be accepted");
}

#[test]
fn its_scopes_are_those_of_the_assertion_and_the_rule() {
    let narrow = || TrustRule { scopes: scopes(&[Scope::McpsRead]), ..enterprise("acme") };
    for (scope, expected) in [
        (json!("mcps:read mcps:invoke"), scopes(&[Scope::McpsRead])),
        (json!("mcps:read openid chat.read"), scopes(&[Scope::McpsRead])),
        (json!("mcps:invoke"), ScopeSet::EMPTY),
        (json!("openid"), ScopeSet::EMPTY),
        (json!(""), ScopeSet::EMPTY),
        (json!("MCPS:READ"), ScopeSet::EMPTY),
    ] {
        let subject = admitted_by(vec![narrow()], &changed(id_jag(), &json!({ "scope": scope })));
        assert_eq!(subject.unwrap().scopes(), expected, "{scope}");
    }
    let silent = admitted(&json!({ "scope": null })).unwrap().scopes();
    assert_eq!(
        silent,
        ScopeSet::ALL.unless_asked_for(),
        "an issuer that says nothing makes no admin"
    );
    for scope in [json!(["mcps:read"]), json!(1), json!({})] {
        let refused = admitted(&json!({ "scope": scope })).unwrap_err();
        assert!(matches!(refused, Rejection::Malformed(_)), "{scope}");
    }
}

#[test]
fn a_resource_is_one_address_or_a_few() {
    assert_eq!(admitted(&json!({ "resource": null })).unwrap().resources, Vec::<String>::new());
    let two = admitted(&json!({ "resource": [FACE, "https://other.example"] })).unwrap();
    assert_eq!(two.resources, [FACE, "https://other.example"]);
    for resource in [json!([]), json!([FACE, 1]), json!({}), json!(true), json!(vec![FACE; 17])] {
        let refused = admitted(&json!({ "resource": resource })).unwrap_err();
        assert!(matches!(refused, Rejection::Malformed(_)), "{resource}");
    }
}

#[test]
fn a_tenant_is_accepted_by_a_rule_that_expects_it() {
    for tenant in ["tenant", "aud_tenant"] {
        let named = changed(id_jag(), &json!({ tenant: "acme" }));
        let expecting = |value: &str| TrustRule {
            expects: expects(&[("groups", is("eng")), (tenant, is(value))]),
            ..enterprise("acme")
        };
        assert!(admitted_by(vec![expecting("acme")], &named).is_ok());
        assert_eq!(
            admitted_by(vec![expecting("umbrella")], &named).unwrap_err(),
            Rejection::NoRule
        );
        let refused = admitted_by(vec![enterprise("acme")], &named).unwrap_err();
        assert!(matches!(refused, Rejection::WrongPurpose(_)), "{tenant}");
    }
}

#[test]
fn exactly_one_rule_for_id_jags_admits_it() {
    let claims = id_jag();
    let people = || TrustRule { id_jag: false, ..enterprise("people") };
    assert_eq!(admitted_by(vec![people()], &claims).unwrap_err(), Rejection::NoRule);
    assert_eq!(admitted_by(vec![rule("ci")], &claims).unwrap_err(), Rejection::NoRule);
    assert!(admitted_by(vec![people(), enterprise("acme")], &claims).is_ok());
    assert_eq!(
        admitted_by(vec![enterprise("acme"), enterprise("twin")], &claims).unwrap_err(),
        Rejection::SeveralRules(vec!["acme".to_owned(), "twin".to_owned()])
    );
    assert_eq!(
        admitted(&json!({ "iss": "https://evil.example" })).unwrap_err(),
        Rejection::UnknownIssuer
    );
    assert_eq!(admitted(&json!({ "groups": ["sales"] })).unwrap_err(), Rejection::NoRule);
    let elsewhere = TrustRule { audience: "mcp-gateway".to_owned(), ..enterprise("acme") };
    assert_eq!(admitted_by(vec![elsewhere], &claims).unwrap_err(), Rejection::WrongAudience);
}

#[test]
fn an_id_token_is_no_id_jag_and_an_id_jag_is_no_id_token() {
    let rules = TrustRules::new(vec![enterprise("acme"), {
        TrustRule { id_jag: false, ..enterprise("people") }
    }])
    .unwrap();
    let keys = Issuer::get().keys();
    for typ in [json!("JWT"), json!("at+jwt"), json!("client-authentication+jwt"), json!(null)] {
        let mut header = json!({ "alg": "RS256" });
        if !typ.is_null() {
            header["typ"] = typ.clone();
        }
        let text = Issuer::get().sign_with(Algorithm::Rs256, &header, &id_jag());
        let jwt = Jwt::parse_typed(&text).unwrap();
        let verified = jwt.verify(keys).unwrap();
        let refused = rules.admit_id_jag(verified, CLIENT, &recipient(), None, now()).unwrap_err();
        assert!(refused.to_string().contains("`typ`"), "{typ}");
    }
    let text = Issuer::get().sign_with(Algorithm::Rs256, &header(), &id_jag());
    assert!(Jwt::parse(&text).unwrap_err().to_string().contains("`typ`"));
    let jwt = Jwt::parse_typed(&text).unwrap();
    assert_eq!(jwt.kind(), JwtType::IdJag);
    let verified = jwt.verify(keys).unwrap();
    assert!(rules.admit(verified, None, now()).is_err());
    assert!(rules.admit_workload(verified, &recipient(), None, now()).is_err());
}

#[test]
fn its_type_is_written_to_the_letter() {
    for typ in [
        json!("OAUTH-ID-JAG+JWT"),
        json!("oauth-id-jag"),
        json!("oauth-id-jag+JWT"),
        json!("application/oauth-id-jag+jwt"),
        json!("oauth-id-jag+jwt "),
        json!("oauth-id-jag-jwt"),
        json!(["oauth-id-jag+jwt"]),
    ] {
        let header = json!({ "alg": "RS256", "typ": typ });
        let text = Issuer::get().sign_with(Algorithm::Rs256, &header, &id_jag());
        assert!(Jwt::parse_typed(&text).is_err(), "{typ}");
    }
}

#[test]
fn no_signature_but_one_of_its_issuer_counts() {
    let keys = Issuer::get().keys();
    let pem = Issuer::get().rsa_pem();
    for alg in ["none", "HS256", "RS384"] {
        let header = changed(header(), &json!({ "alg": alg }));
        assert!(Jwt::parse_typed(&mac(pem.as_bytes(), &header, &id_jag())).is_err(), "{alg}");
    }
    let forged = stranger().sign_with(Algorithm::Rs256, &header(), &id_jag());
    let jwt = Jwt::parse_typed(&forged).unwrap();
    assert_eq!(jwt.verify(keys).unwrap_err(), Rejection::WrongSignature);
    let twice = id_jag().to_string().replacen('{', r#"{"client_id":"other","#, 1);
    let text = Issuer::get().sign_text(Algorithm::Rs256, &header().to_string(), &twice);
    assert!(Jwt::parse_typed(&text).unwrap_err().to_string().contains("strict JSON"));
}
