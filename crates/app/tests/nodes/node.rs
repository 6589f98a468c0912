//! A whole node in this process, without HTTP and jobs, whose clock goes when a test lets it.

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, Ipv4Addr},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use aws_lc_rs::rand;
use portcullis_app::{
    Anchors, Answered, App, AuditParts, Auth, CallParts, Connecting, Ctx, Declared, Dlp,
    ExportLimits, Fallback, Folder, Invocation, LastGood, Misfits, Origin, Overrides, Owners,
    Parts, Pinning, PolicyFolder, PolicySource, ProviderParts, Purpose, Stages, Trust, Vaults,
    View, tool_named,
};
use portcullis_core::{
    audit::keyring::Keyring,
    clock::{Clock, Timestamp},
    dlp::{Engine, Settings},
    id::{GrantId, Ids, OrgId, PrincipalId, PrincipalKind, RequestId, TokenId},
    json::Document,
    lifetime::GrantLife,
    principal::{AuthMethod, Plan, Role, ScopeSet},
    random::Random,
    refusal::Refusal,
    token::{Token, TokenKind},
    tool::ProviderSlug,
    trust::TrustRules,
    vault::Vault,
};
use portcullis_store::{
    AuditSettings, AuditWriter, DatabaseSettings, DatabaseUrl, Org, Principal, Store, TokenRecord,
};
use portcullis_upstream::{Endpoint, Outbound, Protocol, Server, ServerSettings, Transport};
use serde_json::json;
use tokio_util::task::TaskTracker;

pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_795_172_535_123_000);

/// A clock that stands still until it is put forward.
#[derive(Debug)]
pub(crate) struct Stopped(AtomicI64);

impl Stopped {
    pub(crate) const fn at(moment: Timestamp) -> Self {
        Self(AtomicI64::new(moment.as_micros()))
    }

    pub(crate) fn set(&self, moment: Timestamp) {
        self.0.store(moment.as_micros(), Ordering::Relaxed);
    }

    pub(crate) fn forward(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::Relaxed))
    }
}

#[derive(Debug)]
pub(crate) struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        rand::fill(bytes).unwrap();
    }
}

pub(crate) struct Node {
    pub(crate) app: Arc<App>,
    pub(crate) store: Store,
    pub(crate) clock: Arc<Stopped>,
    origin: Origin,
}

/// A node that permits everything, with the provider `other` at this address, if there is one.
#[expect(clippy::too_many_lines, reason = "the list of all parts")]
pub(crate) async fn node(folder: &Path, provider: Option<&str>) -> Node {
    fs::create_dir(folder.join("policies")).unwrap();
    let all = "@id(\"all\") permit (principal, action, resource);";
    fs::write(folder.join("policies/all.cedar"), all).unwrap();
    let stopped = Arc::new(Stopped(AtomicI64::new(NOW.as_micros())));
    let (clock, random): (Arc<dyn Clock>, Arc<dyn Random>) =
        (Arc::<Stopped>::clone(&stopped), Arc::new(SystemRandom));
    let url = DatabaseUrl::sqlite(folder.join("portcullis.db"));
    let store = Store::open(&DatabaseSettings::new(url)).await.unwrap();
    let audit = AuditSettings::new("test".to_owned());
    let (writer, writing) = AuditWriter::new(store.clone(), Arc::clone(&clock), audit);
    let (outbound, tasks) = (Outbound::new(Arc::clone(&random)), TaskTracker::new());
    tasks.spawn(writing.run());
    let app = App::new(Parts {
        clock: Arc::clone(&clock),
        random: Arc::clone(&random),
        store: store.clone(),
        node: "test".to_owned(),
        workers: portcullis_lanes::Workers::none(),
        tasks: tasks.clone(),
        audit: AuditParts {
            writer,
            log_host: "localhost".to_owned(),
            log_keys: Keyring::generate(&SystemRandom, NOW),
            anchors: Anchors::default(),
            retention: portcullis_app::Retention::default(),
            exports: Folder::open(folder.join("exports"), false).unwrap(),
            export_limits: ExportLimits::default(),
            sinks: Vec::new(),
        },
        calls: CallParts {
            answer_key: portcullis_core::idempotency::AnswerKey::new(&[1; 32]),
            state_key: portcullis_core::call::StateKey::new(&[2; 32]),
            capture: portcullis_core::audit::Capture::default(),
            max_calls: 64,
        },
        cluster: None,
        counters: None,
        policies: PolicySource {
            folder: PolicyFolder::new(folder.join("policies")),
            last_good: LastGood::new(folder.join("last-good")),
            overrides: Overrides::new(folder.join("overrides")),
            fallback: Fallback::Refuse,
        },
        dlp: Dlp::new(Engine::new(&Settings::default()).unwrap(), None),
        fingerprint_key: [0; 32],
        declared: provider.map(|url| declared(url, &outbound)).into_iter().collect(),
        webhooks: BTreeMap::new(),
        trust: Trust::new(TrustRules::default(), BTreeMap::new(), &outbound, &tasks),
        grant_life: GrantLife::default(),
        providers: ProviderParts {
            vaults: Vaults::open(Box::new(|| {
                Vault::new(&[zeroize::Zeroizing::new([2; 32])]).map_err(|error| error.to_string())
            }))
            .unwrap(),
            outbound: outbound.clone(),
            connecting: Connecting::new(Vec::new(), 600, "Portcullis".to_owned()),
        },
        traces: None,
    });
    let origin = Origin {
        request_id: RequestId::new(Ids { clock: &*clock, random: &*random }),
        arrived: NOW,
        source_ip: IpAddr::from(Ipv4Addr::LOCALHOST),
        user_agent: None,
        traceparent: None,
        tracestate: None,
        stages: Stages::untraced(),
    };
    Node { app: app.unwrap(), store, clock: stopped, origin }
}

