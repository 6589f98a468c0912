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
    AccessParts, Answered, App, Auth, Ctx, Declared, Dlp, Fallback, Invocation, LastGood, Misfits,
    Origin, Overrides, Owners, Parts, Pinning, PolicyFolder, PolicySource, PresentedToken, Purpose,
    Stages, Trust, View, capability_named,
};
use portcullis_core::{
    call::Aim,
    capability::ProviderSlug,
    clock::{Clock, Timestamp},
    dlp::{Engine, Settings},
    id::{GrantId, Ids, OrgId, PrincipalId, PrincipalKind, RequestId, TokenId},
    json::Document,
    lifetime::GrantLife,
    lineage::Lineage,
    principal::{AuthMethod, Plan, Role, ScopeSet},
    random::Random,
    refusal::Refusal,
    token::{Token, TokenKind},
    trust::TrustRules,
};
use portcullis_store::{
    AuditSettings, AuditWriter, DatabaseSettings, DatabaseUrl, Org, Principal, RowKey, Store,
    TokenRecord,
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

/// Identifiers that are made at `NOW`.
fn ids() -> Ids<'static> {
    static STANDING: Stopped = Stopped::at(NOW);
    Ids { clock: &STANDING, random: &SystemRandom }
}

/// An empty store in this folder.
pub(crate) async fn store(folder: &Path) -> Store {
    fs::create_dir(folder.join("policies")).unwrap();
    let url = DatabaseUrl::sqlite(folder.join("portcullis.db"));
    Store::open(&DatabaseSettings::new(url, RowKey::derive(&[0; 32]))).await.unwrap()
}

/// An app over this store that trusts by these rules, with the provider `other` at this address, if
/// there is one.
pub(crate) fn app(
    folder: &Path,
    store: &Store,
    clock: Arc<dyn Clock>,
    rules: TrustRules,
    provider: Option<&str>,
) -> Arc<App> {
    let random: Arc<dyn Random> = Arc::new(SystemRandom);
    let audit = AuditSettings::new("test".to_owned());
    let (writer, writing) = AuditWriter::new(store.clone(), Arc::clone(&clock), audit);
    let outbound = Outbound::new(Arc::clone(&random));
    let tasks = TaskTracker::new();
    tasks.spawn(writing.run());
    let mut bare = Parts::bare(clock, random, store.clone(), writer, &tasks).unwrap();
    "localhost".clone_into(&mut bare.audit.log_host);
    let app = App::new(Parts {
        policies: PolicySource {
            folder: PolicyFolder::new(folder.join("policies")),
            last_good: LastGood::new(folder.join("last-good")),
            overrides: Overrides::new(folder.join("overrides")),
            fallback: Fallback::Refuse,
        },
        dlp: Dlp::new(Engine::new(&Settings::default()).unwrap(), None),
        declared: provider.map(|url| declared(url, &outbound)).into_iter().collect(),
        access: AccessParts {
            trust: Trust::new(rules, BTreeMap::new(), &outbound, &tasks),
            grant_life: GrantLife::default(),
            dpop_key: [4; 32],
        },
        ..bare
    });
    app.unwrap()
}

/// A request from this address.
pub(crate) fn origin(source: Ipv4Addr) -> Origin {
    Origin {
        request_id: RequestId::new(ids()),
        arrived: NOW,
        source_ip: IpAddr::from(source),
        user_agent: None,
        traceparent: None,
        tracestate: None,
        stages: Stages::untraced(),
        is_internal: false,
    }
}

/// A new org.
pub(crate) async fn org(store: &Store) -> OrgId {
    let id = OrgId::new(ids());
    let name = "acme".to_owned();
    let org = Org { id, name, plan: Plan::Pro, created_at: NOW, disabled_at: None };
    store.create_org(&org).await.unwrap();
    id
}

