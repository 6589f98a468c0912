//! Users and service accounts of an org: listed, made and changed by its admins.

use std::collections::BTreeSet;

use portcullis_core::{
    audit::EventType,
    clock::Timestamp,
    id::{PrincipalId, PrincipalKind},
    json,
    principal::{Caller, Role, ScopeSet},
    refusal::{Conflict, Refusal},
};
use portcullis_store::{
    Changed, LastAdmin, Principal, PrincipalChange, PrincipalQuery, RoleName, StoreError,
};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::{Administration, broken, check_grant};
use crate::{
    audit::events::row_of,
    base::contention::{Changer, Contended},
    identity::directory::people::{NewPrincipal, PrincipalPatch, changed_members},
    request::{Ctx, Precondition},
};

/// Kind of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = PrincipalKind)]
pub enum PrincipalKindName {
    /// A person.
    User,
    /// A program.
    Service,
}

/// A user or a service account.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Principal)]
pub struct PrincipalView {
    /// Its id.
    #[schema(value_type = String, example = "sa_01M754BKTKX1YB8Q05NMW9TP4G")]
    pub id: PrincipalId,
    pub kind: PrincipalKindName,
    /// Its name for people; unique in the org.
    #[schema(example = "ci")]
    pub name: String,
    pub role: RoleName,
    /// Everything that a token of it may carry, separated by spaces.
    #[schema(example = "mcps:invoke mcps:read")]
    pub scopes: String,
    /// The groups that it was put into here, besides those that its logins name.
    #[schema(value_type = Vec<String>)]
    pub groups: BTreeSet<String>,
    /// The groups that an identity provider put it into over SCIM.
    #[schema(value_type = Vec<String>)]
    pub provisioned_groups: BTreeSet<String>,
    /// True if none of its tokens is accepted.
    pub disabled: bool,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
    /// Its version, which is also the `ETag`.
    #[serde(skip)]
    pub version: String,
}

impl From<Principal> for PrincipalView {
    fn from(principal: Principal) -> Self {
        let version = version(&principal);
        let Principal { id, name, role, groups, provisioned_groups, .. } = principal;
        let Principal { created_at, disabled_at, .. } = principal;
        Self {
            id,
            kind: match id.kind() {
                PrincipalKind::User => PrincipalKindName::User,
                PrincipalKind::Service => PrincipalKindName::Service,
            },
            name,
            role: match role {
                Role::Member => RoleName::Member,
                Role::Auditor => RoleName::Auditor,
                Role::Admin => RoleName::Admin,
                Role::Service(_) => RoleName::Service,
            },
            scopes: role.scopes().to_string(),
            groups,
            provisioned_groups,
            disabled: disabled_at.is_some(),
            created_at,
            disabled_at,
            version,
        }
    }
}

/// A page of principals.
#[derive(Debug)]
pub struct ListedPrincipals {
    pub items: Vec<PrincipalView>,
    /// Place at which the list goes on, if it does.
    pub end: Option<PrincipalId>,
}

impl Administration {
    /// The principals of the caller's org, by id.
    pub async fn principals(
        &self,
        ctx: &Ctx,
        mut query: PrincipalQuery,
    ) -> Result<ListedPrincipals, Refusal> {
        let limit = query.limit;
        query.limit += 1;
        let mut found = self.base.store.page_principals(ctx.caller().org_id, &query).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let end = found.last().filter(|_| more).map(|last| last.id);
        Ok(ListedPrincipals { items: found.into_iter().map(PrincipalView::from).collect(), end })
    }

    /// One principal of the caller's org.
    pub async fn principal(&self, ctx: &Ctx, id: &str) -> Result<PrincipalView, Refusal> {
        self.found(ctx, id).await.map(PrincipalView::from)
    }

    /// Makes a user or a service account in the caller's org.
    pub async fn create_principal(
        &self,
        ctx: &Ctx,
        new: NewPrincipal,
    ) -> Result<PrincipalView, Refusal> {
        self.writable()?;
        let caller = ctx.caller();
        check_grant(caller, new.role.scopes())?;
        let made =
            new.into_principal(caller.org_id, self.base.ids(), self.base.now()).map_err(broken)?;
        let change = json!({ "action": "created", "role": made.role.name() });
        let kind = EventType::PrincipalChanged;
        let event = row_of(&self.event(ctx, kind, "principal", made.id, Some(change)));
        self.base.store.record_new_principal(&made, &event).await.map_err(refuse)?;
        Ok(made.into())
    }

