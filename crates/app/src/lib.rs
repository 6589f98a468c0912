//! The use cases of Portcullis: what happens, in which order. No HTTP types and no SQL here.
//!
//! [`App`] puts the rooms together; each owns its state, and knows those that stand below it here.
//! A reader opens two files to know how a call is governed: `calls/invoke.rs` tells the story,
//! `calls/bracket.rs` makes sure that nothing happens unrecorded.

mod administration;
mod nodes;

mod calls;
mod identity;
mod simulation;

mod approvals;
mod providers;

mod policies;

pub mod audit;

mod request;

mod catalogue;

mod base;
pub mod telemetry;

pub use portcullis_lanes::{LARGE, Workers};

pub use self::{
    administration::{
        AcceptedTool, Administration, HoldView, InspectedToken, ListedHolds, ListedPrincipals,
        ListedTokens, ListedTools, MAX_OVERRIDE_SECONDS, MadeToken, NewLoginLink, OrgChange,
        OrgLimits, OrgUsage, OrgView, OverrideRequest, OverrideView, PinnedTools,
        PrincipalKindName, PrincipalView, ShownDefinition, TokenView, ToolPlace, WaitingTool,
        WindowUsage,
    },
    approvals::{ApprovalPage, ApprovalView, Approvals, DecisionRequest, EarlierApproval},
    audit::{
        Audit, AuditParts,
        anchors::{AnchorFile, Anchors, WitnessedBy},
        counts::{CountStep, CountsView, StepView, ToolCounts, ToolCountsView},
        events::EventView,
        exports::{
            BegunExport, ExportAsk, ExportError, ExportFile, ExportLimits, ExportOutput,
            ExportRequest, ExportView, Folder, Progress, Written, describe_export,
        },
        holds::{HoldError, HoldRequest},
        log::{CheckpointSince, LogKeyError, origin},
        retention::{LEAST_DAYS, Retention},
        sinks::{FileOutlet, Outlet, SinkSettings},
    },
    base::{
        claim::Claim,
        cluster::{Cluster, JoinError},
        tenants::{Account, Tenant, sources::subnet, tallies::PolicyStats},
    },
    calls::{
        Answered, CallParts, Calls, GovernanceView, Invocation, Invoked, Replayed, ReplayedError,
        Stopped, TaskTerms, View,
        conversation::{Conversation, Questions},
        provider_task::{FollowUp, Followed, FollowedTask},
        task::{Task, TaskRun, TaskState, TaskStep},
    },
    catalogue::{
        auth::{
            AccountSource, Auth, AuthKind, AuthorizationServer, Awaited, Endpoints, HeaderFormat,
            OAuthSettings, Owners,
        },
        not_found,
        provider::{Declared, Misfits, Pinning},
    },
    identity::{
        access::{
            Access, AccessParts,
            keys::RemovedKey,
            proofs::ProvedKey,
            tokens::{
                Credentials, ExchangeRequest, Granted, Presented, PresentedRefresh, Purpose,
                RefreshAt, Refreshing, Screened, SubjectType,
            },
            trust::{KeySource, Trust, TrustRefusal},
        },
        authorization::{
            Answer, Authorization, AuthorizationParts, CodeRequest, ConfidentialClient,
            ConfidentialClients, ConsentQuestion, ConsentView, Decision, DocumentRules,
            GrantRequest, PresentedClient, RefreshRequest, Step, TokenAnswer, TokenClient,
            proof_error, shown_digest,
        },
        directory::{
            DirectoryError,
            people::{NewPrincipal, PrincipalPatch},
            tokens::{NewToken, TokenRequest},
        },
        login::{
            LoginParts, Logins, OpenedSession,
            failure::{LoginError, LoginFailure},
            issuers::{IssuerCredential, LoginIssuer, LoginIssuerState},
            listing::SessionView,
            openid::BegunLogin,
            person::Person,
        },
        scim::{ListedResources, Provisioning, ScimList, ScimResource},
    },
    nodes::{
        Nodes,
        commands::{
            ERASABLE, ErasureRequest, Indexed, LogIdentity, Operator, OperatorError, ReindexMode,
            Reindexed, Witnessed,
        },
        jobs::catalogue::UntoldTools,
    },
    policies::{
        Policies, PolicySource, Reload,
        folder::{FolderFiles, PolicyFolder},
        last_good::{Fallback, LastGood},
        limits::{LimitParts, Quotas, Refused},
        overrides::Overrides,
        policy_tests::CaseReport,
        private_file::replace as replace_private_file,
        query::{PolicyPage, PolicyQuery},
        reload::Reloading,
        set_change::SetChange,
    },
    providers::{
        ProviderParts, Providers,
        connect::{
            Callback, CalledBack, ConnectRequest, Connected, Connecting, Disconnected,
            NotRegistered, Owner, RegisteredClient, RotateError, UpstreamRevocation,
            rotate_secrets,
        },
        connections::WaitingProvider,
        looks::ConnectionTest,
        tools::{
            DirectoryEntry, LeftOutTool, ListedNames, ListedPage, NamedTool, Offered, OfferedTools,
            PageQuery, ResourceWatch, ToolQuery, ToolStatus, ToolView, Tools, capability_named,
            parse_id, pins::acceptance::Waiting, tool_named,
        },
        vault::{KeySource as VaultSource, Vaults},
        view::{IssuerState, OwnerView, ProviderQuery, ProviderState, ProviderView, Whose},
    },
    request::{
        Ctx, Origin, Precondition,
        attendance::{Attendance, Attending, ClearedProgress},
        dlp::{Dlp, External, WhenUnavailable},
        possession::{Possession, PresentedProof, PresentedToken},
        screening::{
            Screening, fingerprint_key,
            specimen_report::{SpecimenFinding, SpecimenReport, Unscanned},
        },
        session::Session,
    },
    simulation::{
        Ask, Base, Baseline, CaseFile, CaseRun, Draft, Expectation, Options, PolicyCheck, Replay,
        SimulatedPrincipal, Simulation, Simulations, Subject, Unread, Workbench,
        replay::explained::{EventExplanation, ExplainedEvent, ExplainedSet},
        report::SimulationReport,
    },
    telemetry::{
        Telemetry,
        stages::{Stage, Stages},
        traces::{Attribute, Recording, TraceSettings},
    },
};

