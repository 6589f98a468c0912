//! Principals made and changed together with the event that records it.

use async_recursion::async_recursion as boxed;
use portcullis_core::principal::Role;

use super::{Principal, insert};
use crate::{
    authorization::END_CODES,
    db::{NewEvent, Store, change, find},
    error::StoreError,
    search::beginning,
};

/// Treatment of an org's last admin who is not disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastAdmin {
    /// A change that would leave the org without one is refused.
    Kept,
    /// The operator may do without.
    Dispensable,
}

/// A principal before and after a change.
#[derive(Debug, Clone, Copy)]
pub struct PrincipalChange<'a> {
    /// The principal as it was read; the change is made only if it is still that.
    pub before: &'a Principal,
    /// The same principal with another name, role, groups or `disabled_at`.
    pub after: &'a Principal,
    pub last_admin: LastAdmin,
}

/// Result of a change to a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    Done,
    /// The principal changed since it was read, or is gone.
    Stale,
    /// The principal is the last admin, who is kept.
    LastAdmin,
}

impl Principal {
    /// Returns true if it can administer the org at this moment.
    #[must_use]
    pub const fn is_active_admin(&self) -> bool {
        matches!(self.role, Role::Admin) && self.disabled_at.is_none()
    }
}

impl PrincipalChange<'_> {
    /// True if an admin who has to be kept would be none afterwards.
    pub(crate) const fn keeps_admin(&self) -> bool {
        matches!(self.last_admin, LastAdmin::Kept)
            && self.before.is_active_admin()
            && !self.after.is_active_admin()
    }
}

/// Changes a principal within a transaction of either database; one that is disabled loses its logins for good. What
/// is not done has to be rolled back.
macro_rules! change_within {
    ($tx:ident, $change:expr) => {{
        let asked: &$crate::principals::PrincipalChange<'_> = $change;
        let $crate::principals::PrincipalChange { before, after, last_admin: _ } = *asked;
        let keeps_admin = asked.keeps_admin();
        let org = before.org_id.to_string();
        if keeps_admin {
            // Two admins who demote each other at the same moment wait for each other here.
            $crate::db::run!($tx, "UPDATE orgs SET plan = plan WHERE id = $1" => &org);
        }
        let changed = $crate::db::run!($tx, $crate::principals::changes::CHANGE => &org,
            before.id, &after.name, after.role.name(),
            $crate::principals::listed(after.role).to_string(),
            serde_json::json!(after.groups).to_string(), after.disabled_at, &before.name,
            before.role.name(), $crate::principals::listed(before.role).to_string(),
            serde_json::json!(before.groups).to_string(), before.disabled_at);
        if before.name != after.name {
            $crate::search::index_words!($tx, before.org_id, "name", before.id, [after.name.as_str()]);
        }
        if let (None, Some(ended)) = (before.disabled_at, after.disabled_at) {
            for end in $crate::principals::changes::END_LOGINS {
                $crate::db::run!($tx, end => &org, before.id, ended);
            }
        }
        let other: Option<i32> = if changed > 0 && keeps_admin {
            $crate::db::find!($tx, scalar $crate::principals::changes::OTHER_ADMIN => &org)
        } else {
            Some(1)
        };
        match (changed, other) {
            (0, _) => $crate::principals::Changed::Stale,
            (_, None) => $crate::principals::Changed::LastAdmin,
            (_, Some(_)) => $crate::principals::Changed::Done,
        }
    }};
}

pub(crate) use change_within;

/// Finds out within a transaction of either database whether another principal of the org has the name, written with
/// other capitals.
macro_rules! is_taken {
    ($tx:ident, $principal:expr) => {{
        let principal: &Principal = $principal;
        $tx.lock_tokens(&principal.org_id.to_string()).await?;
        let other: Option<i32> = find!($tx, scalar NAMED => principal.org_id,
            beginning(Some(&principal.name)), principal.id, principal.name.to_ascii_lowercase());
        other.is_some()
    }};
}

fn taken() -> StoreError {
    StoreError::Conflict("principals".to_owned())
}

impl Store {
    /// Adds a principal; the event is committed with it. Fails if its id exists, or its name with any capitals.
    #[boxed]
    pub async fn record_new_principal(
        &self,
        principal: &Principal,
        event: &NewEvent,
    ) -> Result<(), StoreError> {
        change!(self, principal.org_id, |tx| {
            if is_taken!(tx, principal) {
                return Err(taken());
            }
            insert!(tx, principal);
            tx.record_event(&self.row_key, event).await?;
        });
        Ok(())
    }

    /// Changes a principal; the event is committed with it, and nothing is written unless the
    /// answer is [`Changed::Done`]. Fails if another one has the new name, with any capitals.
    #[boxed]
    pub async fn change_principal(
        &self,
        change: &PrincipalChange<'_>,
        event: &NewEvent,
    ) -> Result<Changed, StoreError> {
        change!(self, change.before.org_id, |tx| {
            if change.before.name != change.after.name && is_taken!(tx, change.after) {
                return Err(taken());
            }
            match change_within!(tx, change) {
                Changed::Done => {}
                refused @ (Changed::Stale | Changed::LastAdmin) => return Ok(refused),
            }
            tx.record_event(&self.row_key, event).await?;
        });
        Ok(Changed::Done)
    }
}

pub(crate) const CHANGE: &str = "
UPDATE principals SET name = $3, role = $4, scopes = $5, groups = $6, disabled_at = $7
WHERE org_id = $1 AND id = $2 AND name = $8 AND role = $9 AND scopes = $10 AND groups = $11
    AND disabled_at IS NOT DISTINCT FROM $12";

/// Another principal of which a word is the whole name.
const NAMED: &str = "
SELECT 1 FROM search_words w JOIN principals p ON p.org_id = w.org_id AND p.id = w.id
WHERE w.org_id = $1 AND w.source = 'name' AND w.word = $2 AND w.id <> $3 AND lower(p.name) = $4 LIMIT 1";

/// Ends of the logins of a person: sessions of browsers, and codes that are not used yet.
pub(crate) const END_LOGINS: [&str; 2] = [
    "UPDATE browser_sessions SET ended_at = $3
    WHERE org_id = $1 AND principal_id = $2 AND ended_at IS NULL",
    END_CODES,
];

pub(crate) const OTHER_ADMIN: &str = "
SELECT 1 FROM principals WHERE org_id = $1 AND role = 'admin' AND disabled_at IS NULL LIMIT 1";
