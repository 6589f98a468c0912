//! Connections as they are shown, and the list of them.

use std::sync::Arc;

use portcullis_core::{
    audit::{Credential, Event, EventType, Target},
    capability::ProviderSlug,
    clock::Timestamp,
    id::{OrgId, PrincipalId, ProviderId},
    principal::Scope,
    refusal::Refusal,
};
use portcullis_store::{
    Account, Grant, NewProvider, OwnerFilter, ProviderOwner, ProviderPage, ProviderRecord,
    ProviderStatus, StoreError, UnreadableRow,
};

use super::Providers;
use crate::{
    catalogue::{
        auth::{AuthKind, Awaited, OAuthSettings},
        connection::count_tools,
        provider::{Declared, Provider},
    },
    request::Ctx,
};

/// Owner of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerView {
    Org(OrgId),
    Principal(PrincipalId),
}

/// A connection as it is shown.
#[derive(Debug, Clone)]
pub struct ProviderView {
    pub id: ProviderId,
    pub slug: ProviderSlug,
    pub name: String,
    pub status: ProviderStatus,
    pub owner: OwnerView,
    pub auth: AuthKind,
    pub grant: Grant,
    pub account: Option<Account>,
    pub exposes: Vec<&'static str>,
    /// Kinds and extensions that its server declares and that do not pass.
    pub dropped: Vec<String>,
    pub tools: usize,
    /// Last error, in the gateway's words.
    pub last_error: Option<String>,
    pub connected_at: Option<Timestamp>,
    pub updated_at: Timestamp,
}

/// State of a declared provider, for the operator.
#[derive(Debug, Clone)]
pub struct ProviderState {
    pub slug: String,
    pub status: ProviderStatus,
    /// Kinds of what it offers that the configuration lets through.
    pub exposes: Vec<&'static str>,
    /// Kinds and extensions that its server declares and that do not pass.
    pub dropped: Vec<String>,
    pub tools: usize,
    /// Last error, in the gateway's words.
    pub last_error: Option<String>,
    /// Credential that it needs while the installation has no connection to it; it is `pending` then.
    pub waits_for: Option<Awaited>,
    /// Its authorization server, as far as that is known.
    pub issuer: Option<IssuerState>,
}

/// The authorization server of a provider, for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerState {
    /// The configuration says so: no other server is shown the gateway's client.
    Configured(String),
    /// The MCP server says so now.
    Named(String),
}

impl IssuerState {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Configured(name) | Self::Named(name) => name,
        }
    }

    /// `configuration` or `mcp_server`.
    #[must_use]
    pub const fn said_by(&self) -> &'static str {
        match self {
            Self::Configured(_) => "configuration",
            Self::Named(_) => "mcp_server",
        }
    }
}

/// Owners of the connections to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Whose {
    /// All that the caller may see.
    #[default]
    Visible,
    Org,
    Mine,
    /// This principal's; for an admin.
    Of(PrincipalId),
}

/// Filter of a list of connections.
#[derive(Debug, Clone, Default)]
pub struct ProviderQuery {
    /// Only these slugs; empty means all.
    pub slugs: Vec<String>,
    /// Only these statuses; `None` means all but `pending`.
    pub statuses: Option<Vec<String>>,
    pub whose: Whose,
    /// Only those that come after this slug and id.
    pub after: Option<(String, String)>,
    pub limit: usize,
}

impl ProviderQuery {
    fn wants(&self, view: &ProviderView) -> bool {
        let status = view.status.as_str();
        let wanted = match &self.statuses {
            Some(statuses) => statuses.iter().any(|s| s == status),
            None => view.status != ProviderStatus::Pending,
        };
        wanted && (self.slugs.is_empty() || self.slugs.iter().any(|s| s == view.slug.as_str()))
    }
}

/// Rows read at once while a page is filled.
const BATCH: u32 = 500;