use std::{collections::BTreeMap, sync::Arc};

use portcullis_core::{
    audit::{Capture, keyring::Keyring},
    call::StateKey,
    clock::Clock,
    dlp::Engine,
    id::OrgId,
    idempotency::AnswerKey,
    lifetime::GrantLife,
    policy::PolicyError,
    random::{self, Random},
    trust::TrustRules,
    vault::Vault,
};
use portcullis_store::{AuditWriter, Store};
use portcullis_upstream::{Outbound, Webhook};
use tokio_util::task::TaskTracker;
use zeroize::Zeroizing;

use self::{
    catalogue::Capabilities,
    nodes::{jobs::unreadable::NamedRows, readiness::Readiness},
    simulation::cases::run_cases,
    telemetry::traces::Traces,
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

impl Parts {
    /// Parts of a process that makes no calls: without providers, policies, detectors, logins and clients. Its keys
    /// open nothing that another process sealed.
    pub fn bare(
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        store: Store,
        writer: AuditWriter,
        tasks: &TaskTracker,
    ) -> Result<Self, String> {
        let outbound = Outbound::new(Arc::clone(&random));
        let key: [u8; 32] = random::bytes(&*random);
        let vault = move || Vault::new(&[Zeroizing::new(key)]).map_err(|error| error.to_string());
        let log_keys = Keyring::generate(&*random, clock.now());
        Ok(Self {
            node: String::new(),
            workers: Workers::none(),
            tasks: tasks.clone(),
            cluster: None,
            limits: LimitParts { counters: None, unauthenticated_per_minute: 60 },
            policies: PolicySource::none(),
            webhooks: BTreeMap::new(),
            dlp: Dlp::new(Engine::idle(), None),
            fingerprint_key: key,
            audit: AuditParts::bare(writer, log_keys),
            calls: CallParts {
                answer_key: AnswerKey::new(&key),
                state_key: StateKey::new(&key),
                capture: Capture::default(),
                max_calls: 64,
            },
            declared: Vec::new(),
            providers: ProviderParts {
                vaults: Vaults::open(Box::new(vault))?,
                outbound: outbound.clone(),
                connecting: Connecting::new(Vec::new(), 600, String::new()),
            },
            access: AccessParts {
                trust: Trust::new(TrustRules::default(), BTreeMap::new(), &outbound, tasks),
                grant_life: GrantLife::default(),
                dpop_key: key,
            },
            login: LoginParts::none(&key, &outbound),
            authorization: AuthorizationParts::none(&key, &outbound, tasks),
            read_only: false,
            traces: None,
            clock,
            random,
            store,
        })
    }
}

/// The use cases of one node, by room.
#[derive(Debug)]
pub struct App {
    /// Clock, ids and executors.
    pub base: Arc<base::Base>,
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
        let Parts { clock, random, store, node, workers, tasks, policies, .. } = parts;
        let traces = Traces::new(parts.traces, &node, &clock, &random);
        let telemetry = Arc::new(Telemetry { traces, tasks: tasks.clone() });
        let base = Arc::new(base::Base::new(clock, random, store, node, workers, tasks));
        let webhooks = parts.webhooks.keys().cloned().collect();
        let catalogue = Arc::new(Capabilities::new(parts.declared, webhooks, base.now()));
        let screening = Screening::new(Arc::clone(&base), parts.dlp, &parts.fingerprint_key);
        let screening = Arc::new(screening);
        let audit = Arc::new(Audit::new(Arc::clone(&base), Arc::clone(&screening), parts.audit));
        let quotas = Arc::new(Quotas::new(Arc::clone(&base), Arc::clone(&audit), parts.limits));
        let cluster = parts.cluster.map(Arc::new);
        let policies =
            Policies::open(&screening, &quotas, &catalogue, policies, parts.webhooks, run_cases)?;
        let tools = Arc::new(Tools::new(&policies));
        let providers = Arc::new(Providers::new(&policies, &tools, parts.providers));
        let access = Arc::new(Access::new(&policies, &providers, cluster.clone(), parts.access));
        let logins = Arc::new(Logins::new(&policies, &providers, &access, parts.login));
        let authorization =
            Authorization::open(&policies, &providers, &access, &logins, parts.authorization);
        let administration = Arc::new(Administration::new(&access, &policies, parts.read_only));
        let provisioning = Arc::new(Provisioning::new(&policies, &access));
        let approvals = Arc::new(Approvals::new(&policies, &providers.connecting.public_url));
        let simulations = Arc::new(Simulations::new(&policies, &tools));
        let calls = Arc::new(Calls::new(&policies, &tools, &providers, &approvals, parts.calls));
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
