//! `kill -9` while agents call over MCP, with answers as JSON and as streams.

use std::collections::HashSet;

use crate::{
    mcp::{modern, progress::message_of},
    prelude::*,
};

const ROUNDS: usize = 6;
const CALLERS: usize = 6;

/// Calls without pause until the gateway is gone; gives the events that answers named.
async fn call_on(gateway: &Gateway, who: &Principal, number: usize) -> Vec<String> {
    let mut answered = Vec::new();
    let streams = number.is_multiple_of(2);
    for round in 0.. {
        // Every third one goes wrong before anything is sent.
        let name = if round % 3 == 2 { "nothing" } else { "work" };
        let mut params = json!({"name": name, "arguments": {"n": round}});
        if streams {
            params["_meta"] = json!({"progressToken": round});
        }
        let request = modern(gateway, who, "/mcp/up", "tools/call", &params);
        let Ok(response) = request.send().await else { break };
        let Ok(text) = response.text().await else { break };
        let Some(message) = message_of(&text) else { break };
        let named = [
            "/result/_meta/dev.portcullis~1governance/audit_event_id",
            "/error/data/dev.portcullis~1governance/audit_event_id",
        ];
        let event = named.iter().find_map(|pointer| message.pointer(pointer)?.as_str());
        answered.extend(event.map(str::to_owned));
    }
    answered
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_answered_over_mcp_without_its_event_however_often_the_node_dies() {
    let note = r#"{"progressToken":{token},"progress":1,"message":"begun"}"#.to_owned();
    let result = r#"{"content":[]}"#.to_owned();
    let upstream = Hostile::start(vec![tool("work", Script::Telling(vec![note], result))]).await;
    upstream.release();
    let (mut gateway, who) =
        serve_as("mcps:read mcps:invoke audit:read", gateway().http("up", &upstream.url(), ""));
    let mut answered = Vec::new();
    for round in 0..ROUNDS {
        let target = upstream.calls().len() + 20 + 7 * round;
        let calls = (0..CALLERS).map(|number| call_on(&gateway, &who, number));
        let calls = join_all(calls);
        let killed = async {
            upstream.wait_for(target).await;
            gateway.kill_at_once();
        };
        let (events, ()) = tokio::join!(calls, killed);
        answered.extend(events.into_iter().flatten());
        gateway.kill();
        gateway.start();
    }

    assert!(answered.len() > ROUNDS * CALLERS, "{} answers", answered.len());
    let named: HashSet<&String> = answered.iter().collect();
    assert_eq!(named.len(), answered.len(), "an event for each");
    for id in &answered {
        let event = gateway.get(&who, &format!("/v1/audit/events/{id}")).await;
        has!("answered without event: {id}"; event, 200, "/data/integrity/sealed": true);
    }
    assert_eq!(gateway.ask(OPEN_INTENTS), "0", "no call is left open");
}
