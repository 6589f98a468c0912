//! Everything a use case needs, put together once at boot.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use arc_swap::ArcSwap;
use aws_lc_rs::hmac;
use portcullis_core::{
    audit::{Capture, keyring::Keyring},
    clock::{Clock, Timestamp},
    dlp::{FingerprintKey, Subject},
    id::{Ids, OrgId},
    idempotency::AnswerKey,
    lifetime::GrantLife,
    policy::{Catalogue, PolicyError},
    random::Random,
    refusal::Refusal,
    tool::Tool,
};
use portcullis_lanes::Workers;
use portcullis_store::{AuditWriter, SharedCounters, Store};
use portcullis_upstream::{Outbound, Webhook};
use tokio_util::task::TaskTracker;

use crate::{
    Ctx,
    accessed::{Accessed, no_looks},
    anchors::Anchors,
    cluster::Cluster,
    coalesced::{Coalesced, no_refusals},
    connect::Connecting,
    connections::Connections,
    dlp::Dlp,
    exports::{ExportLimits, Exports, Folder},
    jobs::{LateEvents, Named, UsedTokens},
    judging::Judging,
    limits::Limits,
    log::LogSigner,
    mismatches::Mismatches,
    notices::Notices,
    pins::Pins,
    policies::{Ground, Policies, PolicySource},
    providers::{Declared, Provider},
    rates::Rates,
    readiness::Readiness,
    retention::Retention,
    simulate::Simulations,
    sinks::SinkSettings,
    sources::Sources,
    tenants::Tenants,
    tokens::Sessions,
    tools::{Offers, ToolTable},
    traces::{TraceSettings, Traces},
    trust::Trust,
    vault::Vaults,
};

/// What boot hands over.
#[derive(Debug)]
pub struct Parts {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The random source.
    pub random: Arc<dyn Random>,
    /// The store.
    pub store: Store,
    /// The one writer of this node's audit records.
    pub writer: AuditWriter,
    /// This node's name.
    pub node: String,
    /// The other nodes, where there can be any.
    pub cluster: Option<Cluster>,
    /// Where limits are counted, if not by this node alone.
    pub counters: Option<SharedCounters>,
    /// Where the policies come from.
    pub policies: PolicySource,
    /// What looks through calls and answers.
    pub dlp: Dlp,
    /// The key from which each org's fingerprint key is derived.
    pub fingerprint_key: [u8; 32],
    /// Seals the answers that are kept for idempotency keys.
    pub answer_key: AnswerKey,
    /// How much of payloads events keep where no policy says so.
    pub capture: Capture,
    /// How long events are kept.
    pub retention: Retention,
    /// How many calls may be under way to their tools at once: judged, recorded, or waiting to be.
    pub max_calls: usize,
    /// The providers.
    pub providers: Vec<Declared>,
    /// The trust rules.
    pub trust: Trust,
    /// How long a login lasts.
    pub grant_life: GrantLife,
    /// The keys that seal credentials.
    pub vaults: Vaults,
    /// The way out, for what is asked of authorization servers.
    pub outbound: Outbound,
    /// What connects are like here.
    pub connecting: Connecting,
    /// Where the notices go that policies ask for, by name.
    pub webhooks: BTreeMap<String, Webhook>,
    /// Where audit logs say they are from: the public host of this installation.
    pub log_host: String,
    /// Where export files lie.
    pub exports: Folder,
    /// Limits on export files.
    pub export_limits: ExportLimits,
    /// Where copies of events go.
    pub sinks: Vec<SinkSettings>,
    /// Which requests are traced, and who is told.
    pub traces: Option<TraceSettings>,
    /// What signs them.
    pub log_keys: Keyring,
    /// Where their checkpoints are published.
    pub anchors: Anchors,
    /// Threads for work that would keep one that serves busy for long.
    pub workers: Workers<OrgId>,
    /// Where work goes that must finish before the process ends.
    pub tasks: TaskTracker,
}

/// The use cases of one node.
pub struct App {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) store: Store,
    pub(crate) writer: AuditWriter,
    pub(crate) node: String,
    pub(crate) cluster: Option<Cluster>,
    /// Where calls are until they are dispatched.
    pub(crate) judging: Judging,
    pub(crate) policies: Policies,
    pub(crate) dlp: ArcSwap<Dlp>,
    pub(crate) providers: BTreeMap<String, Arc<Provider>>,
    pub(crate) tools: ArcSwap<ToolTable>,
    pub(crate) offers: Offers,
    pub(crate) catalogue_lock: Mutex<()>,
    pub(crate) notices: Notices,
    pub(crate) pins: Pins,
    pub(crate) rates: Rates,
    pub(crate) limits: Limits,
    pub(crate) tenants: Tenants,
    pub(crate) sources: Sources,
    pub(crate) sessions: Sessions,
    pub(crate) used_tokens: UsedTokens,
    pub(crate) late_events: LateEvents,
    pub(crate) named: Named,
    pub(crate) simulations: Simulations,
    pub(crate) coalesced: Coalesced,
    pub(crate) accessed: Accessed,
    pub(crate) capture: Capture,
    pub(crate) retention: Retention,
    pub(crate) answer_key: AnswerKey,
    pub(crate) trust: Trust,
    pub(crate) grant_life: GrantLife,
    pub(crate) vaults: Vaults,
    pub(crate) outbound: Outbound,
    pub(crate) connecting: Connecting,
    pub(crate) connections: Connections,
    pub(crate) exports: Exports,
    pub(crate) sinks: Vec<SinkSettings>,
    pub(crate) traces: Traces,
    pub(crate) log: LogSigner,
    pub(crate) anchors: Anchors,
    pub(crate) workers: Workers<OrgId>,
    pub(crate) tasks: TaskTracker,
    pub(crate) readiness: Readiness,
    pub(crate) mismatches: Mismatches,
    fingerprint_key: hmac::Key,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("node", &self.node).finish_non_exhaustive()
    }
}

