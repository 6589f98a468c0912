//! Calls that people have to approve, over both faces, at once and through crashes. `v1::approvals` tells
//! what is asked, decided and shown.

mod changed;
mod held_calls;
mod offline;
mod sdk;
mod waiting;

use crate::{mcp::modern, prelude::*};

pub(crate) const POLICIES: &str = r#"
@id("all") permit (principal, action, resource);
@id("payouts") @reason("Payouts need a second person")
@require_approval("approvers=finance ttl=15m uses=1")
forbid (principal, action == Mcp::Action::"up:pay", resource);
@id("exports") @require_approval("approvers=finance uses=3") @rate_limit("4/1h")
forbid (principal, action == Mcp::Action::"up:export", resource);
"#;

/// A scene with an admin who decides.
pub(crate) async fn asking_scene() -> (Scene, Principal) {
    asking_scene_with("").await
}

/// The same for another org of its gateway, as if nothing had been called.
pub(crate) fn asking_anew(scene: Scene) -> (Scene, Principal) {
    let scene = scene.anew();
    let admin = approver(&scene.gateway, &scene.who.org);
    (scene, admin)
}

/// The same, with more configuration.
async fn asking_scene_with(config: &str) -> (Scene, Principal) {
    let tools = ["pay", "export", "free"].map(|name| tool(name, Script::Echo)).to_vec();
    let scene = scene_with(tools, "", |it| it.policies(POLICIES).config(config)).await;
    let admin = approver(&scene.gateway, &scene.who.org);
    (scene, admin)
}

/// Puts another text into the policies, and has them loaded.
fn edit(scene: &Scene, from: &str, to: &str) {
    let file = scene.gateway.folder().join("policies/test.cedar");
    fs::write(file, POLICIES.replace(from, to)).expect("a policy");
    scene.gateway.hang_up();
}

pub(crate) fn approver(gateway: &Gateway, org: &str) -> Principal {
    let scopes = "admin approvals:read approvals:decide audit:read policies:read";
    gateway.user(org, "admin", scopes)
}

/// The approval that an answer says it waits for.
pub(crate) fn pending_approval(answer: &Answer) -> String {
    let id = answer.at("/error/details/approval/id").as_str();
    id.unwrap_or_else(|| panic!("no approval: {}", answer.text)).to_owned()
}

