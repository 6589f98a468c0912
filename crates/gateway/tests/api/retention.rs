//! Erasure, holds and looks at the log, on the real binary.

mod unproven;

use crate::prelude::*;

async fn scene() -> Scene {
    let config = "[audit]\ncapture = \"full\"";
    scene_with(vec![tool("echo", Script::Echo)], "", |it| it.config(config)).await
}

impl Scene {
    fn audit(&self, arguments: &[&str]) -> Value {
        self.gateway.admin(&[&["audit"], arguments, &["--org", &self.who.org]].concat())
    }

    /// All events of a type, whole, oldest first, as an auditor sees them.
    async fn list_events(&self, auditor: &Principal, kind: &str) -> Vec<Value> {
        list_of(&self.gateway, auditor, kind, "").await
    }

    async fn event(&self, answer: &Answer) -> Value {
        let path = format!("/v1/audit/events/{}", answer.event_id());
        self.gateway.get(&self.who, &path).await.at("/data").clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_event_keeps_its_place_and_its_commitments() {
    let scene = scene().await;
    let auditor = scene.gateway.user(&scene.who.org, "auditor", "audit:read");
    let answer = scene.invoke("echo", json!({"name": "ann"})).await;
    let before = scene.check(&answer, SUCCESS).await;
    assert_eq!(before["detached"]["input"]["name"], "ann");

    let one = ["erase", "--event", answer.event_id(), "--members", "input,output,source_ip"];
    let erased = scene.audit(&[&one[..], &["--reason", "Art. 17"]].concat());

    assert_eq!(erased, json!({"erased": 1, "held": 0}));
    let after = scene.event(&answer).await;
    for member in ["input", "output", "source_ip"] {
        assert!(after["detached"][member].is_null(), "{after}");
        assert!(after["integrity"]["salts"].get(member).is_none(), "{after}");
    }
    assert_eq!(after["detached"]["actor_name"], before["detached"]["actor_name"]);
    for part in ["commitments", "sequence", "recorded_at", "outcome", "governance"] {
        assert_eq!(after[part], before[part], "{part}");
    }
    assert_eq!(after["integrity"]["leaf_hash"], before["integrity"]["leaf_hash"]);
    let told = scene.list_events(&auditor, "audit.erased").await;
    assert_eq!(told.len(), 1);
    let target = json!({
        "type": "audit_event", "id": answer.event_id(), "credential": null, "provider_id": null,
        "version": null,
    });
    assert_eq!(told[0]["target"], target);
    assert_eq!(told[0]["count"], 1);
    let details = &told[0]["detached"]["erasure"];
    has!(details, "/reason": "Art. 17", "/members": ["input", "output", "source_ip"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_keeps_what_was_to_be_erased_and_both_is_told() {
    let scene = scene().await;
    let auditor = scene.gateway.user(&scene.who.org, "auditor", "audit:read");
    let answer = scene.invoke("echo", json!({"name": "ann"})).await;
    scene.check(&answer, SUCCESS).await;
    let who = scene.who.id.clone();
    let laid = scene.audit(&["hold", "add", "--reason", "a lawsuit", "--actor", &who]);
    let erase = ["erase", "--actor", &who, "--reason", "asked for"];

    let refused = scene.audit(&erase);
    has!(scene.event(&answer).await, "/detached/input/name": "ann");
    let holds = scene.audit(&["hold", "list"]);
    let laid_id = laid["id"].as_str().expect("an id");
    scene.audit(&["hold", "remove", laid_id]);
    let erased = scene.audit(&erase);

    assert_eq!(refused["erased"], 0, "{refused}");
    assert!(refused["held"].as_u64().expect("a count") >= 1, "{refused}");
    assert_eq!((&holds[0]["id"], &holds[0]["released_at"]), (&laid["id"], &Value::Null));
    assert!(erased["erased"].as_u64().expect("a count") >= 1, "{erased}");
    let after = scene.event(&answer).await;
    assert!(after["detached"]["input"].is_null() && after["detached"]["actor_name"].is_null());
    let told = scene.list_events(&auditor, "audit.erased").await;
    assert_eq!(told.len(), 2);
    assert_eq!(told[0]["outcome"]["status"], "denied");
    assert_eq!(told[0]["detached"]["erasure"]["held"], refused["held"]);
    assert_eq!(told[1]["outcome"]["status"], "success");
    let changed = scene.list_events(&auditor, "audit.hold_changed").await;
    let ids: Vec<_> = changed.iter().map(|it| it["target"]["id"].clone()).collect();
    assert_eq!(ids, [json!(laid_id), json!(laid_id)]);
    assert_eq!(changed[0]["detached"]["hold"]["laid"]["reason"], "a lawsuit");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_looks_at_everybodys_events_is_recorded_once_an_hour() {
    let scene = scene().await;
    let auditor = scene.gateway.user(&scene.who.org, "auditor", "audit:read");
    let answer = scene.invoke("echo", json!({})).await;
    // One's own events are no access to the log.
    scene.check(&answer, SUCCESS).await;

    for _ in 0..3 {
        scene.gateway.get(&auditor, "/v1/audit/events").await;
    }
    let path = format!("/v1/audit/events/{}", answer.event_id());
    assert_eq!(scene.gateway.get(&auditor, &path).await.status, 200);

    let told = scene.list_events(&auditor, "audit.accessed").await;
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!(told[0]["actor"]["id"], auditor.id.as_str());
    assert_eq!(told[0]["count"], 1);
    assert_eq!(told[0]["target"]["type"], "audit_log");
    assert_eq!(told[0]["target"]["id"], scene.who.org.as_str());
}
