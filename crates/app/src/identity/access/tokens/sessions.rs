//! Sessions made from what the store knows of a token at this moment.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64},
    },
};

use portcullis_core::{
    clock::Timestamp,
    id::OrgId,
    policy::{Identity, Principal},
    principal::{Caller, ScopeSet},
    refusal::Refusal,
    token::{Token, TokenHash, TokenKind},
    trust::{Login, Thumbprint},
};
use portcullis_store::{KnownToken, LoginRecord};
use tokio::time::Instant;

use super::Rejected;
use crate::{
    catalogue::connection::Reachable,
    identity::access::Access,
    request::{
        permitted::PermittedLists,
        session::{Look, Session},
    },
};

/// A token that was not revoked, and who is behind it.
pub(super) struct LiveToken {
    pub(super) caller: Caller,
    pub(super) kind: TokenKind,
    pub(super) exchange_only: bool,
    pub(super) expires_at: Timestamp,
    pub(super) login: Option<LoginRecord>,
    /// The groups that the operator put the caller into.
    pub(super) groups: BTreeSet<String>,
    /// The key that it is bound to.
    pub(super) key: Option<Thumbprint>,
}

impl Access {
    pub(super) async fn look_up(
        self: &Arc<Self>,
        token: &Token,
        hash: TokenHash,
    ) -> Result<Session, Rejected> {
        let look = self.look();
        let found = self.base.store.find_token_by_hash(&hash).await?;
        let known = found.ok_or(Refusal::InvalidToken)?;
        if known.token.kind != token.kind() {
            return Err(Refusal::InvalidToken.into());
        }
        let token = self.living(known)?;
        let org = token.caller.org_id;
        let principal = token.caller.principal_id;
        Ok(self.session_of(token, self.providers.reachable(org, principal).await?, look))
    }

    /// The moment at which a look-up begins.
    pub(super) fn look(&self) -> Look {
        let settings = self.screening.settings();
        Look { looked_up: self.quotas.tenants.now(), asked: Instant::now(), settings }
    }

    /// The session that is trusted from now on: a live token and the connections it can call through.
    pub(super) fn session_of(
        &self,
        LiveToken { caller, kind, exchange_only, expires_at, login, groups, key }: LiveToken,
        connections: Arc<Reachable>,
        look: Look,
    ) -> Session {
        let face = caller.client.as_deref().and_then(|granted| granted.face.provider());
        let connections = match face {
            None => connections,
            Some(provider) => Arc::new(connections.of_provider(provider)),
        };
        Session {
            connections,
            tenant: self.quotas.tenants.tenant(caller.org_id),
            principal: self.as_policies_see(&caller, login.as_ref(), groups),
            login,
            kind,
            exchange_only,
            expires_at,
            key,
            look,
            last_used_minute: AtomicI64::new(0),
            renewing: AtomicBool::new(false),
            permitted: PermittedLists::default(),
            caller,
        }
    }

    /// The caller with what its login said, in these groups besides those of the login.
    fn as_policies_see(
        &self,
        caller: &Caller,
        login: Option<&LoginRecord>,
        mut groups: BTreeSet<String>,
    ) -> Principal {
        let mut identity = match login {
            Some(LoginRecord { said, .. }) => {
                Identity { withheld: self.withheld(said), ..Identity::logged_in(caller, said) }
            }
            None => Identity::of(caller),
        };
        groups.extend(identity.groups);
        identity.groups = groups.into_iter().collect();
        Principal::new(identity)
    }

    /// The claims that no event may hold.
    fn withheld(&self, login: &Login) -> BTreeSet<String> {
        let unfit = |values: &BTreeSet<String>| {
            values.iter().any(|value| self.screening.recordable(value) != *value)
        };
        let claims = login.claims.iter().filter(|(_, values)| unfit(values));
        claims.map(|(name, _)| name.clone()).collect()
    }