pub(crate) async fn decide(gateway: &Gateway, who: &Principal, id: &str, vote: &str) -> Answer {
    let body = json!({ "decision": vote }).to_string();
    gateway.post(who, &format!("/v1/approvals/{id}/decision"), &body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_for_so_many_runs_and_costs_nothing_while_it_waits() {
    // Of many callers at once as many run as the policy says.
    let (scene, admin) = asking_scene().await;
    for (tool, uses) in [("pay", 1), ("export", 3)] {
        let id = pending_approval(&scene.invoke(tool, json!({"n": 1})).await);
        decide(&scene.gateway, &admin, &id, "approve").await;
        let before = scene.upstream.calls().len();

        let calls = (0..16).map(|_| scene.invoke(tool, json!({"n": 1})));
        let answers = join_all(calls).await;

        let ran = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!(ran, uses, "{tool}");
        assert_eq!(scene.upstream.calls().len() - before, uses, "{tool}");
        for answer in answers.iter().filter(|answer| answer.status == 200) {
            let event = events(&scene.gateway, &scene.who, &request_id(answer)).await.remove(0);
            assert_eq!(event["governance"]["approvals"][0]["id"], id);
        }
    }

    // A call that waits takes nothing from its rate and no idempotency key.
    let (scene, admin) = asking_anew(scene);
    let input = json!({"n": 1});
    let keyed = || scene.gateway.invoke_keyed(&scene.who, "up:export", "k1", &input);
    let mut id = String::new();
    for _ in 0..6 {
        let answer = keyed().await;
        scene.check(&answer, PENDING).await;
        id = pending_approval(&answer);
    }

    decide(&scene.gateway, &admin, &id, "approve").await;

    keyed().await.ok();
    let replayed = keyed().await;
    assert_eq!(replayed.header("idempotency-replayed"), "true");
    assert_eq!(scene.upstream.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_decides_about_a_policy_that_was_edited_a_moment_ago() {
    let (scene, admin) = asking_scene().await;
    let mut waiting = Vec::new();
    for amount in 0..3 {
        waiting.push(pending_approval(&scene.invoke("pay", json!({ "amount": amount })).await));
    }
    let policy = async || scene.gateway.get(&admin, "/v1/policies/payouts").await;
    let version = policy().await.at("/data/version").clone();
    let store = store(&scene.gateway).await;
    let kept = async || store.last_policy_set().await.unwrap().expect("a set").version;
    let set = kept().await;

    edit(&scene, "approvers=finance ttl=15m", "approvers=treasury ttl=15m");
    until(policy, |it| *it.at("/data/version") != version).await;

    for (id, vote) in waiting.iter().zip(["approve", "deny"]) {
        let decided = decide(&scene.gateway, &admin, id, vote).await;
        has!("{vote}"; decided, 409 "approval_settled", "/error/details/status": "expired");
        assert!(decided.at("/error/message").as_str().unwrap().contains("policy"));
        let shown = scene.gateway.get(&admin, &format!("/v1/approvals/{id}")).await;
        has!("it ended at once"; shown, "/data/status": "expired", "/data/decisions": []);
    }
    while kept().await == set {
        tokio::task::yield_now().await;
    }
    let (status, told) = failure(&scene.gateway, &["approval", "approve", &waiting[2]]).await;
    assert_eq!(status, 1, "{told}");
    assert!(told.contains("cannot be decided any more"), "{told}");
    let anew = scene.invoke("pay", json!({"amount": 0})).await;
    assert_ne!(pending_approval(&anew), waiting[0]);
    assert!(scene.upstream.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_dies_in_an_approved_call_leaves_the_approval_used_and_named() {
    let held = Script::Held(json!({"content": []}).to_string());
    let mut scene = scene_under(POLICIES, vec![tool("pay", held)]).await;
    let admin = approver(&scene.gateway, &scene.who.org);
    let input = json!({"amount": 7});
    let id = pending_approval(&scene.invoke("pay", input.clone()).await);
    decide(&scene.gateway, &admin, &id, "approve").await;

    {
        let call = scene.invoke("pay", input.clone());
        let arrives = eventually("a call at the server", async || {
            (!scene.upstream.calls().is_empty()).then_some(())
        });
        tokio::select! { _ = call => panic!("it was held"), () = arrives => {} }
        scene.gateway.kill_at_once();
    }
    scene.gateway.kill();
    scene.gateway.start();

    let answer = scene.invoke("pay", input).await;
    scene.check(&answer, PENDING).await;
    assert_ne!(pending_approval(&answer), id);
    assert_eq!(scene.upstream.calls().len(), 1);
    let died = list(&scene.gateway, &admin, "outcome=unknown").await;
    assert_eq!(died.len(), 1, "{died:#?}");
    assert_eq!(died[0]["governance"]["approvals"][0]["id"], json!(id));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_over_mcp_are_told_to_wait_or_asked_to_open_an_address() {
    // An agent over mcp is told to wait and calls again.
    let (scene, admin) = asking_scene().await;
    let params = json!({"name": "up__pay", "arguments": {"amount": 7}});
    let call = async || {
        let request = modern(&scene.gateway, &scene.who, "/mcp", "tools/call", &params);
        scene.gateway.send(request).await
    };

    let told = call().await;

    assert_eq!(told.at("/result/isError"), true, "{}", told.text);
    let text = told.at("/result/content/0/text").as_str().expect("a sentence");
    assert!(text.contains("Payouts need a second person"), "{text}");
    assert!(text.contains("make the same call again once it is approved"), "{text}");
    let approval = &told.at("/result/_meta")["dev.portcullis/error"]["details"]["approval"];
    let id = approval["id"].as_str().expect("an id").to_owned();
    assert!(text.contains(&format!("{}/approvals/{id}", scene.gateway.url())), "{text}");
    decide(&scene.gateway, &admin, &id, "approve").await;
    has!(call().await, "/result/structuredContent": {"amount": 7});
    assert_eq!(scene.upstream.calls().len(), 1);

    // A client that opens addresses is asked to open one.
    let (scene, admin) = asking_anew(scene);
    let call = async |answers: Option<Value>| {
        let mut params = json!({
            "name": "up__pay", "arguments": {"amount": 7},
            "_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"url": {}}}},
        });
        if let Some(answers) = answers {
            params["inputResponses"] = answers;
        }
        let request = modern(&scene.gateway, &scene.who, "/mcp", "tools/call", &params);
        scene.gateway.send(request).await
    };

    let asks = call(None).await.ok();

    assert_eq!(asks.at("/result/resultType"), "input_required", "{}", asks.text);
    let question = asks.at("/result/inputRequests/approval");
    has!(question, "/method": "elicitation/create", "/params/mode": "url");
    let id = question["params"]["elicitationId"].as_str().expect("an id").to_owned();
    assert_eq!(question["params"]["url"], format!("{}/approvals/{id}", scene.gateway.url()));
    assert!(asks.at("/result/content").is_null() && asks.at("/result/isError").is_null());
    decide(&scene.gateway, &admin, &id, "approve").await;
    let ran = call(Some(json!({"approval": {"action": "accept"}}))).await;
    assert_eq!(ran.at("/result/structuredContent"), &json!({"amount": 7}), "{}", ran.text);
    assert_eq!(scene.upstream.calls().len(), 1, "nothing was sent that nobody approved");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_is_edited_takes_its_approvals_with_it() {
    let (scene, admin) = asking_scene().await;
    let pending = json!({"amount": 1});
    let approved = json!({"amount": 2});
    let waits = pending_approval(&scene.invoke("pay", pending.clone()).await);
    let granted = pending_approval(&scene.invoke("pay", approved.clone()).await);
    decide(&scene.gateway, &admin, &granted, "approve").await;

    edit(&scene, "ttl=15m", "ttl=20m");
    for id in [&waits, &granted] {
        let path = format!("/v1/approvals/{id}");
        let shown = || scene.gateway.get(&admin, &path);
        until(shown, |it| it.at("/data/status") == "expired").await;
    }

    for (input, before) in [(pending, waits), (approved, granted)] {
        let answer = scene.invoke("pay", input).await;
        scene.check(&answer, PENDING).await;
        assert_ne!(pending_approval(&answer), before);
    }
    assert!(scene.upstream.calls().is_empty());
}
