//! The tools that connections list: each list is kept and compiled once in an org, however many of
//! its connections list the same.

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use portcullis_core::{
    capability::{Capability, Definition},
    id::OrgId,
    json,
    refusal::Refusal,
};
use portcullis_store::{NewToolList, ProviderRecord, StoreError, UnreadableRow};
use portcullis_upstream::{CallErrorKind, Server};
use serde_json::Value;

use super::{
    Providers,
    connect::refresh::{Reason, Renewal},
};
use crate::{
    base::caches::{Lifetime, NodeCache},
    catalogue::{
        connection::{CapabilityMap, Connection, Live, OwnRoute, count_tools},
        freshness::Unlisted,
        provider::Provider,
    },
};

/// Compiled lists by org, provider and digest.
#[derive(Debug)]
pub(crate) struct ToolLists(Cache<(OrgId, String, String), Compiled>);

/// A compiled list.
#[derive(Debug, Clone)]
struct Compiled {
    tools: Arc<CapabilityMap>,
    /// The length of its definitions.
    bytes: usize,
}

impl ToolLists {
    pub(super) fn new() -> Self {
        Self(NodeCache::ToolLists.make(Lifetime::Unbounded, |_, list: &Compiled| list.bytes))
    }
}

/// A list of tools that can be kept.
pub(crate) struct UsableList {
    pub(crate) digest: String,
    pub(crate) definitions: String,
    pub(crate) tools: Arc<CapabilityMap>,
    /// For how long the server says this stays true.
    fresh_for: Option<Duration>,
    peer: u64,
}

impl UsableList {
    pub(crate) fn count_tools(&self) -> u32 {
        u32::try_from(count_tools(self.tools.values())).unwrap_or(u32::MAX)
    }
}

impl Providers {
    /// Asks an upstream for its tools, through whatever way; they are as DLP lets them be shown.
    pub(crate) async fn list_through(
        self: &Arc<Self>,
        org: OrgId,
        provider: &Arc<Provider>,
        server: &Server,
        former: Vec<Arc<Capability>>,
    ) -> Result<UsableList, Unlisted> {
        let list = server.list().await.map_err(Unlisted::Call)?;
        let (fresh_for, peer) = (list.fresh_for, list.peer);
        let definitions = self.tools.definitions(provider, Some(org), list, former).await;
        let definitions = definitions.map_err(|error| Unlisted::Store(error.into()))?;
        let text = Value::Array(definitions.iter().map(Definition::to_json).collect()).to_string();
        let digest = json::sha256(&[text.as_bytes()]);
        let tools = self.compiled_map(org, provider, definitions, &digest, text.len()).await;
        Ok(UsableList { digest, definitions: text, tools, fresh_for, peer })
    }

    async fn compiled_map(
        self: &Arc<Self>,
        org: OrgId,
        provider: &Arc<Provider>,
        definitions: Vec<Definition>,
        digest: &str,
        bytes: usize,
    ) -> Arc<CapabilityMap> {
        let key = (org, provider.declared.slug.as_str().to_owned(), digest.to_owned());
        if let Some(known) = self.connections.capability_lists.0.get(&key) {
            return known.tools;
        }
        let tools = self.tools.compiled(provider, Some(org), definitions).await;
        let by_id = |tool: &Arc<Capability>| (tool.id.to_string(), Arc::clone(tool));
        let map: Arc<CapabilityMap> = Arc::new(tools.iter().map(by_id).collect());
        self.connections
            .capability_lists
            .0
            .insert(key, Compiled { tools: Arc::clone(&map), bytes });
        if provider.learned(&tools, || self.connections.listed_of(provider)) {
            // Validating policies takes milliseconds: not on a thread that serves requests.
            let this = Arc::clone(self);
            let bound = self.base.list_work(Some(org), move || this.tools.catalogue_changed());
            if bound.await.is_none() {
                tracing::error!("binding the policies to the catalogue ended in a panic");
            }
        }
        map
    }

