//! Orgs with plans, and principals with roles and scopes.

use std::{num::NonZeroU32, sync::Arc};

use serde_json::json;

pub use crate::scope::{Scope, ScopeError, ScopeSet};
use crate::{
    authorization::{COMMAND_LINE, ClientGrant},
    id::{OrgId, PrincipalId, PrincipalKind, TokenId},
    lineage::Lineage,
    token::CidrList,
};

/// Limits on requests and invocations of an org per minute.
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

/// Role of a principal in its org.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// May see and invoke tools and keep own connections.
    Member,
    /// May see policies and the audit log, and cannot invoke.
    Auditor,
    /// May everything but provision users, which is a service account's.
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
                .with(Scope::ProvidersWrite)
                .with(Scope::ApprovalsRead)
                .with(Scope::ApprovalsDecide),
            Self::Auditor => ScopeSet::EMPTY
                .with(Scope::ApprovalsRead)
                .with(Scope::McpsRead)
                .with(Scope::ProvidersRead)
                .with(Scope::PoliciesRead)
                .with(Scope::AuditRead)
                .with(Scope::AuditExport),
            Self::Admin => ScopeSet::ALL.without(Scope::Scim),
            Self::Service(listed) => listed,
        }
    }

    /// Scopes of a token when none are asked for: all but `admin`, `audit:export` and those of
    /// approvals, so that a token handed to an agent does not decide by accident.
    #[must_use]
    pub const fn default_scopes(self) -> ScopeSet {
        self.scopes().unless_asked_for()
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

/// The caller, as a verified token identifies it. There is no caller without an org.
#[derive(Debug, Clone)]
pub struct Caller {
    pub org_id: OrgId,
    pub plan: Plan,
    pub principal_id: PrincipalId,
    /// The principal's name, for people; never trusted.
    pub principal_name: String,
    pub role: Role,
    /// Principal on whose behalf this one acts through that principal's token, if so.
    pub via: Option<PrincipalId>,
    /// The token that it presents; `None` in a browser session, which has none.
    pub token_id: Option<TokenId>,
    /// The token's own label; self-asserted, never trusted.
    pub label: Option<String>,
    /// Scopes of the token, cut down to what the role allows now.
    pub scopes: ScopeSet,
    pub method: AuthMethod,
    /// Addresses that the token may be used from; `None` means anywhere.
    pub allowed_from: Option<CidrList>,
    /// The credentials that the token descends from.
    pub lineage: Arc<Lineage>,
    /// The client that the token was granted to, and for which face; `None` for tokens of no client.
    pub client: Option<Arc<ClientGrant>>,
    /// True for the operator of the installation, whom no credential stands for.
    pub is_operator: bool,
}

impl Caller {
    /// The operator, for an org: may do everything there and is no principal of it. The id is none that was ever made.
    #[must_use]
    pub fn operator(org_id: OrgId, name: Option<String>) -> Self {
        let (requests, invocations) = (NonZeroU32::MAX, NonZeroU32::MAX);
        Self {
            org_id,
            plan: Plan::Enterprise { requests, invocations },
            principal_id: PrincipalId::nobody(),
            principal_name: name.unwrap_or_default(),
            role: Role::Admin,
            via: None,
            token_id: None,
            label: None,
            scopes: ScopeSet::ALL,
            method: AuthMethod::Operator,
            allowed_from: None,
            lineage: Arc::default(),
            client: None,
            is_operator: true,
        }
    }

    /// The name as events record it; `None` where it is not known.
    #[must_use]
    pub fn recorded_name(&self) -> Option<&str> {
        Some(self.principal_name.as_str()).filter(|name| !name.is_empty())
    }

    /// Returns true if its token is in other hands than its principal's: it was narrowed or delegated, or given
    /// to a client. The command line is its person's own, and a service account the client of its own tokens.
    #[must_use]
    pub fn is_handed_on(&self) -> bool {
        self.lineage.is_derived() || self.foreign_client().is_some()
    }

    /// The client that its token was given to; `None` if that is the command line, or the principal itself.
    #[must_use]
    pub fn foreign_client(&self) -> Option<&ClientGrant> {
        let is_own = |granted: &ClientGrant| {
            let id = &granted.client.id;
            id == COMMAND_LINE || *id == self.principal_id.to_string()
        };
        self.client.as_deref().filter(|it| !is_own(it))
    }

    /// The hands that its token is in, as far as a policy could tell them from others; `None` if they are its
    /// principal's own. A token that is refreshed or exchanged anew stays in the same hands.
    #[must_use]
    pub fn hands(&self) -> Option<String> {
        self.is_handed_on().then(|| {
            let granted = self.client.as_deref().map(|it| (&it.client.id, &it.face));
            json!([granted, self.lineage.is_derived(), self.scopes]).to_string()
        })
    }

    /// Returns true for a person who acts without an agent or a client in between.
    #[must_use]
    pub fn is_person(&self) -> bool {
        self.principal_id.kind() == PrincipalKind::User && !self.is_handed_on()
    }

    /// Returns true if its token is good for the provider of this slug.
    #[must_use]
    pub fn reaches(&self, slug: &str) -> bool {
        let face = self.client.as_deref().and_then(|granted| granted.face.provider());
        face.is_none_or(|only| only == slug)
    }
}

/// Method by which a token was obtained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthMethod {
    /// Made by the operator with `portcullis token create`, or by an admin of the org.
    Operator,
    /// Exchanged for a JWT of a trusted issuer.
    Oidc {
        /// The trust rule's name.
        trust: String,
    },
    /// Given to a service account that signed with a registered key.
    Key {
        /// The key's thumbprint (RFC 7638).
        thumbprint: String,
    },
    /// Narrowed from, or delegated by, another token.
    Token,
}

impl AuthMethod {
    /// `operator`, `oidc`, `key` or `token`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Oidc { .. } => "oidc",
            Self::Key { .. } => "key",
            Self::Token => "token",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
