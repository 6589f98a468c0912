//! Declared providers, the connections to them, and the tools they told, as policies are bound to
//! them.

pub(crate) mod auth;
pub(crate) mod authorizer;
pub(crate) mod connection;
pub(crate) mod freshness;
pub(crate) mod provider;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;
use portcullis_core::{
    audit::Target,
    capability::{self, Capability, CapabilityId, CapabilityKind},
    clock::Timestamp,
    policy,
    refusal::Refusal,
};

use self::{
    connection::{Connection, Reachable},
    provider::{Declared, Provider},
};

/// Every known tool, prompt and resource with its provider, by id.
pub(crate) type CapabilityTable = BTreeMap<String, (Arc<Capability>, Arc<Provider>)>;

/// A tool or prompt the caller may see, and the connection it would be called through.
#[derive(Clone)]
pub(crate) struct Visible {
    pub(crate) tool: Arc<Capability>,
    pub(crate) connection: Arc<Connection>,
}

impl Visible {
    pub(crate) fn target(&self) -> Target {
        Target {
            capability: Some(self.tool.id.kind().governed()),
            credential: Some(self.connection.credential()),
            id: Some(self.tool.id.to_string()),
            provider_id: Some(self.connection.id),
            kind: "mcp",
            version: Some(self.tool.version.clone()),
        }
    }
}

/// The refusal of what a caller does not reach.
pub(crate) fn unknown(id: &CapabilityId) -> Refusal {
    not_found(id.kind(), id.short())
}

/// The refusal of something of a kind that there is not, by its id without the kind.
#[must_use]
pub fn not_found(kind: CapabilityKind, id: &str) -> Refusal {
    let resource = match kind {
        CapabilityKind::Tool => "mcp",
        CapabilityKind::Prompt => "prompt",
        CapabilityKind::Resource | CapabilityKind::Template => "resource",
        CapabilityKind::Skill => "skill",
    };
    Refusal::not_found(resource, id)
}

/// The providers of the configuration and the tools that they listed.
#[derive(Debug)]
pub(crate) struct Capabilities {
    /// By slug.
    pub(crate) providers: BTreeMap<String, Arc<Provider>>,
    pub(crate) tools: ArcSwap<CapabilityTable>,
    changing: Mutex<()>,
    /// Names of webhooks that policies may use.
    webhooks: BTreeSet<String>,
}

impl Capabilities {
    pub(crate) fn new(declared: Vec<Declared>, webhooks: BTreeSet<String>, now: Timestamp) -> Self {
        let providers = declared
            .into_iter()
            .map(|declared| (declared.slug.to_string(), Arc::new(Provider::new(declared, now))))
            .collect();
        Self { providers, tools: ArcSwap::default(), changing: Mutex::default(), webhooks }
    }

    /// The catalogue that policies are checked against.
    pub(crate) fn for_policies(&self) -> policy::Catalogue {
        let catalogue = policy::Catalogue::new(
            self.providers
                .values()
                .map(|provider| (provider.declared.slug.clone(), provider.state().tools.clone())),
        );
        catalogue.with_webhooks(self.webhooks.iter().cloned())
    }

    /// Rebuilds the table from what the providers told. `bind` is given the new catalogue before the
    /// table is in use.
    pub(crate) fn rebuild(&self, bind: impl FnOnce(&policy::Catalogue)) {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = CapabilityTable::new();
        for provider in self.providers.values() {
            for tool in provider.state().tools.iter().flatten() {
                let entry = (Arc::clone(tool), Arc::clone(provider));
                table.insert(tool.id.to_string(), entry);
            }
        }
        bind(&self.for_policies());
        self.tools.store(Arc::new(table));
    }

    /// The tool or prompt, if the caller may reach it through one of these connections.
    pub(crate) fn visible(
        &self,
        connections: &Reachable,
        id: &CapabilityId,
    ) -> Result<Visible, Refusal> {
        let unknown = || unknown(id);
        let connection = connections.get(id.provider()).ok_or_else(unknown)?;
        if let Some(tool) = self.skill_of(connection, id) {
            let connection = Arc::clone(connection);
            return match tool.file(id.name()) {
                Some(_) => Ok(Visible { tool, connection }),
                None => Err(unknown()),
            };
        }
        let listed = self.tool_through(connection, id.as_str());
        let tool = listed.or_else(|| self.unlisted(connection, id)).ok_or_else(unknown)?;
        Ok(Visible { tool, connection: Arc::clone(connection) })
    }

    /// Finds the skill in whose folder a resource lies.
    pub(crate) fn skill_of(
        &self,
        connection: &Connection,
        id: &CapabilityId,
    ) -> Option<Arc<Capability>> {
        let has_skills = connection.server().kinds().contains(&CapabilityKind::Skill);
        if id.kind() != CapabilityKind::Resource || !has_skills {
            return None;
        }
        capability::holding(id, |skill| self.tool_through(connection, skill.as_str()))
    }

    /// Finds the capability by which a resource is read that is not in the list.
    fn unlisted(&self, connection: &Connection, id: &CapabilityId) -> Option<Arc<Capability>> {
        if id.kind() != CapabilityKind::Resource {
            return None;
        }
        let all = CapabilityId::unlisted(&connection.provider.declared.slug);
        let all = self.tool_through(connection, all.as_str());
        capability::unlisted(id, connection.listed(CapabilityKind::Template).into_iter().chain(all))
    }

    /// The tool of this id, if the connection lists it.
    pub(crate) fn tool_through(
        &self,
        connection: &Connection,
        id: &str,
    ) -> Option<Arc<Capability>> {
        let listed = match connection.own() {
            None => self.tools.load().get(id).map(|(tool, _)| Arc::clone(tool)),
            Some(own) => own.tool(id),
        };
        listed.filter(|tool| connection.server().kinds().contains(&tool.id.kind()))
    }
}
