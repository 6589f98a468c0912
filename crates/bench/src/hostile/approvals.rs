//! Lists of approvals: an org has many with large inputs, and callers of it who may see none of them ask
//! for the list, while another org makes plain calls. The figures are what those wait, and the processor
//! time of the gateway.

use std::sync::Arc;

use portcullis_core::{
    approval::{Approval, ApprovalTerms, AskingPolicy, BoundTool, NewApproval, Requester},
    audit::{Actor, Detached, Event, EventType, Outcome},
    clock::Clock as _,
    id::{ApprovalId, EventId, Ids, OrgId, PrincipalId, PrincipalKind, ProviderId},
    refusal::Executed,
};
use portcullis_store::{
    ApprovalChange, AuditSettings, AuditWriter, DatabaseSettings, DatabaseUrl, EventTexts,
    NewEvent, Store, Sync, TextColumn,
};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Duration, Instant},
};

use super::{bystanders::measure, schema};
use crate::{
    Failure, Verdict,
    args::HostileArgs,
    client::get,
    gateway::Installation,
    machine::{SystemClock, SystemRandom},
    upstream::Upstream,
};

/// Approvals of the org: as many as are looked at for a page.
const APPROVALS: usize = 2_000;
/// Bytes of the input of each.
const INPUT: usize = 60 << 10;
/// Longest time that one of them takes to be written.
const PATIENCE: Duration = Duration::from_secs(30);
const IDS: Ids<'static> = Ids { clock: &SystemClock, random: &SystemRandom };

/// Prints what others notice of the lists, and whether the goal holds.
pub(super) async fn run(args: &HostileArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let installation = Installation::create(args.binary.as_deref(), upstream.address).await?;
    let attacker = fill(&installation).await?;
    let running = installation.start().await?;
    let list = get(running.address, &attacker, "/v1/approvals?limit=1")?;

    let seen = measure(&running, &installation.token, &[list], args.calls).await?;
    running.kill().await?;
    Ok(schema::verdict(&seen))
}

/// Makes an org with many approvals of other principals' calls; gives the token of a service account in it.
async fn fill(installation: &Installation) -> Result<String, Failure> {
    let url = DatabaseUrl::sqlite(installation.folder().join("data/portcullis.db"));
    // How it is filled is not what is measured.
    let settings = DatabaseSettings {
        sync: Sync::ProcessCrash,
        ..DatabaseSettings::new(url, installation.row_key()?)
    };
    let org = installation.org("attacker").await?;
    let token = installation.token_of("attacker", &org, "approvals:read").await?;
    let org: OrgId = org.parse()?;
    let store = Store::open(&settings).await?;
    let audit = AuditSettings::new("bench".to_owned());
    let (writer, task) = AuditWriter::new(store.clone(), Arc::new(SystemClock), audit);
    let mut tasks = JoinSet::new();
    tasks.spawn(task.run());
    for number in 0..APPROVALS {
        let approval = Approval::request(asked_for(org, number), SystemClock.now()).ended();
        let change = ApprovalChange { approval, from: None };
        writer.change_approval(change, event(org), Instant::now() + PATIENCE).await?;
    }
    drop(writer);
    while tasks.join_next().await.is_some() {}
    store.close().await;
    Ok(token)
}

fn asked_for(org_id: OrgId, number: usize) -> NewApproval {
    let text = || "text".to_owned();
    NewApproval {
        id: ApprovalId::new(IDS),
        org_id,
        digest: format!("sha256:{number:064x}"),
        requester: Requester {
            actors: Vec::new(),
            principal_id: PrincipalId::new(PrincipalKind::User, IDS),
            principal_name: "somebody".to_owned(),
        },
        policy: AskingPolicy { id: text(), reason: text(), version: text() },
        tool: BoundTool {
            description: None,
            id: "bench:echo".to_owned(),
            title: None,
            version: text(),
        },
        connection: ProviderId::new(IDS),
        terms: ApprovalTerms {
            approvals: 1,
            approvers: ["finance".to_owned()].into(),
            hidden: false,
            mfa: false,
            ttl_s: 900,
            uses: 1,
        },
        input: json!({"text": "a".repeat(INPUT)}),
        findings: Vec::new(),
    }
}

fn event(org_id: OrgId) -> NewEvent {
    let event = Event {
        id: EventId::new(IDS),
        org_id,
        kind: EventType::ApprovalRequested,
        occurred_at: SystemClock.now(),
        count: None,
        actor: Actor::system(),
        request: None,
        target: None,
        governance: None,
        outcome: Outcome::success(Executed::No),
        detached: Detached::default(),
    };
    NewEvent {
        id: event.id,
        org_id,
        kind: event.kind.as_str().into(),
        occurred_at: event.occurred_at,
        actor_id: None,
        via: None,
        token_id: None,
        decision: None,
        dlp_result: None,
        outcome: Some("success".into()),
        request_id: None,
        texts: EventTexts::default().with(TextColumn::Core, &event.core_json()),
        has_payload: false,
    }
}
