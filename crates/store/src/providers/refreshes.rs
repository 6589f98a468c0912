//! Connections that need new credentials, and the node that gets them.

use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, ProviderId},
};

use super::ProviderRecord;
use crate::{
    db::{Store, boxed, changed, list},
    error::StoreError,
};

impl Store {
    /// Connections of all tenants whose time for new credentials has come, the most urgent first.
    #[boxed]
    pub async fn due_refreshes(
        &self,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<ProviderRecord>, StoreError> {
        Ok(list!(self, installation, DUE => now, limit))
    }

    /// Makes `holder`, a node or a task of it, the one that gets new credentials for a connection
    /// until `until`. `false` if another one is at it, the connection is gone, or it has newer
    /// credentials already.
    #[boxed]
    pub async fn lease_refresh(
        &self,
        org: OrgId,
        id: ProviderId,
        revision: i64,
        holder: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(changed!(self, org, LEASE => org, id, revision, holder, now, until) > 0)
    }

    /// Notes that new credentials could not be got, and when to try again; ends the lease.
    #[boxed]
    pub async fn refresh_failed(
        &self,
        org: OrgId,
        id: ProviderId,
        revision: i64,
        next: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let note = "UPDATE providers SET refresh_failures = refresh_failures + 1, \
                    refresh_due_at = $4, lease_holder = NULL, leased_until = NULL \
                    WHERE org_id = $1 AND id = $2 AND revision = $3";
        changed!(self, org, note => org, id, revision, next);
        Ok(())
    }
}

const DUE: &str = "
SELECT * FROM providers
WHERE refresh_due_at IS NOT NULL AND refresh_due_at <= $1 AND removed_at IS NULL
    AND missing_since IS NULL AND (leased_until IS NULL OR leased_until <= $1)
ORDER BY refresh_due_at LIMIT $2";

const LEASE: &str = "
UPDATE providers SET lease_holder = $4, leased_until = $6
WHERE org_id = $1 AND id = $2 AND revision = $3
    AND (leased_until IS NULL OR leased_until <= $5)";
