//! `POST /v1/dlp/scan`: values that are part of no call.

use super::{CARD, EMAIL, TOKEN, assert_absent};
use crate::prelude::*;

const PATH: &str = "/v1/dlp/scan";
const ALL: &str = "@id(\"all\") permit (principal, action, resource);";

async fn scan(gateway: &Gateway, who: &Principal, body: &Value) -> Answer {
    gateway.post(who, PATH, &body.to_string()).await
}

/// Detector, place and action of each finding.
fn found(answer: &Answer) -> Vec<[String; 3]> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    let findings = answer.at("/data/findings").as_array().unwrap().iter();
    findings.map(|it| ["detector", "path", "action"].map(|name| text(it, name))).collect()
}

/// Number of events of the org, whatever they are about.
async fn events(gateway: &Gateway, who: &Principal) -> usize {
    let answer = gateway.get(who, "/v1/audit/events?limit=200").await.ok();
    answer.at("/data/items").as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_and_a_value_are_told_their_findings_and_masks_and_leave_no_trace() {
    let (gateway, who) = serve(gateway().sample().policies(ALL));
    let before = events(&gateway, &who).await;
    let text = format!("push with {TOKEN}, then pay {CARD}");
    let value = json!({"deep": [{"key": TOKEN}], "n": 1e2, "to": EMAIL});

    let result = scan(&gateway, &who, &json!({"text": text})).await;
    let arguments = scan(&gateway, &who, &json!({"value": value, "direction": "input"})).await;
    let clean = scan(&gateway, &who, &json!({"value": null})).await;

    assert_enveloped(&result, "a scan");
    let there =
        |detector: &str, path: &str, action: &str| [detector, path, action].map(str::to_owned);
    let all = found(&result);
    assert!(all.contains(&there("github_token", "", "redact")), "{all:?}");
    assert!(all.contains(&there("credit_card", "", "redact")), "{all:?}");
    assert_eq!(result.at("/data/dlp_result"), "redacted");
    let masked = result.at("/data/masked").as_str().unwrap();
    assert!(masked.starts_with("push with [REDACTED:github_token], then pay "), "{masked}");
    assert_absent("the answer", &result.text);
    let all = found(&arguments);
    assert!(all.contains(&there("github_token", "/deep/0/key", "block")), "{all:?}");
    assert!(all.contains(&there("email", "/to", "flag")), "{all:?}");
    has!("what is only flagged stays"; arguments, "/data/dlp_result": "blocked",
        "/data/masked/to": EMAIL, "/data/masked/deep/0/key": "[REDACTED:github_token]");
    assert_eq!(found(&clean), Vec::<[String; 3]>::new());
    assert_eq!(clean.at("/data/dlp_result"), "passed");
    assert_eq!(events(&gateway, &who).await, before, "a scan is no event");
    assert_absent("the log", &gateway.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_could_not_be_scanned_for_is_said_and_what_is_too_large_is_refused() {
    let limits = "[dlp.limits]\nmax_bytes = 1000";
    let (gateway, who) = serve(gateway().sample().policies(ALL).config(limits));

    let unscanned = scan(&gateway, &who, &json!({"text": "x".repeat(1001)})).await;
    has!(scan(&gateway, &who, &json!({"text": "x".repeat(1 << 20)})).await, 413);
    has!(scan(&gateway, &who, &json!({"text": "x", "value": 1})).await, 400);

    has!(unscanned, 200, "/data/dlp_result": "blocked");
    assert!(unscanned.at("/data/masked").is_null(), "{}", unscanned.text);
    let reason = unscanned.at("/data/unscanned/reason").as_str().unwrap();
    assert!(reason.contains("longer than the 1000 bytes"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pseudonyms_of_a_scan_tell_nothing_about_those_of_the_org() {
    let mask = "[dlp.masks]\nsecret = \"pseudonym\"";
    let (gateway, who) = serve(gateway().sample().policies(ALL).config(mask));
    let twice = json!({"value": [TOKEN, TOKEN]});

    let one = scan(&gateway, &who, &twice).await;
    let other = scan(&gateway, &who, &twice).await;

    let masked = |answer: &Answer, at: usize| answer.at(&format!("/data/masked/{at}")).clone();
    assert!(masked(&one, 0).as_str().unwrap().starts_with("[github_token:"), "{}", one.text);
    assert_eq!(masked(&one, 0), masked(&one, 1));
    assert_ne!(masked(&one, 0), masked(&other, 0), "a guess can be compared");
    assert!(one.at("/data/findings/0/fingerprints").is_null(), "{}", one.text);
}
