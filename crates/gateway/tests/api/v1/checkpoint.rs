//! `GET /v1/audit/checkpoint`, `GET /v1/audit/events/{id}/proof`: what outsiders verify with.

use portcullis_core::{
    audit::{
        checkpoint::{Checkpoint, hash_of},
        merkle::is_consistent,
        note::VerifierKey,
        proof::verify_event,
    },
    id::{EventId, OrgId},
    json::{Bounds, canonical, parse},
};
use portcullis_store::{EventTexts, NewEvent, OldEvent, OldEvents, TextColumn};
use serde_json::Map;

use crate::{
    audit_log::{invoke, keys},
    prelude::*,
};

fn start() -> (Gateway, Principal) {
    serve(gateway().sample())
}

async fn checkpoint(gateway: &Gateway, who: &Principal, keys: &[VerifierKey]) -> Checkpoint {
    let answer = gateway.get(who, "/v1/audit/checkpoint").await.ok();
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    assert_framed(&answer, "checkpoint");
    Checkpoint::open(&answer.text, keys).unwrap().0
}

async fn proof(gateway: &Gateway, who: &Principal, event: &str) -> Answer {
    gateway.get(who, &format!("/v1/audit/events/{event}/proof")).await
}

async fn event(gateway: &Gateway, who: &Principal, id: &str) -> Map<String, Value> {
    let answer = gateway.event(who, id).await;
    let strict = parse(answer.text.as_bytes(), Bounds::UPSTREAM).unwrap();
    strict["data"].as_object().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_proven_at_once_to_whoever_sees_it() {
    // The event of an answer is proven as soon as somebody asks.
    let (gateway, who) = start();
    let keys = keys(&gateway, &who.org);
    for _ in 0..3 {
        let id = invoke(&gateway, &who).await;

        let answer = proof(&gateway, &who, &id).await.ok();

        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        assert_framed(&answer, "proof");
        let event = event(&gateway, &who, &id).await;
        assert_eq!(event["integrity"]["sealed"], true);
        assert_eq!(event["integrity"]["log"], keys[0].name());
        assert!(event["integrity"]["salts"]["actor_name"].is_string());
        let proven = verify_event(event.clone(), &answer.text, &keys).unwrap();
        assert_eq!(proven.sequence.to_string(), event["sequence"].to_string());
        assert!(proven.values_proven > 0 && proven.values_unproven == 0, "{proven:?}");
        let mut edited = event;
        edited.insert("type".to_owned(), json!("token.issued"));
        assert_eq!(verify_event(edited, &answer.text, &keys).unwrap_err().exit_code(), 10);
    }

    // A proof is seen by whoever sees its event.
    let other = gateway.service(&who.org, "mcps:invoke");
    let auditor = gateway.user(&who.org, "auditor", "audit:read");
    let stranger = gateway.user(&gateway.org("else", &ENOUGH), "admin", ALL_SCOPES);
    let id = invoke(&gateway, &who).await;

    assert_eq!(proof(&gateway, &auditor, &id).await.status, 200);
    for nobody in [&other, &stranger] {
        let answer = proof(&gateway, nobody, &id).await;
        assert_eq!(answer.refusal(), (404, "not_found"));
        assert_enveloped(&answer, "no proof");
    }
    for unknown in ["evt_01M7W9Y2TK0000000000000000", "nonsense", "evt_"] {
        assert_eq!(proof(&gateway, &who, unknown).await.status, 404, "{unknown}");
    }
    has!(gateway.get(&who, &format!("/v1/audit/events/{id}/proof?x=1")).await, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_checkpoint_continues_an_earlier_one_also_over_a_start() {
    // A later checkpoint proves that it continues an earlier one.
    let (mut gateway, who) = start();
    let names = keys(&gateway, &who.org);
    let mut pinned = vec![checkpoint(&gateway, &who, &names).await];
    for _ in 0..4 {
        invoke(&gateway, &who).await;
        invoke(&gateway, &who).await;
        pinned.push(checkpoint(&gateway, &who, &names).await);
    }

    for old in &pinned {
        let answer = assert_continued(&gateway, &who, old).await;
        assert_enveloped(&answer, "a checkpoint since another");
        assert_eq!(answer.at("/data/since"), old.size);
    }
    for (since, status) in [("1000000", 400), ("-1", 400), ("x", 400), ("", 400), ("0", 200)] {
        let answer = gateway.get(&who, &format!("/v1/audit/checkpoint?since={since}")).await;
        assert_eq!(answer.status.as_u16(), status, "{since}: {}", answer.text);
    }
    let blind = gateway.service(&who.org, "mcps:invoke");
    has!(gateway.get(&blind, "/v1/audit/checkpoint").await, 403 "insufficient_scope");

    // A start tells how much of the log there was.
    let who = tenant(&gateway);
    let keys = keys(&gateway, &who.org);
    invoke(&gateway, &who).await;
    let before = checkpoint(&gateway, &who, &keys).await;
    gateway.stop();

    gateway.start();

    let event = &wait_for_events(&gateway, &who, "system.started").await[0];
    let size = event["detached"]["log"]["size"].as_u64().unwrap();
    assert!(size >= before.size, "{size} of {}", before.size);
    assert!(event["commitments"]["log"].is_string());
}

/// Asks for the checkpoint of now, and checks that it continues this one.
async fn assert_continued(gateway: &Gateway, who: &Principal, old: &Checkpoint) -> Answer {
    let path = format!("/v1/audit/checkpoint?since={}", old.size);
    let answer = gateway.get(who, &path).await;
    let data = answer.at("/data");
    let keys = keys(gateway, &who.org);
    let (new, _) = Checkpoint::open(data["checkpoint"].as_str().unwrap(), &keys).unwrap();
    let hashes = data["consistency"].as_array().unwrap();
    let hashes: Vec<_> = hashes.iter().map(|it| hash_of(it.as_str().unwrap()).unwrap()).collect();
    assert!(is_consistent(old.size, &old.root, new.size, &new.root, &hashes), "{path}");
    answer
}

/// An event that tells of what was done to the log.
fn pruned(org: OrgId) -> NewEvent {
    let id: EventId = "evt_01M7W9Y2TK0000000000000009".parse().unwrap();
    let core = json!({
        "id": id, "org_id": org, "request": null, "target": null, "type": "audit.pruned",
    });
    NewEvent {
        id,
        org_id: org,
        kind: "audit.pruned".into(),
        occurred_at: Timestamp::from_micros(1_795_172_535_123_000),
        actor_id: None,
        via: None,
        token_id: None,
        decision: None,
        dlp_result: None,
        outcome: None,
        request_id: None,
        texts: EventTexts::default().with(TextColumn::Core, &canonical(&core)),
        has_payload: false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn younger_proofs_hold_when_the_beginning_of_the_log_is_gone() {
    let (gateway, who) = start();
    let keys = keys(&gateway, &who.org);
    let old = invoke(&gateway, &who).await;
    let erased = invoke(&gateway, &who).await;
    let pinned = checkpoint(&gateway, &who, &keys).await;
    let org: OrgId = who.org.parse().unwrap();
    let erase = ["audit", "erase", "--org", &who.org, "--event", &erased, "--reason", "asked for"];
    assert_eq!(gateway.admin(&erase)["erased"], 1);
    let without = event(&gateway, &who, &erased).await;
    let proven = proof(&gateway, &who, &erased).await;
    let proven = verify_event(without, &proven.text, &keys).unwrap();
    assert_eq!((proven.values_proven, proven.values_unproven), (0, 0), "{proven:?}");

    let store = store(&gateway).await;
    let events = store.indexed_events(org, 0, i64::MAX).await.unwrap().events;
    let events = events.into_iter().map(|it| {
        let [id, ..] = it.columns.texts;
        OldEvent { position: it.positions.0, id: id.unwrap() }
    });
    let all = OldEvents { events: events.collect(), ..OldEvents::default() };
    let pruned = store.prune(org, &all, |_| pruned(org)).await.unwrap().unwrap();

    assert!(pruned.events() >= 2, "{pruned:?}");
    assert_eq!(proof(&gateway, &who, &old).await.status, 404);
    let young = invoke(&gateway, &who).await;
    let answer = proof(&gateway, &who, &young).await;
    verify_event(event(&gateway, &who, &young).await, &answer.text, &keys).unwrap();
    assert_continued(&gateway, &who, &pinned).await;
    let list = gateway.get(&who, "/v1/audit/events?order=asc").await;
    assert_eq!(list.at("/data/items/0/sequence"), pruned.size, "{}", list.text);
}
