//! The node among others: membership, background jobs, readiness and commands of the operator.

pub(crate) mod commands;
pub(crate) mod jobs;
mod membership;
pub(crate) mod readiness;

use std::sync::Arc;

use portcullis_core::audit::EventType;

use self::{jobs::unreadable::NamedRows, readiness::Readiness};
use crate::{
    approvals::Approvals,
    audit::{Audit, events::installation},
    base::{Base, cluster::Cluster},
    calls::Calls,
    catalogue::Capabilities,
    identity::access::Access,
    policies::{Policies, limits::Quotas},
    providers::{Providers, tools::Tools},
    telemetry::Telemetry,
};

/// Work that a node does without being asked.
#[derive(Debug)]
pub struct Nodes {
    pub(crate) base: Arc<Base>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) quotas: Arc<Quotas>,
    pub(crate) policies: Arc<Policies>,
    pub(crate) catalogue: Arc<Capabilities>,
    pub(crate) tools: Arc<Tools>,
    pub(crate) providers: Arc<Providers>,
    pub(crate) access: Arc<Access>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) cluster: Option<Arc<Cluster>>,
    pub(crate) readiness: Readiness,
    pub(crate) named: NamedRows,
}

impl Nodes {
    /// Tells every org's log that this node begins to serve, and keeps what it serves by.
    pub fn started(&self) {
        let node = installation("node", &self.base.node);
        self.audit.tell_every_org(EventType::SystemStarted, node, None);
        self.policies.begin_with_policies();
    }
}
