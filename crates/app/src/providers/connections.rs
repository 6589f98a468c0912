//! The connections of this node: which of them a caller reaches, and what goes upstream for each.
//!
//! **Invariant:** a credential is only ever shown by the way of its own connection. A session holds
//! the connections that its principal may use, found by org and principal when it was looked up;
//! there is no other road to one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use moka::sync::Cache;
use portcullis_core::{
    capability::ProviderSlug,
    clock::Timestamp,
    id::{OrgId, PrincipalId, ProviderId},
    refusal::Refusal,
};
use portcullis_store::{ProviderOwner, ProviderRecord, ProviderStatus};

use super::{
    Providers,
    capability_lists::ToolLists,
    credentials::{CredentialPlace, Marked as _},
};
use crate::{
    base::caches::{Lifetime, NodeCache},
    catalogue::{
        auth::{Awaited, Owners},
        connection::{Connection, Fitness, Live, Reachable, Route, own_route},
        provider::Provider,
    },
    request::Ctx,
};

/// Time for which an unused connection is kept in memory.
const IDLE: Duration = Duration::from_mins(10);
/// Bytes that a connection takes, about.
const CONNECTION_BYTES: usize = 1 << 10;

/// Connections with credentials of their own that this node has in memory.
#[derive(Debug)]
pub(crate) struct Connections {
    known: Cache<ProviderId, Arc<Connection>>,
    pub(crate) capability_lists: ToolLists,
}

impl Connections {
    pub(crate) fn new() -> Self {
        let known = NodeCache::Connections.make(Lifetime::Unused(IDLE), |_, _| CONNECTION_BYTES);
        Self { known, capability_lists: ToolLists::new() }
    }

    /// Forgets a connection: the next call has it read anew.
    pub(crate) fn forget(&self, id: ProviderId) -> Option<Arc<Connection>> {
        self.known.remove(&id)
    }

    /// The tools that connections in memory list of a provider.
    pub(crate) fn listed_of(&self, provider: &Provider) -> BTreeSet<String> {
        let slug = provider.declared.slug.as_str();
        let all = self.known.iter().map(|(_, connection)| connection);
        let lists = all.filter(|it| it.slug() == slug).map(|it| it.ids());
        lists.flatten().collect()
    }

    pub(crate) fn of(&self, org: OrgId, provider: &str) -> Vec<Arc<Connection>> {
        let all = self.known.iter().map(|(_, connection)| connection);
        all.filter(|it| it.org == org && it.slug() == provider).collect()
    }
}

impl Providers {
    /// The connections that a principal may call through at this moment. Reads the store; done
    /// when a session is looked up, never on the path of a call.
    pub(crate) async fn reachable(
        self: &Arc<Self>,
        org: OrgId,
        principal: PrincipalId,
    ) -> Result<Arc<Reachable>, Refusal> {
        self.declared_connections(org).await?;
        let records = self.base.store.reachable_providers(org, principal).await;
        self.reachable_among(principal, records?).await
    }

    /// Connections among `records`, those of a principal and of its org, that it may call through.
    pub(crate) async fn reachable_among(
        self: &Arc<Self>,
        principal: PrincipalId,
        records: impl IntoIterator<Item = ProviderRecord> + Send,
    ) -> Result<Arc<Reachable>, Refusal> {
        let mut found = BTreeMap::new();
        for record in records {
            let own = record.owner == ProviderOwner::Principal(principal);
            let slug = record.slug.as_str().to_owned();
            if !own && found.contains_key(&slug) {
                continue;
            }
            if let Some(connection) = self.connection_of(record).await? {
                found.insert(slug, connection);
            }
        }
        Ok(Arc::new(Reachable(found)))
    }

    /// The connection behind a record; `None` if nothing can be called through it: it is only
    /// begun, or its provider is not configured for the org any more.
    pub(crate) async fn connection_of(
        self: &Arc<Self>,
        record: ProviderRecord,
    ) -> Result<Option<Arc<Connection>>, Refusal> {
        self.connection_listed(record, None).await
    }

    /// The same; its tools were listed at this moment, if they were just now.
    async fn connection_listed(
        self: &Arc<Self>,
        record: ProviderRecord,
        listed_at: Option<Timestamp>,
    ) -> Result<Option<Arc<Connection>>, Refusal> {
        let provider = self.catalogue.providers.get(record.slug.as_str());
        let open = provider.filter(|provider| provider.is_open_to(record.org_id));
        let Some(provider) = open else { return Ok(None) };
        let id = record.id;
        let org = record.org_id;
        let owner = record.owner;
        if provider.declared.auth.needs_nobody() {
            let connection =
                Connection { id, org, owner, provider: Arc::clone(provider), way: Route::Declared };
            return Ok(Some(Arc::new(connection)));
        }
        if record.status == ProviderStatus::Pending || record.revision == 0 {
            return Ok(None);
        }
        let connection = self.own_connection(record, provider).await?;
        if let Some(at) = listed_at {
            connection.freshness().took(at, None, 0);
        }
        self.list_when_old(&connection);
        Ok(Some(connection))
    }

