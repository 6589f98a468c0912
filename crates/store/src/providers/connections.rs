//! Connections with credentials of their own: finding, keeping and removing them.

use std::collections::BTreeSet;

use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId, ProviderId},
};
use serde_json::json;

use super::{Account, Grant, ProviderOwner, ProviderRecord, ProviderStatus};
use crate::{
    db::{NewEvent, Store, all, boxed, change, changed, find, list, read, run},
    error::StoreError,
    secrets::{SealedSecret, drop_secrets, put_secret},
};

/// Kind under which secrets of connections are stored.
pub const CONNECTION: &str = "connection";
/// The field of a connection's credentials.
pub const CREDENTIAL: &str = "credential";

/// Credentials that work, and what is known of them.
#[derive(Debug, Clone)]
pub struct NewCredential {
    /// The credentials, sealed for their connection.
    pub secret: SealedSecret,
    pub grant: Grant,
    pub account: Option<Account>,
}

/// Owners whose connections to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerFilter {
    Everybody,
    /// The org's and this principal's.
    Reachable(PrincipalId),
    Only(ProviderOwner),
}

/// A page of connections.
#[derive(Debug, Clone, Copy)]
pub struct ProviderPage<'a> {
    pub owner: OwnerFilter,
    /// Only beyond this slug and id.
    pub after: Option<(&'a str, &'a str)>,
    pub limit: u32,
}

impl Store {
    /// A page of the org's connections, by slug, then id.
    pub async fn page_providers(
        &self,
        org: OrgId,
        page: ProviderPage<'_>,
    ) -> Result<Vec<ProviderRecord>, StoreError> {
        let (all, first, second) = match page.owner {
            OwnerFilter::Everybody => (1, String::new(), String::new()),
            OwnerFilter::Reachable(id) => (0, ProviderOwner::Org.to_text(), id.to_string()),
            OwnerFilter::Only(owner) => (0, owner.to_text(), owner.to_text()),
        };
        let (slug, id) = page.after.unwrap_or_default();
        Ok(list!(self, org, PAGE => org, all, first, second, slug, id, page.limit))
    }

    /// The connections that a principal can call through: the org's and its own, whatever their
    /// state. Asked when a session is looked up, never on the path of a call.
    #[boxed]
    pub async fn reachable_providers(
        &self,
        org: OrgId,
        principal: PrincipalId,
    ) -> Result<Vec<ProviderRecord>, StoreError> {
        let page =
            ProviderPage { owner: OwnerFilter::Reachable(principal), after: None, limit: 10_000 };
        self.page_providers(org, page).await
    }

    /// The connections of many owners at once, each by slug.
    #[boxed]
    pub async fn providers_of(
        &self,
        owners: &BTreeSet<(OrgId, ProviderOwner)>,
    ) -> Result<Vec<ProviderRecord>, StoreError> {
        let find = self.db.pick(OF_OWNERS_SQLITE, OF_OWNERS_POSTGRES);
        let owners: Vec<_> = owners.iter().map(|(org, owner)| (org, owner.to_text())).collect();
        Ok(list!(self, installation, find => json!(owners).to_string()))
    }

    /// The slugs of which anybody in the installation has a connection. One that was only begun is none.
    #[boxed]
    pub async fn connected_slugs(&self) -> Result<BTreeSet<String>, StoreError> {
        let slugs: Vec<String> = read!(self, installation, |conn| all!(conn, scalar CONNECTED));
        Ok(slugs.into_iter().collect())
    }

    /// The sealed credentials of a connection of the org.
    #[boxed]
    pub async fn credential_of(
        &self,
        org: OrgId,
        id: ProviderId,
    ) -> Result<Option<SealedSecret>, StoreError> {
        self.find_secret(&org.to_string(), CONNECTION, &id.to_string(), CREDENTIAL).await
    }

    /// Gives a connection credentials that work, in one transaction with what is known of them:
    /// it is connected from now on. `None` if there is no such connection any more.
    #[boxed]
    pub async fn keep_credential(
        &self,
        org: OrgId,
        id: ProviderId,
        new: &NewCredential,
        now: Timestamp,
    ) -> Result<Option<ProviderRecord>, StoreError> {
        Ok(change!(self, org, |tx| {
            let account = new.account.as_ref();
            let kept: Option<ProviderRecord> = find!(tx, KEEP => org, id,
                new.grant.audience.as_deref(), new.grant.scopes.join(" "), new.grant.expires_at,
                new.grant.refreshable, new.grant.refreshed_at, new.grant.refresh_due_at,
                account.and_then(|account| account.id.as_deref()),
                account.and_then(|account| account.name.as_deref()), now);
            if kept.is_some() {
                put_secret(&mut tx, &new.secret).await?;
            }
            kept
        }))
    }

    /// Says how a connection is, unless it got other credentials than those of `revision`
    /// meanwhile. `false` if nothing was changed.
    #[boxed]
    pub async fn set_status_of(
        &self,
        org: OrgId,
        id: ProviderId,
        revision: i64,
        status: ProviderStatus,
        why: Option<&str>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(changed!(self, org, SET_STATUS => org, id, revision, status.as_str(), why, now) > 0)
    }

