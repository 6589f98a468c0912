//! Calls that ask for an approval, find it again, and run with it.

use super::{Waiting, approval_of, types};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_runs_once_after_somebody_else_approved_it() {
    // A call runs once after somebody else approved it.
    let (it, ana, ben) = Waiting::with_two().await;

    let first = it.invoke(&ana, "pay", json!({"amount": 7, "to": "DE"})).await;

    has!(check(&it.gateway, &ana, &first, PENDING).await, "/governance/policy": "payouts");
    let approval = first.at("/error/details/approval");
    let id = approval_of(&first);
    assert!(is_id(&id, "apr_"), "{approval}");
    assert_eq!(approval["status"], "pending");
    assert!(approval["expires_at"].is_string(), "{approval}");
    assert_eq!(approval["url"], format!("{}/approvals/{id}", it.gateway.url()));
    let body = r#"{"input": {"to": "DE",  "amount": 7}}"#;
    let same = it.gateway.post(&ana, "/v1/mcps/up:pay/invoke", body).await;
    assert_eq!(approval_of(&same), id, "the same call finds the same approval");
    assert_eq!(it.upstream.count("pay"), 0);

    let shown = it.get(&ben, &id).await;
    has!(shown, "/data/input": {"amount": 7, "to": "DE"},
        "/data/requester/principal_id": ana.id.as_str(),
        "/data/policy/reason": "A second person looks at payments", "/data/tool/id": "up:pay");
    let digest = shown.at("/data/digest");
    let decided = it.decide(&ben, &id, json!({"decision": "approve", "digest": digest})).await.ok();
    assert_eq!(decided.at("/data/status"), "approved");

    let call = it.invoke(&ana, "pay", json!({"amount": 7, "to": "DE"})).await;

    let event = check(&it.gateway, &ana, &call, SUCCESS).await;
    let used = json!([{ "approvers": [ben.id], "id": id }]);
    assert_eq!(event["governance"]["approvals"], used);
    assert_eq!(it.upstream.count("pay"), 1);
    assert_eq!(it.get(&ana, &id).await.at("/data/status"), "consumed");
    let next = it.ask(&ana, "pay", json!({"amount": 7, "to": "DE"})).await;
    assert_ne!(next, id, "what was used up is asked for anew");
    assert_eq!(it.upstream.count("pay"), 1);
    let events = it.events(&id, 3).await;
    assert_eq!(types(&events), ["approval.requested", "approval.granted", "approval.consumed"]);
    assert_eq!(events[0]["outcome"]["status"], "approval_pending");
    assert_eq!(events[0]["detached"]["approval"]["digest"], *digest);
    assert_eq!(events[1]["actor"]["id"], ben.id.as_str());
    assert_eq!(events[1]["detached"]["approval"]["decisions"][0]["by"], ben.id.as_str());
    assert_eq!(events[2]["detached"]["approval"]["status"], "consumed");

    // A principal has twenty pending requests at most.
    it.upstream.forget();
    let ana = it.person("cleo", &[]).await;
    let ben = it.person("dan", &["finance"]).await;
    for amount in 0..20 {
        it.ask(&ana, "pay", json!({ "amount": amount })).await;
    }

    let more = it.invoke(&ana, "pay", json!({"amount": 20})).await;

    assert_eq!(more.refusal(), (403, "policy_denied"), "{}", more.text);
    assert!(more.at("/error/details/approval").is_null(), "{}", more.text);
    assert!(more.at("/error/details/retry_after").is_u64(), "{}", more.text);
    let same = it.ask(&ana, "pay", json!({"amount": 3})).await;
    it.ask(&ben, "pay", json!({"amount": 20})).await;
    it.approve(&ben, &same).await;
    it.ask(&ana, "pay", json!({"amount": 20})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anything_else_is_another_call() {
    // Anything else is another call.
    let (it, ana, ben) = Waiting::with_two().await;
    let id = it.ask(&ana, "pay", json!({"amount": 7, "to": "DE"})).await;
    it.approve(&ben, &id).await;

    for body in [
        r#"{"input": {"amount": 7.0, "to": "DE"}}"#,
        r#"{"input": {"amount": 70, "to": "DE"}}"#,
        r#"{"input": {"amount": 7, "to": "DE "}}"#,
        r#"{"input": {"amount": 7, "to": "DE", "note": null}}"#,
    ] {
        let other = it.gateway.post(&ana, "/v1/mcps/up:pay/invoke", body).await;
        assert_ne!(approval_of(&other), id, "{body}");
    }
    let other = it.ask(&ben, "pay", json!({"amount": 7, "to": "DE"})).await;
    assert_ne!(other, id, "somebody else's call");
    let through = json!({"subject_token": ana.token, "scope": "mcps:invoke"});
    let through = it.exchange(&it.agent.token, &through).await;
    let other = it.ask(&through, "pay", json!({"amount": 7, "to": "DE"})).await;
    assert_ne!(other, id, "a call of an agent for her");
    assert_eq!(it.upstream.count("pay"), 0);

    // A denied call stays denied until its time is over.
    it.upstream.forget();
    let ana = it.person("cleo", &[]).await;
    let ben = it.person("dan", &["finance"]).await;
    let id = it.ask(&ana, "pay", json!({"amount": 7})).await;

    let no = it.decide(&ben, &id, json!({"decision": "deny", "comment": "Not this month"})).await;

    assert_eq!(no.at("/data/status"), "denied", "{}", no.text);
    let again = it.invoke(&ana, "pay", json!({"amount": 7})).await;
    check(&it.gateway, &ana, &again, Ending { outcome: "denied", ..PENDING }).await;
    assert_eq!(again.at("/error/details/approval/id"), id.as_str());
    assert_eq!(again.at("/error/details/approval/status"), "denied");
    has!(it.get(&ana, &id).await, "/data/decisions/0/comment": "Not this month");
    assert_eq!(types(&it.events(&id, 2).await), ["approval.requested", "approval.denied"]);
    assert_eq!(it.upstream.count("pay"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_ends_when_its_time_is_over() {
    let (it, ana, ben) = Waiting::with_two().await;
    let id = it.ask(&ana, "pay", json!({"amount": 7})).await;

    it.gateway.tamper("UPDATE approvals SET expires_at = created_at + 1");

    let late = it.decide(&ben, &id, json!({"decision": "approve"})).await;
    has!(late, 409 "approval_settled", "/error/details/status": "expired");
    let ended = until(|| it.get(&ana, &id), |answer| answer.status == 200).await;
    assert_eq!(ended.at("/data/status"), "expired");
    assert_ne!(it.ask(&ana, "pay", json!({"amount": 7})).await, id);
    assert_eq!(types(&it.events(&id, 2).await), ["approval.requested", "approval.expired"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_could_read_is_not_asked_for() {
    let it = Waiting::start().await;
    let ana = it.person("ana", &[]).await;

    let large = it.invoke(&ana, "pay", json!({"note": "many words ".repeat(6_000)})).await;

    assert_eq!(large.refusal(), (403, "policy_denied"), "{}", large.text);
    assert!(large.at("/error/details/approval").is_null(), "{}", large.text);
    assert!(large.at("/error/details/reason").as_str().unwrap().contains("64 KiB"));
}
