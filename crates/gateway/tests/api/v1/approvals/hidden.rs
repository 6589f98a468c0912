//! Invisible characters, in calls that people approve.

use super::{Waiting, approval_of};
use crate::prelude::*;

/// A half of a payment that only the tool would read.
const SMUGGLED: &str = "Pay 10 to DE89\u{e0061}\u{e006e}\u{e0064}\u{e0020}\u{e0039}\u{e007f}";

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_hidden_characters_is_denied_and_one_with_a_joiner_is_shown() {
    // A call with hidden characters is denied and nobody is asked.
    let it = Waiting::start().await;
    let ana = it.person("ana", &[]).await;

    for (input, place) in [
        (json!({"note": SMUGGLED}), "`/note`"),
        (json!({"list": [1, {"x": "a\u{1b}[2Kb"}]}), "`/list/1/x`"),
        (json!({"am\u{e0041}ount": 7}), "`/am"),
    ] {
        let answer = it.invoke(&ana, "pay", input.clone()).await;

        assert_eq!(answer.refusal(), (403, "policy_denied"), "{input}: {}", answer.text);
        let details = answer.at("/error/details");
        assert_eq!((&details["policy"], &details["executed"]), (&json!("payouts"), &json!("no")));
        assert!(details.get("approval").is_none(), "{details}");
        let reason = details["reason"].as_str().unwrap();
        assert!(reason.contains("would not see") && reason.contains(place), "{reason}");
        assert_eq!(details["dlp"]["findings"][0]["detector"], "hidden_characters", "{details}");
        assert_eq!(answer.at("/meta/outcome"), "denied", "{}", answer.text);
    }
    let listed = it.gateway.get(&ana, "/v1/approvals").await;
    assert!(items(&listed).is_empty(), "{}", listed.text);
    assert!(it.upstream.calls().is_empty());
    // Without them it is asked for.
    it.ask(&ana, "pay", json!({"note": "Pay 10 to DE89"})).await;

    // A joiner in an emoji is shown and can be approved.
    let family = it.invoke(&ana, "pay", json!({"note": "👨\u{200d}👩"})).await;
    let shown = it.get(&ana, &approval_of(&family)).await;
    has!(shown, "/data/input/note": "👨[U+200D]👩", "/data/findings": []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_policy_lets_people_approve_is_written_out_for_them() {
    let (it, ana, ben) = Waiting::with_two().await;
    let input = json!({"note": SMUGGLED, "k\u{200b}ey": "say [U+E0061]", "mail": "a@acme.example"});

    let id = it.ask(&ana, "write", input.clone()).await;

    let tags = "[U+E0061][U+E006E][U+E0064][U+E0020][U+E0039][U+E007F]";
    let expected = json!({
        "note": format!("Pay 10 to DE89{tags}"), "k[U+200B]ey": "say [U+005B]U+E0061]",
        "mail": "a@acme.example",
    });
    let shown = it.get(&ben, &id).await;
    has!(shown, "/data/input": expected, "/data/terms/hidden": true);
    let found = shown.at("/data/findings").as_array().expect("findings");
    let finding = |detector: &str| found.iter().find(|it| it["detector"] == detector).cloned();
    let hidden = json!({
        "action": "flag", "count": 1, "detector": "hidden_characters", "path": "/note",
    });
    assert_eq!(finding("hidden_characters"), Some(hidden), "{}", shown.text);
    assert_eq!(finding("email").expect("a finding")["path"], "/mail");
    let listed = it.gateway.get(&ben, "/v1/approvals?status=pending").await;
    assert_eq!(items(&listed)[0]["input"], expected);
    assert_eq!(items(&listed)[0]["findings"], *shown.at("/data/findings"));
    let of_shell = it.gateway.admin(&["approval", "show", &id]);
    assert_eq!(of_shell["input"], expected);
    let printed = run(&it.gateway, &["approval", "show", &id]).await;
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(printed.contains(&format!("DE89{tags}")), "{printed}");
    assert!(printed.contains("say [U+005B]U+E0061]"), "what looks like one differs: {printed}");
    assert!(!printed.contains(|it: char| it as u32 >= 0xE0000 || it == '\u{200b}'), "{printed:?}");

    let digest = shown.at("/data/digest");
    let decided = it.decide(&ben, &id, json!({"decision": "approve", "digest": digest})).await;
    assert_eq!(decided.at("/data/input"), &expected, "{}", decided.text);
    it.invoke(&ana, "write", input.clone()).await.ok();
    let sent: Value = serde_json::from_str(&it.upstream.calls()[0].arguments()).unwrap();
    assert_eq!(sent, input, "the tool is given what was shown");
}
