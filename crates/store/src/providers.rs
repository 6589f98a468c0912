//! Connections to upstream MCP servers.

mod attempts;
mod clients;
mod connections;
mod refreshes;

pub use self::{
    attempts::{ATTEMPT, Attempt, NewAttempt},
    clients::{CLIENT, OAuthClient},
    connections::{CONNECTION, CREDENTIAL, NewCredential, OwnerFilter, ProviderPage},
};

use async_recursion::async_recursion as boxed;
use portcullis_core::{
    clock::Timestamp,
    id::{OrgId, PrincipalId, ProviderId},
    tool::ProviderSlug,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    Store,
    db::{Found, Readable, all, change, find, one, parse, read, row},
    error::StoreError,
};

/// Owner of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProviderOwner {
    Org,
    Principal(PrincipalId),
}

impl ProviderOwner {
    pub(crate) fn to_text(self) -> String {
        match self {
            Self::Org => "org".to_owned(),
            Self::Principal(id) => id.to_string(),
        }
    }

    pub(crate) fn of_text(text: &str) -> Result<Self, StoreError> {
        match text {
            "org" => Ok(Self::Org),
            id => parse(id, "providers.owner").map(Self::Principal),
        }
    }
}

portcullis_core::words! {
    /// Status of a connection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ProviderStatus {
        /// Declared or begun, never yet connected.
        Pending = "pending",
        /// Its program is starting. Never stored.
        Starting = "starting",
        /// The connection works.
        Connected = "connected",
        /// The upstream refused the credentials: a person must act.
        NeedsAuth = "needs_auth",
        /// The upstream cannot be reached; it heals by itself.
        Error = "error",
    }
}

impl ProviderStatus {
    const STORED: [Self; 4] = [Self::Pending, Self::Connected, Self::NeedsAuth, Self::Error];

    /// Reads back what [`Self::as_str`] wrote.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::STORED.into_iter().find(|status| status.as_str() == name)
    }
}

/// A connection as it is declared.
#[derive(Debug, Clone)]
pub struct NewProvider {
    pub id: ProviderId,
    pub org_id: OrgId,
    pub owner: ProviderOwner,
    /// Its short name; one connection per org, owner and slug.
    pub slug: ProviderSlug,
    pub name: String,
    /// Authentication: `none`, `api_key`, `oauth2`.
    pub auth_type: String,
}

/// A connection as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderRecord {
    /// The same id for ever, per org, owner and slug.
    pub id: ProviderId,
    pub org_id: OrgId,
    pub owner: ProviderOwner,
    pub slug: ProviderSlug,
    pub name: String,
    pub auth_type: String,
    pub status: ProviderStatus,
    pub last_error: Option<String>,
    pub tools: u32,
    /// When it was first declared.
    pub created_at: Timestamp,
    /// When it first worked.
    pub connected_at: Option<Timestamp>,
    pub updated_at: Timestamp,
    pub grant: Grant,
    pub account: Option<Account>,
    pub tool_list: Option<String>,
    /// Grows with each new credential.
    pub revision: i64,
    /// When it was disconnected, if its provider has one whether anybody connects or not.
    pub removed_at: Option<Timestamp>,
}

/// Metadata of a connection's credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    /// Server and issuer that they are bound to: they are used for nothing else.
    pub audience: Option<String>,
    pub scopes: Vec<String>,
    pub expires_at: Option<Timestamp>,
    pub refreshable: bool,
    pub refreshed_at: Option<Timestamp>,
    pub refresh_due_at: Option<Timestamp>,
    /// Number of failed renewals in a row.
    pub refresh_failures: u32,
}

/// Account of a connection upstream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    pub id: Option<String>,
    pub name: Option<String>,
}

row!(pub(crate) ProviderRow {
    id: String,
    org_id: String,
    owner: String,
    slug: String,
    name: String,
    auth_type: String,
    status: String,
    last_error: Option<String>,
    tools: i64,
    created_at: i64,
    connected_at: Option<i64>,
    updated_at: i64,
    audience: Option<String>,
    scopes: String,
    expires_at: Option<i64>,
    refreshable: i64,
    refreshed_at: Option<i64>,
    refresh_due_at: Option<i64>,
    refresh_failures: i64,
    account_id: Option<String>,
    account_name: Option<String>,
    tool_list: Option<String>,
    revision: i64,
    removed_at: Option<i64>,
});

impl Readable for ProviderRow {
    const TABLE: &'static str = "providers";
    type Record = ProviderRecord;

