//! Fixtures.

use std::{
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use portcullis_core::{
    approval::{Approval, ApprovalTerms, AskingPolicy, BoundTool, NewApproval, Requester},
    clock::{Clock, Timestamp},
    id::{OrgId, PrincipalId, TokenId},
    principal::{Plan, Role, ScopeSet},
    random::Random,
    token::{Token, TokenHash, TokenKind},
};
use portcullis_store::{
    ApprovalChange, ApprovalUse, AuditSettings, AuditTask, AuditWriter, DatabaseSettings,
    DatabaseUrl, EventFilter, EventOrder, EventRecord, EventTexts, Issue, Issued, NewEvent,
    NewIntent, NewKey, NewRefresh, NewToken, Org, Principal, RowKey, Store, TextColumn,
    TokenRecord, UnsealedEvent, Visibility,
};
use tokio::{
    task::{self, JoinSet},
    time::Instant,
};

pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_795_172_535_123_000);

/// Settings for the database at this address.
pub(crate) fn settings(url: DatabaseUrl) -> DatabaseSettings {
    DatabaseSettings::new(url, RowKey::derive(&[7; 32]))
}

/// The `n`th id of a kind.
pub(crate) fn id<T: FromStr<Err: std::fmt::Debug>>(prefix: &str, n: u32) -> T {
    format!("{prefix}_{n:026}").parse().unwrap()
}

/// A clock that shows what it is set to.
#[derive(Debug, Default)]
pub(crate) struct SetClock(AtomicI64);

