//! Simulations with drafts of many policies against many tools: callers of one org send them and leave,
//! and another org makes plain calls meanwhile. The figures are what those wait, and the processor time
//! that the gateway takes once the last caller has left.

use std::{net::SocketAddr, time::Duration};

use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    AnswerCounts,
    bystanders::{CALLERS, beside, tell},
    schema,
};
use crate::{
    Failure, Verdict,
    args::HostileArgs,
    client::{Connection, Template, post},
    gateway::{Installation, Setup},
    process, say,
    upstream::Upstream,
};

/// Tools that a draft is checked against, besides the called one.
const TOOLS: usize = 511;
/// Policies of the drafts: checked for long, refused by their number, and a body as large as it may be.
const POLICIES: [usize; 3] = [380, 1_400, 18_000];
/// Time after which a caller leaves.
const LEAVES: Duration = Duration::from_millis(200);
/// Time in which the gateway is watched once all have left.
const AFTER: Duration = Duration::from_secs(3);
/// Processor time that it may take then.
const GOAL_AFTER: Duration = Duration::from_secs(1);

/// Prints what others notice and what goes on afterwards, and whether the goals hold.
pub(super) async fn run(args: &HostileArgs) -> Result<Verdict, Failure> {
    let upstream = Upstream::start().await?;
    let binary = args.binary.as_deref();
    let setup = Setup { more_tools: TOOLS, ..Setup::default() };
    let installation = Installation::set_up(binary, upstream.address, &setup).await?;
    let attacker = installation.mint("attacker").await?;
    let running = installation.start().await?;
    let draft = |count: &usize| {
        post(running.address, &attacker, "/v1/policies/simulate", &simulation(*count))
    };
    let drafts = POLICIES.iter().map(draft).collect::<Result<Vec<_>, _>>()?;

    let alone = beside(&running, &installation.token, JoinSet::new(), args.calls).await?;
    let answered = AnswerCounts::default();
    let mut attack = JoinSet::new();
    for number in 0..CALLERS {
        let mut drafts = drafts.clone();
        drafts.rotate_left(number % POLICIES.len());
        attack.spawn(ask_and_leave(running.address, drafts, answered.clone()));
    }
    let disturbed = beside(&running, &installation.token, attack, args.calls).await?;
    let before = process::cpu_time(running.pid)?;
    sleep(AFTER).await;
    let after = process::cpu_time(running.pid)?.saturating_sub(before);
    running.kill().await?;

    tell(&alone, &disturbed, &answered);
    let seconds = after.as_secs_f64();
    let goal = GOAL_AFTER.as_secs_f64();
    say(&format!("processor time once all had left: {seconds:.2} s (goal {goal:.2})\n"));
    let in_time = schema::verdict(&disturbed);
    Ok(if after <= GOAL_AFTER { in_time } else { Verdict::Broken })
}

/// A simulation of a call under a draft of so many policies that concern every tool.
fn simulation(policies: usize) -> Value {
    let policy = |n| format!("@id(\"{n}\")permit(principal,action,resource);");
    let all: Vec<String> = (0..policies).map(policy).collect();
    // A text of a draft has at most 64 KiB.
    let upsert = all.chunks(1_200).map(|some| json!({"source": some.concat()}));
    json!({
        "tool": "bench:echo", "input": {},
        "policies": {"upsert": upsert.collect::<Vec<_>>()}, "options": {"timeout_ms": 60_000},
    })
}

async fn ask_and_leave(address: SocketAddr, drafts: Vec<Template>, answered: AnswerCounts) {
    for draft in drafts.iter().cycle() {
        let Ok(mut connection) = Connection::open(address).await else { return };
        if let Ok(Ok(answer)) = timeout(LEAVES, connection.send(draft.clone())).await {
            answered.note(&answer);
        }
    }
}
