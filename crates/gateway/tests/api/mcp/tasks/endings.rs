//! Ends of tasks other than a result.

use super::{
    about, approval_of, approved, assert_not_called, assert_replayed, begin_task, call_as,
    cancelled, disposition, got, id_of, status, tasks,
};
use crate::{
    approvals::{POLICIES, approver, asking_anew, asking_scene, decide},
    prelude::*,
};

/// Puts other policies in force, and waits until `seen` is one of them.
async fn in_force(scene: &Scene, admin: &Principal, cedar: &str, seen: &str) {
    fs::write(scene.gateway.folder().join("policies/test.cedar"), cedar).expect("a policy");
    scene.gateway.hang_up();
    let path = format!("/v1/policies/{seen}");
    until(|| scene.gateway.get(admin, &path), |it| it.status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_ends_by_a_denial_by_its_client_or_by_its_answer() {
    // A call that people denied ends its task for good.
    let (scene, admin) = asking_scene().await;
    let task = begin_task(&scene, "pay", json!({"amount": 7})).await;
    let approval = approval_of(&task);
    decide(&scene.gateway, &admin, &approval, "deny").await;

    let first = got(&scene, &id_of(&task)).await;
    let again = got(&scene, &id_of(&task)).await;

    for answer in [&first, &again] {
        assert_not_called(answer);
        let text = answer.at("/result/result/content/0/text").as_str().expect("a sentence");
        assert!(text.contains("was denied"), "{text}");
    }
    let event = events(&scene.gateway, &scene.who, first.header("x-request-id")).await.remove(0);
    has!(event, "/type": "mcp.invocation", "/outcome/status": "denied",
        "/governance/policy": "payouts");
    assert_replayed(&scene, &admin, &again).await;
    assert!(scene.upstream.calls().is_empty());

    // A task that is cancelled is never called.
    let (scene, admin) = asking_anew(scene);
    for approved in [false, true] {
        let input = json!({"approved": approved});
        let task = begin_task(&scene, "pay", input.clone()).await;
        let id = id_of(&task);
        let approval = approval_of(&task);
        if approved {
            decide(&scene.gateway, &admin, &approval, "approve").await;
        }

        for _ in 0..2 {
            has!(cancelled(&scene, &id).await, "/result/resultType": "complete");
        }

        let answer = got(&scene, &id).await;
        assert_eq!(status(&answer), "cancelled", "{}", answer.text);
        has!(decide(&scene.gateway, &admin, &approval, "approve").await, 409);
        let shown = scene.gateway.get(&admin, &format!("/v1/approvals/{approval}")).await;
        assert_eq!(shown.at("/data/status"), "expired", "{}", shown.text);
        assert_ne!(approval_of(&begin_task(&scene, "pay", input).await), approval);
        let filter = "/v1/audit/events?type=approval.expired&limit=1&order=desc";
        has!(scene.gateway.get(&admin, filter).await, "/data/items/0/actor/id": scene.who.id);
    }
    assert!(scene.upstream.calls().is_empty());

    // A task that has its answer cannot be cancelled.
    let (scene, admin) = asking_anew(scene);
    let task = approved(&scene, &admin, "export", json!({})).await;
    got(&scene, &id_of(&task)).await;

    cancelled(&scene, &id_of(&task)).await;

    assert_eq!(disposition(&got(&scene, &id_of(&task)).await), "approved-executed");
    let other = begin_task(&scene, "export", json!({})).await;
    assert_eq!(other.at("/result/isError"), &json!(null), "the other uses stay: {}", other.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_another_policy_denies_meanwhile_stays_denied() {
    let (scene, admin) = asking_scene().await;
    let task = approved(&scene, &admin, "pay", json!({"amount": 7})).await;
    let stricter = format!(
        "{POLICIES} @id(\"closed\") @reason(\"Closed\") forbid (principal, action, resource);"
    );
    in_force(&scene, &admin, &stricter, "closed").await;

    let denied = got(&scene, &id_of(&task)).await;

    assert_not_called(&denied);
    assert_eq!(denied.at("/result/result/_meta/dev.portcullis~1error/details/policy"), "closed");
    let open = format!("{POLICIES} @id(\"open\") permit (principal, action, resource);");
    in_force(&scene, &admin, &open, "open").await;
    assert_not_called(&got(&scene, &id_of(&task)).await);
    assert!(scene.upstream.calls().is_empty(), "what has ended does not begin again");
}

#[tokio::test(flavor = "multi_thread")]
async fn uris_in_the_answer_of_a_task_carry_their_provider_where_there_are_several() {
    let link = json!({"content": [{"type": "resource_link", "uri": "notes://a", "name": "a"}]});
    let tools = vec![tool("pay", Script::Result(link.to_string()))];
    let scene = scene_under(POLICIES, tools).await;
    let admin = approver(&scene.gateway, &scene.who.org);
    for (path, uri) in [("/mcp", "up+notes://a"), ("/mcp/up", "notes://a")] {
        let task = approved(&scene, &admin, "pay", json!({"path": path})).await;
        let done = about(&scene.gateway, &scene.who, path, "tasks/get", &id_of(&task)).await;
        has!(done, 200, "/result/result/content/0/uri": uri);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_failed_hides_no_effect() {
    let tools = vec![
        tool("fails", Script::Status(500)),
        tool("cut", Script::CloseInBody),
        giving("wrong", &json!({"content": [{"type": "text", "text": "no"}], "isError": true})),
        tool("asks", Script::Asks(super::super::questions::asking().to_string())),
    ];
    let policies = r#"
        @id("all") permit (principal, action, resource);
        @id("second") @require_approval("approvers=finance") forbid (principal, action, resource);"#;
    let scene = scene_under(policies, tools).await;
    let admin = approver(&scene.gateway, &scene.who.org);
    for (name, expected) in [
        ("fails", "outcome-unknown"),
        ("cut", "outcome-unknown"),
        ("wrong", "execution-error"),
        ("asks", "outcome-unknown"),
    ] {
        let task = approved(&scene, &admin, name, json!({})).await;
        let before = scene.upstream.calls().len();

        let first = got(&scene, &id_of(&task)).await;
        let again = got(&scene, &id_of(&task)).await;

        for answer in [&first, &again] {
            assert_eq!(status(answer), "completed", "{name}: {}", answer.text);
            assert_eq!(answer.at("/result/result/isError"), true, "{name}: {}", answer.text);
            assert_eq!(disposition(answer), expected, "{name}: {}", answer.text);
        }
        assert_eq!(scene.upstream.calls().len() - before, 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn approvals_that_are_used_up_limits_and_edited_policies_end_or_hold_up_a_task() {
    // An approval that another call used up leaves none to the task.
    let (scene, admin) = asking_scene().await;
    let task = approved(&scene, &admin, "pay", json!({"amount": 7})).await;
    scene.invoke("pay", json!({"amount": 7})).await.ok();

    assert_not_called(&got(&scene, &id_of(&task)).await);
    assert_eq!(scene.upstream.calls().len(), 1);

    // A limit that is exceeded holds a task up and ends it not.
    let scene = scene.anew();
    let org = scene.gateway.org("small", &plan("100", "1"));
    let who = scene.gateway.service(&org, "mcps:read mcps:invoke");
    let admin = approver(&scene.gateway, &org);
    let task = call_as(&scene.gateway, &who, "/mcp/up", "pay", json!({}), &tasks()).await;
    decide(&scene.gateway, &admin, &approval_of(&task), "approve").await;

    let held = about(&scene.gateway, &who, "/mcp/up", "tasks/get", &id_of(&task)).await;

    assert_eq!((held.status.as_u16(), status(&held)), (200, "working"), "{}", held.text);
    let message = held.at("/result/statusMessage").as_str().expect("a sentence");
    assert!(message.contains("has not been called yet"), "{message}");
    assert!(scene.upstream.calls().is_empty());

    // A policy that is edited or removed meanwhile ends the task.
    let (scene, admin) = asking_anew(scene);
    let removed = "@id(\"all\") permit (principal, action, resource);\n@id(\"two\") permit (principal, action, resource);";
    let edited = POLICIES.replace("ttl=15m", "ttl=20m").replace("\"all\"", "\"three\"");
    for (cedar, seen) in [(removed, "two"), (&*edited, "three")] {
        in_force(&scene, &admin, POLICIES, "payouts").await;
        let task = approved(&scene, &admin, "pay", json!({ "before": seen })).await;
        in_force(&scene, &admin, cedar, seen).await;

        let answer = got(&scene, &id_of(&task)).await;

        assert_not_called(&answer);
        let governance = &answer.at("/result/result/_meta")["dev.portcullis/governance"];
        assert_eq!(governance["decision"], "deny", "{}", answer.text);
    }
    assert!(scene.upstream.calls().is_empty());
    let filter = "/v1/approvals?status=pending";
    has!("a task asks nobody again"; scene.gateway.get(&admin, filter).await, "/data/items": []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_a_crash_cut_off_is_not_made_again() {
    let held = Script::Held(json!({"content": []}).to_string());
    let mut scene = scene_under(POLICIES, vec![tool("pay", held)]).await;
    let admin = approver(&scene.gateway, &scene.who.org);
    let task = approved(&scene, &admin, "pay", json!({})).await;
    let id = id_of(&task);

    {
        let asks = got(&scene, &id);
        let arrives = eventually("a call at the server", async || {
            (!scene.upstream.calls().is_empty()).then_some(())
        });
        tokio::select! { _ = asks => panic!("it was held"), () = arrives => {} }
        scene.gateway.kill_at_once();
    }
    scene.gateway.kill();
    scene.gateway.start();

    for _ in 0..2 {
        let answer = got(&scene, &id).await;
        assert_eq!(status(&answer), "completed", "{}", answer.text);
        assert_eq!(disposition(&answer), "outcome-unknown", "{}", answer.text);
        let text = answer.at("/result/result/content/0/text").as_str().expect("a sentence");
        assert!(text.contains("Whether the tool ran is unknown"), "{text}");
    }
    assert_eq!(scene.upstream.calls().len(), 1);
}
