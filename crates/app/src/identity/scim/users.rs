//! People whom an identity provider keeps.
//!
//! **Invariant:** a person becomes a principal that exists only if the subject by which a trust rule for the people of
//! this service account knows that principal is the one that the provider names, and a deleted person its own again. Nothing is joined by an e-mail
//! address or by a name for people.

use portcullis_core::{
    audit::EventType,
    clock::Timestamp,
    id::{OrgId, PrincipalId, PrincipalKind},
    principal::Role,
    refusal::Refusal,
    scim::{
        MAX_USERS, PatchRequest, ScimError, ScimRejection, ScimType, UserAttributes, UserRequest,
    },
    trust::{JoinKey, RuleSubject},
};
use portcullis_store::{
    Identity, Principal, ScimUser, ScimUserChange, ScimUserFilter, ScimWritten, StoreError,
};
use serde_json::{Value, json};

use super::{
    ListedResources, Provisioning, ScimList, ScimResource, compared, contended, failed, full,
    last_admin, reject_taken,
    view::{user_resource, user_version},
};
use crate::{
    audit::events::row_of,
    base::contention::{Changer, Contended},
    request::{Ctx, Precondition},
};

/// Change that a request asks for.
enum UserEdit<'a> {
    Replace(&'a UserRequest),
    Patch(&'a PatchRequest),
    Delete,
}

/// Principal that a new person is, as it was before.
#[derive(Debug, Default)]
struct KnownPerson {
    principal: Option<Principal>,
    /// The same person, whom the provider deleted.
    deleted: Option<ScimUser>,
}

impl Provisioning {
    /// The people of the caller's org whom a provider keeps, by id.
    pub async fn users(
        &self,
        ctx: &Ctx,
        list: &ScimList,
    ) -> Result<ListedResources, ScimRejection> {
        let Some(filter) = filter(list)? else {
            return Ok(ListedResources { items: Vec::new(), total: 0 });
        };
        let store = &self.base.store;
        let page = store.page_scim_users(ctx.caller().org_id, &filter, list.offset(), list.count);
        let page = page.await.map_err(Refusal::from)?;
        Ok(ListedResources {
            items: page.items.iter().map(user_resource).collect(),
            total: page.total,
        })
    }

    /// One of them.
    pub async fn user(&self, ctx: &Ctx, id: &str) -> Result<ScimResource, ScimRejection> {
        Ok(user_resource(&self.found_user(ctx, id).await?))
    }

    /// Makes a person: a principal that is new, or the one that the person is already.
    pub async fn create_user(
        &self,
        ctx: &Ctx,
        request: UserRequest,
    ) -> Result<ScimResource, ScimRejection> {
        let org = ctx.caller().org_id;
        self.check_room(org).await?;
        let now = self.base.now();
        let account = ctx.caller().principal_id;
        let known = self.find_known(ctx, &request.attributes).await?;
        let shown = request.attributes.shown_name();
        let id = PrincipalId::new(PrincipalKind::User, self.base.ids());
        // Names of principals are unique in an org, and people's are not.
        for name in [shown.clone(), format!("{shown} ({id})")] {
            let new = || Principal::new(id, org, name, Role::Member, now);
            let principal = known.principal.clone().unwrap_or_else(new);
            let deleted = known.deleted.as_ref();
            let mut user = ScimUser {
                principal,
                pushed_by: account,
                attributes: request.attributes.clone(),
                created_at: now,
                changed_at: now,
                deactivated_at: deleted.and_then(|it| it.deactivated_at),
                deleted_at: None,
                revision: deleted.map_or(1, |it| it.revision + 1),
            };
            activate(&mut user, request.active.unwrap_or(true), now);
            let change = ScimUserChange {
                principal: known.principal.as_ref(),
                before: deleted,
                after: &user,
                access_ends_at: ends_access(deleted, &user),
            };
            match self.write_user(ctx, "created", &change).await {
                Ok(ScimWritten::Done) => return Ok(user_resource(&user)),
                Ok(written) => return Err(rejection(written)),
                Err(StoreError::Conflict(_)) => self.check_free(&user).await?,
                Err(error) => return Err(failed(error, "user")),
            }
        }
        Err(reject_taken("user"))
    }

    /// Replaces the attributes of a person.
    pub async fn replace_user(
        &self,
        ctx: &Ctx,
        id: &str,
        precondition: &Precondition,
        request: &UserRequest,
    ) -> Result<ScimResource, ScimRejection> {
        let user = self.edit_user(ctx, id, precondition, &UserEdit::Replace(request)).await?;
        Ok(user_resource(&user))
    }

    /// Changes a person as a PATCH says.
    pub async fn patch_user(
        &self,
        ctx: &Ctx,
        id: &str,
        precondition: &Precondition,
        request: &PatchRequest,
    ) -> Result<ScimResource, ScimRejection> {
        let user = self.edit_user(ctx, id, precondition, &UserEdit::Patch(request)).await?;
        Ok(user_resource(&user))
    }

    /// Deletes a person for the provider: its access ends, and it is in no group. The principal stays, for events
    /// name it.
    pub async fn delete_user(
        &self,
        ctx: &Ctx,
        id: &str,
        precondition: &Precondition,
    ) -> Result<(), ScimRejection> {
        self.edit_user(ctx, id, precondition, &UserEdit::Delete).await?;
        Ok(())
    }

    async fn edit_user(
        &self,
        ctx: &Ctx,
        id: &str,
        precondition: &Precondition,
        edit: &UserEdit<'_>,
    ) -> Result<ScimUser, ScimRejection> {
        let user = Contended::Principal(user_id(id)?);
        let org = ctx.caller().org_id;
        let mut attempts = self.base.contention.attempts(org, Changer::Directory, user).await?;
        loop {
            attempts.begin().await?;
            let before = self.found_user(ctx, id).await?;
            self.check_own(ctx, "user", before.pushed_by)?;
            if !precondition.admits(&user_version(&before)) {
                return Err(Refusal::PreconditionFailed.into());
            }
            let now = self.base.now();
            let mut after = edited(&before, edit, now)?;
            if after == before {
                return Ok(before);
            }
            after.changed_at = now;
            after.revision += 1;
            let change = ScimUserChange {
                principal: Some(&before.principal),
                before: Some(&before),
                after: &after,
                access_ends_at: ends_access(Some(&before), &after),
            };
            match self.write_user(ctx, action(&before, &after), &change).await {
                Ok(ScimWritten::Done) => return Ok(after),
                Ok(ScimWritten::Stale) => {}
                Ok(written) => return Err(rejection(written)),
                Err(error) => return Err(failed(error, "user")),
            }
        }
    }

    /// Makes the change with its event. Nodes follow within seconds, this one at once.
    async fn write_user(
        &self,
        ctx: &Ctx,
        action: &'static str,
        change: &ScimUserChange<'_>,
    ) -> Result<ScimWritten, StoreError> {
        let details = json!({
            "source": "scim",
            "action": action,
            "members": change.before.map(|before| changed_members(before, change.after)),
            "before": change.before.map(recorded),
            "after": recorded(change.after),
        });
        let id = change.after.principal.id;
        let event = row_of(&self.event(ctx, EventType::PrincipalChanged, id, details));
        let written = self.base.store.change_scim_user(change, &event).await?;
        if written == ScimWritten::Done {
            self.quotas.tenants.revoked(change.after.principal.org_id);
        }
        Ok(written)
    }

    async fn check_room(&self, org: OrgId) -> Result<(), ScimRejection> {
        let all = ScimUserFilter::default();
        let page = self.base.store.page_scim_users(org, &all, 0, 0).await;
        if page.map_err(Refusal::from)?.total < u64::from(MAX_USERS) {
            Ok(())
        } else {
            Err(full("users"))
        }
    }

    /// Rejects a name or an id that another person has.
    async fn check_free(&self, user: &ScimUser) -> Result<(), ScimRejection> {
        let org = user.principal.org_id;
        let store = &self.base.store;
        let UserAttributes { user_name, external_id, .. } = &user.attributes;
        let named = store.find_scim_user_by(org, JoinKey::UserName, user_name).await;
        let same = match external_id {
            Some(id) => store.find_scim_user_by(org, JoinKey::ExternalId, id).await,
            None => Ok(None),
        };
        let others = [named.map_err(Refusal::from)?, same.map_err(Refusal::from)?];
        if others.iter().all(Option::is_none) { Ok(()) } else { Err(reject_taken("user")) }
    }

    /// The principal that a person is already: by the login of the subject that the provider names, or because the
    /// provider had deleted it.
    async fn find_known(
        &self,
        ctx: &Ctx,
        attributes: &UserAttributes,
    ) -> Result<KnownPerson, ScimRejection> {
        let org = ctx.caller().org_id;
        let account = ctx.caller().principal_id;
        let store = &self.base.store;
        let rules = self.access.trust().rules().iter().filter(|rule| rule.org == org);
        let joins: Vec<_> = rules.filter_map(|rule| rule.scim.map(|join| (rule, join))).collect();
        let deleted = store.find_deleted_scim_user(org, attributes).await.map_err(Refusal::from)?;
        if let Some(deleted) = deleted.filter(|person| self.is_own(ctx, person.pushed_by)) {
            return Ok(KnownPerson {
                principal: Some(deleted.principal.clone()),
                deleted: Some(deleted),
            });
        }
        let mut found: Option<Principal> = None;
        for (rule, join) in joins.into_iter().filter(|(_, join)| join.takes(account)) {
            let subject = match join.key {
                JoinKey::ExternalId => attributes.external_id.as_deref(),
                JoinKey::UserName => Some(attributes.user_name.as_str()),
            };
            let (Some(subject), RuleSubject::User { from, .. }) = (subject, &rule.who) else {
                continue;
            };
            let claim = from.to_string();
            let identity = Identity { issuer: &rule.issuer, claim: &claim, subject };
            let principal = store.find_by_identity(org, identity).await.map_err(Refusal::from)?;
            let Some(principal) = principal else { continue };
            if found.as_ref().is_some_and(|other| other.id != principal.id) {
                return Err(reject_taken("user"));
            }
            found = Some(principal);
        }
        Ok(KnownPerson { principal: found, deleted: None })
    }

    /// The person of this id in the caller's org.
    async fn found_user(&self, ctx: &Ctx, id: &str) -> Result<ScimUser, ScimRejection> {
        let found = self.base.store.find_scim_user(ctx.caller().org_id, user_id(id)?).await;
        found.map_err(Refusal::from)?.ok_or_else(|| unknown_user(id))
    }
}

/// The id of a person. What is malformed can name none.
fn user_id(id: &str) -> Result<PrincipalId, ScimRejection> {
    id.parse().map_err(|_| unknown_user(id))
}

fn unknown_user(id: &str) -> ScimRejection {
    Refusal::not_found("user", id).into()
}

/// The filter of a list; `None` if nothing can match it.
fn filter(list: &ScimList) -> Result<Option<ScimUserFilter>, ScimError> {
    let Some(filter) = &list.filter else { return Ok(Some(ScimUserFilter::default())) };
    let known = ["username", "externalid", "displayname", "id", "active"];
    let [user_name, external_id, display_name, id, active] = compared(filter, known)?;
    let Ok(id) = id.map(|id| id.parse()).transpose() else { return Ok(None) };
    let active = match active.map(|it| it.to_ascii_lowercase()).as_deref() {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => {
            let detail = "`active` is compared with true or false.";
            return Err(ScimError::new(ScimType::InvalidFilter, detail));
        }
    };
    Ok(Some(ScimUserFilter { id, user_name, external_id, display_name, active }))
}

/// The person after the change, with the version from before it.
fn edited(before: &ScimUser, edit: &UserEdit<'_>, now: Timestamp) -> Result<ScimUser, ScimError> {
    let mut after = before.clone();
    let request = match edit {
        UserEdit::Replace(request) => (*request).clone(),
        UserEdit::Patch(request) => UserRequest::patched(&before.attributes, request)?,
        UserEdit::Delete => {
            after.deleted_at = Some(now);
            activate(&mut after, false, now);
            return Ok(after);
        }
    };
    after.attributes = request.attributes;
    if let Some(active) = request.active {
        activate(&mut after, active, now);
    }
    Ok(after)
}

/// Ends the access of the person, or gives back what the provider had ended. Of what others ended, the provider
/// gives nothing back; what others gave back, it ends again.
fn activate(user: &mut ScimUser, active: bool, now: Timestamp) {
    let disabled_at = user.principal.disabled_at;
    match (active, user.deactivated_at) {
        (true, None) => {}
        (true, ended) => {
            user.deactivated_at = None;
            if disabled_at == ended {
                user.principal.disabled_at = None;
            }
        }
        (false, Some(_)) if disabled_at.is_some() => {}
        (false, _) => {
            user.deactivated_at = Some(now);
            user.principal.disabled_at = disabled_at.or(Some(now));
        }
    }
}

/// When the access of the person ends by the change, if it does.
fn ends_access(before: Option<&ScimUser>, after: &ScimUser) -> Option<Timestamp> {
    let earlier = before.and_then(|it| it.deactivated_at);
    let deleted = after.deleted_at;
    deleted.or_else(|| after.deactivated_at.filter(|_| earlier != after.deactivated_at))
}

/// The part of a person that an event tells: never a name.
fn recorded(user: &ScimUser) -> Value {
    let disabled = user.principal.disabled_at.is_some();
    json!({ "disabled": disabled, "deleted": user.deleted_at.is_some() })
}

/// The change as the event names it.
fn action(before: &ScimUser, after: &ScimUser) -> &'static str {
    match (before.principal.disabled_at, after.principal.disabled_at) {
        (_, _) if after.deleted_at.is_some() => "deleted",
        (None, Some(_)) => "deactivated",
        (Some(_), None) => "reactivated",
        (Some(_), Some(_)) | (None, None) => "changed",
    }
}

