//! Groups that an identity provider keeps.

use std::collections::BTreeSet;

use portcullis_core::{
    audit::EventType,
    id::{GroupId, OrgId, PrincipalId},
    refusal::Refusal,
    scim::{
        AttributeEdit, GroupAttributes, GroupPatch, MAX_GROUPS, MAX_MEMBERS, NewGroup, ScimError,
        ScimProjection, ScimRejection, ScimType,
    },
};
use portcullis_store::{
    GroupGuard, ScimGroup, ScimGroupChange, ScimGroupFilter, ScimMember, ScimWritten, StoreError,
};
use serde_json::{Value, json};

use super::{
    ListedResources, Provisioning, ScimList, ScimResource, compared, contended, failed, full,
    last_admin,
    view::{group_resource, group_version},
};
use crate::{
    audit::events::row_of,
    base::contention::{Changer, Contended},
    identity::directory,
    request::{Ctx, Precondition},
};

/// Members that an event names at most; it counts all of them.
const MAX_RECORDED: usize = 1_000;

/// Change that a request asks for.
enum GroupEdit<'a> {
    Replace(&'a NewGroup),
    Patch(&'a GroupPatch),
    Delete,
}

/// A group as a change leaves it.
struct EditedGroup {
    attributes: GroupAttributes,
    members: BTreeSet<PrincipalId>,
}

impl Provisioning {
    /// The groups of the caller's org, by id. A page has fewer than were asked for if they have many members.
    pub async fn groups(
        &self,
        ctx: &Ctx,
        list: &ScimList,
    ) -> Result<ListedResources, ScimRejection> {
        let org = ctx.caller().org_id;
        let Some(filter) = filter(list)? else {
            return Ok(ListedResources { items: Vec::new(), total: 0 });
        };
        let page = self.base.store.page_scim_groups(org, &filter, list.offset(), list.count).await;
        let page = page.map_err(Refusal::from)?;
        let mut groups = page.items;
        if list.projection.shows("members") {
            let mut left = u64::try_from(MAX_MEMBERS).unwrap_or(u64::MAX);
            let fitting = groups.iter().take_while(|group| {
                let fits = group.members <= left;
                left = left.saturating_sub(group.members);
                fits
            });
            let fitting = fitting.count().max(1);
            groups.truncate(fitting);
        }
        let members = self.shown_members(org, &groups, &list.projection).await?;
        let items = groups.iter().map(|group| group_resource(group, members.as_deref())).collect();
        Ok(ListedResources { items, total: page.total })
    }

    /// One of them.
    pub async fn group(
        &self,
        ctx: &Ctx,
        id: &str,
        projection: &ScimProjection,
    ) -> Result<ScimResource, ScimRejection> {
        let group = self.found_group(ctx, id).await?;
        self.shown_group(&group, projection).await
    }

    /// Makes a group.
    pub async fn create_group(
        &self,
        ctx: &Ctx,
        request: NewGroup,
        projection: &ScimProjection,
    ) -> Result<ScimResource, ScimRejection> {
        let org_id = ctx.caller().org_id;
        check_name(&request.attributes.display_name)?;
        let all = self.base.store.page_scim_groups(org_id, &ScimGroupFilter::default(), 0, 0).await;
        if all.map_err(Refusal::from)?.total >= u64::from(MAX_GROUPS) {
            return Err(full("groups"));
        }
        let now = self.base.now();
        let members = request.members.unwrap_or_default();
        let group = ScimGroup {
            id: GroupId::new(self.base.ids()),
            org_id,
            pushed_by: ctx.caller().principal_id,
            attributes: request.attributes,
            created_at: now,
            changed_at: now,
            revision: 1,
            members: u64::try_from(members.len()).unwrap_or_default(),
        };
        let change = ScimGroupChange {
            org: org_id,
            before: None,
            guard: GroupGuard::Revision,
            after: Some(&group),
            added: &members,
            added_of: self.confined_to(ctx),
            removed: &BTreeSet::new(),
        };
        match self.write_group(ctx, &change).await {
            Ok(ScimWritten::Done) => self.shown_group(&group, projection).await,
            Ok(written) => Err(rejection(written)),
            Err(error) => Err(failed(error, "group")),
        }
    }

    /// Replaces the attributes of a group, and its members if the request names them. Gives its version.
    pub async fn replace_group(
        &self,
        ctx: &Ctx,
        id: &str,
        precondition: &Precondition,
        request: &NewGroup,
    ) -> Result<String, ScimRejection> {
        self.edit_group(ctx, id, precondition, &GroupEdit::Replace(request)).await
    }

    /// Changes a group as a PATCH says. Gives its version.
    pub async fn patch_group(
        &self,
        ctx: &Ctx,
        id: &str,
        precondition: &Precondition,
        request: &GroupPatch,
    ) -> Result<String, ScimRejection> {
        self.edit_group(ctx, id, precondition, &GroupEdit::Patch(request)).await
    }

    /// Deletes a group: its people leave it.
    pub async fn delete_group(
        &self,
        ctx: &Ctx,
        id: &str,
        precondition: &Precondition,
    ) -> Result<(), ScimRejection> {
        self.edit_group(ctx, id, precondition, &GroupEdit::Delete).await?;
        Ok(())
    }

    async fn edit_group(
        &self,
        ctx: &Ctx,
        id: &str,
        precondition: &Precondition,
        edit: &GroupEdit<'_>,
    ) -> Result<String, ScimRejection> {
        let org = ctx.caller().org_id;
        let group = Contended::Group(group_id(id)?);
        let mut attempts = self.base.contention.attempts(org, Changer::Directory, group).await?;
        let guard = guard(precondition, edit);
        loop {
            attempts.begin().await?;
            let before = self.found_group(ctx, id).await?;
            self.check_own(ctx, "group", before.pushed_by)?;
            if !precondition.admits(&group_version(&before)) {
                return Err(Refusal::PreconditionFailed.into());
            }
            let members = self.base.store.scim_members(org, &[before.id]).await;
            let members = members.map_err(Refusal::from)?.into_iter();
            let members: BTreeSet<PrincipalId> = members.map(|it| it.principal_id).collect();
            let edited = edited(&before, &members, edit)?;
            let mut after = before.clone();
            after.attributes = edited.attributes;
            let added: BTreeSet<_> = edited.members.difference(&members).copied().collect();
            let removed: BTreeSet<_> = members.difference(&edited.members).copied().collect();
            let deletes = matches!(edit, GroupEdit::Delete);
            if after == before && added.is_empty() && removed.is_empty() && !deletes {
                return Ok(group_version(&before));
            }
            after.changed_at = self.base.now();
            after.revision += 1;
            let change = ScimGroupChange {
                org,
                before: Some(&before),
                guard,
                after: (!deletes).then_some(&after),
                added: &added,
                added_of: self.confined_to(ctx),
                removed: &removed,
            };
            match self.write_group(ctx, &change).await {
                // Where another node was first, the version is an earlier one, which no precondition admits.
                Ok(ScimWritten::Done) => return Ok(group_version(&after)),
                Ok(ScimWritten::Stale) => {}
                Ok(written) => return Err(rejection(written)),
                Err(error) => return Err(failed(error, "group")),
            }
        }
    }

    /// Makes the change with its event. Nodes follow within seconds, this one at once.
    async fn write_group(
        &self,
        ctx: &Ctx,
        change: &ScimGroupChange<'_>,
    ) -> Result<ScimWritten, StoreError> {
        let ScimGroupChange { org, before, after, added, removed, .. } = *change;
        let action = match (before, after) {
            (None, _) => "created",
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "deleted",
        };
        let some = |ids: &BTreeSet<PrincipalId>| -> Vec<PrincipalId> {
            ids.iter().take(MAX_RECORDED).copied().collect()
        };
        let details = json!({
            "source": "scim",
            "action": action,
            "before": before.map(|group| self.recorded_group(group)),
            "after": after.map(|group| self.recorded_group(group)),
            "added": some(added),
            "added_count": added.len(),
            "removed": some(removed),
            "removed_count": removed.len(),
        });
        let Some(group) = after.or(before) else { return Ok(ScimWritten::Stale) };
        let event = row_of(&self.event(ctx, EventType::GroupChanged, group.id, details));
        let written = self.base.store.change_scim_group(change, &event).await?;
        if written == ScimWritten::Done {
            self.quotas.tenants.revoked(org);
        }
        Ok(written)
    }

    /// The part of a group that an event tells.
    fn recorded_group(&self, group: &ScimGroup) -> Value {
        let GroupAttributes { display_name, external_id } = &group.attributes;
        json!({
            "name": self.screening.recordable(display_name),
            "external_id": external_id.as_deref().map(|id| self.screening.recordable(id)),
        })
    }

    async fn shown_group(
        &self,
        group: &ScimGroup,
        projection: &ScimProjection,
    ) -> Result<ScimResource, ScimRejection> {
        let groups = std::slice::from_ref(group);
        let members = self.shown_members(group.org_id, groups, projection).await?;
        Ok(group_resource(group, members.as_deref()))
    }

    /// The members of these groups, if they are to be told.
    async fn shown_members(
        &self,
        org: OrgId,
        groups: &[ScimGroup],
        projection: &ScimProjection,
    ) -> Result<Option<Vec<ScimMember>>, ScimRejection> {
        if !projection.shows("members") {
            return Ok(None);
        }
        let ids: Vec<GroupId> = groups.iter().map(|group| group.id).collect();
        Ok(Some(self.base.store.scim_members(org, &ids).await.map_err(Refusal::from)?))
    }

    /// The group of this id in the caller's org.
    async fn found_group(&self, ctx: &Ctx, id: &str) -> Result<ScimGroup, ScimRejection> {
        let found = self.base.store.find_scim_group(ctx.caller().org_id, group_id(id)?).await;
        found.map_err(Refusal::from)?.ok_or_else(|| unknown_group(id))
    }
}

/// The id of a group. What is malformed can name none.
fn group_id(id: &str) -> Result<GroupId, ScimRejection> {
    id.parse().map_err(|_| unknown_group(id))
}

fn unknown_group(id: &str) -> ScimRejection {
    Refusal::not_found("group", id).into()
}

/// State of a group that a change rests on: for one that only names members, whether these are members.
fn guard(precondition: &Precondition, edit: &GroupEdit<'_>) -> GroupGuard {
    match (precondition, edit) {
        (Precondition::None, GroupEdit::Patch(patch)) if patch.only_names_members() => {
            GroupGuard::Members
        }
        (
            Precondition::None | Precondition::OneOf(_),
            GroupEdit::Replace(_) | GroupEdit::Patch(_) | GroupEdit::Delete,
        ) => GroupGuard::Revision,
    }
}

/// The filter of a list; `None` if nothing can match it.
fn filter(list: &ScimList) -> Result<Option<ScimGroupFilter>, ScimError> {
    let Some(filter) = &list.filter else { return Ok(Some(ScimGroupFilter::default())) };
    let [display_name, external_id, id] = compared(filter, ["displayname", "externalid", "id"])?;
    let Ok(id) = id.map(|id| id.parse()).transpose() else { return Ok(None) };
    Ok(Some(ScimGroupFilter { id, display_name, external_id }))
}

/// The group after the change.
fn edited(
    before: &ScimGroup,
    members: &BTreeSet<PrincipalId>,
    edit: &GroupEdit<'_>,
) -> Result<EditedGroup, ScimError> {
    let mut attributes = before.attributes.clone();
    let members = match edit {
        GroupEdit::Delete => BTreeSet::new(),
        GroupEdit::Replace(request) => {
            attributes.clone_from(&request.attributes);
            request.members.clone().unwrap_or_else(|| members.clone())
        }
        GroupEdit::Patch(patch) => {
            if let Some(name) = &patch.display_name {
                attributes.display_name.clone_from(name);
            }
            match &patch.external_id {
                AttributeEdit::Keep => {}
                AttributeEdit::Set(id) => attributes.external_id = Some(id.clone()),
                AttributeEdit::Clear => attributes.external_id = None,
            }
            patch.members.applied(members)
        }
    };
    check_name(&attributes.display_name)?;
    Ok(EditedGroup { attributes, members })
}

/// Rejects a name that no policy could say.
fn check_name(name: &str) -> Result<(), ScimError> {
    let wrong = |error: directory::DirectoryError| {
        ScimError::new(ScimType::InvalidValue, format!("`displayName`: {error}."))
    };
    directory::check_name(name).map_err(wrong)
}

/// The answer to a change that is not made.
fn rejection(written: ScimWritten) -> ScimRejection {
    match written {
        ScimWritten::UnknownMember => {
            let detail = "One of the members is no user that SCIM keeps in this org, or, where trust rules have \
                          `scim_account`, none that this service account pushed.";
            ScimError::new(ScimType::InvalidValue, detail).into()
        }
        ScimWritten::Full => full("members of the group, or groups of one of them,"),
        ScimWritten::LastAdmin => last_admin(),
        ScimWritten::Done | ScimWritten::Stale => contended(),
    }
}
