//! The fault table on PostgreSQL: intent and outcome, each with the idempotency key in the same
//! transaction; the seal, which is signed in the same transaction; the word that an export is
//! ready. Each not done, and done while the word of it was lost.

use portcullis_testkit::{Fault, PostgresWire};

use super::assert_unrecorded;
use crate::{audit_log::keys, prelude::*};

const INTENT: &str = "INSERT INTO audit_intents";
const OUTCOME: &str = "WITH ended AS";
const SEAL: &str = "UPDATE audit_heads SET size";
const CHECKPOINT: &str = "INSERT INTO audit_checkpoints";
const READY: &str = "UPDATE exports SET status = 'ready'";

struct PostgresScene {
    gateway: Gateway,
    upstream: Hostile,
    who: Principal,
    wire: PostgresWire,
    _database: PostgresDatabase,
}

async fn wired() -> Option<PostgresScene> {
    let database = PostgresDatabase::create("faults")?;
    let wire = PostgresWire::to(&database).await;
    let done = json!({"content": [], "structuredContent": {"canary": "result"}}).to_string();
    let upstream = Hostile::start(vec![tool("held", Script::Held(done))]).await;
    let builder = gateway().http("up", &upstream.url(), "").config(&wire.config(&database));
    let (gateway, who) = serve_as("mcps:invoke audit:read audit:export", builder);
    Some(PostgresScene { gateway, upstream, who, wire, _database: database })
}

impl PostgresScene {
    async fn keyed(&self) -> Answer {
        self.gateway.invoke_keyed(&self.who, "up:held", "k", &json!({})).await
    }

    /// A call without a key; it may meet a wire that is being mended.
    async fn call(&self) -> Answer {
        let call = || self.gateway.invoke(&self.who, "up:held", json!({}));
        until(call, |it| it.status == 200).await
    }

    /// The id of an export of everything, once it is ready.
    async fn export(&self) -> String {
        let ask = || self.gateway.post(&self.who, "/v1/audit/export", "{}");
        let asked = until(ask, |it| it.status == 200 || it.status == 202).await;
        let id = asked.at("/data/id").as_str().unwrap().to_owned();
        let path = format!("/v1/audit/exports/{id}");
        let ready = |it: &Answer| it.at("/data/status") == "ready";
        until(|| self.gateway.get(&self.who, &path), ready).await;
        id
    }

    async fn file(&self, export: &str) -> String {
        let path = format!("/v1/audit/exports/{export}/file");
        until(|| self.gateway.get(&self.who, &path), |it| it.status == 200).await.text
    }

    /// A call whose transaction meets the fault.
    async fn struck(&self, statement: &'static str, fault: Fault) -> Answer {
        let answer = if statement == INTENT {
            self.wire.strike(statement, fault);
            self.upstream.release();
            self.keyed().await
        } else {
            let ending = async {
                self.upstream.wait_for(1).await;
                self.wire.strike(statement, fault);
                self.upstream.release();
            };
            tokio::join!(self.keyed(), ending).0
        };
        assert!(self.wire.has_struck(), "the fault was not met: {}", answer.text);
        answer
    }

    /// Outcomes of all calls but for those that had to wait, in order, also after one more start;
    /// there are `wanted`.
    async fn outcomes(&mut self, wanted: usize) -> Vec<Value> {
        let enough = async || (self.settled().await.len() >= wanted).then_some(());
        eventually("an event for each call", enough).await;
        self.gateway.kill();
        self.gateway.start();
        self.settled().await
    }

    async fn settled(&self) -> Vec<Value> {
        let events = list(&self.gateway, &self.who, "").await;
        let outcomes = events.iter().map(|event| event["outcome"].clone());
        outcomes.filter(|it| it["http_status"] != 409).collect()
    }
}

