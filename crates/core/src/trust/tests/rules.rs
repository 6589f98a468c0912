//! Subjects that the rules derive from a JWT.

use serde_json::json;

use super::{
    ISSUER, NOW, ORG, OTHER_ORG, OTHER_SERVICE, SERVICE, admitted, admitted_in, claims, expects,
    is, rule, with,
};
use crate::{
    clock::Timestamp,
    id::PrincipalKind,
    principal::Role,
    trust::{
        ClaimPath, CredentialCheck, Expectation, Expectations, MaxTtl, Pattern, PatternError,
        Rejection, RoleMap, RoleMapError, RuleSubject, Subject, TrustRule, TrustRules,
        TrustRulesError,
    },
};

fn expecting(all: &[(&str, Expectation)]) -> TrustRule {
    TrustRule { expects: expects(all), ..rule("a") }
}

fn roles(entries: &[(&str, Role)]) -> RoleMap {
    let entries = entries.iter().map(|(value, role)| (value.parse().unwrap(), *role)).collect();
    RoleMap::new("groups".parse().unwrap(), entries).unwrap()
}

fn user_rule(from: &str, entries: &[(&str, Role)]) -> TrustRule {
    TrustRule {
        who: RuleSubject::User { from: from.parse().unwrap(), roles: roles(entries) },
        ..rule("a")
    }
}

#[test]
fn a_matching_rule_names_its_principal() {
    let rule = TrustRule { delegation: vec![OTHER_SERVICE.parse().unwrap()], ..rule("deploys") };

    let subject = admitted(vec![rule], &claims()).unwrap();

    assert_eq!(subject.who, Subject::Fixed(SERVICE.parse().unwrap()));
    assert_eq!((subject.rule.name.as_str(), subject.org()), ("deploys", ORG.parse().unwrap()));
    assert_eq!(subject.max_ttl_seconds(), 900);
    assert_eq!(subject.expires_at, Timestamp::default().plus_seconds(NOW + 300));
    assert_eq!(subject.external_subject.as_deref(), Some("repo:acme/api"));
    assert_eq!(subject.single_use, None);
    assert_eq!(subject.rule.delegation, [OTHER_SERVICE.parse().unwrap()]);
    assert!(subject.rule.can_be(SERVICE.parse().unwrap()));
    assert!(!subject.rule.can_be(OTHER_SERVICE.parse().unwrap()));
}

#[test]
fn patterns_that_say_nothing_or_too_much_are_refused() {
    assert!(matches!("a*b".parse::<Pattern>(), Err(PatternError::Star(_))));
    assert!(matches!("**".parse::<Pattern>(), Err(PatternError::Star(_))));
    assert_eq!("".parse::<Pattern>(), Err(PatternError::Empty));
    assert_eq!(Expectation::text("*"), Err(PatternError::Anything));
    assert_eq!(Expectations::new(Vec::new()), None);
    for text in ["", "/", "a\u{0}", &"x".repeat(201)] {
        assert!(text.parse::<ClaimPath>().is_err(), "{text}");
    }
}

#[test]
fn exactly_one_rule_must_match() {
    let twin = TrustRule { name: "b".to_owned(), ..rule("a") };
    let none = expecting(&[("repository_id", is("1"))]);

    assert_eq!(admitted(vec![none], &claims()).unwrap_err(), Rejection::NoRule);
    let several = admitted(vec![rule("a"), twin], &claims()).unwrap_err();
    assert_eq!(several, Rejection::SeveralRules(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(several.check(), CredentialCheck::Trust);
}

#[test]
fn a_rule_for_another_audience_is_none_for_this_token() {
    let other = TrustRule { audience: "https://other.example".to_owned(), ..rule("other") };

    let subject = admitted(vec![other, rule("a")], &claims()).unwrap();

    assert_eq!(subject.rule.name, "a");
}

#[test]
fn an_org_that_is_named_chooses_among_the_rules() {
    let rules = || vec![rule("a"), TrustRule { org: OTHER_ORG.parse().unwrap(), ..rule("b") }];

    let of = |org: Option<&str>| admitted_in(rules(), org, &claims());

    assert_eq!(of(Some(ORG)).unwrap().rule.name, "a");
    assert_eq!(of(Some(OTHER_ORG)).unwrap().rule.name, "b");
    assert!(matches!(of(None), Err(Rejection::SeveralRules(_))));
    let nowhere = of(Some("org_01M754BKTK9TG1TCT7SPYHDJTD"));
    assert_eq!(nowhere.unwrap_err(), Rejection::UnknownIssuer);
}

#[test]
fn an_issuer_is_compared_byte_by_byte() {
    let rules = TrustRules::new(vec![rule("a")]).unwrap();
    let slash = format!("{ISSUER}/");

    assert!(rules.trusts(ISSUER, None).is_ok());
    for other in
        [slash.as_str(), "HTTPS://login.acme.example", "https://login.acme.example:443", ""]
    {
        assert_eq!(rules.trusts(other, None), Err(Rejection::UnknownIssuer), "{other}");
    }
}

#[test]
fn two_rules_of_one_name_are_refused() {
    let error = TrustRules::new(vec![rule("a"), rule("a")]).unwrap_err();

    assert_eq!(error, TrustRulesError::Twice("a".to_owned()));
}

#[test]
fn a_user_is_named_by_the_claim_of_the_rule() {
    let rule = user_rule("sub", &[("*", Role::Member)]);
    let claims = with(&json!({"sub": "00u1", "name": "Ada Okafor", "email": "ada@acme.example"}));

    let subject = admitted(vec![rule], &claims).unwrap();

    let Subject::User(user) = subject.who else { panic!("a user") };
    assert_eq!((user.issuer.as_str(), user.claim.as_str()), (ISSUER, "sub"));
    assert_eq!((user.subject.as_str(), user.name.as_str()), ("00u1", "Ada Okafor"));
    assert_eq!(user.role, Role::Member);
}

#[test]
fn a_role_map_is_for_users_and_never_empty() {
    let map = |entries| RoleMap::new("groups".parse().unwrap(), entries).unwrap_err();
    let service = Role::Service(crate::principal::ScopeSet::ALL);

    assert_eq!(map(Vec::new()), RoleMapError::Empty);
    assert_eq!(map(vec![(Pattern::Any, service)]), RoleMapError::Service);
}

#[test]
fn single_use_needs_something_to_remember() {
    let once = || vec![TrustRule { single_use: true, ..rule("a") }];

    let used = admitted(once(), &claims()).unwrap().single_use.unwrap();

    assert_eq!((used.issuer.as_str(), used.jti.as_str()), (ISSUER, "3f0c"));
    assert_eq!(used.until, Timestamp::default().plus_seconds(NOW + 360));
}

#[test]
fn tokens_made_by_exchange_live_from_a_minute_to_twelve_hours() {
    for (seconds, fits) in [(59, false), (60, true), (43_200, true), (43_201, false), (-1, false)] {
        assert_eq!(MaxTtl::new(seconds).is_ok(), fits, "{seconds}");
    }
    assert_eq!(MaxTtl::default_of(PrincipalKind::Service).seconds(), 900);
    assert_eq!(MaxTtl::default_of(PrincipalKind::User).seconds(), 43_200);
}
