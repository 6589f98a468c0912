//! Who may do what: orgs with plans, principals with roles, scopes.

use std::{fmt, num::NonZeroU32, str::FromStr, sync::Arc};

use serde::{Serialize, Serializer};

use crate::{
    id::{OrgId, PrincipalId, TokenId},
    lineage::Lineage,
    token::CidrList,
};

/// How many requests and invocations an org may make in a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// 60 requests and 10 invocations per minute.
    Free,
    /// 600 requests and 100 invocations per minute.
    Pro,
    /// Two numbers of its own.
    Enterprise {
        /// Requests per minute.
        requests: NonZeroU32,
        /// Invocations per minute.
        invocations: NonZeroU32,
    },
}

impl Plan {
    /// `free`, `pro` or `enterprise`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Pro => "pro",
            Self::Enterprise { .. } => "enterprise",
        }
    }

    /// Requests per minute.
    #[must_use]
    pub const fn requests_per_minute(self) -> u32 {
        match self {
            Self::Free => 60,
            Self::Pro => 600,
            Self::Enterprise { requests, .. } => requests.get(),
        }
    }

    /// Invocations per minute.
    #[must_use]
    pub const fn invocations_per_minute(self) -> u32 {
        match self {
            Self::Free => 10,
            Self::Pro => 100,
            Self::Enterprise { invocations, .. } => invocations.get(),
        }
    }

    /// Reads back a plan from its name and, for `enterprise`, its two numbers.
    #[must_use]
    pub fn from_parts(name: &str, requests: Option<u32>, invocations: Option<u32>) -> Option<Self> {
        match (name, requests, invocations) {
            ("free", None, None) => Some(Self::Free),
            ("pro", None, None) => Some(Self::Pro),
            ("enterprise", Some(requests), Some(invocations)) => Some(Self::Enterprise {
                requests: NonZeroU32::new(requests)?,
                invocations: NonZeroU32::new(invocations)?,
            }),
            _ => None,
        }
    }
}

/// One endpoint permission. Scopes say *which endpoints*; policies say *which calls*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Scope {
    /// Adds reach, not endpoints: others' connections and tokens.
    Admin,
    /// Create and fetch exports.
    AuditExport,
    /// Everybody's events in the org.
    AuditRead,
    /// Invoke tools.
    McpsInvoke,
    /// List and get tools.
    McpsRead,
    /// List, get and simulate policies.
    PoliciesRead,
    /// List and get connections.
    ProvidersRead,
    /// Connect, disconnect and refresh own connections.
    ProvidersWrite,
}

impl Scope {
    /// Every scope, in the order of their names.
    pub const ALL: [Self; 8] = [
        Self::Admin,
        Self::AuditExport,
        Self::AuditRead,
        Self::McpsInvoke,
        Self::McpsRead,
        Self::PoliciesRead,
        Self::ProvidersRead,
        Self::ProvidersWrite,
    ];

    /// The scope's name, such as `mcps:invoke`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::AuditExport => "audit:export",
            Self::AuditRead => "audit:read",
            Self::McpsInvoke => "mcps:invoke",
            Self::McpsRead => "mcps:read",
            Self::PoliciesRead => "policies:read",
            Self::ProvidersRead => "providers:read",
            Self::ProvidersWrite => "providers:write",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no scope")]
pub struct ScopeError(String);

impl FromStr for Scope {
    type Err = ScopeError;
    fn from_str(text: &str) -> Result<Self, ScopeError> {
        let known = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        known.ok_or_else(|| ScopeError(text.chars().take(64).collect()))
    }
}

/// A set of scopes; written as their names, sorted, with a space between (RFC 6749 §3.3).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ScopeSet(u8);

impl ScopeSet {
    /// No scope at all.
    pub const EMPTY: Self = Self(0);
    /// Every scope there is.
    pub const ALL: Self = Self(u8::MAX);

    /// This set and `scope`.
    #[must_use]
    pub const fn with(self, scope: Scope) -> Self {
        Self(self.0 | (1 << scope as u8))
    }

    /// This set without `scope`.
    #[must_use]
    pub const fn without(self, scope: Scope) -> Self {
        Self(self.0 & !(1 << scope as u8))
    }

    /// Whether `scope` is in the set.
    #[must_use]
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// What is in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is in this set and not in `other`.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether every scope of this set is in `other`.
    #[must_use]
    pub const fn is_subset_of(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// The scopes in the set, in the order of their names.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        scopes.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl FromStr for ScopeSet {
    type Err = ScopeError;
    fn from_str(text: &str) -> Result<Self, ScopeError> {
        text.split_ascii_whitespace().map(Scope::from_str).collect()
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            f.write_str(scope.as_str())?;
        }
        Ok(())
    }
}

impl fmt::Debug for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopeSet({self})")
    }
}

