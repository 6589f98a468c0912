//! ID tokens of logins with a browser.

use aws_lc_rs::digest::{SHA256, SHA512, digest};
use serde_json::{Value, json};

use super::{
    ISSUER, NOW, ORG, changed,
    issuer::{Issuer, b64},
    now, rule,
};
use crate::{
    principal::Role,
    secret::Secret,
    trust::{
        Algorithm, IdTokenRequest, IdentifiedPerson, Jwt, Pattern, Rejection, RoleMap, RuleSubject,
        TrustRule, TrustRules,
    },
};

const CLIENT: &str = "gateway-client";
const NONCE: &str = "the-nonce-of-this-login";
const ACCESS: &str = "an-access-token";

/// A rule for people whose audience is the client.
fn people(name: &str) -> TrustRule {
    let roles = RoleMap::new("groups".parse().unwrap(), vec![(Pattern::Any, Role::Member)]);
    TrustRule {
        audience: CLIENT.to_owned(),
        who: RuleSubject::User { from: "sub".parse().unwrap(), roles: roles.unwrap() },
        ..rule(name)
    }
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": CLIENT, "sub": "ana", "nonce": NONCE, "repository_id": "821093847",
        "groups": ["staff"], "iat": NOW, "exp": NOW + 300,
        "auth_time": NOW - 100, "acr": "urn:acme:gold", "amr": ["pwd", "mfa"],
    })
}

fn with(changes: &Value) -> Value {
    changed(claims(), changes)
}

fn admit(
    rules: Vec<TrustRule>,
    jwt: &str,
    max_age: Option<i64>,
) -> Result<IdentifiedPerson, Rejection> {
    let access = Secret::new(ACCESS.to_owned());
    let request = IdTokenRequest {
        issuer: ISSUER,
        client_id: CLIENT,
        nonce: NONCE,
        access_token: &access,
        max_age,
    };
    let jwt = Jwt::parse(jwt)?;
    let verified = jwt.verify(Issuer::get().keys())?;
    TrustRules::new(rules).unwrap().admit_id_token(verified, &request, now())
}

pub(super) fn admitted(changes: &Value) -> Result<IdentifiedPerson, Rejection> {
    admit(vec![people("people")], &Issuer::get().sign(&with(changes)), None)
}

#[test]
fn an_id_token_of_this_login_says_who_logged_in_and_how() {
    let person = admitted(&json!({})).unwrap();

    assert_eq!(person.subject.org(), ORG.parse().unwrap());
    assert_eq!(person.subject.external_subject.as_deref(), Some("ana"));
    assert_eq!(person.acr.as_deref(), Some("urn:acme:gold"));
    assert!(person.amr.contains("mfa") && person.amr.len() == 2);
    assert!(person.subject.login.mfa && person.subject.login.groups.contains("staff"));
    assert_eq!(person.auth_time, now().plus_seconds(-100));
}

#[test]
fn the_hash_of_the_access_token_is_checked_where_there_is_one() {
    let half = |hash: &[u8]| b64(&hash[..hash.len() / 2]);
    let sha256 = half(digest(&SHA256, ACCESS.as_bytes()).as_ref());
    let sha512 = half(digest(&SHA512, ACCESS.as_bytes()).as_ref());

    assert!(admitted(&json!({ "at_hash": sha256 })).is_ok());
    let ed = Issuer::get().sign_with(
        Algorithm::EdDsa,
        &json!({"alg": "EdDSA", "kid": "ed"}),
        &with(&json!({ "at_hash": sha512 })),
    );
    assert!(admit(vec![people("people")], &ed, None).is_ok());
    for wrong in [json!(sha512), json!("x"), json!(1)] {
        let rejected = admitted(&json!({ "at_hash": wrong })).unwrap_err();
        assert!(matches!(rejected, Rejection::OtherLogin(_)), "{wrong}");
    }
}

#[test]
fn a_person_has_to_have_been_asked_as_recently_as_the_login_says() {
    let recent = |changes: &Value, max_age: i64| {
        admit(vec![people("people")], &Issuer::get().sign(&with(changes)), Some(max_age)).is_ok()
    };

    assert!(recent(&json!({}), 100) && recent(&json!({}), 60));
    assert!(!recent(&json!({}), 10));
    assert!(!recent(&json!({ "auth_time": null }), 3_600), "nothing says when");
    let silent = admitted(&json!({ "auth_time": null })).unwrap();
    assert_eq!(silent.auth_time, now(), "as the token was issued");
    let ahead = admitted(&json!({ "auth_time": NOW + 1_000 })).unwrap();
    assert_eq!(ahead.auth_time, now(), "never later than now");
}

#[test]
fn a_rule_for_people_with_this_audience_has_to_match() {
    let jwt = Issuer::get().sign(&claims());
    let service = TrustRule { audience: CLIENT.to_owned(), ..rule("service") };
    let id_jag = TrustRule { id_jag: true, ..people("apps") };
    let elsewhere = TrustRule { audience: "https://gateway.example".to_owned(), ..people("api") };
    for rules in [vec![service], vec![id_jag], vec![elsewhere]] {
        assert_eq!(admit(rules, &jwt, None).unwrap_err(), Rejection::NoRule);
    }
    let twice = admit(vec![people("a"), people("b")], &jwt, None).unwrap_err();
    assert!(matches!(twice, Rejection::SeveralRules(_)));
    assert_eq!(admit(Vec::new(), &jwt, None).unwrap_err(), Rejection::UnknownIssuer);
    let unmatched = Issuer::get().sign(&with(&json!({"repository_id": "1"})));
    assert_eq!(admit(vec![people("people")], &unmatched, None).unwrap_err(), Rejection::NoRule);
}

#[test]
fn a_token_that_is_over_or_unsigned_logs_nobody_in() {
    let over = admitted(&json!({"exp": NOW - 1_000})).unwrap_err();
    assert!(matches!(over, Rejection::Expired(_)));
    let header = b64(br#"{"alg":"none"}"#);
    let unsigned = format!("{header}.{}.", b64(claims().to_string()));
    let rejected = admit(vec![people("people")], &unsigned, None).unwrap_err();
    assert!(matches!(rejected, Rejection::Malformed(_)));
}