/// Attributes that a change gave another value.
fn changed_members(before: &ScimUser, after: &ScimUser) -> Vec<&'static str> {
    let UserAttributes { user_name, external_id, display_name, name, emails } = &before.attributes;
    let next = &after.attributes;
    let differs = [
        ("userName", *user_name != next.user_name),
        ("externalId", *external_id != next.external_id),
        ("displayName", *display_name != next.display_name),
        ("name", *name != next.name),
        ("emails", *emails != next.emails),
        ("active", before.principal.disabled_at != after.principal.disabled_at),
    ];
    differs.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
}

/// The answer to a change that is not made.
fn rejection(written: ScimWritten) -> ScimRejection {
    match written {
        ScimWritten::LastAdmin => last_admin(),
        ScimWritten::Full => full("users"),
        ScimWritten::Done | ScimWritten::Stale | ScimWritten::UnknownMember => contended(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_795_000_000_000_000);

    fn ana(disabled_at: Option<Timestamp>, deactivated_at: Option<Timestamp>) -> ScimUser {
        let id = "usr_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();
        let org = "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();
        let principal = Principal::new(id, org, "ana".to_owned(), Role::Member, NOW);
        ScimUser {
            principal: Principal { disabled_at, ..principal },
            pushed_by: "sa_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap(),
            attributes: UserAttributes::default(),
            created_at: NOW,
            changed_at: NOW,
            deactivated_at,
            deleted_at: None,
            revision: 1,
        }
    }

    #[test]
    fn a_provider_gives_back_only_what_it_ended() {
        let one = NOW;
        let two = NOW.plus_seconds(1);
        let three = NOW.plus_seconds(2);
        for (disabled, deactivated, active, wanted) in [
            (None, None, true, (None, None)),
            (None, None, false, (Some(three), Some(three))),
            (Some(one), Some(one), true, (None, None)),
            (Some(one), Some(one), false, (Some(one), Some(one))),
            // An admin ended it: repeats change nothing.
            (Some(one), None, true, (Some(one), None)),
            (Some(one), None, false, (Some(one), Some(three))),
            (Some(one), Some(two), true, (Some(one), None)),
            // An admin gave it back.
            (None, Some(two), false, (Some(three), Some(three))),
            (None, Some(two), true, (None, None)),
        ] {
            let mut user = ana(disabled, deactivated);
            activate(&mut user, active, three);
            assert_eq!(
                (user.principal.disabled_at, user.deactivated_at),
                wanted,
                "{disabled:?} {deactivated:?} {active}"
            );
        }
    }

    #[test]
    fn access_ends_when_the_provider_says_so_anew() {
        let active = ana(None, None);
        let ended = ana(Some(NOW), Some(NOW));

        assert_eq!(ends_access(Some(&active), &ended), Some(NOW));
        assert_eq!(ends_access(Some(&ended), &ended), None);
        assert_eq!(ends_access(Some(&ended), &active), None);
        assert_eq!(ends_access(None, &ended), Some(NOW));
    }
}