    /// Changes a principal of the caller's org, if it is still as the precondition says. An org keeps
    /// an admin who is not disabled, unless the operator takes the last one away. A program does not change its own groups, on which policies depend, nor those
    /// of the principal that it acts for. Its tokens follow at once on this node, and within seconds on
    /// others.
    pub async fn change_principal(
        &self,
        ctx: &Ctx,
        id: &str,
        precondition: &Precondition,
        patch: PrincipalPatch,
    ) -> Result<PrincipalView, Refusal> {
        self.writable()?;
        let principal = Contended::Principal(principal_id(id)?);
        let org = ctx.caller().org_id;
        let mut attempts = self.base.contention.attempts(org, Changer::Caller, principal).await?;
        loop {
            attempts.begin().await?;
            let before = self.found(ctx, id).await?;
            if !precondition.admits(&version(&before)) {
                return Err(Refusal::PreconditionFailed);
            }
            let after = patch.clone().applied(&before, self.base.now()).map_err(broken)?;
            if after == before {
                return Ok(before.into());
            }
            let caller = ctx.caller();
            if after.groups != before.groups && !caller.is_person() && stands_for(caller, before.id)
            {
                return Err(Refusal::Conflict { reason: Conflict::PeopleOnly });
            }
            // Also what is only enabled again is given by the caller who enables it.
            if after.disabled_at.is_none() {
                check_grant(caller, gained(&before, &after))?;
            }
            if self.changed(ctx, &before, &after).await? == Changed::Done {
                return Ok(after.into());
            }
        }
    }

    /// Makes the change with its event.
    async fn changed(
        &self,
        ctx: &Ctx,
        before: &Principal,
        after: &Principal,
    ) -> Result<Changed, Refusal> {
        let details = json!({
            "action": "changed",
            "members": changed_members(before, after),
            "role": after.role.name(),
            "disabled": after.disabled_at.is_some(),
        });
        let kind = EventType::PrincipalChanged;
        let event = row_of(&self.event(ctx, kind, "principal", after.id, Some(details)));
        let is_operator = ctx.caller().is_operator;
        let last_admin = if is_operator { LastAdmin::Dispensable } else { LastAdmin::Kept };
        let change = PrincipalChange { before, after, last_admin };
        let changed = self.base.store.change_principal(&change, &event).await.map_err(refuse)?;
        match changed {
            Changed::LastAdmin => Err(Refusal::Conflict { reason: Conflict::LastAdmin }),
            Changed::Done => {
                self.quotas.tenants.revoked(before.org_id);
                Ok(changed)
            }
            Changed::Stale => Ok(changed),
        }
    }

    /// Lets the caller register a key of a principal: the key stands for all that the principal may do.
    ///
    /// # Errors
    /// `read_only`, `not_found`, and `invalid_scope` for a service account that may do less.
    pub async fn admit_key(&self, ctx: &Ctx, id: PrincipalId) -> Result<(), Refusal> {
        self.writable()?;
        let principal = self.found(ctx, &id.to_string()).await?;
        check_grant(ctx.caller(), principal.role.scopes())
    }

    /// The principal of this id in the caller's org.
    pub(super) async fn found(&self, ctx: &Ctx, id: &str) -> Result<Principal, Refusal> {
        let found = self.base.store.find_principal(ctx.caller().org_id, principal_id(id)?).await?;
        found.ok_or_else(|| Refusal::not_found("principal", id))
    }
}

/// The id of a principal. What is malformed can name none.
fn principal_id(id: &str) -> Result<PrincipalId, Refusal> {
    id.parse().map_err(|_| Refusal::not_found("principal", id))
}

/// True if it is the caller, or acts through its token.
fn stands_for(caller: &Caller, id: PrincipalId) -> bool {
    id == caller.principal_id || caller.via == Some(id) || caller.lineage.actors().contains(&id)
}

/// Scopes that the principal can use after the change and could not before.
fn gained(before: &Principal, after: &Principal) -> ScopeSet {
    let all = after.role.scopes();
    if before.disabled_at.is_some() { all } else { all.difference(before.role.scopes()) }
}

/// A name that another principal has.
fn refuse(error: StoreError) -> Refusal {
    if let StoreError::Conflict(_) = error {
        return Refusal::Conflict { reason: Conflict::NameTaken };
    }
    error.into()
}

/// Version of a principal: a digest of all that a change can touch.
fn version(principal: &Principal) -> String {
    let Principal { id, name, role, groups, disabled_at, .. } = principal;
    let scopes = role.scopes();
    let all = json!([id, name, role.name(), scopes, groups, disabled_at.map(Timestamp::as_micros)]);
    json::sha256(&[all.to_string().as_bytes()])
}
