//! Principals made and changed together with the event that records it.

use portcullis_core::principal::Role;

use serde_json::json;

use super::{Principal, insert, listed};
use crate::{
    authorization::END_CODES,
    db::{NewEvent, Session, Store, boxed, change, find, run},
    error::{DriverError, StoreError},
    search::{beginning, index_words},
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

/// Changes a principal within a transaction; one that is disabled loses its logins for good. What is not done has to
/// be rolled back.
pub(crate) async fn change_within(
    tx: &mut Session,
    change: &PrincipalChange<'_>,
) -> Result<Changed, DriverError> {
    let PrincipalChange { before, after, .. } = *change;
    let (org, keeps_admin) = (before.org_id, change.keeps_admin());
    if keeps_admin {
        // Two admins who demote each other at the same moment wait for each other here.
        run!(tx, "UPDATE orgs SET plan = plan WHERE id = $1" => org);
    }
    let changed = run!(tx, CHANGE => org, before.id, &after.name, after.role.name(),
        listed(after.role), json!(after.groups).to_string(), after.disabled_at, &before.name,
        before.role.name(), listed(before.role), json!(before.groups).to_string(),
        before.disabled_at);
    if before.name != after.name {
        index_words(tx, org, "name", &before.id.to_string(), &[&after.name]).await?;
    }
    if let (None, Some(ended)) = (before.disabled_at, after.disabled_at) {
        for end in END_LOGINS {
            run!(tx, end => org, before.id, ended);
        }
    }
    if changed == 0 {
        return Ok(Changed::Stale);
    }
    let other: Option<i32> =
        if keeps_admin { find!(tx, scalar OTHER_ADMIN => org) } else { Some(1) };
    Ok(if other.is_none() { Changed::LastAdmin } else { Changed::Done })
}

/// Fails within a transaction if another principal of the org has the name, written with other capitals.
async fn refuse_taken(tx: &mut Session, principal: &Principal) -> Result<(), StoreError> {
    tx.lock_tokens(&principal.org_id.to_string()).await?;
    let other: Option<i32> = find!(tx, scalar NAMED => principal.org_id,
        beginning(Some(&principal.name)), principal.id, principal.name.to_ascii_lowercase());
    match other {
        None => Ok(()),
        Some(_) => Err(StoreError::Conflict("principals".to_owned())),
    }
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
            refuse_taken(&mut tx, principal).await?;
            insert(&mut tx, principal).await?;
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
            if change.before.name != change.after.name {
                refuse_taken(&mut tx, change.after).await?;
            }
            match change_within(&mut tx, change).await? {
                Changed::Done => {}
                refused @ (Changed::Stale | Changed::LastAdmin) => return Ok(refused),
            }
            tx.record_event(&self.row_key, event).await?;
        });
        Ok(Changed::Done)
    }
}

const CHANGE: &str = "
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

const OTHER_ADMIN: &str = "
SELECT 1 FROM principals WHERE org_id = $1 AND role = 'admin' AND disabled_at IS NULL LIMIT 1";
