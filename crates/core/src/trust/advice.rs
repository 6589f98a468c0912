//! Advice on trust rules: settings that are allowed and yet rarely meant.

use crate::{
    principal::Role,
    trust::{
        expectation::{Expectation, Pattern},
        rule::{RuleSubject, TrustRule},
    },
};

/// A CI system that signs for everybody who has an account there.
struct PublicIssuer {
    name: &'static str,
    /// Its issuer; that of a tenant has more path.
    issuer: &'static str,
    /// Suffix of the issuers of self-hosted installations, if there is a common one.
    self_hosted: Option<&'static str>,
    /// Claims that hold numbers which are never given twice.
    ids: &'static [&'static str],
    /// Claims that hold names, which are free for others after a rename or a deletion.
    names: &'static [&'static str],
    /// The audience that tokens have unless another one is asked for, or the beginning of its path.
    default_audience: &'static str,
}

const PUBLIC: [PublicIssuer; 2] = [
    PublicIssuer {
        name: "GitHub",
        issuer: "https://token.actions.githubusercontent.com",
        self_hosted: Some("/_services/token"),
        ids: &["repository_id", "repository_owner_id", "enterprise_id"],
        names: &["repository", "repository_owner", "sub", "job_workflow_ref", "workflow_ref"],
        default_audience: "https://github.com",
    },
    PublicIssuer {
        name: "GitLab",
        issuer: "https://gitlab.com",
        self_hosted: None,
        ids: &["project_id", "namespace_id"],
        names: &["project_path", "namespace_path", "sub", "ci_config_ref_uri"],
        default_audience: "https://gitlab.com",
    },
];

/// Claims of a person that can pass to another person.
const PASSED_ON: [&str; 6] = ["email", "preferred_username", "upn", "unique_name", "name", "login"];

impl PublicIssuer {
    fn signs_as(&self, issuer: &str) -> bool {
        is_or_below(issuer, self.issuer)
            || self.self_hosted.is_some_and(|end| issuer.ends_with(end))
    }
}

/// Returns true if `url` is `base`, or has more path.
fn is_or_below(url: &str, base: &str) -> bool {
    url.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl TrustRule {
    /// Warnings for the operator, one sentence each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(public) = PUBLIC.iter().find(|public| public.signs_as(&self.issuer)) {
            found.extend(self.bound_by(public));
            if is_or_below(&self.audience, public.default_audience) {
                found.push(format!(
                    "`audience` looks like the one {} puts in by itself: name this gateway, so \
                     that tokens for others are of no use here",
                    public.name
                ));
            }
            if !self.single_use {
                found.push(format!(
                    "`single_use` is off: a token that leaks from a {} job can be exchanged again \
                     until it expires",
                    public.name
                ));
            }
        }
        if self.audience == self.issuer {
            found.push("`audience` is the issuer itself: name this gateway".to_owned());
        }
        found.extend(self.says_nobody());
        found.extend(self.open_ends());
        found.extend(self.users());
        found
    }

    /// Warning unless the rule binds something that is the operator's alone, for good.
    fn bound_by(&self, public: &PublicIssuer) -> Option<String> {
        let bound = |claims: &[&str]| {
            self.expects.iter().any(|(claim, _)| claims.contains(&claim.as_str()))
        };
        let immutable_subject = self.expects.iter().any(|(claim, expected)| {
            claim.as_str() == "sub" && text_of(expected).is_some_and(holds_immutable_id)
        });
        if bound(public.ids) || immutable_subject {
            return None;
        }
        let ids = public.ids.join("` or `");
        Some(if bound(public.names) {
            format!(
                "it binds names only, which others can take after a rename or a deletion: also \
                 match `{ids}`"
            )
        } else {
            format!("it binds nobody: any {} account could use it; match `{ids}`", public.name)
        })
    }

    /// A flag holds for many accounts; it admits users, but identifies no single service account.
    fn says_nobody(&self) -> Option<String> {
        let is_flag = |expected: &Expectation| matches!(expected, Expectation::Flag(_));
        let fixed = matches!(self.who, RuleSubject::Fixed(_));
        (fixed && self.expects.iter().all(|(_, expected)| is_flag(expected))).then(|| {
            "it expects only what is true or false, so that many are the same principal: match \
             something that names one"
                .to_owned()
        })
    }

    /// `acme*` also matches `acme-evil`.
    fn open_ends(&self) -> Vec<String> {
        let open = |expected: &Expectation| match expected {
            Expectation::Text(Pattern::Prefix(start)) => {
                start.chars().last().is_some_and(char::is_alphanumeric)
            }
            Expectation::Text(Pattern::Exact(_) | Pattern::Any)
            | Expectation::Flag(_)
            | Expectation::Integer(_) => false,
        };
        let open = self.expects.iter().filter(|(_, expected)| open(expected));
        open.map(|(claim, expected)| {
            format!(
                "`{claim} = {expected}` also matches longer names: end it with a separator before \
                 the `*`"
            )
        })
        .collect()
    }

    fn users(&self) -> Vec<String> {
        let RuleSubject::User { from, roles } = &self.who else { return Vec::new() };
        let mut found = Vec::new();
        if PASSED_ON.contains(&from.as_str()) {
            found.push(format!(
                "`user_from = \"{from}\"` names users by something that can pass to another \
                 person: use `sub`"
            ));
        }
        let verified = self.expects.iter().any(|(claim, expected)| {
            claim.as_str() == "email_verified" && *expected == Expectation::Flag(true)
        });
        if from.as_str() == "email" && !verified {
            found.push("it trusts `email` without `email_verified = true` in `match`".to_owned());
        }
        if roles.entries().contains(&(Pattern::Any, Role::Admin)) {
            found.push("`\"*\" = \"admin\"` makes everybody an admin".to_owned());
        }
        found
    }
}

fn text_of(expected: &Expectation) -> Option<&str> {
    match expected {
        Expectation::Text(Pattern::Exact(text) | Pattern::Prefix(text)) => Some(text),
        Expectation::Text(Pattern::Any) | Expectation::Flag(_) | Expectation::Integer(_) => None,
    }
}

/// `repo:octocat@123456/my-repo@456789:…`, where owner and repository carry their numbers.
fn holds_immutable_id(subject: &str) -> bool {
    let mut parts = subject.split(['/', ':']).filter_map(|part| part.rsplit_once('@'));
    parts.any(|(_, id)| !id.is_empty() && id.bytes().all(|digit| digit.is_ascii_digit()))
}
