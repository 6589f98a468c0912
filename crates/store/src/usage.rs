//! Usage of each org's plan by day, for its admins to see.

use portcullis_core::{clock::Timestamp, id::OrgId};

use crate::{
    db::{Store, boxed, change, changed, one, read, record, run},
    error::StoreError,
};

const DAY: i64 = 24 * 60 * 60;
/// Days for which usage is kept.
const KEPT_DAYS: i64 = 400;

/// Requests and invocations that were counted against a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub requests: u64,
    pub invocations: u64,
}

record!(Usage in "org_usage", |row| requests, invocations);

/// The day of a moment (UTC), in days since the epoch.
const fn day_of(moment: Timestamp) -> i64 {
    moment.as_seconds().div_euclid(DAY)
}

impl Store {
    /// Adds what orgs used at this moment to their day. Orgs that are gone are passed over.
    #[boxed]
    pub async fn add_usage(
        &self,
        used: &[(OrgId, Usage)],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        change!(self, installation, |tx| {
            for (org, usage) in used {
                run!(tx, ADD => *org, day_of(now), usage.requests, usage.invocations);
            }
        });
        Ok(())
    }

    /// Usage of the org from the day of this moment on.
    #[boxed]
    pub async fn usage_since(&self, org: OrgId, since: Timestamp) -> Result<Usage, StoreError> {
        Ok(read!(self, org, |conn| one!(conn, SINCE => org, day_of(since))))
    }

    /// Forgets the usage of long ago.
    #[boxed]
    pub async fn forget_usage(&self, now: Timestamp) -> Result<(), StoreError> {
        let forget = "DELETE FROM org_usage WHERE day < $1";
        changed!(self, installation, forget => day_of(now) - KEPT_DAYS);
        Ok(())
    }
}

const ADD: &str = "
INSERT INTO org_usage (org_id, day, requests, invocations)
SELECT id, $2, $3, $4 FROM orgs WHERE id = $1
ON CONFLICT (org_id, day) DO UPDATE SET
    requests = org_usage.requests + excluded.requests,
    invocations = org_usage.invocations + excluded.invocations";

const SINCE: &str = "
SELECT CAST(COALESCE(SUM(requests), 0) AS BIGINT) AS requests,
    CAST(COALESCE(SUM(invocations), 0) AS BIGINT) AS invocations
FROM org_usage WHERE org_id = $1 AND day >= $2";
