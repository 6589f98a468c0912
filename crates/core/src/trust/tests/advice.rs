//! Warnings for the operator.

use super::{expects, is, rule};
use crate::{
    principal::Role,
    trust::{Expectation, RoleMap, RuleSubject, TrustRule},
};

const GITHUB: &str = "https://token.actions.githubusercontent.com";

fn github(all: &[(&str, Expectation)]) -> TrustRule {
    TrustRule {
        issuer: GITHUB.to_owned(),
        expects: expects(all),
        single_use: true,
        ..rule("github")
    }
}

fn warned(rule: &TrustRule, of: &str) -> bool {
    rule.warnings().iter().any(|warning| warning.contains(of))
}

#[test]
fn a_rule_by_numbers_that_never_change_needs_no_warning() {
    for all in [
        vec![("repository_id", is("821093847"))],
        vec![("repository_owner_id", is("5544123")), ("repository", is("acme/api"))],
        vec![("sub", is("repo:octocat@123456/my-repo@456789:ref:refs/heads/main"))],
        vec![("sub", is("repo:octocat@123456/*"))],
    ] {
        assert_eq!(github(&all).warnings(), Vec::<String>::new());
    }
    assert_eq!(rule("other issuer").warnings(), Vec::<String>::new());
}

#[test]
fn a_github_rule_that_binds_only_names_is_warned_of() {
    for all in [
        vec![("repository", is("acme/api"))],
        vec![("repository_owner", is("acme")), ("ref", is("refs/heads/main"))],
        vec![("sub", is("repo:acme/api:ref:refs/heads/main"))],
        vec![("job_workflow_ref", is("acme/api/.github/workflows/x.yml@refs/heads/main"))],
    ] {
        assert!(warned(&github(&all), "binds names only"), "{all:?}");
    }
    let tenant = TrustRule { issuer: format!("{GITHUB}/acme"), ..github(&[("sub", is("x"))]) };
    assert!(warned(&tenant, "binds names only"));
    let own = "https://github.acme.example/_services/token".to_owned();
    let own = TrustRule { issuer: own, ..github(&[("repository", is("acme/api"))]) };
    assert!(warned(&own, "binds names only"));
    let look_alike = TrustRule { issuer: format!("{GITHUB}.example"), ..tenant };
    assert!(look_alike.warnings().is_empty());
}

#[test]
fn a_github_rule_that_binds_no_repository_is_warned_of() {
    let open = github(&[("ref", is("refs/heads/main"))]);

    assert!(warned(&open, "any GitHub account"));
}

#[test]
fn gitlab_is_watched_as_well() {
    let issuer = "https://gitlab.com".to_owned();
    let named = TrustRule { issuer: issuer.clone(), ..github(&[("project_path", is("a/b"))]) };
    let numbered = TrustRule { issuer, ..github(&[("project_id", is("42"))]) };

    assert!(warned(&named, "binds names only"));
    assert!(!warned(&numbered, "binds"));
}

#[test]
fn other_traps_are_named() {
    let id = [("repository_id", is("1"))];
    let reused = TrustRule { single_use: false, ..github(&id) };
    let default = TrustRule { audience: "https://github.com/acme".to_owned(), ..github(&id) };
    let own = TrustRule { audience: rule("x").issuer, ..rule("x") };
    let open = TrustRule { expects: expects(&[("team", is("acme*"))]), ..rule("x") };
    let flags =
        TrustRule { expects: expects(&[("email_verified", Expectation::Flag(true))]), ..rule("x") };
    let closed = TrustRule { expects: expects(&[("team", is("acme-*"))]), ..rule("x") };
    let similar = TrustRule { audience: "https://github.community".to_owned(), ..github(&id) };

    assert!(!warned(&similar, "audience"));
    assert!(warned(&reused, "single_use"));
    assert!(warned(&default, "audience"));
    assert!(warned(&own, "issuer itself"));
    assert!(warned(&flags, "many are the same principal"));
    assert!(warned(&open, "longer names"));
    assert!(!warned(&closed, "longer names"));
}

#[test]
fn users_by_names_that_pass_on_and_admins_by_default_are_warned_of() {
    let roles =
        |role| RoleMap::new("groups".parse().unwrap(), vec![("*".parse().unwrap(), role)]).unwrap();
    let by =
        |claim: &str, role| RuleSubject::User { from: claim.parse().unwrap(), roles: roles(role) };
    let email = TrustRule { who: by("email", Role::Member), ..rule("x") };
    let verified = TrustRule {
        expects: expects(&[("email_verified", Expectation::Flag(true))]),
        ..email.clone()
    };
    let admins = TrustRule { who: by("sub", Role::Admin), ..rule("x") };
    let members = TrustRule { who: by("sub", Role::Member), ..rule("x") };

    assert!(warned(&email, "another person") && warned(&email, "email_verified"));
    assert!(warned(&verified, "another person") && !warned(&verified, "email_verified"));
    assert!(warned(&admins, "everybody an admin"));
    assert!(members.warnings().is_empty());
}
