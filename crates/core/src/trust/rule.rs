//! One trust rule: the JWTs that it is about, and bounds on the tokens made for them.

use crate::{
    id::{OrgId, PrincipalId, PrincipalKind},
    principal::ScopeSet,
    trust::{ClaimPath, Expectations, LoginClaims, RoleMap},
};

/// The longest a token made by exchange may live.
const MAX_TTL_SECONDS: i64 = 12 * 60 * 60;

/// Attribute of a SCIM user that equals the claim by which a trust rule tells people apart (`user_from`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKey {
    /// `externalId`, to the letter.
    ExternalId,
    /// `userName`, with ASCII letters in any case.
    UserName,
}

/// Way in which a trust rule takes people whom an identity provider keeps over SCIM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScimJoin {
    pub key: JoinKey,
    /// Service account whose people it takes; those of any when absent.
    pub account: Option<PrincipalId>,
}

impl ScimJoin {
    /// Returns true if it takes the people that this service account pushed.
    #[must_use]
    pub fn takes(self, pushed_by: PrincipalId) -> bool {
        self.account.is_none_or(|account| account == pushed_by)
    }
}

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
    pub who: RuleSubject,
    /// Claims of its subjects that policies see.
    pub login: LoginClaims,
    /// Maximum scopes of its tokens.
    pub scopes: ScopeSet,
    pub max_ttl: MaxTtl,
    /// True if a JWT can be exchanged only once; needs a `jti`.
    pub single_use: bool,
    /// True if it admits the ID-JAGs of its issuer, and nothing else of it.
    pub id_jag: bool,
    /// Rule by which its subjects are joined to people kept over SCIM, who have to be kept before they log in. Its users come of their first login when absent.
    pub scim: Option<ScimJoin>,
    /// The principals that may act on behalf of its subjects.
    pub delegation: Vec<PrincipalId>,
}

/// Kind of subject that a rule derives from a JWT.
#[derive(Debug, Clone)]
pub enum RuleSubject {
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

impl TrustRule {
    /// Returns true if the rule can map a JWT to `principal`.
    #[must_use]
    pub fn can_be(&self, principal: PrincipalId) -> bool {
        match &self.who {
            RuleSubject::Fixed(fixed) => *fixed == principal,
            RuleSubject::User { .. } => principal.kind() == PrincipalKind::User,
        }
    }
}
