//! Policies that admins switched off for their org.

use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId},
};

use crate::{
    db::{NewEvent, Store, boxed, change, list, one, record, run},
    error::StoreError,
};

/// Policies that an org can have switched off at once.
pub const MAX_POLICY_OVERRIDES: usize = 20;
/// Overrides that are read of all orgs.
const MOST: i64 = 20_000;

/// A policy that is switched off for an org.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyOverride {
    pub org_id: OrgId,
    pub policy_id: String,
    /// The version that was switched off.
    pub version: String,
    pub reason: String,
    pub set_by: PrincipalId,
    pub set_at: Timestamp,
    pub until: Timestamp,
}

/// End of an override, where it takes the place of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverrideEnd {
    Any,
    /// Not before the end of the other one.
    NotEarlier,
}

/// Result of switching a policy off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverrideSet {
    Done,
    /// The org has as many others switched off as it may have.
    Full,
    /// Nothing is written: the policy is switched off for longer.
    Earlier,
}

record!(PolicyOverride in "policy_overrides", |row| org_id, policy_id, version, reason, set_by,
    set_at, until = row.get("policy_overrides.until_at")?);

impl Store {
    /// Switches a policy off for an org, in place of an earlier override of it; its event is committed with it.
    /// Overrides of the org that are over are forgotten.
    #[boxed]
    pub async fn set_policy_override(
        &self,
        new: &PolicyOverride,
        end: OverrideEnd,
        event: &NewEvent,
    ) -> Result<OverrideSet, StoreError> {
        let org = new.org_id.to_string();
        change!(self, new.org_id, |tx| {
            // The lock keeps another one from being added between the count and the insertion.
            tx.lock_tokens(&org).await?;
            if end == OverrideEnd::NotEarlier {
                let longer: i64 = one!(tx, scalar LONGER => &org, &new.policy_id, new.until);
                if longer > 0 {
                    return Ok(OverrideSet::Earlier);
                }
            }
            run!(
                tx, "DELETE FROM policy_overrides WHERE org_id = $1 AND (until_at <= $2 OR policy_id = $3)" =>
                &org, new.set_at, &new.policy_id
            );
            let others: i64 =
                one!(tx, scalar "SELECT COUNT(*) FROM policy_overrides WHERE org_id = $1" => &org);
            if usize::try_from(others).unwrap_or(usize::MAX) >= MAX_POLICY_OVERRIDES {
                return Ok(OverrideSet::Full);
            }
            run!(tx, SET => &org, &new.policy_id, &new.version, &new.reason, new.set_by,
                new.set_at, new.until);
            tx.record_event(&self.row_key, event).await?;
        });
        Ok(OverrideSet::Done)
    }

    /// Takes an override back before its time is over; its event is committed with it. `false`, and nothing is
    /// written, if there is none in force.
    #[boxed]
    pub async fn remove_policy_override(
        &self,
        org: OrgId,
        policy: &str,
        event: &NewEvent,
    ) -> Result<bool, StoreError> {
        let now = event.occurred_at.as_micros();
        change!(self, org, |tx| {
            let removed = run!(
                tx, "DELETE FROM policy_overrides \
                 WHERE org_id = $1 AND policy_id = $2 AND until_at > $3"
                => org, policy, now
            );
            if removed == 0 {
                return Ok(false);
            }
            tx.record_event(&self.row_key, event).await?;
        });
        Ok(true)
    }

    /// The overrides of all orgs that are in force at this moment, the oldest first.
    #[boxed]
    pub async fn policy_overrides(
        &self,
        now: Timestamp,
    ) -> Result<Vec<PolicyOverride>, StoreError> {
        Ok(list!(self, installation, IN_FORCE => now, MOST))
    }
}

const LONGER: &str = "
SELECT COUNT(*) FROM policy_overrides WHERE org_id = $1 AND policy_id = $2 AND until_at > $3";

const SET: &str = "
INSERT INTO policy_overrides (org_id, policy_id, version, reason, set_by, set_at, until_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)";

const IN_FORCE: &str = "
SELECT org_id, policy_id, version, reason, set_by, set_at, until_at
FROM policy_overrides WHERE until_at > $1
ORDER BY set_at, org_id, policy_id LIMIT $2";
