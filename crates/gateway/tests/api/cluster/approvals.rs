//! One approval on three nodes: asked for at one, decided at another, used once whatever dies.

use tokio::time::sleep;

use super::{Trio, trio};
use crate::{
    approvals::{POLICIES, approver, decide, pending_approval},
    prelude::*,
};

/// Callers at once in a round.
const CALLERS: usize = 16;
/// Rounds; a node is killed in every second one.
const ROUNDS: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_used_once_by_three_nodes_of_which_one_is_killed() {
    let upstream =
        Hostile::start(vec![tool("pay", Script::Echo), tool("export", Script::Echo)]).await;
    let url = upstream.url();
    let Some(mut trio) = trio("approvals", |node| node.http("up", &url, "")).await else { return };
    let org = trio.nodes[0].org("acme", &ENOUGH);
    let who = trio.nodes[0].service(&org, "mcps:read mcps:invoke");
    let admin = approver(&trio.nodes[0], &org);
    trio.common.policies(POLICIES);
    trio.until_found(&admin, "/v1/policies/payouts").await;

    let mut used = Vec::new();
    for round in 0..ROUNDS {
        let input = json!({ "round": round });
        let before = upstream.calls().len();
        let id =
            pending_approval(&trio.nodes[round % 3].invoke(&who, "up:pay", input.clone()).await);
        decide(&trio.nodes[(round + 1) % 3], &admin, &id, "approve").await.ok();
        let dies = round % 2 == 1;

        let calls = (0..CALLERS).map(async |n| {
            let body = json!({ "input": input }).to_string();
            let request = trio.nodes[n % 3].json(&who, "/v1/mcps/up:pay/invoke", &body);
            Some(request.send().await.ok()?.status().as_u16())
        });
        let killed = async {
            if dies {
                sleep(Duration::from_millis(5 * u64::try_from(round).unwrap_or(0))).await;
                trio.nodes[2].kill_at_once();
            }
        };
        let (statuses, ()) = tokio::join!(join_all(calls), killed);

        let ran = statuses.iter().filter(|status| **status == Some(200)).count();
        let sent = upstream.calls().len() - before;
        assert!(sent <= 1 && ran <= sent, "round {round}: {sent} sent, {statuses:?}");
        assert!(dies || ran == 1, "round {round}: {statuses:?}");
        if sent == 1 {
            used.push(id);
        }
        if dies {
            trio.nodes[2].kill();
            trio.nodes[2].start();
        }
    }

    every_use_is_named(&trio, &who, &used).await;
}

/// Waits until an event names each of these approvals, and fails if one is named twice: what a killed
/// node left open is closed by another.
async fn every_use_is_named(trio: &Trio, who: &Principal, used: &[String]) {
    let named = eventually("an event that names each approval", async || {
        let events = list(&trio.nodes[0], who, "").await;
        let approvals =
            events.iter().filter_map(|it| it["governance"]["approvals"][0]["id"].as_str());
        let named: Vec<String> = approvals.map(str::to_owned).collect();
        used.iter().all(|id| named.contains(id)).then_some(named)
    })
    .await;
    let mut once = named.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), named.len(), "an approval was used twice: {named:?}");
}
