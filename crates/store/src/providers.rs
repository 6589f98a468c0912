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

use portcullis_core::{
    capability::ProviderSlug,
    clock::Timestamp,
    id::{OrgId, PrincipalId, ProviderId},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    db::{Row, Store, boxed, change, columns, find, list, one, read, record},
    error::{DriverError, StoreError},
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

    fn of_text(text: &str) -> Option<Self> {
        match text {
            "org" => Some(Self::Org),
            id => id.parse().ok().map(Self::Principal),
        }
    }
}

columns! {
    ProviderOwner => String: |text| Self::of_text(&text);
    ProviderStatus => String: |name| Self::from_name(&name);
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

record!(ProviderRecord in "providers", |row| id, org_id, owner, slug, name, auth_type, status,
    last_error, tools, created_at, connected_at, updated_at, tool_list, revision, removed_at,
    grant = Grant::from_row(row)?, account = account_of(row)?);

record!(Grant in "providers", |row| audience, expires_at, refreshable, refreshed_at, refresh_due_at,
    refresh_failures, scopes = words_of(&row.get::<String>("providers.scopes")?));

fn words_of(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

fn account_of(row: Row<'_>) -> Result<Option<Account>, DriverError> {
    let (id, name): (Option<String>, Option<String>) =
        (row.get("providers.account_id")?, row.get("providers.account_name")?);
    Ok((id.is_some() || name.is_some()).then_some(Account { id, name }))
}

impl Store {
    /// Adds the connection as `pending`, or renames the one that the org, owner and slug have.
    #[boxed]
    pub async fn upsert_provider(
        &self,
        provider: &NewProvider,
        now: Timestamp,
    ) -> Result<ProviderRecord, StoreError> {
        Ok(change!(self, provider.org_id, |tx| {
            one!(tx, UPSERT => provider.id, provider.org_id, provider.owner.to_text(),
                provider.slug.as_str(), &provider.name, &provider.auth_type, now)
        }))
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
        let list =
            "SELECT * FROM providers WHERE org_id = $1 AND removed_at IS NULL ORDER BY slug, id";
        Ok(list!(self, org, list => org))
    }

    /// The org's connection with this id.
    #[boxed]
    pub async fn find_provider(
        &self,
        org: OrgId,
        id: ProviderId,
    ) -> Result<Option<ProviderRecord>, StoreError> {
        Ok(read!(self, unqueued org, |conn| {
            find!(conn, "SELECT * FROM providers WHERE org_id = $1 AND id = $2" => org, id)
        }))
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