impl Serialize for ScopeSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a principal is in its org.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// May see and invoke tools and keep own connections.
    Member,
    /// May see policies and the audit log, and cannot invoke.
    Auditor,
    /// May everything.
    Admin,
    /// A service account: exactly what its operator listed.
    Service(ScopeSet),
}

impl Role {
    /// `member`, `auditor`, `admin` or `service`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Auditor => "auditor",
            Self::Admin => "admin",
            Self::Service(_) => "service",
        }
    }

    /// Everything a token of this role may carry.
    #[must_use]
    pub const fn scopes(self) -> ScopeSet {
        match self {
            Self::Member => ScopeSet::EMPTY
                .with(Scope::McpsRead)
                .with(Scope::McpsInvoke)
                .with(Scope::ProvidersRead)
                .with(Scope::ProvidersWrite),
            Self::Auditor => ScopeSet::EMPTY
                .with(Scope::McpsRead)
                .with(Scope::ProvidersRead)
                .with(Scope::PoliciesRead)
                .with(Scope::AuditRead)
                .with(Scope::AuditExport),
            Self::Admin => ScopeSet::ALL,
            Self::Service(listed) => listed,
        }
    }

    /// What a token gets when no scopes are asked for: all but `admin` and `audit:export`.
    #[must_use]
    pub const fn default_scopes(self) -> ScopeSet {
        self.scopes().without(Scope::Admin).without(Scope::AuditExport)
    }

    /// Reads back a role from its name and, for `service`, its scopes.
    #[must_use]
    pub fn from_parts(name: &str, listed: ScopeSet) -> Option<Self> {
        match name {
            "member" => Some(Self::Member),
            "auditor" => Some(Self::Auditor),
            "admin" => Some(Self::Admin),
            "service" => Some(Self::Service(listed)),
            _ => None,
        }
    }
}

/// Who is asking, as a verified token tells it. There is no caller without an org.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The tenant.
    pub org_id: OrgId,
    /// What the tenant may spend.
    pub plan: Plan,
    /// The user or service account.
    pub principal_id: PrincipalId,
    /// The principal's name, for people; never trusted.
    pub principal_name: String,
    /// The principal's role at this moment.
    pub role: Role,
    /// On whose behalf the principal acts through somebody else's token, if so.
    pub via: Option<PrincipalId>,
    /// The token that was presented.
    pub token_id: TokenId,
    /// The token's own label; self-asserted, never trusted.
    pub label: Option<String>,
    /// What the token may do: its own scopes, cut down to what the role allows now.
    pub scopes: ScopeSet,
    /// How the token came to be.
    pub method: AuthMethod,
    /// Where the token may be used from; `None` means anywhere.
    pub allowed_from: Option<CidrList>,
    /// The credentials that the token descends from.
    pub lineage: Arc<Lineage>,
}

/// How a token was obtained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthMethod {
    /// Made by the operator with `portcullis token create`.
    Operator,
    /// Exchanged for a JWT of a trusted issuer.
    Oidc {
        /// The trust rule's name.
        trust: String,
    },
    /// Narrowed from, or delegated by, another token.
    Token,
}

impl AuthMethod {
    /// `operator`, `oidc` or `token`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Oidc { .. } => "oidc",
            Self::Token => "token",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_set_is_written_sorted_and_reads_back() {
        let set: ScopeSet = "mcps:read mcps:invoke  admin".parse().unwrap();

        assert_eq!(set.to_string(), "admin mcps:invoke mcps:read");
        assert_eq!(set.to_string().parse::<ScopeSet>().unwrap(), set);
        assert!("mcps:write".parse::<ScopeSet>().is_err());
    }

    #[test]
    fn an_auditor_cannot_invoke() {
        assert!(!Role::Auditor.scopes().contains(Scope::McpsInvoke));
    }

    #[test]
    fn nobody_gets_admin_or_export_without_asking() {
        for role in [Role::Member, Role::Auditor, Role::Admin, Role::Service(ScopeSet::ALL)] {
            assert!(!role.default_scopes().contains(Scope::Admin));
            assert!(!role.default_scopes().contains(Scope::AuditExport));
            assert!(role.default_scopes().is_subset_of(role.scopes()));
        }
    }

    #[test]
    fn a_plan_with_a_zero_limit_is_no_plan() {
        assert_eq!(Plan::from_parts("enterprise", Some(0), Some(5)), None);
        assert_eq!(Plan::from_parts("enterprise", None, None), None);
        assert_eq!(Plan::from_parts("free", None, None), Some(Plan::Free));
    }
}
