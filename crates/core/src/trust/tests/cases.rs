//! The laws of `trust/cases.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{admitted, assertions, expects, id_jag, id_tokens, rule, with};
use crate::{
    principal::Role,
    trust::{Expectation, Rejection, RoleMap, RuleSubject, Subject, TrustRule, TrustedSubject},
};

#[derive(Deserialize)]
struct Laws {
    law: Vec<Law>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Law {
    says: String,
    #[serde(default)]
    of: JwtKind,
    #[serde(default)]
    rule: RuleEntry,
    /// Claims as JSON, by their outcome.
    cases: BTreeMap<String, Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JwtKind {
    #[default]
    Exchanged,
    IdJag,
    ClientAssertion,
    IdToken,
}

/// The parts of a `[[trust]]` entry that cases are about.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RuleEntry {
    r#match: BTreeMap<String, toml::Value>,
    user_from: Option<String>,
    roles: BTreeMap<String, String>,
    single_use: bool,
}

impl RuleEntry {
    fn rule(&self) -> TrustRule {
        let mut rule = TrustRule { single_use: self.single_use, ..rule("a") };
        let expected = self.r#match.iter().map(|(claim, value)| {
            let expectation = match (value.as_integer(), value.as_bool()) {
                (Some(number), _) => Expectation::Integer(number),
                (None, Some(flag)) => Expectation::Flag(flag),
                (None, None) => Expectation::text(value.as_str().unwrap()).unwrap(),
            };
            (claim.as_str(), expectation)
        });
        let expected: Vec<_> = expected.collect();
        if !expected.is_empty() {
            rule.expects = expects(&expected);
        }
        if let Some(from) = &self.user_from {
            let named = |name: &str| match name {
                "admin" => Role::Admin,
                "auditor" => Role::Auditor,
                _ => Role::Member,
            };
            let roles =
                self.roles.iter().map(|(value, name)| (value.parse().unwrap(), named(name)));
            let roles = RoleMap::new("groups".parse().unwrap(), roles.collect()).unwrap();
            rule.who = RuleSubject::User { from: from.parse().unwrap(), roles };
        }
        rule
    }
}

impl Law {
    fn outcome(&self, changes: &Value) -> String {
        let accepted = |subject: TrustedSubject| match subject.who {
            Subject::User(user) => format!("accepted as {}, {}", user.name, user.role.name()),
            Subject::Fixed(_) => "accepted".to_owned(),
        };
        let outcome = match self.of {
            JwtKind::Exchanged => admitted(vec![self.rule.rule()], &with(changes)).map(accepted),
            JwtKind::IdJag => id_jag::admitted(changes).map(accepted),
            JwtKind::ClientAssertion => assertions::proved(changes).map(|_| "accepted".to_owned()),
            JwtKind::IdToken => id_tokens::admitted(changes).map(|it| accepted(it.subject)),
        };
        let refused = |it: Rejection| format!("refused, {}: {it}", it.check().as_str());
        outcome.unwrap_or_else(refused)
    }
}

#[test]
fn jwts_have_the_outcomes_that_the_laws_say() {
    let Laws { law: laws } = toml::from_str(include_str!("../cases.toml")).unwrap();
    let mut tried = 0;
    for law in &laws {
        for (wanted, claims) in
            law.cases.iter().flat_map(|(it, all)| all.iter().map(move |c| (it, c)))
        {
            let outcome = law.outcome(&serde_json::from_str(claims).unwrap());

            let fits = match wanted.strip_prefix("accepted") {
                Some("") => outcome.starts_with(wanted.as_str()),
                Some(_) => outcome == *wanted,
                None => outcome.starts_with("refused") && outcome.contains(wanted.as_str()),
            };
            assert!(fits, "{}: {claims}: {outcome} instead of {wanted}", law.says);
            tried += 1;
        }
    }
    assert_eq!(tried, 186, "a case is lost, or the number here is old");
}
