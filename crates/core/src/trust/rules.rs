//! The trust rules of an installation: which one admits a JWT, and what they leave of a token.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    clock::Timestamp,
    id::OrgId,
    lineage::Lineage,
    principal::ScopeSet,
    trust::{Claims, JwtType, Rejection, RuleSubject, TrustRule, TrustedSubject, Verified},
};

/// The rules contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustRulesError {
    #[error("there are two trust rules `{0}`; names are unique")]
    Twice(String),
    #[error(
        "the trust rules `{0}` and `{1}` admit people kept over SCIM into one org by different issuers or claims, so \
         that one could become the other: say in each which service account pushes its people (`scim_account`)"
    )]
    SharedDirectory(String, String),
}

/// All trust rules, by issuer.
#[derive(Debug, Clone, Default)]
pub struct TrustRules {
    by_issuer: BTreeMap<String, Vec<Arc<TrustRule>>>,
}

impl TrustRules {
    /// Puts rules together. Rejects two of one name, and two that could take each other's people.
    pub fn new(rules: Vec<TrustRule>) -> Result<Self, TrustRulesError> {
        let mut by_issuer: BTreeMap<String, Vec<Arc<TrustRule>>> = BTreeMap::new();
        let mut names = Vec::new();
        for rule in rules {
            if names.contains(&rule.name) {
                return Err(TrustRulesError::Twice(rule.name));
            }
            names.push(rule.name.clone());
            let others = by_issuer.values().flatten();
            if let Some(other) = { others }.find(|other| shares_people(other, &rule)) {
                return Err(TrustRulesError::SharedDirectory(other.name.clone(), rule.name));
            }
            by_issuer.entry(rule.issuer.clone()).or_default().push(Arc::new(rule));
        }
        Ok(Self { by_issuer })
    }

    /// Every rule, by issuer and then in the order they were given.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<TrustRule>> {
        self.by_issuer.values().flatten()
    }

    /// The org's rule of this name.
    #[must_use]
    pub fn find(&self, org: OrgId, name: &str) -> Option<&Arc<TrustRule>> {
        self.iter().find(|rule| rule.name == name && rule.org == org)
    }

    /// The rules for this issuer, of `org` only if one is named.
    pub fn of(&self, issuer: &str, org: Option<OrgId>) -> impl Iterator<Item = &Arc<TrustRule>> {
        let rules = self.by_issuer.get(issuer).into_iter().flatten();
        rules.filter(move |rule| org.is_none_or(|org| rule.org == org))
    }

    /// Fails if no rule is for this issuer, before a key is looked for.
    pub fn trusts(&self, issuer: &str, org: Option<OrgId>) -> Result<(), Rejection> {
        let known = self.of(issuer, org).next();
        known.map(|_| ()).ok_or(Rejection::UnknownIssuer)
    }

    /// Returns the subject that a verified JWT speaks for. Exactly one rule must match, otherwise
    /// the JWT is refused. Rules for ID-JAGs are left aside.
    pub fn admit(
        &self,
        verified: Verified<'_>,
        org: Option<OrgId>,
        now: Timestamp,
    ) -> Result<TrustedSubject, Rejection> {
        let claims = verified.claims_of(JwtType::Identity)?;
        let admitted = self.admitted(claims, org, now, |rule| !rule.id_jag)?;
        admitted.rule.subject(claims, admitted.expires_at)
    }

    /// The one rule that matches the claims, of those that `fits` leaves.
    pub(crate) fn admitted(
        &self,
        claims: &Claims,
        org: Option<OrgId>,
        now: Timestamp,
        fits: impl Fn(&TrustRule) -> bool,
    ) -> Result<Admitted<'_>, Rejection> {
        self.trusts(claims.issuer(), org)?;
        let expires_at = claims.check_times(now)?;
        let mut fitting = self.of(claims.issuer(), org).filter(|rule| fits(rule)).peekable();
        if fitting.peek().is_none() {
            return Err(Rejection::NoRule);
        }
        let mut meant = fitting.filter(|rule| claims.is_for(&rule.audience)).peekable();
        if meant.peek().is_none() {
            return Err(Rejection::WrongAudience);
        }
        claims.check_purpose()?;
        let matching: Vec<_> = meant.filter(|rule| rule.expects.hold(claims)).collect();
        match matching.as_slice() {
            [] => Err(Rejection::NoRule),
            [rule] => Ok(Admitted { rule, expires_at }),
            several => {
                Err(Rejection::SeveralRules(several.iter().map(|rule| rule.name.clone()).collect()))
            }
        }
    }
}

/// Returns true if two rules of an org tell subjects apart in different ways, and one of them takes the people of any
/// service account.
fn shares_people(one: &TrustRule, other: &TrustRule) -> bool {
    let (Some(first), Some(second)) = (one.scim, other.scim) else { return false };
    let named = |rule: &TrustRule| match &rule.who {
        RuleSubject::Fixed(_) => None,
        RuleSubject::User { from, .. } => Some(from.to_string()),
    };
    one.org == other.org
        && (first.account.is_none() || second.account.is_none())
        && (&one.issuer, named(one), first.key) != (&other.issuer, named(other), second.key)
}

/// The rule that admits some claims, and when these end.
pub(crate) struct Admitted<'a> {
    pub(crate) rule: &'a Arc<TrustRule>,
    pub(crate) expires_at: Timestamp,
}

impl Lineage {
    /// The scopes that the trust rules of the whole chain leave at this moment. `None` when one of
    /// them is gone, maps its subjects to others, or no longer lets every actor act.
    #[must_use]
    pub fn bounds(&self, org: OrgId, rules: &TrustRules) -> Option<ScopeSet> {
        for (rule, actor) in &self.delegations {
            if !rules.find(org, rule)?.delegation.contains(actor) {
                return None;
            }
        }
        let mut scopes = ScopeSet::ALL;
        for (rule, principal) in &self.logins {
            let rule = rules.find(org, rule).filter(|rule| rule.can_be(*principal))?;
            scopes = scopes.intersection(rule.scopes);
        }
        Some(scopes)
    }
}
