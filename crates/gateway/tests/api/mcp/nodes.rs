//! Several nodes: nothing of a client is kept on one of them.

use portcullis_testkit::Builder;
use serde_json::json;

use super::{ask, ask_legacy, call, names, own};
use crate::{cluster::trio, given::ENOUGH};

#[tokio::test(flavor = "multi_thread")]
async fn each_request_may_be_answered_by_another_node() {
    let Some(trio) = trio("mcp_nodes", Builder::sample).await else { return };
    let [one, two, three] = &trio.nodes;
    let who = one.service(&one.org("acme", &ENOUGH), "mcps:read mcps:invoke");
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    });

    let initialized = ask_legacy(one, &who, "/mcp", ("initialize", hello)).await;
    let list = ask_legacy(two, &who, "/mcp", ("tools/list", json!({}))).await;
    let name = names(&list)[0].to_owned();
    let params = json!({"name": name, "arguments": {}});
    let called = ask_legacy(three, &who, "/mcp", ("tools/call", params)).await;
    let lists = [
        ask(one, &who, "/mcp", "tools/list", json!({})).await,
        ask(three, &who, "/mcp", "tools/list", json!({})).await,
    ];
    let modern = call(two, &who, "/mcp", &name, json!({})).await;

    assert_eq!(initialized.status, 200, "{}", initialized.text);
    assert!(names(&lists[0]).len() > 1 && names(&lists[0]) == names(&lists[1]));
    for answer in [&called, &modern] {
        assert_eq!(own(answer, "governance")["decision"], "allow", "{}", answer.text);
    }
}
