//! The rooms of one node, put together once at boot.

use std::{collections::BTreeMap, sync::Arc};

use portcullis_core::{
    clock::Clock, id::OrgId, lifetime::GrantLife, policy::PolicyError, random::Random,
};
use portcullis_lanes::Workers;
use portcullis_store::{SharedCounters, Store};
use portcullis_upstream::Webhook;
use tokio_util::task::TaskTracker;

use crate::{
    access::{Access, AccessHandles, trust::Trust},
    approvals::{ApprovalHandles, Approvals},
    audit::{Audit, AuditParts},
    base::Base,
    calls::{CallHandles, CallParts, Calls},
    catalogue::{ToolCatalogue, provider::Declared},
    cluster::Cluster,
    dlp::Dlp,
    limits::Quotas,
    nodes::{NodeHandles, Nodes},
    policies::{Policies, PolicyHandles, PolicySource},
    providers::{ProviderHandles, ProviderParts, Providers},
    screening::Screening,
    simulation::{SimulationHandles, Simulations, policy_cases::run_cases},
    telemetry::{Telemetry, traces::TraceSettings},
    tools::{ToolHandles, Tools},
};

/// Parts of a node, as boot hands them over.
#[derive(Debug)]
pub struct Parts {
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub store: Store,
    pub node: String,
    /// Threads for work that would keep one that serves busy for long.
    pub workers: Workers<OrgId>,
    /// Tasks that must finish before the process ends.
    pub tasks: TaskTracker,
    /// The other nodes, where there can be any.
    pub cluster: Option<Cluster>,
    /// Counters of limits, if this node does not count alone.
    pub counters: Option<SharedCounters>,
    pub policies: PolicySource,
    /// Receivers of the notices that policies ask for, by name.
    pub webhooks: BTreeMap<String, Webhook>,
    pub dlp: Dlp,
    /// The key from which each org's fingerprint key is derived.
    pub fingerprint_key: [u8; 32],
    pub audit: AuditParts,
    pub calls: CallParts,
    pub declared: Vec<Declared>,
    pub providers: ProviderParts,
    pub trust: Trust,
    pub grant_life: GrantLife,
    pub traces: Option<TraceSettings>,
}

/// The use cases of one node, by room.
#[derive(Debug)]
pub struct App {
    /// Clock, ids and executors.
    pub base: Arc<Base>,
    /// Stages and traces of requests.
    pub telemetry: Arc<Telemetry>,
    pub audit: Arc<Audit>,
    /// Limits of plans and sources.
    pub quotas: Arc<Quotas>,
    pub policies: Arc<Policies>,
    /// The catalogue.
    pub tools: Arc<Tools>,
    pub providers: Arc<Providers>,
    /// Tokens and sessions.
    pub access: Arc<Access>,
    pub approvals: Arc<Approvals>,
    pub calls: Arc<Calls>,
    pub simulations: Arc<Simulations>,
    /// Membership, jobs and readiness.
    pub nodes: Arc<Nodes>,
}

impl App {
    /// Puts the parts together. Fails if the policy folder does not load: a node never starts with
    /// less policy than was written.
    #[expect(clippy::too_many_lines, reason = "the list of all rooms and what each works with")]
    pub fn new(parts: Parts) -> Result<Arc<Self>, Vec<PolicyError>> {
        let Parts { clock, random, store, node, workers, tasks, .. } = parts;
        let base = Arc::new(Base::new(clock, random, store, node, workers, tasks));
        let webhooks = parts.webhooks.keys().cloned().collect();
        let catalogue = Arc::new(ToolCatalogue::new(parts.declared, webhooks, base.now()));
        let screening = Screening::new(Arc::clone(&base), parts.dlp, &parts.fingerprint_key);
        let screening = Arc::new(screening);
        let cluster = parts.cluster.map(Arc::new);
        let telemetry = Arc::new(Telemetry::new(Arc::clone(&base), parts.traces));
        let audit = Audit::new(Arc::clone(&base), Arc::clone(&screening), parts.audit);
        let audit = Arc::new(audit);
        let quotas = Quotas::new(Arc::clone(&base), Arc::clone(&audit), parts.counters);
        let quotas = Arc::new(quotas);
        let handles = PolicyHandles {
            base: Arc::clone(&base),
            screening: Arc::clone(&screening),
            audit: Arc::clone(&audit),
            quotas: Arc::clone(&quotas),
            catalogue: Arc::clone(&catalogue),
            run_cases,
        };
        let policies = Arc::new(Policies::open(parts.policies, parts.webhooks, handles)?);
        let tools = Arc::new(Tools::new(ToolHandles {
            base: Arc::clone(&base),
            screening: Arc::clone(&screening),
            audit: Arc::clone(&audit),
            policies: Arc::clone(&policies),
            catalogue: Arc::clone(&catalogue),
        }));
        let handles = ProviderHandles {
            base: Arc::clone(&base),
            screening: Arc::clone(&screening),
            audit: Arc::clone(&audit),
            quotas: Arc::clone(&quotas),
            catalogue: Arc::clone(&catalogue),
            tools: Arc::clone(&tools),
        };
        let providers = Arc::new(Providers::new(handles, parts.providers));
        let handles = AccessHandles {
            base: Arc::clone(&base),
            screening: Arc::clone(&screening),
            audit: Arc::clone(&audit),
            quotas: Arc::clone(&quotas),
            providers: Arc::clone(&providers),
            cluster: cluster.clone(),
        };
        let access = Arc::new(Access::new(handles, parts.trust, parts.grant_life));
        let approvals = Arc::new(Approvals::new(ApprovalHandles {
            base: Arc::clone(&base),
            screening: Arc::clone(&screening),
            audit: Arc::clone(&audit),
            policies: Arc::clone(&policies),
            catalogue: Arc::clone(&catalogue),
            providers: Arc::clone(&providers),
        }));
        let simulations = Arc::new(Simulations::new(SimulationHandles {
            base: Arc::clone(&base),
            screening: Arc::clone(&screening),
            audit: Arc::clone(&audit),
            policies: Arc::clone(&policies),
            catalogue: Arc::clone(&catalogue),
            tools: Arc::clone(&tools),
        }));
        let handles = CallHandles {
            base: Arc::clone(&base),
            screening,
            audit: Arc::clone(&audit),
            quotas: Arc::clone(&quotas),
            policies: Arc::clone(&policies),
            catalogue: Arc::clone(&catalogue),
            tools: Arc::clone(&tools),
            providers: Arc::clone(&providers),
            approvals: Arc::clone(&approvals),
        };
        let calls = Arc::new(Calls::new(handles, parts.calls));
        let nodes = Arc::new(Nodes::new(NodeHandles {
            base: Arc::clone(&base),
            telemetry: Arc::clone(&telemetry),
            audit: Arc::clone(&audit),
            quotas: Arc::clone(&quotas),
            policies: Arc::clone(&policies),
            catalogue,
            tools: Arc::clone(&tools),
            providers: Arc::clone(&providers),
            access: Arc::clone(&access),
            calls: Arc::clone(&calls),
            approvals: Arc::clone(&approvals),
            cluster,
        }));
        let rooms = Self {
            base,
            telemetry,
            audit,
            quotas,
            policies,
            tools,
            providers,
            access,
            approvals,
            calls,
            simulations,
            nodes,
        };
        Ok(Arc::new(rooms))
    }
}