    fn read(self) -> Result<ProviderRecord, StoreError> {
        let status = ProviderStatus::from_name(&self.status);
        Ok(ProviderRecord {
            id: parse(&self.id, "providers.id")?,
            org_id: parse(&self.org_id, "providers.org_id")?,
            owner: ProviderOwner::of_text(&self.owner)?,
            slug: parse(&self.slug, "providers.slug")?,
            name: self.name,
            auth_type: self.auth_type,
            status: status.ok_or(StoreError::Corrupt("providers.status"))?,
            last_error: self.last_error,
            tools: u32::try_from(self.tools).map_err(|_| StoreError::Corrupt("providers.tools"))?,
            created_at: Timestamp::from_micros(self.created_at),
            connected_at: self.connected_at.map(Timestamp::from_micros),
            updated_at: Timestamp::from_micros(self.updated_at),
            grant: Grant {
                audience: self.audience,
                scopes: self.scopes.split_ascii_whitespace().map(str::to_owned).collect(),
                expires_at: self.expires_at.map(Timestamp::from_micros),
                refreshable: self.refreshable != 0,
                refreshed_at: self.refreshed_at.map(Timestamp::from_micros),
                refresh_due_at: self.refresh_due_at.map(Timestamp::from_micros),
                refresh_failures: u32::try_from(self.refresh_failures)
                    .map_err(|_| StoreError::Corrupt("providers.refresh_failures"))?,
            },
            account: (self.account_id.is_some() || self.account_name.is_some())
                .then_some(Account { id: self.account_id, name: self.account_name }),
            tool_list: self.tool_list,
            revision: self.revision,
            removed_at: self.removed_at.map(Timestamp::from_micros),
        })
    }
}

impl Store {
    /// Adds the connection as `pending`, or renames the one that the org, owner and slug have.
    #[boxed]
    pub async fn upsert_provider(
        &self,
        provider: &NewProvider,
        now: Timestamp,
    ) -> Result<ProviderRecord, StoreError> {
        let row: ProviderRow = change!(self, provider.org_id, |tx| {
            one!(tx, UPSERT => provider.id, provider.org_id, provider.owner.to_text(),
                provider.slug.as_str(), &provider.name, &provider.auth_type, now)
        });
        row.read()
    }

    /// Returns true if [`Self::upsert_provider`] would change nothing: the org, owner and slug have a
    /// connection of this name, removed or not.
    #[boxed]
    pub async fn has_provider(&self, provider: &NewProvider) -> Result<bool, StoreError> {
        let known: Option<i64> = read!(self, provider.org_id, |conn| {
            find!(
                conn, scalar "SELECT CAST(1 AS BIGINT) FROM providers WHERE org_id = $1 AND owner = $2 \
                 AND slug = $3 AND name = $4 AND auth_type = $5"
                => provider.org_id, provider.owner.to_text(), provider.slug.as_str(),
                &provider.name, &provider.auth_type
            )
        });
        Ok(known.is_some())
    }

    /// Every connection of the org that was not removed, by slug, then id. What the caller may see
    /// of them is not decided here.
    #[boxed]
    pub async fn list_providers(&self, org: OrgId) -> Result<Vec<ProviderRecord>, StoreError> {
        let rows: Vec<Found<ProviderRow>> = read!(self, org, |conn| {
            all!(
                conn, "SELECT * FROM providers WHERE org_id = $1 AND removed_at IS NULL ORDER BY slug, id" =>
                org
            )
        });
        Ok(self.readable(rows))
    }

    /// The org's connection with this id.
    #[boxed]
    pub async fn find_provider(
        &self,
        org: OrgId,
        id: ProviderId,
    ) -> Result<Option<ProviderRecord>, StoreError> {
        let row: Option<ProviderRow> = read!(self, unqueued org, |conn| {
            find!(conn, "SELECT * FROM providers WHERE org_id = $1 AND id = $2" => org, id)
        });
        row.map(ProviderRow::read).transpose()
    }
}

const UPSERT: &str = "
INSERT INTO providers (id, org_id, owner, slug, name, auth_type, status, tools, created_at,
    updated_at)
VALUES ($1, $2, $3, $4, $5, $6, 'pending', 0, $7, $7)
ON CONFLICT (org_id, owner, slug) DO UPDATE SET
    updated_at = CASE WHEN providers.name = excluded.name
        AND providers.auth_type = excluded.auth_type
        THEN providers.updated_at ELSE excluded.updated_at END,
    name = excluded.name, auth_type = excluded.auth_type
RETURNING *";
