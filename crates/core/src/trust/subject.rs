//! Subjects that JWTs speak for.

use std::sync::Arc;

use crate::{
    clock::Timestamp,
    id::{OrgId, PrincipalId},
    principal::{Role, ScopeSet},
    trust::{
        Claims, Login, Rejection, RuleSubject, TrustRule,
        claims::{LEEWAY_SECONDS, as_name},
    },
};

/// Characters of a principal's name.
const MAX_NAME: usize = 200;

/// Subject that a verified JWT speaks for by exactly one rule. Whether it was used before, and
/// whether the principal exists and is enabled, only the store can tell.
#[derive(Debug, Clone)]
pub struct TrustedSubject {
    /// The rule. Its name is recorded; callers are never told.
    pub rule: Arc<TrustRule>,
    pub who: Subject,
    /// Further statements of the issuer, as policies see them.
    pub login: Login,
    /// `sub`, for the record, if it is a name.
    pub external_subject: Option<String>,
    /// When the JWT itself ends.
    pub expires_at: Timestamp,
    /// Record that prevents a second exchange, if the rule is single-use.
    pub single_use: Option<SingleUse>,
    /// Scopes that the JWT itself leaves; all of them unless it is an ID-JAG.
    pub asserted: ScopeSet,
    /// The resources that an ID-JAG is for; anything that its client may use when empty.
    pub resources: Vec<String>,
}

/// A principal that is there already, or a user who may be new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The principal that the rule names.
    Fixed(PrincipalId),
    /// A user of the issuer, created on first sight.
    User(TrustedUser),
}

/// A user as the issuer tells it. Issuer, claim and subject together are the identity; name and
/// role may be others tomorrow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedUser {
    /// The issuer, exactly.
    pub issuer: String,
    /// The claim that `subject` was taken from: one issuer's `sub` and `email` are two name spaces.
    pub claim: String,
    /// The claim's value.
    pub subject: String,
    /// A name for people: at most 200 characters, none of them a control character. Never trusted.
    pub name: String,
    pub role: Role,
}

/// A JWT that may be exchanged once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SingleUse {
    /// The issuer; a `jti` is unique within it.
    pub issuer: String,
    pub jti: String,
    /// Until when it has to be remembered; later it is refused as expired anyway.
    pub until: Timestamp,
}

impl SingleUse {
    /// The record of these claims, which end at `expires_at`. Fails if there is no `jti`.
    pub(crate) fn of(
        issuer: &str,
        claims: &Claims,
        expires_at: Timestamp,
    ) -> Result<Self, Rejection> {
        Ok(Self {
            issuer: issuer.to_owned(),
            jti: claims.name("jti").ok_or(Rejection::NoTokenId)?.to_owned(),
            until: expires_at.plus_seconds(LEEWAY_SECONDS),
        })
    }
}

impl TrustedSubject {
    /// The org of the subject.
    #[must_use]
    pub fn org(&self) -> OrgId {
        self.rule.org
    }

    /// Maximum scopes of a token for it.
    #[must_use]
    pub fn scopes(&self) -> ScopeSet {
        self.rule.scopes.intersection(self.asserted)
    }

    /// Maximum lifetime of a token for it, in seconds.
    #[must_use]
    pub fn max_ttl_seconds(&self) -> i64 {
        self.rule.max_ttl.seconds()
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
            asserted: ScopeSet::ALL,
            resources: Vec::new(),
            rule: Arc::clone(self),
        })
    }

    /// Derives the subject of these claims.
    pub(crate) fn who(&self, claims: &Claims) -> Result<Subject, Rejection> {
        match &self.who {
            RuleSubject::Fixed(principal) => Ok(Subject::Fixed(*principal)),
            RuleSubject::User { from, roles } => {
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
        if !self.single_use && !self.id_jag {
            return Ok(None);
        }
        SingleUse::of(&self.issuer, claims, expires_at).map(Some)
    }
}

/// Display name of a user: the first name among the usual claims, or the subject.
fn display_name(claims: &Claims, subject: &str) -> String {
    let usual = ["name", "preferred_username", "email"];
    let name = usual.into_iter().find_map(|claim| claims.name(claim)).unwrap_or(subject);
    name.chars().take(MAX_NAME).collect()
}