/// A new principal of an org.
pub(crate) async fn principal(store: &Store, org_id: OrgId, name: &str, role: Role) -> PrincipalId {
    let service = matches!(role, Role::Service(_));
    let kind = if service { PrincipalKind::Service } else { PrincipalKind::User };
    let id = PrincipalId::new(kind, ids());
    let principal = Principal::new(id, org_id, name.to_owned(), role, NOW);
    store.create_principal(&principal).await.unwrap();
    principal.id
}

/// A new token of a principal, and its identifier.
pub(crate) async fn token(
    store: &Store,
    org_id: OrgId,
    principal_id: PrincipalId,
    method: AuthMethod,
    lineage: Lineage,
) -> (String, TokenId) {
    let token = Token::generate(TokenKind::of_principal(principal_id.kind()), &SystemRandom);
    let id = TokenId::new(ids());
    let grant = GrantId::new(ids());
    let ends = NOW.plus_seconds(36_000);
    let record = TokenRecord {
        method,
        lineage,
        ..TokenRecord::of_operator(id, org_id, principal_id, grant, ScopeSet::ALL, NOW, ends)
    };
    store.insert_token(&record, &token.hash()).await.unwrap();
    (token.secret().expose().to_owned(), record.id)
}

/// A node that permits everything, with the provider `other` at this address, if there is one.
pub(crate) async fn node(folder: &Path, provider: Option<&str>) -> Node {
    let store = store(folder).await;
    let all = "@id(\"all\") permit (principal, action, resource);";
    fs::write(folder.join("policies/all.cedar"), all).unwrap();
    let clock = Arc::new(Stopped::at(NOW));
    let trusting = TrustRules::default();
    let app = app(folder, &store, Arc::<Stopped>::clone(&clock), trusting, provider);
    Node { app, store, clock, origin: origin(Ipv4Addr::LOCALHOST) }
}

fn declared(url: &str, outbound: &Outbound) -> Declared {
    let slug: ProviderSlug = "other".parse().unwrap();
    let endpoint = Endpoint::allowed(url).unwrap();
    let transport = Transport::Http { endpoint: endpoint.clone(), credential: None };
    let settings = ServerSettings::new(slug.clone(), transport);
    Declared {
        slug,
        name: "Other".to_owned(),
        card: false,
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
        let org_id = org(&self.store).await;
        let id = principal(&self.store, org_id, "ci", Role::Service(ScopeSet::ALL)).await;
        let method = AuthMethod::Operator;
        let lineage = Lineage::default();
        token(&self.store, org_id, id, method, lineage).await.0
    }

    /// Calls the tool, with the session that the token has now.
    pub(crate) async fn call(
        &self,
        token: &str,
        tool: &str,
    ) -> Result<Answered, Box<portcullis_app::Stopped>> {
        let now = self.clock.now();
        let random = &SystemRandom;
        let request_id = RequestId::new(Ids { clock: &*self.clock, random });
        let origin = Origin { request_id, arrived: now, ..self.origin.clone() };
        let token = PresentedToken::bearer(Some(token));
        let asked = self.app.access.authenticate(token, Purpose::Access, &origin).await;
        let session = asked.map_err(|refused| refused.refusal).unwrap();
        let invocation = Invocation {
            tool: capability_named(tool),
            aim: Aim::Use,
            view: Ok(View::Structured),
            key: Ok(None),
            body: Ok((Document::of(&json!({})), 2)),
            conversation: portcullis_app::Conversation::default(),
            task: None,
        };
        let context = Ctx { origin: Arc::new(origin), session, attendance: None };
        self.app.calls.invoke(context, 2, move || invocation).await
    }

    pub(crate) async fn ask(&self, token: &str) -> Result<(), Refusal> {
        let token = PresentedToken::bearer(Some(token));
        let asked = self.app.access.authenticate(token, Purpose::Access, &self.origin).await;
        asked.map(|_| ()).map_err(|refused| refused.refusal)
    }
}
