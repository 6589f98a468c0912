//! What a token is worth on a node that has lost its store.

#![cfg(test)]

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, Ipv4Addr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use aws_lc_rs::rand;
use portcullis_app::{
    Anchors, App, Connecting, Dlp, Fallback, Folder, LastGood, Origin, Overrides, Parts,
    PolicyFolder, PolicySource, Purpose, Stages, Trust, Vaults,
};
use portcullis_core::{
    audit::keyring::Keyring,
    clock::{Clock, Timestamp},
    dlp::{Engine, Settings},
    id::{GrantId, Ids, OrgId, PrincipalId, PrincipalKind, RequestId, TokenId},
    lifetime::GrantLife,
    principal::{AuthMethod, Plan, Role, ScopeSet},
    random::Random,
    refusal::{Refusal, Unavailable},
    token::{Token, TokenKind},
    trust::TrustRules,
    vault::Vault,
};
use portcullis_store::{
    AuditSettings, AuditWriter, DatabaseSettings, DatabaseUrl, Org, Principal, Store, TokenRecord,
};
use portcullis_upstream::Outbound;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

const NOW: Timestamp = Timestamp::from_micros(1_795_172_535_123_000);

#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        NOW
    }
}

#[derive(Debug)]
struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        rand::fill(bytes).unwrap();
    }
}

struct Node {
    app: Arc<App>,
    store: Store,
    origin: Origin,
}

async fn node(folder: &Path) -> Node {
    fs::create_dir(folder.join("policies")).unwrap();
    let (clock, random): (Arc<dyn Clock>, Arc<dyn Random>) =
        (Arc::new(Stopped), Arc::new(SystemRandom));
    let url = DatabaseUrl::sqlite(folder.join("portcullis.db"));
    let store = Store::open(&DatabaseSettings::new(url)).await.unwrap();
    let audit = AuditSettings::new("test".to_owned());
    let (writer, _) = AuditWriter::new(store.clone(), Arc::clone(&clock), audit);
    let (outbound, tasks) = (Outbound::new(Arc::clone(&random)), TaskTracker::new());
    let app = App::new(Parts {
        capture: portcullis_core::audit::Capture::default(),
        retention: portcullis_app::Retention::default(),
        answer_key: portcullis_core::idempotency::AnswerKey::new(&[1; 32]),
        clock: Arc::clone(&clock),
        random: Arc::clone(&random),
        store: store.clone(),
        writer,
        node: "test".to_owned(),
        max_calls: 1,
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
        providers: Vec::new(),
        webhooks: BTreeMap::new(),
        trust: Trust::new(TrustRules::default(), BTreeMap::new(), &outbound, &tasks),
        grant_life: GrantLife::default(),
        vaults: Vaults::open(Box::new(|| {
            Vault::new(&[zeroize::Zeroizing::new([2; 32])]).map_err(|error| error.to_string())
        }))
        .unwrap(),
        outbound: outbound.clone(),
        connecting: Connecting::new(Vec::new(), 600, "Portcullis".to_owned()),
        log_host: "localhost".to_owned(),
        exports: Folder::open(folder.join("exports"), false).unwrap(),
        sinks: Vec::new(),
        traces: None,
        log_keys: Keyring::generate(&SystemRandom, NOW),
        anchors: Anchors::default(),
        workers: portcullis_lanes::Workers::none(),
        tasks,
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
    Node { app: app.unwrap(), store, origin }
}

impl Node {
    /// A token of a service account.
    async fn token(&self) -> String {
        let ids = Ids { clock: &Stopped, random: &SystemRandom };
        let (org_id, principal_id) =
            (OrgId::new(ids), PrincipalId::new(PrincipalKind::Service, ids));
        let (name, plan) = ("acme".to_owned(), Plan::Pro);
        let org = Org { id: org_id, name: name.clone(), plan, created_at: NOW, disabled_at: None };
        self.store.create_org(&org).await.unwrap();
        let role = Role::Service(ScopeSet::ALL);
        let principal =
            Principal { id: principal_id, org_id, name, role, created_at: NOW, disabled_at: None };
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
        };
        self.store.insert_token(&record, &token.hash()).await.unwrap();
        token.secret().expose().to_owned()
    }

    async fn ask(&self, token: &str) -> Result<(), Refusal> {
        let asked = self.app.authenticate(Some(token), Purpose::Access, &self.origin).await;
        asked.map(|_| ()).map_err(|refused| refused.refusal)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_its_store_trusts_a_known_token_for_seconds_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(folder.path()).await;
    let (known, unknown) = (node.token().await, Token::generate(TokenKind::User, &SystemRandom));
    assert_eq!(node.ask(&known).await, Ok(()));
    let lost = Refusal::Unavailable { reason: Unavailable::Store };

    node.store.close().await;
    let begun = Instant::now();

    assert_eq!(node.ask(unknown.secret().expose()).await, Err(lost.clone()));
    let refused = timeout(Duration::from_secs(20), async {
        loop {
            if let Err(refusal) = node.ask(&known).await {
                return refusal;
            }
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(refused.await.unwrap(), lost);
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
}
