//! The node among others: membership, background jobs, readiness and commands of the operator.

pub(crate) mod commands;
pub(crate) mod jobs;
mod membership;
mod readiness;

use std::sync::Arc;

use portcullis_core::audit::EventType;

use self::{jobs::unreadable::Named, readiness::Readiness};
use crate::{
    access::Access,
    approvals::Approvals,
    audit::{Audit, events::installation},
    base::Base,
    calls::Calls,
    catalogue::ToolCatalogue,
    cluster::Cluster,
    limits::Quotas,
    policies::Policies,
    providers::Providers,
    telemetry::Telemetry,
    tools::Tools,
};

/// Rooms that the jobs of a node look after.
pub(crate) struct NodeHandles {
    pub(crate) base: Arc<Base>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) quotas: Arc<Quotas>,
    pub(crate) policies: Arc<Policies>,
    pub(crate) catalogue: Arc<ToolCatalogue>,
    pub(crate) tools: Arc<Tools>,
    pub(crate) providers: Arc<Providers>,
    pub(crate) access: Arc<Access>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) cluster: Option<Arc<Cluster>>,
}

/// Work that a node does without being asked.
#[derive(Debug)]
pub struct Nodes {
    base: Arc<Base>,
    telemetry: Arc<Telemetry>,
    audit: Arc<Audit>,
    quotas: Arc<Quotas>,
    policies: Arc<Policies>,
    catalogue: Arc<ToolCatalogue>,
    tools: Arc<Tools>,
    providers: Arc<Providers>,
    access: Arc<Access>,
    calls: Arc<Calls>,
    approvals: Arc<Approvals>,
    cluster: Option<Arc<Cluster>>,
    readiness: Readiness,
    named: Named,
}

impl Nodes {
    pub(crate) fn new(handles: NodeHandles) -> Self {
        Self {
            base: handles.base,
            telemetry: handles.telemetry,
            audit: handles.audit,
            quotas: handles.quotas,
            policies: handles.policies,
            catalogue: handles.catalogue,
            tools: handles.tools,
            providers: handles.providers,
            access: handles.access,
            calls: handles.calls,
            approvals: handles.approvals,
            cluster: handles.cluster,
            readiness: Readiness::default(),
            named: Named::default(),
        }
    }

    /// Tells every org's log that this node begins to serve, and keeps what it serves by.
    pub fn started(&self) {
        let node = installation("node", &self.base.node);
        self.audit.tell_every_org(EventType::SystemStarted, node, None);
        self.policies.begin_with_policies();
    }
}
