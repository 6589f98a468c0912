//! Tasks in the hands of those who should not have them, and too many of them at once.

use super::{
    about, approval_of, approved, begin_task, call_as, disposition, error, got, id_of, modern,
    status, tasks,
};
use crate::{
    approvals::{POLICIES, approver, asking_anew, asking_scene, decide},
    cluster::trio,
    prelude::*,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_of_its_caller_and_its_address_and_no_other_id_is_one() {
    // A task is of its caller and its address.
    let (scene, admin) = asking_scene().await;
    let gateway = &scene.gateway;
    let task = begin_task(&scene, "pay", json!({"amount": 7})).await;
    let id = id_of(&task);
    decide(gateway, &admin, &approval_of(&task), "approve").await;
    let sibling = gateway.service(&scene.who.org, "mcps:invoke");
    let stranger = gateway.service(&gateway.org("other", &ENOUGH), "mcps:read mcps:invoke");
    let poor = gateway.service(&scene.who.org, "mcps:read");

    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        for who in [&sibling, &stranger] {
            let answer = about(gateway, who, "/mcp/up", method, &id).await;
            assert_eq!(error(&answer), (400, -32602), "{method}: {}", answer.text);
            assert!(!answer.text.contains("apr_") && !answer.text.contains("amount"));
        }
        has!("{method}"; about(gateway, &poor, "/mcp/up", method, &id).await, 403);
        let elsewhere = about(gateway, &scene.who, "/mcp/elsewhere", method, &id).await;
        assert_ne!(elsewhere.status, 200, "{method}: {}", elsewhere.text);
    }
    assert!(scene.upstream.calls().is_empty());
    let done = about(gateway, &scene.who, "/mcp", "tasks/get", &id).await;
    assert_eq!(disposition(&done), "approved-executed", "{}", done.text);

    // An id that was made up or changed is none.
    let (scene, admin) = asking_anew(scene);
    let task = approved(&scene, &admin, "pay", json!({"amount": 7})).await;
    let flipped = |at: usize| {
        let mut bytes = id.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).expect("ASCII")
    };
    let mut forged: Vec<String> = (0..id.len()).step_by(7).map(flipped).collect();
    forged.extend(["tsk_".to_owned(), "x".to_owned(), approval_of(&task), id[4..].to_owned()]);
    forged.extend([format!("{id}A"), format!("tsk_{}", "A".repeat(7_000))]);

    for id in forged {
        let answer = got(&scene, &id).await;
        assert_eq!(error(&answer), (400, -32602), "{id}: {}", answer.text);
    }
    for mut params in [json!({}), json!({"taskId": 7})] {
        params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": tasks()});
        let request = modern(&scene.gateway, &scene.who, "/mcp/up", "tasks/get", &params);
        let answer = scene.gateway.send(request).await;
        assert_eq!(error(&answer), (400, -32602), "{params}: {}", answer.text);
    }
    let params =
        json!({"taskId": id, "_meta": {"io.modelcontextprotocol/clientCapabilities": tasks()}});
    let unnamed = modern(&scene.gateway, &scene.who, "/mcp/up", "tasks/get", &params);
    assert_eq!(error(&scene.gateway.send(unnamed).await), (400, -32020));
    assert!(scene.upstream.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_ask_at_once_and_cancel_are_given_one_call_that_fits() {
    // Many who ask at once are given one call.
    let (scene, admin) = asking_scene().await;
    for (round, tool) in ["pay", "export", "pay", "export"].into_iter().enumerate() {
        let task = approved(&scene, &admin, tool, json!({ "round": round })).await;
        let id = id_of(&task);
        let before = scene.upstream.calls().len();

        let answers = join_all((0..16).map(|_| got(&scene, &id))).await;

        for answer in &answers {
            let ended = status(answer) == "completed";
            assert!(ended || status(answer) == "working", "{}", answer.text);
            assert!(!ended || disposition(answer) == "approved-executed", "{}", answer.text);
        }
        assert!(answers.iter().any(|answer| status(answer) == "completed"));
        assert_eq!(disposition(&got(&scene, &id).await), "approved-executed");
        assert_eq!(scene.upstream.calls().len() - before, 1, "round {round}");
    }

    // Cancelling and asking at once end in one of both.
    let (scene, admin) = asking_anew(scene);
    for round in 0..8 {
        let task = approved(&scene, &admin, "pay", json!({ "round": round })).await;

        let id = id_of(&task);
        let before = scene.upstream.calls().len();
        let asks = join_all((0..4).map(|_| got(&scene, &id)));
        tokio::join!(asks, super::cancelled(&scene, &id));

        let end = got(&scene, &id).await;
        let sent = scene.upstream.calls().len() - before;
        let ran = end.at("/result/result").is_object() && disposition(&end) == "approved-executed";
        assert_eq!(sent, usize::from(ran), "round {round}: {}", end.text);
        assert_ne!(status(&end), "working", "{}", end.text);
    }

    // A call too large for a task is told to call again.
    let (scene, admin) = asking_anew(scene);
    let input = |letters: usize| json!({"text": "x".repeat(letters)});
    let fits = begin_task(&scene, "pay", input(4_000)).await;
    assert!(id_of(&fits).len() <= 7_168, "it has to fit into a header");
    decide(&scene.gateway, &admin, &approval_of(&fits), "approve").await;
    assert_eq!(disposition(&got(&scene, &id_of(&fits)).await), "approved-executed");

    for letters in [6_000, 60_000] {
        let told = begin_task(&scene, "pay", input(letters)).await;

        assert_eq!(told.at("/result/isError"), true, "{letters}");
        let text = told.at("/result/content/0/text").as_str().expect("a sentence");
        assert!(text.contains("make the same call again once it is approved"), "{text}");
        decide(&scene.gateway, &admin, &approval_of(&told), "approve").await;
        let ran = begin_task(&scene, "pay", input(letters)).await;
        assert_eq!(ran.at("/result/structuredContent"), &input(letters));
    }

    // A token that is revoked meanwhile asks for nothing.
    let (scene, admin) = asking_anew(scene);
    let task = approved(&scene, &admin, "pay", json!({})).await;
    scene.gateway.delete(&scene.who, "/v1/auth/token").await.ok();

    has!(got(&scene, &id_of(&task)).await, 401);

    assert!(scene.upstream.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn any_node_makes_the_call_of_a_task_and_one_of_them_does() {
    let tools = ["pay", "export"].map(|name| tool(name, Script::Echo));
    let upstream = Hostile::start(tools.to_vec()).await;
    let url = upstream.url();
    let Some(trio) = trio("mcp_tasks", |node| node.http("up", &url, "")).await else { return };
    let one = &trio.nodes[0];
    let org = one.org("acme", &ENOUGH);
    let who = one.service(&org, "mcps:read mcps:invoke");
    let admin = approver(one, &org);
    trio.common.policies(POLICIES);
    trio.until_found(&admin, "/v1/policies/payouts").await;
    let task = call_as(one, &who, "/mcp/up", "pay", json!({"n": 1}), &tasks()).await;
    let id = id_of(&task);
    decide(&trio.nodes[1], &admin, &approval_of(&task), "approve").await;

    let asks = (0..15).map(|n| about(&trio.nodes[n % 3], &who, "/mcp/up", "tasks/get", &id));
    let answers = join_all(asks).await;

    assert!(answers.iter().any(|answer| status(answer) == "completed"));
    for node in &trio.nodes {
        let answer = about(node, &who, "/mcp/up", "tasks/get", &id).await;
        assert_eq!(answer.at("/result/result/structuredContent"), &json!({"n": 1}));
        assert_eq!(disposition(&answer), "approved-executed", "{}", answer.text);
    }
    assert_eq!(upstream.calls().len(), 1);
}