impl Providers {
    /// The connections that the caller may see, by slug, then id; and whether there are more.
    pub async fn list(
        &self,
        ctx: &Ctx,
        query: &ProviderQuery,
    ) -> Result<(Vec<ProviderView>, bool), Refusal> {
        let caller = ctx.caller();
        let admin = caller.scopes.contains(Scope::Admin);
        let owner = match query.whose {
            Whose::Visible if admin => OwnerFilter::Everybody,
            Whose::Visible => OwnerFilter::Reachable(caller.principal_id),
            Whose::Org => OwnerFilter::Only(ProviderOwner::Org),
            Whose::Mine => OwnerFilter::Only(ProviderOwner::Principal(caller.principal_id)),
            Whose::Of(id) if admin || id == caller.principal_id => {
                OwnerFilter::Only(ProviderOwner::Principal(id))
            }
            Whose::Of(_) => return Err(Refusal::InsufficientScope { required: Scope::Admin }),
        };
        self.declared_connections(caller.org_id).await?;
        let mut found = Vec::new();
        let mut after = query.after.clone();
        let batch = u32::try_from(query.limit.saturating_add(1)).unwrap_or(BATCH).clamp(20, BATCH);
        loop {
            let from = after.as_ref().map(|(slug, id)| (slug.as_str(), id.as_str()));
            let page = ProviderPage { owner, after: from, limit: batch };
            let records = self.base.store.page_providers(caller.org_id, page).await;
            let records = records?;
            let last = records.last().map(|it| (it.slug.as_str().to_owned(), it.id.to_string()));
            let views = records.into_iter().filter_map(|record| self.view(record));
            let reached = |view: &ProviderView| caller.reaches(view.slug.as_str());
            found.extend(views.filter(|view| reached(view) && query.wants(view)));
            if found.len() > query.limit || last.is_none() {
                break;
            }
            after = last;
        }
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        Ok((found, more))
    }

    /// One connection, if the caller may see it.
    pub async fn provider(&self, ctx: &Ctx, id: &str) -> Result<ProviderView, Refusal> {
        let unknown = || Refusal::not_found("provider", id);
        let record = self.find_visible(ctx, id).await?;
        self.view(record).ok_or_else(unknown)
    }

    /// The record of a connection that the caller may see.
    pub(crate) async fn find_visible(
        &self,
        ctx: &Ctx,
        id: &str,
    ) -> Result<ProviderRecord, Refusal> {
        let unknown = || Refusal::not_found("provider", id);
        let parsed: ProviderId = id.parse().map_err(|_| unknown())?;
        let caller = ctx.caller();
        self.declared_connections(caller.org_id).await?;
        let found = self.base.store.find_provider(caller.org_id, parsed).await;
        let record = found?.ok_or_else(unknown)?;
        let visible = match record.owner {
            ProviderOwner::Org => true,
            ProviderOwner::Principal(owner) => {
                owner == caller.principal_id || caller.scopes.contains(Scope::Admin)
            }
        };
        let visible = visible && caller.reaches(record.slug.as_str());
        let there = record.removed_at.is_none() && self.provider_of(&record).is_some();
        if visible && there { Ok(record) } else { Err(unknown()) }
    }

    /// The provider behind a record, if it is still configured for the org.
    pub(crate) fn provider_of(&self, record: &ProviderRecord) -> Option<&Arc<Provider>> {
        let provider = self.catalogue.providers.get(record.slug.as_str());
        provider.filter(|provider| provider.is_open_to(record.org_id))
    }

    /// The providers that the caller's token is good for.
    pub(crate) fn open_to(&self, ctx: &Ctx) -> impl Iterator<Item = &Arc<Provider>> {
        let caller = ctx.caller();
        self.catalogue.providers.iter().filter_map(move |(slug, provider)| {
            (provider.is_open_to(caller.org_id) && caller.reaches(slug)).then_some(provider)
        })
    }

    /// A connection as it is shown; `None` if its provider is not configured any more.
    pub(crate) fn view(&self, record: ProviderRecord) -> Option<ProviderView> {
        let declared = &self.provider_of(&record)?.declared;
        let auth = declared.auth.kind();
        let owner = match record.owner {
            ProviderOwner::Org => OwnerView::Org(record.org_id),
            ProviderOwner::Principal(id) => OwnerView::Principal(id),
        };
        let mut view = ProviderView {
            id: record.id,
            slug: declared.slug.clone(),
            name: declared.name.clone(),
            status: record.status,
            owner,
            auth,
            grant: record.grant,
            account: record.account,
            exposes: declared.exposes(),
            dropped: declared.dropped(),
            tools: usize::try_from(record.tools).unwrap_or(usize::MAX),
            last_error: record.last_error,
            connected_at: record.connected_at,
            updated_at: record.updated_at,
        };
        let registers = declared.auth.oauth().is_some_and(OAuthSettings::registers);
        if view.status == ProviderStatus::Pending && registers {
            view.last_error.get_or_insert_with(|| {
                format!(
                    "nobody came back from the authorization server yet; if its page says that it does not know the \
                     client, the operator runs `portcullis provider register --again {}`",
                    view.slug
                )
            });
        }
        if declared.auth.needs_nobody() {
            let provider = self.provider_of_slug(&view.slug)?;
            let state = provider.state();
            view.status = provider.status();
            view.tools = count_tools(state.tools.iter().flatten());
            view.last_error.clone_from(&state.last_error);
            view.connected_at = Some(record.created_at);
            view.updated_at = state.updated_at.max(record.updated_at);
        }
        Some(view)
    }

