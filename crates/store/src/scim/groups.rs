//! Groups that an identity provider keeps, and who is in them.

use std::collections::BTreeSet;

use portcullis_core::{
    clock::Timestamp,
    id::{GroupId, OrgId, PrincipalId},
    scim::{GroupAttributes, MAX_GROUPS_OF_USER, MAX_MEMBERS},
};
use serde_json::json;

use super::{Conditions, ScimPage, ScimWritten, key};
use crate::{
    db::{
        Db, Found, FromRow, NewEvent, Session, Store, boxed, change, find, list, one, read, record,
        run, scalar,
    },
    error::{DriverError, StoreError},
};

/// A group that an identity provider keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScimGroup {
    pub id: GroupId,
    pub org_id: OrgId,
    /// Service account that pushed the group.
    pub pushed_by: PrincipalId,
    pub attributes: GroupAttributes,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    pub revision: i64,
    pub members: u64,
}

/// Filter of a list; what is absent does not matter.
#[derive(Debug, Clone, Default)]
pub struct ScimGroupFilter {
    pub id: Option<GroupId>,
    pub display_name: Option<String>,
    pub external_id: Option<String>,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScimMember {
    pub group_id: GroupId,
    pub principal_id: PrincipalId,
    /// Its name for people.
    pub name: String,
}

/// Part of a group that has to be as it was read, for a change to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupGuard {
    Revision,
    /// Whether those who are added and removed are members. The attributes stay as they are.
    Members,
}

/// A group before and after a change.
#[derive(Debug, Clone, Copy)]
pub struct ScimGroupChange<'a> {
    pub org: OrgId,
    /// As it was read; `None` if the change makes it.
    pub before: Option<&'a ScimGroup>,
    pub guard: GroupGuard,
    /// `None` if the change deletes it.
    pub after: Option<&'a ScimGroup>,
    pub added: &'a BTreeSet<PrincipalId>,
    /// Service account that has to have pushed those who are added, where that is known; any if absent.
    pub added_of: Option<PrincipalId>,
    /// All members, where it is deleted.
    pub removed: &'a BTreeSet<PrincipalId>,
}

record!(ScimGroup in "scim_groups", |row| id, org_id, pushed_by, created_at, changed_at, revision, members,
attributes = GroupAttributes {
    display_name: row.get("scim_groups.display_name")?,
    external_id: row.get("scim_groups.external_id")?,
});

record!(ScimMember in "scim_members", |row| group_id, principal_id, name);

/// The statements of a change that name principals.
struct Statements {
    present: String,
    add: String,
    remove: String,
    crowded: String,
    refresh: String,
    refresh_members: String,
}

impl Statements {
    fn of(db: &Db) -> Self {
        let touched = db.texts("$2");
        let listed = db.texts("$3");
        let members = format!(
            "FROM scim_members WHERE org_id = $1 AND group_id = $2 AND principal_id IN {listed}"
        );
        // The names of the groups of the principal of the row, as JSON.
        let names = db.pick("json_group_array(g.display_name)", "jsonb_agg(g.display_name)::text");
        let refresh = format!(
            "UPDATE principals SET provisioned_groups = COALESCE((SELECT {names} FROM scim_members m \
             JOIN scim_groups g ON g.org_id = m.org_id AND g.id = m.group_id \
             WHERE m.org_id = principals.org_id AND m.principal_id = principals.id), '[]') \
             WHERE org_id = $1 AND id IN "
        );
        Self {
            present: format!("SELECT COUNT(*) {members}"),
            add: format!(
                "INSERT INTO scim_members (org_id, group_id, principal_id) \
                 SELECT u.org_id, $2, u.principal_id FROM scim_users u \
                 WHERE u.org_id = $1 AND u.deleted_at IS NULL AND u.principal_id IN {listed} \
                 AND ($4 IS NULL OR u.pushed_by = $4)"
            ),
            remove: format!("DELETE {members}"),
            crowded: format!(
                "SELECT 1 FROM scim_members WHERE org_id = $1 AND principal_id IN {touched} \
                 GROUP BY principal_id HAVING COUNT(*) > $3 LIMIT 1"
            ),
            refresh_members: format!(
                "{refresh}(SELECT x.principal_id FROM scim_members x \
                 WHERE x.org_id = $1 AND x.group_id = $2)"
            ),
            refresh: refresh + &touched,
        }
    }
}

/// Writes the row of a group within a transaction, if it is as it was read; gives how many rows were written. Of one
/// that goes, this finds out whether it is as it was read.
async fn write(
    tx: &mut Session,
    before: Option<&ScimGroup>,
    group: &ScimGroup,
) -> Result<u64, DriverError> {
    let GroupAttributes { display_name, external_id } = &group.attributes;
    Ok(run!(tx, if before.is_some() { UPDATE } else { INSERT } => group.org_id, group.id,
        before.map_or(-1, |before| before.revision), group.revision, display_name,
        key(display_name), external_id, group.created_at, group.changed_at, group.pushed_by))
}

