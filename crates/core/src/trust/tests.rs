//! Guarantees of trusting a JWT, as tables. Those about claims stand in `trust/cases.toml`.

mod advice;
mod assertions;
mod cases;
mod dpop;
mod form;
mod id_jag;
mod id_tokens;
mod issuer;
mod keys;
mod public_key;
mod rules;
mod signatures;
mod wycheproof;

use serde_json::{Value, json};

use self::issuer::Issuer;
use super::*;
use crate::{clock::Timestamp, principal::ScopeSet};

const ORG: &str = "org_01M754BKTKX1YB8Q05NMW9TP4G";
const OTHER_ORG: &str = "org_01M754BKTKGT8C7BR1BSH99ZV7";
const SERVICE: &str = "sa_01M754BKTK9KV856N96WMEHWY9";
const OTHER_SERVICE: &str = "sa_01M754BKTK9TG1TCT7SPYHDJTD";
const ISSUER: &str = "https://login.acme.example";
const AUDIENCE: &str = "https://gateway.acme.example";
/// 2026-11-20T11:02:15Z.
const NOW: i64 = 1_795_172_535;

fn now() -> Timestamp {
    Timestamp::default().plus_seconds(NOW)
}

/// The gateway, as the issuer of `AUDIENCE`.
fn recipient() -> Recipient {
    Recipient { issuer: AUDIENCE.to_owned(), token_endpoint: format!("{AUDIENCE}/oauth/token") }
}

/// Claims that every rule of these tests accepts.
fn claims() -> Value {
    json!({
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "repo:acme/api",
        "exp": NOW + 300,
        "nbf": NOW - 5,
        "iat": NOW - 5,
        "jti": "3f0c",
        "repository_id": "821093847",
    })
}

/// Claims with others in their place; `null` removes one.
fn with(changes: &Value) -> Value {
    changed(claims(), changes)
}

/// Some claims with others in their place; `null` removes one.
fn changed(mut claims: Value, changes: &Value) -> Value {
    let members = claims.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    claims
}

fn expects(all: &[(&str, Expectation)]) -> Expectations {
    let all = all.iter().map(|(claim, it)| (claim.parse().unwrap(), it.clone())).collect();
    Expectations::new(all).unwrap()
}

fn is(text: &str) -> Expectation {
    Expectation::text(text).unwrap()
}

/// A rule for a service account.
fn rule(name: &str) -> TrustRule {
    TrustRule {
        name: name.to_owned(),
        org: ORG.parse().unwrap(),
        issuer: ISSUER.to_owned(),
        audience: AUDIENCE.to_owned(),
        expects: expects(&[("repository_id", is("821093847"))]),
        who: RuleSubject::Fixed(SERVICE.parse().unwrap()),
        login: LoginClaims::new("groups".parse().unwrap()),
        scopes: ScopeSet::ALL,
        max_ttl: MaxTtl::new(900).unwrap(),
        single_use: false,
        id_jag: false,
        scim: None,
        delegation: Vec::new(),
    }
}

/// Subject that these rules derive from these claims under a good signature.
fn admitted(rules: Vec<TrustRule>, claims: &Value) -> Result<TrustedSubject, Rejection> {
    admitted_in(rules, None, claims)
}

fn admitted_in(
    rules: Vec<TrustRule>,
    org: Option<&str>,
    claims: &Value,
) -> Result<TrustedSubject, Rejection> {
    let jwt = Jwt::parse(&Issuer::get().sign(claims)).unwrap();
    let verified = jwt.verify(Issuer::get().keys()).unwrap();
    let org = org.map(|org| org.parse().unwrap());
    TrustRules::new(rules).unwrap().admit(verified, org, now())
}