    fn provider_of_slug(&self, slug: &ProviderSlug) -> Option<&Arc<Provider>> {
        self.catalogue.providers.get(slug.as_str())
    }

    /// Creates the org's connections that work without a connect; on first sight, and never again.
    /// One that was disconnected stays so.
    pub(crate) async fn declared_connections(&self, org: OrgId) -> Result<(), Refusal> {
        let tenant = self.quotas.tenants.tenant(org);
        if tenant.declared.get().is_some() {
            return Ok(());
        }
        let open = self.catalogue.providers.values().filter(|provider| provider.is_open_to(org));
        for provider in open.filter(|provider| {
            provider.declared.auth.needs_nobody() && provider.declared.owners.org
        }) {
            let id = ProviderId::new(self.base.ids());
            let declared = new_provider(id, org, ProviderOwner::Org, &provider.declared);
            // So that a node that starts among many orgs does not write for each of them.
            if self.base.store.has_provider(&declared).await? {
                continue;
            }
            let record =
                match self.base.store.upsert_provider(&declared, self.base.clock.now()).await {
                    Ok(record) => record,
                    // One row that cannot be read is told by name; the org has its other connections.
                    Err(error @ StoreError::Corrupt(_)) => {
                        let row = format!("org_id {org} slug {}", declared.slug);
                        let why = error.to_string();
                        self.base.store.left_out(UnreadableRow { table: "providers", row, why });
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
            if record.id == id {
                self.audit.record(self.declared_connected(org, id)).await?;
            }
        }
        let _ = tenant.declared.set(());
        Ok(())
    }

    fn declared_connected(&self, org: OrgId, id: ProviderId) -> Event {
        let target = Target {
            capability: None,
            credential: Some(Credential::Org),
            id: Some(id.to_string()),
            provider_id: Some(id),
            kind: "provider",
            version: None,
        };
        self.audit.system_event(org, EventType::ProviderConnected, target)
    }

    /// Number of tools of all declared providers, as far as they are known now.
    #[must_use]
    pub fn count_tools(&self) -> usize {
        let all = self.catalogue.providers.values().map(|provider| provider.state());
        all.map(|state| count_tools(state.tools.iter().flatten())).sum()
    }

    /// States of all declared providers.
    pub async fn provider_states(&self) -> Result<Vec<ProviderState>, StoreError> {
        let connected = self.base.store.connected_slugs().await?;
        let mut all = Vec::with_capacity(self.catalogue.providers.len());
        for (slug, provider) in &self.catalogue.providers {
            let state = provider.state();
            let configured = provider.declared.auth.oauth().and_then(OAuthSettings::issuer);
            let issuer = match configured {
                Some(name) => Some(IssuerState::Configured(name.to_owned())),
                None => provider.authorizer.last_issuer().await.map(IssuerState::Named),
            };
            let awaited = provider.declared.auth.awaited();
            let waits_for = awaited.filter(|_| !connected.contains(slug));
            let mut status = provider.status();
            if status == ProviderStatus::Connected && waits_for.is_some() {
                status = ProviderStatus::Pending;
            }
            all.push(ProviderState {
                slug: slug.clone(),
                status,
                exposes: provider.declared.exposes(),
                dropped: provider.declared.dropped(),
                tools: count_tools(state.tools.iter().flatten()),
                last_error: state.last_error.clone(),
                waits_for,
                issuer,
            });
        }
        Ok(all)
    }
}

/// A connection as it is first remembered.
pub(crate) fn new_provider(
    id: ProviderId,
    org_id: OrgId,
    owner: ProviderOwner,
    declared: &Declared,
) -> NewProvider {
    NewProvider {
        id,
        org_id,
        owner,
        slug: declared.slug.clone(),
        name: declared.name.clone(),
        auth_type: declared.auth.kind().as_str().to_owned(),
    }
}
