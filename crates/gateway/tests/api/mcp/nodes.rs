//! Several nodes: nothing of a client is kept on one of them.

use super::{
    ask, ask_legacy, call, names, own,
    questions::{FORM, answers, asking, leg},
};
use crate::{cluster::trio, prelude::*};

#[tokio::test(flavor = "multi_thread")]
async fn each_request_may_be_answered_by_another_node() {
    let Some(trio) = trio("mcp_nodes", Builder::sample).await else { return };
    let [one, two, three] = &trio.nodes;
    let who = one.service(&one.org("acme", &ENOUGH), "mcps:read mcps:invoke");
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    });

    ask_legacy(one, &who, "/mcp", "initialize", hello).await.ok();
    let list = ask_legacy(two, &who, "/mcp", "tools/list", json!({})).await;
    let name = names(&list)[0].to_owned();
    let params = json!({"name": name, "arguments": {}});
    let called = ask_legacy(three, &who, "/mcp", "tools/call", params).await;
    let lists = [
        ask(one, &who, "/mcp", "tools/list", json!({})).await,
        ask(three, &who, "/mcp", "tools/list", json!({})).await,
    ];
    let modern = call(two, &who, "/mcp", &name, json!({})).await;

    assert!(names(&lists[0]).len() > 1 && names(&lists[0]) == names(&lists[1]));
    for answer in [&called, &modern] {
        assert_eq!(own(answer, "governance")["decision"], "allow", "{}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_node_goes_on_with_a_conversation() {
    let upstream = Hostile::start(vec![tool("asks", Script::Asks(asking().to_string()))]).await;
    let url = upstream.url();
    let Some(trio) = trio("mcp_questions", |builder| builder.http("up", &url, "")).await else {
        return;
    };
    let [one, two, _] = &trio.nodes;
    let who = one.service(&one.org("acme", &ENOUGH), "mcps:read mcps:invoke");
    let declared = json!({"elicitation": {}});

    let asked = leg(one, &who, "asks", &declared, FORM, None).await;
    let state = asked.at("/result/requestState").as_str().expect("a state").to_owned();
    let done = leg(two, &who, "asks", &declared, FORM, Some((&state, answers()))).await;

    assert_eq!(done.at("/result/structuredContent/state"), "theirs", "{}", done.text);
}
