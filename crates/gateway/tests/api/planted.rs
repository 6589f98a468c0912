//! Events that no caller has to cause: written into a log through the store, as the gateway writes
//! its own.

use std::sync::atomic::{AtomicU64, Ordering};

use portcullis_app::Operator;
use portcullis_core::{
    audit::{
        Actor, Auth, Detached, DlpFinding, DlpResult, Event, EventType, Governance, Outcome,
        OutcomeStatus, RecordedDecision, Request, Target,
    },
    clock::Clock,
    id::{EventId, HoldId, Ids, OrgId, PrincipalId, PrincipalKind, RequestId},
    principal::Plan,
    random::Random,
    refusal::Executed,
    trace::TraceId,
};
use portcullis_store::{AuditSettings, AuditWriter, EventTexts, Hold, NewEvent, Org, TextColumn};

use crate::prelude::*;

const TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;

#[derive(Debug)]
struct Still(Timestamp);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// Counts: what it gives is never given twice.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Random for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        let number = self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        for (byte, count) in bytes.iter_mut().rev().zip(number.into_iter().rev().cycle()) {
            *byte = count;
        }
    }
}

/// Does something with the operator of the gateway as if it was this moment.
pub(crate) async fn as_of<T>(
    gateway: &Gateway,
    at: Timestamp,
    act: impl AsyncFnOnce(&Operator) -> T,
) -> T {
    let store = store(gateway).await;
    let clock: Arc<dyn Clock> = Arc::new(Still(at));
    let random: Arc<dyn Random> = Arc::new(Counting::default());
    let settings = AuditSettings::new("planter".to_owned());
    let (writer, task) = AuditWriter::new(store.clone(), Arc::clone(&clock), settings);
    let mut tasks = JoinSet::new();
    tasks.spawn(task.run());
    let operator = Operator { clock, random, store: store.clone(), writer, os_user: None };
    let done = act(&operator).await;
    drop(operator);
    tasks.join_all().await;
    store.close().await;
    done
}

/// Makes an org with the event that tells of it.
pub(crate) async fn make_org(operator: &Operator, name: &str) -> String {
    let ids = operator.ids();
    let (id, created_at) = (OrgId::new(ids), operator.clock.now());
    let org = Org { id, name: name.to_owned(), plan: Plan::Pro, created_at, disabled_at: None };
    operator.store.create_org(&org).await.unwrap();
    let who = Principal {
        org: id.to_string(),
        id: PrincipalId::new(PrincipalKind::User, ids).to_string(),
        token_id: String::new(),
        token: String::new(),
    };
    // Number 6 is by the gateway itself, with nothing detached.
    let outcome = Outcome::success(Executed::Yes);
    let made = Event { kind: EventType::OrgChanged, outcome, ..event(ids, &who, 6) };
    operator.writer.append(row(&made), Instant::now() + PATIENCE).await.unwrap();
    who.org
}

/// Writes `count` events into the log of `who`'s org, each of another kind than the one before:
/// of every type, with every decision and every ending. Gives their ids in the order of the log.
pub(crate) async fn plant(gateway: &Gateway, who: &Principal, count: usize) -> Vec<String> {
    plant_at(gateway, who, now(gateway).await, count).await
}

/// The same as if it was this moment.
pub(crate) async fn plant_at(
    gateway: &Gateway,
    who: &Principal,
    at: Timestamp,
    count: usize,
) -> Vec<String> {
    as_of(gateway, at, async |operator| {
        let ids = operator.ids();
        let mut planted = Vec::with_capacity(count);
        let events: Vec<NewEvent> =
            (0..count).map(|number| row(&event(ids, who, number))).collect();
        for batch in events.chunks(500) {
            planted.extend(batch.iter().map(|event| event.id.to_string()));
            let deadline = Instant::now() + PATIENCE;
            let appending =
                batch.iter().map(|event| operator.writer.append(event.clone(), deadline));
            for appended in join_all(appending).await {
                appended.unwrap();
            }
        }
        planted
    })
    .await
}

/// Holds what `who` did, as if it was this moment.
pub(crate) async fn hold_at(gateway: &Gateway, who: &Principal, at: Timestamp) {
    as_of(gateway, at, async |operator| {
        let ids = operator.ids();
        let hold = Hold {
            id: HoldId::new(ids),
            org_id: who.org.parse().unwrap(),
            reason: "case 4711".to_owned(),
            actor_id: Some(who.id.parse().unwrap()),
            from: None,
            to: None,
            created_at: at,
            released_at: None,
        };
        let laid = json!({ "laid": { "id": hold.id, "actor": who.id, "from": null, "to": null } });
        let mut event = event(ids, who, 0);
        event.kind = EventType::AuditHoldChanged;
        event.actor = Actor::operator();
        event.target = Some(Target {
            capability: None,
            credential: None,
            id: Some(hold.id.to_string()),
            provider_id: None,
            kind: "hold",
            version: None,
        });
        event.detached = Detached::default().keep("hold", Some(laid), &*operator.random);
        operator.store.lay_hold(&hold, &row(&event)).await.unwrap();
    })
    .await;
}