    /// The tools that a connection listed when it was asked last.
    pub(super) async fn listed_tools(
        self: &Arc<Self>,
        provider: &Arc<Provider>,
        record: &ProviderRecord,
    ) -> Result<Arc<CapabilityMap>, Refusal> {
        let Some(digest) = &record.tool_list else { return Ok(Arc::default()) };
        let key = (record.org_id, record.slug.as_str().to_owned(), digest.clone());
        if let Some(known) = self.connections.capability_lists.0.get(&key) {
            return Ok(known.tools);
        }
        self.tools.learn_pins(provider, record.org_id).await?;
        let definitions = match self.base.store.find_tool_list(record.org_id, digest).await {
            Ok(found) => found.filter(|text| json::sha256(&[text.as_bytes()]) == *digest),
            Err(StoreError::Corrupt(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let bytes = definitions.as_ref().map_or(0, String::len);
        let Some(definitions) = definitions.as_deref().and_then(decode) else {
            let row = format!("org_id {} digest {digest}", record.org_id);
            let why = "the list of tools is not as it was kept; it is asked for again".to_owned();
            self.base.store.left_out(UnreadableRow { table: "capability_lists", row, why });
            return Ok(Arc::default());
        };
        Ok(self.compiled_map(record.org_id, provider, definitions, digest, bytes).await)
    }

    /// Remembers what a connection lists.
    pub(crate) async fn keep_list(
        &self,
        org: OrgId,
        id: portcullis_core::id::ProviderId,
        listed: &UsableList,
    ) -> Result<(), Refusal> {
        let list = NewToolList {
            digest: &listed.digest,
            definitions: &listed.definitions,
            tools: listed.count_tools(),
        };
        let kept = self.base.store.keep_tool_list(org, id, &list).await;
        kept.map(|_| ()).map_err(Refusal::from)
    }

    /// Asks a connection for its tools anew and remembers them.
    pub(crate) async fn list_again(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
    ) -> Result<(), Refusal> {
        let mut last = connection.freshness().turn.lock().await;
        let listed = self.list_in_turn(connection).await;
        last.ended(self.base.clock.now(), &listed);
        listed.map_err(|unlisted| unlisted.refusal(|error| connection.refusal(error)))
    }

    /// The same while holding the turn. Credentials that the server refuses are renewed once.
    pub(crate) async fn list_in_turn(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
    ) -> Result<(), Unlisted> {
        let Some(own) = connection.own() else {
            return self.tools.refresh_in_turn(&connection.provider).await;
        };
        let seen = own.live();
        let error = match self.list_own(connection, own).await {
            Err(Unlisted::Call(error)) if error.kind == CallErrorKind::AuthRequired => error,
            listed => return listed,
        };
        if seen.record.grant.refreshable {
            match self.renewed(connection, seen.record.revision, Reason::Refused).await {
                Renewal::Yes => return self.list_own(connection, own).await,
                Renewal::NeedsAuth | Renewal::Failed(_) => return Err(Unlisted::Call(error)),
            }
        }
        let why = "the provider refuses the credentials";
        self.mark_lost(connection, &seen.record, why).await.map_err(Unlisted::Store)?;
        Err(Unlisted::Call(error))
    }

    async fn list_own(
        self: &Arc<Self>,
        connection: &Connection,
        own: &OwnRoute,
    ) -> Result<(), Unlisted> {
        let began = self.base.clock.now();
        let former = own.live().tools.values().cloned().collect();
        let listed =
            self.list_through(connection.org, &connection.provider, &own.server, former).await?;
        let live = own.live();
        let mut record = live.record.clone();
        // What is kept already, and could be read, is not written again.
        let unread = live.tools.len() != listed.tools.len();
        if unread || record.tool_list.as_ref() != Some(&listed.digest) {
            let kept = self.keep_list(connection.org, connection.id, &listed).await;
            kept.map_err(Unlisted::Store)?;
            record.tools = listed.count_tools();
            record.tool_list = Some(listed.digest);
        }
        own.update(Live { record, tools: listed.tools, credential: live.credential });
        own.freshness.took(began, listed.fresh_for, listed.peer);
        Ok(())
    }
}

/// Decodes the text of a kept list; a definition that does not read back is left out.
fn decode(text: &str) -> Option<Vec<Definition>> {
    let all = json::parse(text.as_bytes(), json::Bounds::RECORDED).ok()?;
    let Value::Array(all) = all else { return None };
    Some(all.into_iter().filter_map(Definition::from_json).collect())
}
