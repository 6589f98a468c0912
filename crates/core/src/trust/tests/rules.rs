//! Subjects that the rules derive from a JWT.

use serde_json::{Value, json};

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

fn matches(all: &[(&str, Expectation)], claims: &Value) -> bool {
    match admitted(vec![expecting(all)], claims) {
        Ok(_) => true,
        Err(rejection) => {
            assert_eq!(rejection, Rejection::NoRule);
            false
        }
    }
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
fn expectations_are_of_their_type() {
    for (expected, value, holds) in [
        (is("10"), json!("10"), true),
        (is("10"), json!(10), false),
        (Expectation::Integer(10), json!(10), true),
        (Expectation::Integer(10), json!("10"), false),
        (Expectation::Integer(10), json!(10.5), false),
        (Expectation::Flag(true), json!(true), true),
        (Expectation::Flag(true), json!(false), false),
        (Expectation::Flag(true), json!("true"), false),
        (Expectation::Flag(true), json!(1), false),
        (Expectation::Flag(false), json!(false), true),
        (is("a"), json!(["b", "a"]), true),
        (is("a"), json!(["b"]), false),
        (is("a"), json!([]), false),
        (is("a"), json!([["a"]]), false),
        (is("a"), json!({"a": "a"}), false),
        (Expectation::Integer(7), json!([6, 7]), true),
        (is("mcp-*"), json!(["x", "mcp-admins"]), true),
        (is("mcp-*"), json!("mcp-"), true),
        (is("mcp-*"), json!("xmcp-a"), false),
        (is("refs/heads/*"), json!("refs/heads/main"), true),
        (is("refs/heads/*"), json!("refs/tags/main"), false),
        (is("Main"), json!("main"), false),
        (is("main"), json!("main "), false),
        (is("é"), json!("e\u{301}"), false),
    ] {
        let found = matches(&[("x", expected.clone())], &with(&json!({"x": value})));

        assert_eq!(found, holds, "{expected} {value}");
    }
    assert!(!matches(&[("x", Expectation::Flag(false))], &claims()), "absent is not false");
}

#[test]
fn a_star_in_a_token_matches_nothing_but_itself() {
    assert!(!matches(&[("x", is("abc"))], &with(&json!({"x": "*"}))));
    assert!(!matches(&[("x", is("abc"))], &with(&json!({"x": "a*"}))));
}

#[test]
fn all_expectations_have_to_hold() {
    let all = [("repository_id", is("821093847")), ("ref", is("refs/heads/main"))];

    assert!(matches(&all, &with(&json!({"ref": "refs/heads/main"}))));
    assert!(!matches(&all, &with(&json!({"ref": "refs/heads/dev"}))));
    assert!(!matches(&all, &claims()));
}

#[test]
fn a_claim_inside_another_is_named_by_a_pointer() {
    let cluster = json!({"kubernetes.io": {"namespace": "ci", "serviceaccount": {"uid": "u-1"}}});
    let all =
        [("/kubernetes.io/namespace", is("ci")), ("/kubernetes.io/serviceaccount/uid", is("u-1"))];

    assert!(matches(&all, &with(&cluster)));
    assert!(!matches(&[("/kubernetes.io/namespace", is("prod"))], &with(&cluster)));
    assert!(!matches(&all, &with(&json!({"/kubernetes.io/namespace": "ci"}))));
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
fn a_user_s_display_name_is_the_best_there_is() {
    let long = "ß".repeat(250);
    for (claims, name) in [
        (json!({"preferred_username": "ada", "email": "a@b"}), "ada"),
        (json!({"email": "a@b"}), "a@b"),
        (json!({"name": "", "email": "a@b"}), "a@b"),
        (json!({"name": "Ada\u{1b}[31m"}), "repo:acme/api"),
        (json!({"name": 7}), "repo:acme/api"),
        (json!({"name": long}), &"ß".repeat(200)),
    ] {
        let subject = admitted(vec![user_rule("sub", &[("*", Role::Member)])], &with(&claims));

        let Subject::User(user) = subject.unwrap().who else { panic!("a user") };
        assert_eq!(user.name, name);
    }
}

#[test]
fn a_claim_that_names_nobody_is_refused() {
    for value in [
        json!(null),
        json!(""),
        json!(" "),
        json!("ada "),
        json!(7),
        json!(["ada"]),
        json!("a\u{0}b"),
        json!("x".repeat(256)),
    ] {
        let rule = user_rule("uid", &[("*", Role::Member)]);
        let rejection = admitted(vec![rule], &with(&json!({"uid": value}))).unwrap_err();

        assert!(matches!(rejection, Rejection::NoUser(_)), "{value}: {rejection}");
    }
}

#[test]
fn the_most_exact_entry_gives_the_role() {
    let entries = [
        ("mcp-admins", Role::Admin),
        ("mcp-audit*", Role::Auditor),
        ("mcp-*", Role::Member),
        ("*", Role::Auditor),
    ];
    for (groups, role) in [
        (json!(["mcp-admins", "mcp-users", "staff"]), Role::Admin),
        (json!("mcp-admins"), Role::Admin),
        (json!(["mcp-users", "mcp-auditors"]), Role::Auditor),
        (json!(["mcp-users"]), Role::Member),
        (json!(["staff"]), Role::Auditor),
        (json!([]), Role::Auditor),
        (json!(null), Role::Auditor),
        (json!([7, {"mcp-admins": 1}]), Role::Auditor),
    ] {
        let claims = with(&json!({"groups": groups}));

        let subject = admitted(vec![user_rule("sub", &entries)], &claims).unwrap();

        let Subject::User(user) = subject.who else { panic!("a user") };
        assert_eq!(user.role, role, "{groups}");
    }
}

#[test]
fn equally_exact_entries_with_different_roles_give_none() {
    let entries = [("auditors", Role::Auditor), ("admins", Role::Admin), ("root", Role::Admin)];
    let role = |groups: Value| {
        let rule = user_rule("sub", &entries);
        admitted(vec![rule], &with(&json!({"groups": groups}))).map(|_| ())
    };

    assert!(matches!(role(json!(["admins", "auditors"])), Err(Rejection::SeveralRoles(_))));
    assert!(role(json!(["admins", "root"])).is_ok(), "they agree");
    assert!(matches!(role(json!(["others"])), Err(Rejection::NoRole(_))));
    assert!(matches!(role(json!(null)), Err(Rejection::NoRole(_))));
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
    for jti in [json!(null), json!(""), json!(7), json!("x".repeat(256))] {
        let rejection = admitted(once(), &with(&json!({"jti": jti}))).unwrap_err();

        assert_eq!(rejection, Rejection::NoTokenId, "{jti}");
    }
}

#[test]
fn tokens_made_by_exchange_live_from_a_minute_to_twelve_hours() {
    for (seconds, fits) in [(59, false), (60, true), (43_200, true), (43_201, false), (-1, false)] {
        assert_eq!(MaxTtl::new(seconds).is_ok(), fits, "{seconds}");
    }
    assert_eq!(MaxTtl::default_of(PrincipalKind::Service).seconds(), 900);
    assert_eq!(MaxTtl::default_of(PrincipalKind::User).seconds(), 43_200);
}