impl Store {
    /// A page of the groups that a provider keeps, by id, from `offset` on.
    #[boxed]
    pub async fn page_scim_groups(
        &self,
        org: OrgId,
        filter: &ScimGroupFilter,
        offset: u32,
        count: u32,
    ) -> Result<ScimPage<ScimGroup>, StoreError> {
        let conditions = Conditions::default()
            .equal("g.id", filter.id.map(|id| id.to_string()))
            .equal("g.display_key", filter.display_name.as_deref().map(key))
            .equal("g.external_id", filter.external_id.clone());
        let total =
            format!("SELECT COUNT(*) FROM scim_groups g WHERE g.org_id = $1{}", conditions.sql);
        let page = conditions.page(SELECT, "g.id", offset, count);
        let (rows, total): (Vec<Found<ScimGroup>>, u64) = read!(self, org, |conn| {
            let values = || conditions.bound(org);
            let rows = conn.all(FromRow::from_row, page, values()).await?;
            (rows, conn.one(scalar, total, values()).await?)
        });
        Ok(ScimPage { items: self.records(rows), total })
    }

    /// The group of this id.
    #[boxed]
    pub async fn find_scim_group(
        &self,
        org: OrgId,
        id: GroupId,
    ) -> Result<Option<ScimGroup>, StoreError> {
        let filter = ScimGroupFilter { id: Some(id), ..ScimGroupFilter::default() };
        Ok(self.page_scim_groups(org, &filter, 0, 1).await?.items.pop())
    }

    /// The members of these groups, by group and id.
    #[boxed]
    pub async fn scim_members(
        &self,
        org: OrgId,
        groups: &[GroupId],
    ) -> Result<Vec<ScimMember>, StoreError> {
        let list = format!(
            "SELECT m.group_id, m.principal_id, p.name FROM scim_members m \
             JOIN principals p ON p.org_id = m.org_id AND p.id = m.principal_id \
             WHERE m.org_id = $1 AND m.group_id IN {} ORDER BY m.group_id, m.principal_id",
            self.db.texts("$2")
        );
        Ok(list!(self, org, list => org, json!(groups).to_string()))
    }

    /// Makes, changes or deletes a group; its members have the name of it from then on. Fails if another group has
    /// the name or the id.
    #[boxed]
    pub async fn change_scim_group(
        &self,
        change: &ScimGroupChange<'_>,
        event: &NewEvent,
    ) -> Result<ScimWritten, StoreError> {
        let ScimGroupChange { org: org_id, before, guard, after, added, added_of, removed } =
            *change;
        let Some(group) = after.or(before) else { return Ok(ScimWritten::Stale) };
        let sql = Statements::of(&self.db);
        let org = org_id.to_string();
        let id = group.id.to_string();
        let renamed = before
            .zip(after)
            .is_some_and(|(one, next)| one.attributes.display_name != next.attributes.display_name);
        let touched = json!(added.union(removed).collect::<Vec<_>>()).to_string();
        change!(self, org_id, |tx| {
            tx.lock_tokens(&org).await?;
            let written = match guard {
                GroupGuard::Revision => write(&mut tx, before, group).await?,
                GroupGuard::Members => {
                    run!(tx, TOUCH => &org, &id, group.changed_at, group.pushed_by)
                }
            };
            let remove = json!(removed).to_string();
            let left = run!(tx, sql.remove => &org, &id, &remove);
            let add = json!(added).to_string();
            let present: i64 = one!(tx, scalar sql.present => &org, &id, &add);
            if written == 0 || present > 0 || usize::try_from(left) != Ok(removed.len()) {
                return Ok(ScimWritten::Stale);
            }
            let add = run!(tx, sql.add => &org, &id, &add, added_of);
            if usize::try_from(add) != Ok(added.len()) {
                return Ok(ScimWritten::UnknownMember);
            }
            let members: i64 = one!(tx, scalar COUNT => &org, &id);
            let crowded: Option<i32> = find!(tx, scalar sql.crowded => &org, &touched,
                MAX_GROUPS_OF_USER);
            if usize::try_from(members).is_ok_and(|it| it > MAX_MEMBERS) || crowded.is_some() {
                return Ok(ScimWritten::Full);
            }
            run!(tx, sql.refresh => &org, &touched);
            if renamed {
                run!(tx, sql.refresh_members => &org, &id);
            }
            if after.is_none() {
                let deleted = run!(tx, DELETE => &org, &id);
                if deleted == 0 {
                    return Ok(ScimWritten::Stale);
                }
            }
            tx.record_event(&self.row_key, event).await?;
        });
        Ok(ScimWritten::Done)
    }
}

const SELECT: &str = "SELECT g.*, (SELECT COUNT(*) FROM scim_members m WHERE m.org_id = g.org_id \
                      AND m.group_id = g.id) AS members FROM scim_groups g WHERE g.org_id = $1";

const INSERT: &str = "
INSERT INTO scim_groups (org_id, id, revision, display_name, display_key, external_id, created_at, changed_at,
    pushed_by)
SELECT $1, $2, $4, $5, $6, $7, $8, $9, $10 WHERE $3 < 0";

const UPDATE: &str = "
UPDATE scim_groups SET revision = $4, display_name = $5, display_key = $6, external_id = $7,
    created_at = $8, changed_at = $9, pushed_by = $10
WHERE org_id = $1 AND id = $2 AND revision = $3";

/// Raises the revision of a group whose members change, if it is still this account's.
const TOUCH: &str = "
UPDATE scim_groups SET revision = revision + 1, changed_at = $3
WHERE org_id = $1 AND id = $2 AND pushed_by = $4";

const COUNT: &str = "SELECT COUNT(*) FROM scim_members WHERE org_id = $1 AND group_id = $2";

const DELETE: &str = "
DELETE FROM scim_groups WHERE org_id = $1 AND id = $2 AND NOT EXISTS (
    SELECT 1 FROM scim_members m WHERE m.org_id = $1 AND m.group_id = $2)";
