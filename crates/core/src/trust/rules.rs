//! The trust rules of an installation, and which of them a JWT falls under.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    clock::Timestamp,
    id::{OrgId, PrincipalId, PrincipalKind},
    principal::ScopeSet,
    trust::{
        ClaimPath, Claims, Expectations, Login, LoginClaims, Rejection, RoleMap, SingleUse,
        Subject, TrustedSubject, TrustedUser, Verified,
        claims::{LEEWAY_SECONDS, as_name},
    },
};

/// The longest a token made by exchange may live.
const MAX_TTL_SECONDS: i64 = 12 * 60 * 60;
/// Characters of a principal's name.
const MAX_NAME: usize = 200;

/// Binds the JWTs of one issuer to a principal: one `[[trust]]` entry.
#[derive(Debug, Clone)]
pub struct TrustRule {
    /// Its name, unique in an installation; recorded in events, never told to callers.
    pub name: String,
    pub org: OrgId,
    /// `iss`, exactly.
    pub issuer: String,
    /// Audience that `aud` has to contain: this gateway.
    pub audience: String,
    pub expects: Expectations,
    pub who: Who,
    /// Claims of its subjects that policies see.
    pub login: LoginClaims,
    /// Maximum scopes of its tokens.
    pub scopes: ScopeSet,
    pub max_ttl: MaxTtl,
    /// True if a JWT can be exchanged only once; needs a `jti`.
    pub single_use: bool,
    /// The principals that may act on behalf of its subjects.
    pub delegation: Vec<PrincipalId>,
}

/// Kind of subject that a rule derives from a JWT.
#[derive(Debug, Clone)]
pub enum Who {
    Fixed(PrincipalId),
    /// A user, named by a claim.
    User {
        from: ClaimPath,
        roles: RoleMap,
    },
}

/// Maximum lifetime of a token made by exchange: 60 seconds to 12 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxTtl(i64);

/// The time is out of bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a token made by exchange lives from 60 seconds to 12 hours")]
pub struct TtlError;

impl MaxTtl {
    /// A time in seconds.
    pub fn new(seconds: i64) -> Result<Self, TtlError> {
        if (60..=MAX_TTL_SECONDS).contains(&seconds) { Ok(Self(seconds)) } else { Err(TtlError) }
    }

    /// Default of a rule that sets none: 15 minutes for a service account, 12 hours for a user.
    #[must_use]
    pub const fn default_of(kind: PrincipalKind) -> Self {
        match kind {
            PrincipalKind::Service => Self(15 * 60),
            PrincipalKind::User => Self(MAX_TTL_SECONDS),
        }
    }

    /// The time in seconds.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0
    }
}

/// The rules contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustRulesError {
    #[error("there are two trust rules `{0}`; names are unique")]
    Twice(String),
}

/// All trust rules, by issuer.
#[derive(Debug, Clone, Default)]
pub struct TrustRules {
    by_issuer: BTreeMap<String, Vec<Arc<TrustRule>>>,
}

impl TrustRules {
    /// Puts rules together. Rejects two of one name.
    pub fn new(rules: Vec<TrustRule>) -> Result<Self, TrustRulesError> {
        let mut by_issuer: BTreeMap<String, Vec<Arc<TrustRule>>> = BTreeMap::new();
        let mut names = Vec::new();
        for rule in rules {
            if names.contains(&rule.name) {
                return Err(TrustRulesError::Twice(rule.name));
            }
            names.push(rule.name.clone());
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
    pub fn named(&self, org: OrgId, name: &str) -> Option<&Arc<TrustRule>> {
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
    /// the JWT is refused.
    pub fn admit(
        &self,
        verified: Verified<'_>,
        org: Option<OrgId>,
        now: Timestamp,
    ) -> Result<TrustedSubject, Rejection> {
        let claims = verified.claims();
        self.trusts(claims.issuer(), org)?;
        let expires_at = claims.check_times(now)?;
        let meant = self.of(claims.issuer(), org).filter(|rule| claims.is_for(&rule.audience));
        let meant: Vec<_> = meant.collect();
        if meant.is_empty() {
            return Err(Rejection::WrongAudience);
        }
        claims.check_purpose()?;
        let matching: Vec<_> = meant.into_iter().filter(|rule| rule.expects.hold(claims)).collect();
        match matching.as_slice() {
            [] => Err(Rejection::NoRule),
            [rule] => rule.subject(claims, expires_at),
            several => {
                Err(Rejection::SeveralRules(several.iter().map(|rule| rule.name.clone()).collect()))
            }
        }
    }
}

impl TrustRule {
    /// Derives the subject of claims that meet the expectations of this rule.
    pub(crate) fn subject(
        self: &Arc<Self>,
        claims: &Claims,
        expires_at: Timestamp,
    ) -> Result<TrustedSubject, Rejection> {
        Ok(TrustedSubject {
            who: self.who(claims)?,
            login: Login::of(claims, &self.login),
            external_subject: claims.name("sub").map(str::to_owned),
            single_use: self.single_use(claims, expires_at)?,
            expires_at,
            rule: Arc::clone(self),
        })
    }

    /// Returns true if the rule can map a JWT to `principal`.
    #[must_use]
    pub fn can_be(&self, principal: PrincipalId) -> bool {
        match &self.who {
            Who::Fixed(fixed) => *fixed == principal,
            Who::User { .. } => principal.kind() == PrincipalKind::User,
        }
    }

    /// Derives the subject of these claims.
    pub(crate) fn who(&self, claims: &Claims) -> Result<Subject, Rejection> {
        match &self.who {
            Who::Fixed(principal) => Ok(Subject::Fixed(*principal)),
            Who::User { from, roles } => {
                let subject = claims.at(from).and_then(as_name);
                let subject = subject.ok_or_else(|| Rejection::NoUser(from.clone()))?;
                Ok(Subject::User(TrustedUser {
                    issuer: self.issuer.clone(),
                    claim: from.to_string(),
                    subject: subject.to_owned(),
                    name: display_name(claims, subject),
                    role: roles.role(claims)?,
                }))
            }
        }
    }

    fn single_use(
        &self,
        claims: &Claims,
        expires_at: Timestamp,
    ) -> Result<Option<SingleUse>, Rejection> {
        if !self.single_use {
            return Ok(None);
        }
        Ok(Some(SingleUse {
            issuer: self.issuer.clone(),
            jti: claims.name("jti").ok_or(Rejection::NoTokenId)?.to_owned(),
            until: expires_at.plus_seconds(LEEWAY_SECONDS),
        }))
    }
}

/// Display name of a user: the first name among the usual claims, or the subject.
fn display_name(claims: &Claims, subject: &str) -> String {
    let usual = ["name", "preferred_username", "email"];
    let name = usual.into_iter().find_map(|claim| claims.name(claim)).unwrap_or(subject);
    name.chars().take(MAX_NAME).collect()
}
