//! The rooms of one node, put together once at boot.

use std::{collections::BTreeMap, sync::Arc};

use portcullis_core::{clock::Clock, id::OrgId, policy::PolicyError, random::Random};
use portcullis_lanes::Workers;
use portcullis_store::Store;
use portcullis_upstream::Webhook;
use tokio_util::task::TaskTracker;

use crate::{
    administration::Administration,
    approvals::Approvals,
    audit::{Audit, AuditParts},
    base::{Base, cluster::Cluster},
    calls::{CallParts, Calls},
    catalogue::{ToolCatalogue, provider::Declared},
    foundation::Foundation,
    identity::{
        access::{Access, AccessParts},
        authorization::{Authorization, AuthorizationParts},
        login::{LoginParts, Logins},
        scim::Provisioning,
    },
    nodes::{Nodes, jobs::unreadable::NamedRows, readiness::Readiness},
    policies::{
        Policies, PolicySource,
        limits::{LimitParts, Quotas},
    },
    providers::{ProviderParts, Providers, tools::Tools},
    request::{dlp::Dlp, screening::Screening},
    simulation::{Simulations, policy_cases::run_cases},
    telemetry::{
        Telemetry,
        traces::{TraceSettings, Traces},
    },
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
    pub limits: LimitParts,
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
    pub access: AccessParts,
    pub login: LoginParts,
    pub authorization: AuthorizationParts,
    /// True if admins of orgs change nothing over the API.
    pub read_only: bool,
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
    pub tools: Arc<Tools>,
    pub providers: Arc<Providers>,
    /// Tokens and sessions.
    pub access: Arc<Access>,
    /// Browser sessions of people.
    pub logins: Arc<Logins>,
    /// Clients that act for people.
    pub authorization: Arc<Authorization>,
    pub approvals: Arc<Approvals>,
    pub administration: Arc<Administration>,
    /// People and groups that identity providers keep.
    pub provisioning: Arc<Provisioning>,
    pub calls: Arc<Calls>,
    pub simulations: Arc<Simulations>,
    /// Data-loss prevention of what is part of no call.
    pub screening: Arc<Screening>,
    /// Membership, jobs and readiness.
    pub nodes: Arc<Nodes>,
}

impl App {
    /// Puts the parts together. Fails if the policy folder does not load: a node never starts with
    /// less policy than was written.
    pub fn new(parts: Parts) -> Result<Arc<Self>, Vec<PolicyError>> {
        let Parts { clock, random, store, node, workers, tasks, .. } = parts;
        let traces = Traces::new(parts.traces, &node, &clock, &random);
        let telemetry = Arc::new(Telemetry { traces, tasks: tasks.clone() });
        let base = Arc::new(Base::new(clock, random, store, node, workers, tasks));
        let webhooks = parts.webhooks.keys().cloned().collect();
        let catalogue = ToolCatalogue::new(parts.declared, webhooks, base.now());
        let screening = Screening::new(Arc::clone(&base), parts.dlp, &parts.fingerprint_key);
        let foundation = Foundation::new(&base, catalogue, screening, parts.audit, parts.limits);
        let cluster = parts.cluster.map(Arc::new);
        let policies = Policies::open(&foundation, parts.policies, parts.webhooks, run_cases)?;
        let policies = Arc::new(policies);
        let tools = Arc::new(Tools::new(&foundation, &policies));
        let providers = Arc::new(Providers::new(&foundation, &tools, parts.providers));
        let access = Arc::new(Access::new(&foundation, &providers, cluster.clone(), parts.access));
        let logins = Arc::new(Logins::new(&foundation, &providers, &access, parts.login));
        let authorization =
            Authorization::open(&foundation, &providers, &access, &logins, parts.authorization);
        let administration = Administration::new(&foundation, &access, &policies, parts.read_only);
        let administration = Arc::new(administration);
        let provisioning = Arc::new(Provisioning::new(&foundation, &access));
        let public_url = &providers.connecting.public_url;
        let approvals = Arc::new(Approvals::new(&foundation, &policies, public_url));
        let simulations = Arc::new(Simulations::new(&foundation, &policies, &tools));
        let calls = Calls::new(&foundation, &policies, &tools, &providers, &approvals, parts.calls);
        let calls = Arc::new(calls);
        let Foundation { audit, quotas, catalogue, screening, .. } = foundation;
        let nodes = Arc::new(Nodes {
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
            readiness: Readiness::default(),
            named: NamedRows::default(),
        });
        Ok(Arc::new(Self {
            base,
            telemetry,
            audit,
            quotas,
            policies,
            tools,
            providers,
            access,
            logins,
            authorization,
            approvals,
            administration,
            provisioning,
            calls,
            simulations,
            screening,
            nodes,
        }))
    }
}