impl App {
    /// Does something of `bytes` bytes for an org: off the threads that serve if that is much.
    pub async fn worked<T: Send + 'static>(
        &self,
        org: OrgId,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        self.workers.run(org, bytes, work).await.ok_or_else(|| {
            tracing::error!("work for an answer ended in a panic");
            Refusal::Internal
        })
    }

    /// Forgets something large of an org, which takes as long as to make it.
    pub fn discard(&self, org: OrgId, large: impl Send + 'static) {
        self.workers.hand(org, move || drop(large));
    }

    /// Puts the parts together. Says no to a policy folder that does not load: a node never
    /// starts with less policy than was written.
    pub fn new(parts: Parts) -> Result<Arc<Self>, Vec<PolicyError>> {
        let now = parts.clock.now();
        let providers: BTreeMap<_, _> = parts
            .providers
            .into_iter()
            .map(|declared| (declared.slug.to_string(), Arc::new(Provider::new(declared, now))))
            .collect();
        let catalogue = Catalogue::new(
            providers.values().map(|provider| (provider.declared.slug.clone(), None)),
        )
        .with_webhooks(parts.webhooks.keys().cloned());
        let detectors = parts.dlp.engine().names();
        let ground = Ground { catalogue: &catalogue, detectors: &detectors, now };
        let policies = Policies::open(parts.policies, ground)?;
        Ok(Arc::new(Self {
            policies,
            traces: Traces::new(parts.traces, &parts.node, (&parts.clock, &parts.random)),
            log: LogSigner::new(parts.log_host, Arc::clone(&parts.clock), parts.log_keys),
            anchors: parts.anchors,
            clock: parts.clock,
            random: parts.random,
            store: parts.store,
            writer: parts.writer,
            node: parts.node,
            cluster: parts.cluster,
            dlp: ArcSwap::from_pointee(parts.dlp),
            providers,
            tools: ArcSwap::default(),
            offers: Offers::new(),
            catalogue_lock: Mutex::default(),
            notices: Notices::new(parts.webhooks),
            pins: Pins::default(),
            judging: Judging::new(parts.max_calls, parts.workers.threads()),
            rates: Rates::new(),
            limits: Limits::new(parts.counters),
            tenants: Tenants::default(),
            sources: Sources::new(),
            sessions: Sessions::new(),
            used_tokens: UsedTokens::default(),
            late_events: LateEvents::default(),
            named: Named::default(),
            simulations: Simulations::default(),
            coalesced: no_refusals(),
            accessed: no_looks(),
            capture: parts.capture,
            retention: parts.retention,
            answer_key: parts.answer_key,
            trust: parts.trust,
            grant_life: parts.grant_life,
            vaults: parts.vaults,
            outbound: parts.outbound,
            connecting: parts.connecting,
            connections: Connections::new(),
            exports: Exports::new(parts.exports, parts.export_limits),
            sinks: parts.sinks,
            workers: parts.workers,
            tasks: parts.tasks,
            readiness: Readiness::default(),
            mismatches: Mismatches::default(),
            fingerprint_key: hmac::Key::new(hmac::HMAC_SHA256, &parts.fingerprint_key),
        }))
    }

    /// Makes ids.
    #[must_use]
    pub fn ids(&self) -> Ids<'_> {
        Ids { clock: &*self.clock, random: &*self.random }
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// For whom DLP looks: equal values have equal fingerprints within an org and nowhere else.
    pub(crate) fn subject(&self, ctx: &Ctx, tool: &Tool) -> Subject {
        let known = &ctx.session.tenant.fingerprints;
        let key = known.get_or_init(|| self.fingerprints_of(ctx.caller().org_id));
        Subject::of(key.clone()).calling(tool.id.as_str())
    }

    /// The key under which the values of an org have their fingerprints.
    pub(crate) fn fingerprints_of(&self, org: OrgId) -> FingerprintKey {
        fingerprint_key(&self.fingerprint_key, org)
    }
}

/// The key under which the values of an org have their fingerprints.
#[must_use]
pub fn fingerprint_key(all: &hmac::Key, org: OrgId) -> FingerprintKey {
    let tag = hmac::sign(all, org.to_string().as_bytes());
    let mut key = [0; 32];
    key.copy_from_slice(tag.as_ref());
    FingerprintKey::new(key)
}
