//! Reports of each rule on a JWT, check by check, for the operator.

use std::sync::Arc;

use crate::{
    clock::Timestamp,
    trust::{CredentialCheck, Jwt, JwtType, Subject, TrustRule, TrustRules},
};

/// Report of one rule on some claims.
#[derive(Debug, Clone)]
pub struct RuleReport {
    pub rule: Arc<TrustRule>,
    /// Everything that speaks against it; nothing if the rule matches.
    pub faults: Vec<Fault>,
    /// Subject that the rule derives from the claims, if it can.
    pub who: Option<Subject>,
}

/// Something that speaks against a JWT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub check: CredentialCheck,
    /// The expectation that is not met. Quotes the rule, never the claims.
    pub text: String,
}

impl TrustRules {
    /// Reports of every rule on this JWT, whatever its signature. A rule for another issuer
    /// reports only that.
    #[must_use]
    pub fn explain(&self, jwt: &Jwt, now: Timestamp) -> Vec<RuleReport> {
        self.iter().map(|rule| rule.explain(jwt, now)).collect()
    }
}

impl TrustRule {
    fn explain(self: &Arc<Self>, jwt: &Jwt, now: Timestamp) -> RuleReport {
        let claims = jwt.unverified();
        let rule = Arc::clone(self);
        if claims.issuer() != self.issuer {
            let text = format!("`iss` is not \"{}\"", self.issuer);
            let faults = vec![Fault { check: CredentialCheck::Issuer, text }];
            return RuleReport { rule, faults, who: None };
        }
        let (subject, refused) = match claims.check_times(now) {
            Ok(end) => match self.subject(claims, end) {
                Ok(subject) => (Some(subject.who), None),
                Err(rejection) => (None, Some(rejection)),
            },
            Err(rejection) => (self.who(claims).ok(), Some(rejection)),
        };
        let purpose = claims.check_purpose().err();
        let told = refused.into_iter().chain(purpose);
        let mut faults: Vec<Fault> = told
            .map(|rejection| Fault { check: rejection.check(), text: rejection.to_string() })
            .collect();
        faults.extend(self.other_kind(jwt.kind()));
        if !claims.is_for(&self.audience) {
            let text = format!("`aud` does not hold \"{}\"", self.audience);
            faults.push(Fault { check: CredentialCheck::Audience, text });
        }
        faults.extend(self.expects.unmet(claims).map(|(claim, expected)| {
            let there = if claims.at(claim).is_some() { "is not" } else { "is missing; expected" };
            Fault { check: CredentialCheck::Trust, text: format!("`{claim}` {there} {expected}") }
        }));
        RuleReport { rule, faults, who: subject }
    }

    /// The fault of a JWT of a kind that the rule is not for.
    fn other_kind(&self, kind: JwtType) -> Option<Fault> {
        let text = match (kind, self.id_jag) {
            (JwtType::Identity, false) | (JwtType::IdJag, true) => return None,
            (JwtType::IdJag, false) => "it is an ID-JAG, and the rule has no `id_jag = true`",
            (JwtType::Identity | JwtType::ClientAuthentication, true) => {
                "the rule is for ID-JAGs, and `typ` is not `oauth-id-jag+jwt`"
            }
            (JwtType::ClientAuthentication, false) => "`typ` says that it authenticates a client",
        };
        Some(Fault { check: CredentialCheck::Trust, text: text.to_owned() })
    }
}
