//! Declared providers, the connections to them, and the tools they told, as policies are bound to
//! them.

pub(crate) mod auth;
pub(crate) mod authorizer;
pub(crate) mod connection;
pub(crate) mod freshness;
pub(crate) mod provider;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;
use portcullis_core::{
    audit::Target,
    capability::{Capability, CapabilityId, CapabilityKind},
    clock::Timestamp,
    mcp::uris::ResourceUri,
    policy,
    refusal::Refusal,
};

use self::{
    connection::{Connection, Reachable},
    provider::{Declared, Provider},
};

/// Steps in which a URI is held against the templates of a provider.
const MOST_STEPS: usize = 200_000;

/// Every known tool, prompt and resource with its provider, by id.
pub(crate) type CapabilityTable = BTreeMap<String, (Arc<Capability>, Arc<Provider>)>;

/// A tool or prompt the caller may see, and the connection it would be called through.
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
        let listed = self.tool_through(connection, id.as_str());
        let tool = listed.or_else(|| self.unlisted(connection, id)).ok_or_else(unknown)?;
        Ok(Visible { tool, connection: Arc::clone(connection) })
    }

    /// What a resource is read by that is not in the list: the template that makes its URI, the one with the longest
    /// literal beginning first, or else what stands for all that the provider does not list. Nothing, if that cannot be
    /// told within [`MOST_STEPS`].
    fn unlisted(&self, connection: &Connection, id: &CapabilityId) -> Option<Arc<Capability>> {
        if id.kind() != CapabilityKind::Resource || id.is_unlisted() {
            return None;
        }
        let uri = ResourceUri::parse(id.name()).ok().filter(ResourceUri::is_normal)?;
        let begins = |it: &Arc<Capability>| {
            let literal = it.template()?.literal_prefix();
            uri.as_str().starts_with(literal).then_some(literal.len())
        };
        let listed = connection.listed(CapabilityKind::Template).into_iter();
        let mut templates: Vec<_> = listed.filter_map(|it| Some((begins(&it)?, it))).collect();
        templates.sort_by_key(|(literal, _)| Reverse(*literal));
        let mut steps = MOST_STEPS;
        for (_, it) in templates {
            let template = it.template()?;
            steps = steps.checked_sub(template.cost(&uri))?;
            if template.values(&uri).is_some() {
                return Some(it);
            }
        }
        let all = CapabilityId::unlisted(&connection.provider.declared.slug);
        self.tool_through(connection, all.as_str()).filter(|_| uri.is_plain())
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