const KINDS: [EventType; 17] = [
    EventType::McpInvocation,
    EventType::TokenIssued,
    EventType::TokenRefreshed,
    EventType::TokenRevoked,
    EventType::TokenReuseDetected,
    EventType::OrgChanged,
    EventType::PrincipalChanged,
    EventType::AuthRejected,
    EventType::RequestThrottled,
    EventType::ProviderConnected,
    EventType::ToolChanged,
    EventType::PolicyChanged,
    EventType::PolicyReloadFailed,
    EventType::PolicySimulated,
    EventType::AuditAccessed,
    EventType::AuditExported,
    EventType::SystemStarted,
];
const ENDINGS: [OutcomeStatus; 10] = [
    OutcomeStatus::Success,
    OutcomeStatus::ToolError,
    OutcomeStatus::Denied,
    OutcomeStatus::Invalid,
    OutcomeStatus::NotFound,
    OutcomeStatus::RateLimited,
    OutcomeStatus::UpstreamError,
    OutcomeStatus::UpstreamTimeout,
    OutcomeStatus::Unavailable,
    OutcomeStatus::Unknown,
];
const FOUND: [DlpResult; 5] = [
    DlpResult::Skipped,
    DlpResult::Passed,
    DlpResult::Flagged,
    DlpResult::Redacted,
    DlpResult::Blocked,
];

fn event(ids: Ids<'_>, who: &Principal, number: usize) -> Event {
    let kind = KINDS[number % KINDS.len()];
    let status = ENDINGS[number % ENDINGS.len()];
    let system = number % 7 == 6;
    let principal: PrincipalId = who.id.parse().unwrap();
    let decision = [Some(RecordedDecision::Allow), Some(RecordedDecision::Deny), None][number % 3];
    let detached = if system {
        Detached::default()
    } else {
        Detached::default()
            .keep("actor_name", Some("=cmd|' /C calc'!A0"), ids.random)
            .keep("label", number.is_multiple_of(2).then_some("claude-code"), ids.random)
            .keep("source_ip", (number % 5 != 4).then_some("203.0.113.7"), ids.random)
            .keep("user_agent", Some("tests/1.0"), ids.random)
            .keep("input", Some("a payload"), ids.random)
    };
    Event {
        id: EventId::new(ids),
        org_id: who.org.parse::<OrgId>().unwrap(),
        kind,
        occurred_at: ids.clock.now(),
        count: (kind == EventType::AuthRejected).then_some(12),
        actor: if system {
            Actor::system()
        } else {
            Actor {
                act: None,
                auth: Auth { method: "oidc", trust: Some("acme-idp".to_owned()) },
                client: None,
                id: Some(principal),
                token_id: Some(who.token_id.parse().unwrap()),
                kind: principal.kind().as_str(),
                via: number.is_multiple_of(4).then_some(principal),
            }
        },
        request: (!system).then(|| Request {
            id: RequestId::new(ids),
            idempotent: false,
            trace_id: number.is_multiple_of(2).then(|| TraceId::new(TRACE.to_be_bytes())),
        }),
        target: (number % 6 != 5).then(|| target(kind)),
        governance: (kind == EventType::McpInvocation).then(|| governance(number, decision)),
        outcome: Outcome {
            error_code: (status != OutcomeStatus::Success).then_some("unavailable"),
            executed: Executed::No,
            http_status: if status == OutcomeStatus::Unknown { 0 } else { 200 },
            status,
        },
        detached,
    }
}

fn target(kind: EventType) -> Target {
    Target {
        capability: None,
        credential: None,
        id: Some("sample:list_items".to_owned()),
        provider_id: None,
        kind: if kind == EventType::McpInvocation { "mcp" } else { "policy_set" },
        version: Some("sha256:00".to_owned()),
    }
}

fn governance(number: usize, decision: Option<RecordedDecision>) -> Governance {
    Governance {
        approvals: Vec::new(),
        decision,
        determining_policies: vec!["base".to_owned()],
        dlp_findings: vec![DlpFinding {
            action: "redact",
            count: 1,
            detector: "email".to_owned(),
            fingerprints: vec!["00".to_owned()],
            path: "/a".to_owned(),
            stage: "output",
        }],
        dlp_result: FOUND[number % FOUND.len()],
        policy: decision.map(|_| "base".to_owned()),
        policy_set: Some("sha256:11".to_owned()),
        policy_version: None,
        reason: decision.map(|_| "@reason, \"quoted\"\r\nand more".to_owned()),
        shadow: Vec::new(),
    }
}

fn row(event: &Event) -> NewEvent {
    let governance = event.governance.as_ref();
    let target = event.target.as_ref().and_then(|target| target.id.as_deref());
    let mut seed = String::new();
    event.detached.write_seed(&mut seed);
    let given = [
        (TextColumn::Target, target),
        (TextColumn::Policy, governance.and_then(|it| it.policy.as_deref())),
        (TextColumn::Core, Some(&*event.parts().kept_json())),
        (TextColumn::Detached, Some(&*event.detached.values_json())),
        (TextColumn::Salts, Some(&*seed)),
    ];
    let given = given.into_iter().filter_map(|(column, text)| Some((column, text?)));
    let texts = given.fold(EventTexts::default(), |row, (column, text)| row.with(column, text));
    NewEvent {
        id: event.id,
        org_id: event.org_id,
        kind: event.kind.as_str().into(),
        occurred_at: event.occurred_at,
        actor_id: event.actor.id,
        via: event.actor.via,
        token_id: event.actor.token_id,
        decision: governance.and_then(|it| it.decision).map(|it| it.as_str().into()),
        dlp_result: governance.map(|it| it.dlp_result.as_str().into()),
        outcome: Some(event.outcome.status.as_str().into()),
        request_id: event.request.as_ref().map(|request| request.id),
        texts,
        has_payload: event.detached.has_payload(),
    }
}