impl SetClock {
    pub(crate) fn set(&self, micros: i64) {
        self.0.store(micros, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

/// A clock that shows this moment until it is set.
pub(crate) fn clock_at(moment: Timestamp) -> Arc<SetClock> {
    Arc::new(SetClock(AtomicI64::new(moment.as_micros())))
}

#[derive(Debug)]
struct FixedRandom(u32);

impl Random for FixedRandom {
    fn fill(&self, bytes: &mut [u8]) {
        // Base 16, for bytes that differ may stand for the same letter of a token.
        let digits = format!("{:08x}", self.0).into_bytes();
        for (byte, seed) in bytes.iter_mut().zip(digits.into_iter().cycle()) {
            *byte = seed;
        }
    }
}

/// A random source that gives what this number makes.
pub(crate) fn with_number(n: u32) -> impl Random {
    FixedRandom(n)
}

/// The hash of the `n`th token.
pub(crate) fn hash(n: u32) -> TokenHash {
    Token::generate(TokenKind::User, &FixedRandom(n)).hash()
}

/// The `n`th org, stored.
pub(crate) async fn org(store: &Store, n: u32) -> OrgId {
    let id = id("org", n);
    let name = format!("org {n}");
    let org = Org { id, name, plan: Plan::Pro, created_at: NOW, disabled_at: None };
    store.create_org(&org).await.unwrap();
    id
}

/// The first two orgs, stored.
pub(crate) async fn orgs(store: &Store) -> [OrgId; 2] {
    [org(store, 1).await, org(store, 2).await]
}

pub(crate) fn principal(org_id: OrgId, n: u32) -> Principal {
    Principal::new(id("usr", n), org_id, format!("person {n}"), Role::Member, NOW)
}

/// The `n`th principal, stored.
pub(crate) async fn user(store: &Store, org: OrgId, n: u32) -> PrincipalId {
    let principal = principal(org, n);
    store.create_principal(&principal).await.unwrap();
    principal.id
}

/// The first org and its first user, stored.
pub(crate) async fn member(store: &Store) -> (OrgId, PrincipalId) {
    let org = org(store, 1).await;
    (org, user(store, org, 1).await)
}

/// The `n`th token, in a grant of its own.
pub(crate) fn token(org_id: OrgId, principal_id: PrincipalId, n: u32) -> TokenRecord {
    let made = TokenRecord::of_operator(
        id("tok", n),
        org_id,
        principal_id,
        id("grn", n),
        ScopeSet::ALL,
        NOW,
        NOW.plus_seconds(3600),
    );
    TokenRecord { kind: TokenKind::User, ..made }
}

/// An exchange that gives this token and nothing beside it.
pub(crate) const fn issue<'a>(record: &'a TokenRecord, hash: &'a TokenHash) -> Issue<'a> {
    let access = NewToken { record, hash };
    Issue { access, refresh: None, login: None, client: None, code: None, assertions: &[] }
}

/// Asks for this token by an exchange, with the `n`th hash.
pub(crate) async fn exchange(store: &Store, record: &TokenRecord, n: u32) -> Issued {
    store.issue_tokens(issue(record, &hash(n))).await.unwrap()
}

/// A refresh token of a grant that ends in a week.
pub(crate) const fn refresh_of<'a>(record: &'a TokenRecord, hash: &'a TokenHash) -> NewRefresh<'a> {
    let token = NewToken { record, hash };
    NewRefresh { token, grant_ends_at: NOW.plus_seconds(7 * 86_400), access_seconds: 3600 }
}

pub(crate) fn token_id(n: u32) -> TokenId {
    id("tok", n)
}

/// The texts of a row that has nothing but its record.
pub(crate) fn texts(core: &str) -> EventTexts {
    EventTexts::default().with(TextColumn::Core, core)
}

/// The `n`th event, that says nothing but its number.
pub(crate) fn event(org_id: OrgId, n: u32) -> NewEvent {
    NewEvent {
        id: id("evt", n),
        org_id,
        kind: "mcp.invocation".into(),
        occurred_at: NOW,
        actor_id: None,
        via: None,
        token_id: None,
        decision: None,
        dlp_result: None,
        outcome: None,
        request_id: None,
        texts: texts(&format!(r#"{{"n":{n}}}"#)),
        has_payload: false,
    }
}

pub(crate) fn intent(org_id: OrgId, n: u32) -> NewIntent {
    let record = texts(&format!(r#"{{"n":{n}}}"#));
    NewIntent { id: id("evt", n), org_id, opened_at: NOW, record, key: None, approvals: vec![] }
}

/// An intent that is protected by the key of this digest for an hour.
pub(crate) fn keyed_intent(org_id: OrgId, n: u32, digest: &str) -> NewIntent {
    let key = NewKey {
        digest: digest.to_owned(),
        fingerprint: format!("request {n}"),
        request_id: id("req", n),
        expires_at: NOW.plus_seconds(3600),
    };
    NewIntent { key: Some(key), ..intent(org_id, n) }
}

/// The `n`th approval, pending for a quarter of an hour, of the call with this digest.
pub(crate) fn approval(org_id: OrgId, n: u32, digest: &str) -> Approval {
    let text = || "text".to_owned();
    let new = NewApproval {
        id: id("apr", n),
        org_id,
        digest: digest.to_owned(),
        requester: Requester {
            actors: vec![],
            principal_id: id("usr", 1),
            principal_name: "person 1".to_owned(),
        },
        policy: AskingPolicy { id: text(), reason: text(), version: text() },
        tool: BoundTool { description: None, id: text(), title: None, version: text() },
        connection: id("prv", 1),
        terms: ApprovalTerms {
            approvals: 1,
            approvers: ["finance".to_owned()].into(),
            hidden: false,
            mfa: false,
            ttl_s: 900,
            uses: 1,
        },
        input: serde_json::json!({ "amount": 7 }),
        findings: Vec::new(),
    };
    Approval::request(new, NOW)
}

/// Writes a change of an approval, with the event of this number.
pub(crate) async fn change(
    writer: &AuditWriter,
    approval: &Approval,
    from: Option<i64>,
    n: u32,
) -> bool {
    let change = ApprovalChange { approval: approval.clone(), from };
    writer.change_approval(change, event(approval.org_id, n), soon()).await.unwrap()
}

/// An intent that uses the approvals of these numbers and digests.
pub(crate) fn approved_intent(org_id: OrgId, n: u32, approvals: &[(u32, &str)]) -> NewIntent {
    let used =
        |&(n, digest): &(u32, &str)| ApprovalUse { id: id("apr", n), digest: digest.to_owned() };
    NewIntent { approvals: approvals.iter().map(used).collect(), ..intent(org_id, n) }
}

/// A writer whose task does not run yet.
pub(crate) fn idle_writer(store: &Store) -> (AuditWriter, AuditTask) {
    let settings = AuditSettings::new("node-1".to_owned());
    AuditWriter::new(store.clone(), clock_at(NOW), settings)
}

/// A writer whose intents name this lease, on this clock.
pub(crate) fn writer_of(
    store: &Store,
    lease: &str,
    clock: Arc<SetClock>,
) -> (AuditWriter, JoinSet<()>) {
    let settings = AuditSettings::new(lease.to_owned());
    let (writer, task) = AuditWriter::new(store.clone(), clock, settings);
    (writer, running(task))
}

/// A writer whose task runs as long as the set lives.
pub(crate) fn writer(store: &Store) -> (AuditWriter, JoinSet<()>) {
    writer_of(store, "node-1", clock_at(NOW))
}

/// An org, and a writer whose task runs as long as the set lives.
pub(crate) async fn start_writer(store: &Store) -> (OrgId, AuditWriter, JoinSet<()>) {
    let org = org(store, 1).await;
    let (writer, tasks) = writer(store);
    (org, writer, tasks)
}

/// Does something for each of these at the same moment, and gives what came of it in no order.
pub(crate) async fn at_once<N, T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    numbers: impl IntoIterator<Item = N>,
    act: impl FnMut(N) -> F,
) -> Vec<T> {
    numbers.into_iter().map(act).collect::<JoinSet<_>>().join_all().await
}

/// The task, as long as the set lives.
pub(crate) fn running(task: AuditTask) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(task.run());
    tasks
}

/// Waits until so many jobs wait for the writer's task.
pub(crate) async fn until_waiting(writer: &AuditWriter, jobs: usize) {
    while writer.progress().waiting < jobs {
        task::yield_now().await;
    }
}

/// Late enough for any database.
pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

/// Commits the events together.
pub(crate) async fn append_all(store: &Store, events: Vec<NewEvent>) {
    let (writer, _tasks) = writer(store);
    let mut appends = JoinSet::new();
    for event in events {
        let writer = writer.clone();
        appends.spawn(async move { writer.append(event, soon()).await });
    }
    for result in appends.join_all().await {
        result.unwrap();
    }
}

/// Commits the events one after the other, and seals them.
pub(crate) async fn sealed(store: &Store, org: OrgId, events: Vec<NewEvent>) {
    for event in events {
        append_all(store, vec![event]).await;
    }
    store.seal(org, leaf).await.unwrap();
}

/// Every sealed event, in its order.
pub(crate) async fn whole_log(store: &Store, org: OrgId) -> Vec<EventRecord> {
    let filter = EventFilter::default();
    let order = EventOrder::Ascending;
    let mut log = Vec::new();
    let mut after = None;
    loop {
        let page = store.list_events(org, Visibility::All, &filter, order, after, 200);
        let page = page.await.unwrap();
        log.extend(page.events);
        after = page.reached;
        if !page.more {
            return log;
        }
    }
}

/// A leaf hash that shows what it was made of.
pub(crate) fn leaf(event: &UnsealedEvent, sequence: i64, recorded_at: Timestamp) -> [u8; 32] {
    let mut leaf = [0; 32];
    leaf[..8].copy_from_slice(&sequence.to_be_bytes());
    leaf[8..16].copy_from_slice(&recorded_at.as_micros().to_be_bytes());
    let tail = event.id.to_string().into_bytes();
    leaf[16..].copy_from_slice(&tail[tail.len() - 16..]);
    leaf
}