fn outcome(status: &str, http_status: u16, executed: &str) -> Value {
    let code = if http_status == 200 { Value::Null } else { json!("unavailable") };
    json!({
        "status": status, "http_status": http_status, "error_code": code, "executed": executed,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_intent_that_fails_or_seems_to_sends_nothing_and_leaves_the_key_free() {
    for fault in [Fault::NotDone, Fault::ReplyLost, Fault::Silence] {
        let Some(mut scene) = wired().await else { return };

        let refused = scene.struck(INTENT, fault).await;
        let again = until(|| scene.keyed(), |it| it.status == 200).await;

        assert_unrecorded(&refused, "no");
        assert_eq!(again.header("idempotency-replayed"), "", "{fault:?}");
        assert_eq!(scene.upstream.calls().len(), 1, "{fault:?}");
        let mut outcomes = scene.outcomes(2).await;
        outcomes.sort_by_key(|it| it["http_status"].as_u64());
        // While the wire is silent, further calls are refused.
        outcomes.dedup();
        let told = [outcome("success", 200, "yes"), outcome("unavailable", 503, "no")];
        assert_eq!(outcomes, told, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_fails_is_recorded_later_and_its_key_says_so() {
    let Some(mut scene) = wired().await else { return };

    let refused = scene.struck(OUTCOME, Fault::NotDone).await;
    let again = until(|| scene.keyed(), |it| it.code() != "idempotency_in_progress").await;

    assert_unrecorded(&refused, "yes");
    has!(again, 503 "unavailable", "/error/details/executed": "yes");
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(scene.upstream.calls().len(), 1);
    assert_eq!(scene.outcomes(1).await, [outcome("unavailable", 503, "yes")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_is_recorded_while_the_word_of_it_is_lost_is_not_recorded_twice() {
    let Some(mut scene) = wired().await else { return };

    let refused = scene.struck(OUTCOME, Fault::ReplyLost).await;
    let again = scene.keyed().await;

    assert_unrecorded(&refused, "yes");
    has!(again, 200, "/result/canary": "result");
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(scene.upstream.calls().len(), 1);
    assert_eq!(scene.outcomes(1).await, [outcome("success", 200, "yes")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seal_that_fails_or_seems_to_is_made_once() {
    for statement in [SEAL, CHECKPOINT] {
        for fault in [Fault::NotDone, Fault::ReplyLost, Fault::Silence] {
            let Some(scene) = wired().await else { return };
            scene.upstream.release();
            scene.wire.strike(statement, fault);

            let called = scene.call().await;
            let path = format!("/v1/audit/events/{}/proof", called.event_id());
            let proof = || scene.gateway.get(&scene.who, &path);
            let proven = until(proof, |it| it.status == 200 && scene.wire.has_struck()).await;

            assert!(proven.text.contains("c2sp.org/tlog-proof"), "{}", proven.text);
            let later = scene.call().await;
            let path = format!("/v1/audit/events/{}/proof", later.event_id());
            until(|| scene.gateway.get(&scene.who, &path), |it| it.status == 200).await;
            // No place was taken twice and none left out, and what was signed goes on.
            let export = scene.export().await;
            let file = scene.gateway.folder().join("export.jsonl");
            fs::write(&file, scene.file(&export).await).unwrap();
            let key = keys(&scene.gateway, &scene.who.org)[0].to_string();
            // Panics when it refuses.
            scene.gateway.run(&["audit", "verify", file.to_str().unwrap(), "--key", &key]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_whose_end_fails_or_seems_to_is_ready_all_the_same() {
    for fault in [Fault::NotDone, Fault::ReplyLost] {
        let Some(scene) = wired().await else { return };
        scene.upstream.release();
        scene.call().await;
        scene.wire.strike(READY, fault);

        let export = scene.export().await;

        assert!(scene.wire.has_struck(), "the fault was not met");
        assert!(!scene.file(&export).await.is_empty(), "{fault:?}");
        let page = "/v1/audit/events?type=audit.exported";
        let told = scene.gateway.get(&scene.who, page).await;
        assert_eq!(told.at("/data/items").as_array().map(Vec::len), Some(1), "{fault:?}");
    }
}
