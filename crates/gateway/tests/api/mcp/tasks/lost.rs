//! Tasks of providers whose connection is gone, or whose server knows nothing of tasks any more.

use super::{
    about, error, got, id_of, modern, own,
    provided::{EXPOSED, POLICIES, ask_with, begin, done, ended, job, serving, task_state},
    status, tasks,
};
use crate::{
    prelude::*,
    v1::connect::{self, USER},
};

/// Fails unless there is no such task for this caller at this address, and nothing is sent.
async fn assert_unknown(scene: &Scene, path: &str, id: &str, what: &str) {
    scene.upstream.forget();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({
            "taskId": id, "inputResponses": {"q": {"action": "accept"}},
            "_meta": {"io.modelcontextprotocol/clientCapabilities": tasks()},
        });
        let request = modern(&scene.gateway, &scene.who, path, method, &params);
        let answer = scene.gateway.send(request.header("mcp-name", id)).await;
        assert_eq!(error(&answer), (400, -32602), "{what} {method}: {}", answer.text);
    }
    assert!(scene.upstream.calls().is_empty(), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_a_provider_is_of_its_connection_and_of_no_other_provider() {
    let upstream = Hostile::start(job("report", &[("working", json!({}))]).to_vec()).await;
    let keyed = format!("{EXPOSED}\nauth = \"api_key\"");
    let builder = gateway().http("up", &upstream.url(), &keyed);
    let builder = builder.http("other", &upstream.url(), EXPOSED).policies(POLICIES);
    let gateway = builder.start();
    let who = gateway.user(&fresh_org(&gateway), "member", USER);
    let admin = gateway.service(&who.org, ALL_SCOPES);
    let connected = async |who: &Principal, key: &str| {
        let answer = connect::connect(&gateway, who, "up", &json!({ "api_key": key })).await.ok();
        answer.at("/data/id").as_str().expect("an id").to_owned()
    };
    connected(&admin, "the-key-of-the-org-0123456789").await;
    let own = connected(&who, "the-key-of-ana-0123456789").await;
    let scene = Scene { gateway, upstream, who };
    let id = id_of(&begin(&scene, "report", json!({})).await);

    // A provider of the same server has none of it; at `/mcp`, where all are, it is there.
    assert_unknown(&scene, "/mcp/other", &id, "another provider").await;
    for path in ["/mcp", "/mcp/up"] {
        let told = about(&scene.gateway, &scene.who, path, "tasks/get", &id).await;
        has!("{path}"; told, 200, "/result/status": "working", "/result/taskId": id.as_str());
    }

    let gone = scene.gateway.delete(&scene.who, &format!("/v1/providers/{own}")).await;
    assert!(gone.status.is_success(), "{}", gone.text);

    // The tool is there through the connection of the org, and the task is not.
    let theirs = id_of(&begin(&scene, "report", json!({})).await);
    let path = "/v1/providers/up/connect";
    for at in ["/mcp", "/mcp/up"] {
        assert_unknown(&scene, at, &id, "the connection of the org").await;
    }
    let body = json!({"api_key": "another-key-of-ana-0123456789"}).to_string();
    let anew = scene.gateway.post(&scene.who, path, &body).await.ok();
    assert_ne!(anew.at("/data/id"), &json!(own));
    for (id, what) in [(&id, "the connection before"), (&theirs, "the other's connection")] {
        assert_unknown(&scene, "/mcp/up", id, what).await;
    }
    let mine = id_of(&begin(&scene, "report", json!({})).await);
    assert_eq!(status(&got(&scene, &mine).await), "working");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_drops_tasks_while_it_runs_ends_none_and_is_called_on() {
    let mut tools = job("report", &[("completed", done("x"))]);
    let begun = task_state("report", "working", &json!({"resultType": "task"}));
    tools[0] = tool("report", Script::Steps(vec![begun, done("At once.")["result"].to_string()]));
    let scene = serving(vec![tools]).await;
    let task = begin(&scene, "report", json!({})).await;
    let (id, call) = (id_of(&task), own(&task, "governance")["audit_event_id"].clone());

    for method in ["tasks/get", "tasks/cancel"] {
        scene.upstream.break_method(method, -32601);
        let lost = ask_with(&scene, method, &id, &json!({}), &tasks()).await;
        assert_eq!(error(&lost), (200, 502), "{method}: {}", lost.text);
        has!("{method}"; lost, "/error/data/dev.portcullis~1error/code": "upstream_error");
        assert!(!lost.text.contains("the disk is full"), "{}", lost.text);
    }

    // Nobody knows what became of it.
    assert!(ended(&scene).await.is_empty());
    // Calls are answered as the server does now.
    let direct = begin(&scene, "report", json!({})).await;
    has!(direct, 200, "/result/content/0/text": "At once.", "/result/taskId": null);
    // It takes them up again.
    scene.upstream.break_method("", 0);
    has!(got(&scene, &id).await, 200, "/result/status": "completed");
    let ends = ended(&scene).await;
    assert_eq!(ends.len(), 1);
    has!(ends[0], "/call": call, "/outcome/status": "success");
}