fn declared(url: &str, outbound: &Outbound) -> Declared {
    let slug: ProviderSlug = "other".parse().unwrap();
    let endpoint = Endpoint::named(url).unwrap();
    let transport = Transport::Http { endpoint: endpoint.clone(), credential: None };
    let settings = ServerSettings::new(slug.clone(), transport);
    Declared {
        slug,
        name: "Other".to_owned(),
        org: None,
        auth: Auth::None,
        owners: Owners { me: true, org: true },
        account: None,
        endpoint: Some(endpoint),
        server: Server::new(ServerSettings { protocol: Protocol::Legacy, ..settings }, outbound)
            .unwrap(),
        pinning: Pinning::On,
        strict_patterns: false,
        misfits: Misfits::Note,
        max_pins: 2_000,
    }
}

impl Node {
    /// A token of a service account.
    pub(crate) async fn token(&self) -> String {
        let ids = Ids { clock: &*self.clock, random: &SystemRandom };
        let (org_id, principal_id) =
            (OrgId::new(ids), PrincipalId::new(PrincipalKind::Service, ids));
        let (name, plan) = ("acme".to_owned(), Plan::Pro);
        let org = Org { id: org_id, name: name.clone(), plan, created_at: NOW, disabled_at: None };
        self.store.create_org(&org).await.unwrap();
        let role = Role::Service(ScopeSet::ALL);
        let principal = Principal {
            id: principal_id,
            org_id,
            name,
            role,
            groups: std::collections::BTreeSet::new(),
            created_at: NOW,
            disabled_at: None,
        };
        self.store.create_principal(&principal).await.unwrap();
        let token = Token::generate(TokenKind::Service, &SystemRandom);
        let record = TokenRecord {
            id: TokenId::new(ids),
            kind: TokenKind::Service,
            org_id,
            principal_id,
            via: None,
            grant_id: GrantId::new(ids),
            parent_id: None,
            via_token_id: None,
            scopes: ScopeSet::ALL,
            label: None,
            method: AuthMethod::Operator,
            issued_at: NOW,
            expires_at: NOW.plus_seconds(3600),
            revoked_at: None,
            last_used_at: None,
            allowed_cidrs: None,
            exchange_only: false,
            lineage: Some(portcullis_core::lineage::Lineage::default()),
        };
        self.store.insert_token(&record, &token.hash()).await.unwrap();
        token.secret().expose().to_owned()
    }

    /// Calls the tool, with the session that the token has now.
    pub(crate) async fn call(
        &self,
        token: &str,
        tool: &str,
    ) -> Result<Answered, Box<portcullis_app::Stopped>> {
        let (now, random) = (self.clock.now(), &SystemRandom);
        let request_id = RequestId::new(Ids { clock: &*self.clock, random });
        let origin = Origin { request_id, arrived: now, ..self.origin.clone() };
        let asked = self.app.access.authenticate(Some(token), Purpose::Access, &origin).await;
        let session = asked.map_err(|refused| refused.refusal).unwrap();
        let invocation = Invocation {
            tool: tool_named(tool),
            view: Ok(View::Structured),
            key: Ok(None),
            body: Ok((Document::of(&json!({})), 2)),
            conversation: portcullis_app::Conversation::default(),
            task: None,
        };
        self.app
            .calls
            .invoke(Ctx { origin: Arc::new(origin), session, attendance: None }, 2, move || {
                invocation
            })
            .await
    }

    pub(crate) async fn ask(&self, token: &str) -> Result<(), Refusal> {
        let asked = self.app.access.authenticate(Some(token), Purpose::Access, &self.origin).await;
        asked.map(|_| ()).map_err(|refused| refused.refusal)
    }
}
