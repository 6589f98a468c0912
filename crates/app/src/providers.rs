//! Connecting declared providers: connect flows, credentials, the lists of their tools, and the tools
//! as callers see them.

mod capability_lists;
pub(crate) mod connect;
pub(crate) mod connections;
pub(crate) mod credentials;
pub(crate) mod looks;
pub(crate) mod pin_changes;
pub(crate) mod tools;
pub(crate) mod unreadable;
pub(crate) mod vault;
pub(crate) mod view;

use std::sync::Arc;

use portcullis_upstream::Outbound;

use self::{connect::Connecting, connections::Connections, tools::Tools, vault::Vaults};
use crate::{
    audit::Audit,
    base::Base,
    catalogue::Capabilities,
    policies::{Policies, limits::Quotas},
    request::screening::Screening,
};

/// Settings of connections to providers.
#[derive(Debug)]
pub struct ProviderParts {
    /// The keys that seal credentials.
    pub vaults: Vaults,
    /// The HTTP client for requests to authorization servers.
    pub outbound: Outbound,
    pub connecting: Connecting,
}

/// The declared providers, the connections of orgs and principals, and their credentials.
#[derive(Debug)]
pub struct Providers {
    pub(crate) base: Arc<Base>,
    screening: Arc<Screening>,
    audit: Arc<Audit>,
    quotas: Arc<Quotas>,
    catalogue: Arc<Capabilities>,
    tools: Arc<Tools>,
    pub(crate) vaults: Vaults,
    outbound: Outbound,
    pub(crate) connecting: Connecting,
    connections: Connections,
}

impl Providers {
    pub(crate) fn new(policies: &Policies, tools: &Arc<Tools>, parts: ProviderParts) -> Self {
        let Policies { base, screening, audit, quotas, catalogue, .. } = policies;
        let ProviderParts { vaults, outbound, connecting } = parts;
        Self {
            base: Arc::clone(base),
            screening: Arc::clone(screening),
            audit: Arc::clone(audit),
            quotas: Arc::clone(quotas),
            catalogue: Arc::clone(catalogue),
            tools: Arc::clone(tools),
            vaults,
            outbound,
            connecting,
            connections: Connections::new(),
        }
    }

    /// Slugs and names of the providers that have a server card, by slug.
    pub fn carded(&self) -> impl Iterator<Item = (&str, &str)> {
        let declared = self.catalogue.providers.values().map(|provider| &provider.declared);
        declared.filter(|it| it.card).map(|it| (it.slug.as_str(), it.name.as_str()))
    }
}
