//! Principals made and changed together with the event that records it.

use async_recursion::async_recursion as boxed;
use portcullis_core::{clock::Timestamp, principal::Role};
use serde_json::json;

use super::{Principal, insert, listed};
use crate::{
    Store,
    db::{Dialect, NewEvent, change},
    error::StoreError,
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
    /// It is not as it was read any more, or gone.
    Stale,
    /// It is the last admin, who is kept.
    LastAdmin,
}

impl Principal {
    /// Returns true if it can administer the org at this moment.
    #[must_use]
    pub const fn is_active_admin(&self) -> bool {
        matches!(self.role, Role::Admin) && self.disabled_at.is_none()
    }
}

impl Store {
    /// Adds a principal; the event is committed with it. Fails if its id or name exists.
    #[boxed]
    pub async fn record_new_principal(
        &self,
        principal: &Principal,
        event: &NewEvent,
    ) -> Result<(), StoreError> {
        change!(self, principal.org_id, |tx| {
            insert!(tx, principal);
            tx.announce_writer().await?;
            tx.insert_events(event.occurred_at.as_micros(), &[event]).await?;
        });
        Ok(())
    }

    /// Changes a principal; the event is committed with it, and nothing is written unless the
    /// answer is [`Changed::Done`]. Fails if the new name exists.
    #[boxed]
    pub async fn change_principal(
        &self,
        change: &PrincipalChange<'_>,
        event: &NewEvent,
    ) -> Result<Changed, StoreError> {
        let PrincipalChange { before, after, last_admin } = *change;
        let org = before.org_id;
        let keeps_admin =
            last_admin == LastAdmin::Kept && before.is_active_admin() && !after.is_active_admin();
        change!(self, org, |tx| {
            if keeps_admin {
                // Two admins who demote each other at the same moment wait for each other here.
                sqlx::query("UPDATE orgs SET plan = plan WHERE id = $1")
                    .bind(org.to_string())
                    .execute(&mut *tx)
                    .await?;
            }
            let changed = sqlx::query(CHANGE)
                .bind(org.to_string())
                .bind(before.id.to_string())
                .bind(&after.name)
                .bind(after.role.name())
                .bind(listed(after.role).to_string())
                .bind(json!(after.groups).to_string())
                .bind(after.disabled_at.map(Timestamp::as_micros))
                .bind(&before.name)
                .bind(before.role.name())
                .bind(listed(before.role).to_string())
                .bind(json!(before.groups).to_string())
                .bind(before.disabled_at.map(Timestamp::as_micros))
                .execute(&mut *tx)
                .await?
                .rows_affected();
            if changed == 0 {
                return Ok(Changed::Stale);
            }
            if keeps_admin {
                let other: Option<i32> = sqlx::query_scalar(OTHER_ADMIN)
                    .bind(org.to_string())
                    .fetch_optional(&mut *tx)
                    .await?;
                if other.is_none() {
                    return Ok(Changed::LastAdmin);
                }
            }
            tx.announce_writer().await?;
            tx.insert_events(event.occurred_at.as_micros(), &[event]).await?;
        });
        Ok(Changed::Done)
    }
}

const CHANGE: &str = "
UPDATE principals SET name = $3, role = $4, scopes = $5, groups = $6, disabled_at = $7
WHERE org_id = $1 AND id = $2 AND name = $8 AND role = $9 AND scopes = $10 AND groups = $11
    AND disabled_at IS NOT DISTINCT FROM $12";

const OTHER_ADMIN: &str = "
SELECT 1 FROM principals WHERE org_id = $1 AND role = 'admin' AND disabled_at IS NULL LIMIT 1";