    async fn own_connection(
        self: &Arc<Self>,
        mut record: ProviderRecord,
        provider: &Arc<Provider>,
    ) -> Result<Arc<Connection>, Refusal> {
        let known = self.connections.known.get(&record.id);
        if let Some(connection) = known.as_ref().and_then(|known| as_known(known, &record)) {
            return Ok(connection);
        }
        let stored = match self.stored_credential(&record).await? {
            CredentialPlace::Unreadable => {
                return self.unreadable_connection(record, provider).await;
            }
            CredentialPlace::Whole(stored) => Some(stored),
            CredentialPlace::Absent => None,
        };
        self.unmark_unreadable(&mut record).await;
        let server = provider.declared.address();
        let auth = &provider.declared.auth;
        let header = stored.as_ref().and_then(|stored| stored.header(auth, server));
        let tools = self.listed_tools(provider, &record).await?;
        let credential = if header.is_some() { Fitness::Fit } else { Fitness::Unfit };
        let live = Live { record, tools, credential };
        let consent = stored.map(|stored| stored.consent).unwrap_or_default();
        if let Some(connection) = known
            && let Some(own) = connection.own().filter(|own| own.consent == consent)
        {
            own.server.set_credential(header);
            own.update(live);
            return Ok(connection);
        }
        let connection = own_route(live, provider, header, consent);
        self.connections.known.insert(connection.id, Arc::clone(&connection));
        Ok(connection)
    }

    /// A connection that is there and shows nothing: its credential cannot be read. It is not kept
    /// in memory, so that it is looked at again with the next session.
    async fn unreadable_connection(
        self: &Arc<Self>,
        mut record: ProviderRecord,
        provider: &Arc<Provider>,
    ) -> Result<Arc<Connection>, Refusal> {
        self.connections.forget(record.id);
        self.mark_unreadable(&mut record).await;
        let tools = self.listed_tools(provider, &record).await?;
        let live = Live { tools, credential: Fitness::Unreadable, record };
        Ok(own_route(live, provider, None, String::new()))
    }

    /// Puts what was stored a moment ago in force on this node. Its tools were listed at `listed_at`.
    pub(crate) async fn adopt(
        self: &Arc<Self>,
        record: ProviderRecord,
        listed_at: Timestamp,
    ) -> Result<Option<Arc<Connection>>, Refusal> {
        let org = record.org_id;
        let adopted = self.connection_listed(record, Some(listed_at)).await;
        self.quotas.tenants.revoked(org);
        adopted
    }

    /// Asks a connection for its tools in the background, if that was long ago.
    fn list_when_old(self: &Arc<Self>, connection: &Arc<Connection>) {
        let usable = connection.status() == ProviderStatus::Connected;
        if usable && connection.freshness().claim_stale(self.base.clock.now()) {
            self.look_in_background(connection);
        }
    }
}

/// A connection that is in memory, if it is as the record says.
fn as_known(connection: &Arc<Connection>, record: &ProviderRecord) -> Option<Arc<Connection>> {
    let own = connection.own()?;
    let live = own.live();
    if live.record == *record || live.record.revision > record.revision {
        return Some(Arc::clone(connection));
    }
    let same = live.record.revision == record.revision
        && live.record.tool_list == record.tool_list
        && !record.is_marked_unreadable();
    same.then(|| {
        let record = record.clone();
        let tools = Arc::clone(&live.tools);
        own.update(Live { record, tools, credential: live.credential });
        Arc::clone(connection)
    })
}

/// A provider without a connection that the caller could use.
#[derive(Debug, Clone)]
pub struct WaitingProvider {
    pub slug: ProviderSlug,
    pub name: String,
    pub exposes: Vec<&'static str>,
    pub waits_for: Awaited,
    /// Principals that may connect it.
    pub owners: Owners,
}

impl Providers {
    /// The providers of the caller that have no connection which it could use, by slug. A connection
    /// that was only begun is none.
    pub async fn waiting(&self, ctx: &Ctx) -> Result<Vec<WaitingProvider>, Refusal> {
        let caller = ctx.caller();
        let reached = self.base.store.reachable_providers(caller.org_id, caller.principal_id);
        let reached = reached.await?;
        let made = reached.iter().filter(|record| record.status != ProviderStatus::Pending);
        let made: BTreeSet<&str> = made.map(|record| record.slug.as_str()).collect();
        let open = self.open_to(ctx).map(|provider| &provider.declared);
        let waiting = open.filter(|declared| !made.contains(declared.slug.as_str()));
        let waiting = waiting.filter_map(|declared| {
            Some(WaitingProvider {
                slug: declared.slug.clone(),
                name: declared.name.clone(),
                exposes: declared.exposes(),
                waits_for: declared.auth.awaited()?,
                owners: declared.owners,
            })
        });
        Ok(waiting.collect())
    }
}