    /// Rejects a token that was revoked, or whose principal, org, or any of the actors and trust
    /// rules that it descends from is gone.
    pub(super) fn living(&self, known: KnownToken) -> Result<LiveToken, Rejected> {
        let kind = known.token.kind;
        let exchange_only = known.token.exchange_only;
        let revoked = known.token.revoked_at.is_some();
        let expires_at = known.token.expires_at;
        let login = known.login.clone();
        let groups = known.principal.all_groups();
        let key = known.token.dpop_jkt;
        let caller = self.caller(known)?;
        if revoked {
            return Err(Rejected::of(&caller, Refusal::TokenRevoked));
        }
        Ok(LiveToken { caller, kind, exchange_only, expires_at, login, groups, key })
    }

    /// The caller that a token stands for, limited to the scopes that its role, the roles of all
    /// actors and the trust rules allow at this moment; none of these is stored in the token.
    /// Rejected when one of them is gone.
    pub(super) fn caller(&self, known: KnownToken) -> Result<Caller, Rejected> {
        let bounds = self.bounds(&known);
        let KnownToken { token, principal, actors, org, login: _, client } = known;
        let gone = principal.disabled_at.is_some()
            || org.disabled_at.is_some()
            || actors.iter().any(|actor| actor.disabled_at.is_some())
            || bounds.is_none();
        let scopes = match token.kind {
            TokenKind::User | TokenKind::Service => {
                token.scopes.intersection(bounds.unwrap_or(ScopeSet::EMPTY))
            }
            // It opens no endpoint but its own.
            TokenKind::Refresh => ScopeSet::EMPTY,
        };
        let caller = Caller {
            org_id: org.id,
            plan: org.plan,
            principal_id: principal.id,
            principal_name: principal.name,
            role: principal.role,
            via: token.via,
            token_id: Some(token.id),
            label: token.label,
            scopes,
            method: token.method,
            allowed_from: token.allowed_cidrs,
            lineage: Arc::new(token.lineage),
            client: client.map(Arc::new),
            is_operator: false,
        };
        if gone { Err(Rejected::of(&caller, Refusal::TokenRevoked)) } else { Ok(caller) }
    }

    /// Scopes that the roles, the trust rules and the face behind a token allow at this moment; `None` when
    /// one of the rules is gone, or the lineage is not that of its actors.
    pub(super) fn bounds(&self, known: &KnownToken) -> Option<ScopeSet> {
        let KnownToken { token, principal, actors, org, .. } = known;
        let lineage = &token.lineage;
        let face = known.client.as_ref().map_or(ScopeSet::ALL, |granted| granted.face.ceiling());
        if lineage.via() != token.via || lineage.actors().len() != actors.len() {
            return None;
        }
        let rules = lineage.bounds(org.id, self.trust.rules())?;
        let allowed = actors.iter().map(|actor| actor.role.scopes());
        let own = principal.role.scopes().intersection(rules).intersection(face);
        Some(allowed.fold(own, ScopeSet::intersection))
    }

    /// The session of the operator, for requests about an org within the process.
    pub async fn operator_session(
        &self,
        org: OrgId,
        name: Option<String>,
    ) -> Result<Arc<Session>, Refusal> {
        let caller = Caller::operator(org, name);
        let never = Timestamp::from_micros(i64::MAX);
        self.browser_caller(caller, None, BTreeSet::new(), never).await.map(Arc::new)
    }

    /// The session of a caller who is signed in with a browser, until `expires_at`.
    pub(crate) async fn browser_caller(
        &self,
        caller: Caller,
        login: Option<LoginRecord>,
        groups: BTreeSet<String>,
        expires_at: Timestamp,
    ) -> Result<Session, Refusal> {
        let look = self.look();
        let connections = self.providers.reachable(caller.org_id, caller.principal_id).await?;
        let kind = TokenKind::User;
        let live =
            LiveToken { caller, kind, exchange_only: false, expires_at, login, groups, key: None };
        Ok(self.session_of(live, connections, look))
    }
}