    /// Deletes a connection with its credentials; its event is committed with it.
    /// `false`, and nothing is written, if there is none.
    #[boxed]
    pub async fn remove_provider(
        &self,
        org: OrgId,
        id: ProviderId,
        event: &NewEvent,
    ) -> Result<bool, StoreError> {
        let owner = org.to_string();
        let id = id.to_string();
        change!(self, org, |tx| {
            let removed = run!(tx, "DELETE FROM providers WHERE org_id = $1 AND id = $2" =>
                &owner, &id);
            if removed == 0 {
                return Ok(false);
            }
            drop_secrets(&mut tx, &owner, CONNECTION, &id).await?;
            tx.record_event(&self.row_key, event).await?;
        });
        Ok(true)
    }

    /// Hides a connection that the configuration makes by itself, until it is connected anew; the
    /// event is committed with it. `false`, and nothing is written, if there is
    /// none to be seen.
    #[boxed]
    pub async fn hide_provider(
        &self,
        org: OrgId,
        id: ProviderId,
        event: &NewEvent,
    ) -> Result<bool, StoreError> {
        let now = event.occurred_at.as_micros();
        change!(self, org, |tx| {
            let hidden = run!(
                tx, "UPDATE providers SET removed_at = $3 \
                 WHERE org_id = $1 AND id = $2 AND removed_at IS NULL"
                => org, id, now
            );
            if hidden == 0 {
                return Ok(false);
            }
            tx.record_event(&self.row_key, event).await?;
        });
        Ok(true)
    }

    /// Notes since when connections with credentials have a provider that is not among the
    /// configured ones, and takes that back of those whose provider is there. Gives the slugs
    /// that were found missing only now.
    #[boxed]
    pub async fn note_missing_providers(
        &self,
        configured: &BTreeSet<&str>,
        now: Timestamp,
    ) -> Result<Vec<String>, StoreError> {
        let known: Vec<(String, Option<i64>)> = read!(self, installation, |conn| {
            all!(
                conn,
                "SELECT slug, MIN(missing_since) FROM providers WHERE revision > 0 \
                 GROUP BY slug, missing_since IS NULL"
            )
        });
        let mut gone = Vec::new();
        let mut back = Vec::new();
        for (slug, since) in known {
            match (configured.contains(slug.as_str()), since) {
                (false, None) => gone.push(slug),
                (true, Some(_)) => back.push(slug),
                (true, None) | (false, Some(_)) => {}
            }
        }
        if gone.is_empty() && back.is_empty() {
            return Ok(gone);
        }
        change!(self, installation, |tx| {
            for slug in &gone {
                run!(tx, GONE => slug, now);
            }
            for slug in &back {
                run!(tx, "UPDATE providers SET missing_since = NULL WHERE slug = $1" => slug);
            }
        });
        Ok(gone)
    }

    /// Some connections of all tenants whose provider is missing since this moment or longer.
    #[boxed]
    pub async fn missing_providers(
        &self,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<ProviderRecord>, StoreError> {
        let list =
            "SELECT * FROM providers WHERE missing_since <= $1 ORDER BY missing_since, id LIMIT $2";
        Ok(list!(self, installation, list => since, limit))
    }

    /// Shows a hidden connection again, under a new id: the old one stays gone.
    #[boxed]
    pub async fn unhide_provider(
        &self,
        org: OrgId,
        id: ProviderId,
        new: ProviderId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let show = "UPDATE providers SET removed_at = NULL, id = $3, created_at = $4, \
                    updated_at = $4 WHERE org_id = $1 AND id = $2 AND removed_at IS NOT NULL";
        changed!(self, org, show => org, id, new, now);
        Ok(())
    }
}

const PAGE: &str = "
SELECT * FROM providers
WHERE org_id = $1 AND removed_at IS NULL AND ($2 = 1 OR owner = $3 OR owner = $4)
    AND (slug > $5 OR (slug = $5 AND id > $6))
ORDER BY slug, id LIMIT $7";

const CONNECTED: &str =
    "SELECT DISTINCT slug FROM providers WHERE removed_at IS NULL AND status <> 'pending'";

const OF_OWNERS_SQLITE: &str = "
SELECT providers.* FROM json_each($1) AS owners
JOIN providers ON org_id = owners.value ->> 0 AND owner = owners.value ->> 1
WHERE removed_at IS NULL ORDER BY org_id, owner, slug";

/// Behind row-level security, an index is taken for values that are known alone: `OFFSET 0` makes them so.
const OF_OWNERS_POSTGRES: &str = "
SELECT providers.* FROM (SELECT value ->> 0 AS org, value ->> 1 AS name
    FROM jsonb_array_elements($1::jsonb) OFFSET 0) AS owners
JOIN providers ON org_id = owners.org AND owner = owners.name
WHERE removed_at IS NULL ORDER BY org_id, owner, slug";

const GONE: &str = "
UPDATE providers SET missing_since = $2
WHERE slug = $1 AND revision > 0 AND missing_since IS NULL";

const KEEP: &str = "
UPDATE providers SET status = 'connected', last_error = NULL, audience = $3, scopes = $4,
    expires_at = $5, refreshable = $6, refreshed_at = $7, refresh_due_at = $8,
    refresh_failures = 0, account_id = COALESCE($9, account_id),
    account_name = COALESCE($10, account_name), connected_at = COALESCE(connected_at, $11),
    updated_at = $11, revision = revision + 1, lease_holder = NULL, leased_until = NULL
WHERE org_id = $1 AND id = $2
RETURNING *";

const SET_STATUS: &str = "
UPDATE providers SET status = $4, last_error = $5, updated_at = $6,
    refresh_due_at = CASE WHEN $4 = 'needs_auth' THEN NULL ELSE refresh_due_at END
WHERE org_id = $1 AND id = $2 AND revision = $3 AND (status <> $4 OR last_error IS DISTINCT FROM $5)";
