//! Findings of DLP on the way in and on the way out, their consequences, and that no found value
//! stays anywhere.

mod canary;
mod commands;
mod configured;
mod scanned;

use crate::prelude::*;

/// A made-up token of GitHub's shape, in two pieces so that no scanner takes it for a real one.
const TOKEN: &str = concat!("ghp_", "F4k3F4k3abcdefghijklmnopqrst01234567");
const EMAIL: &str = "canary.person@example.org";
const CARD: &str = "4111 1111 1111 1111";

const WITHHELD: Ending = Ending { executed: "yes", ..DENIED };

const MASK_EMAIL: &str = r#"
@id("all") permit (principal, action, resource);
@id("mask-in") @reason("addresses stay inside") @redact("input: email")
forbid (principal, action in Mcp::Action::"*:*", resource)
when { context.dlp.findings.contains("email") };
@id("mask-out") @reason("addresses stay inside") @phase("response") @redact("output: email")
forbid (principal, action in Mcp::Action::"*:*", resource)
when { context has dlp_output && context.dlp_output.findings.contains("email") };
"#;

/// Detector, path and action of every finding of a stage, as the event has them.
fn findings<'a>(event: &'a Value, stage: &str) -> Vec<[&'a str; 3]> {
    let all = event["governance"]["dlp_findings"].as_array().expect("findings");
    let of_stage = all.iter().filter(|finding| finding["stage"] == stage);
    let members = ["detector", "path", "action"];
    of_stage.map(|it| members.map(|member| it[member].as_str().expect("text"))).collect()
}

/// The details of a refusal that found one token.
fn one_token(stage: &str, path: &str) -> Value {
    let found = json!({"detector": "github_token", "path": path, "count": 1, "action": "block"});
    json!({"stage": stage, "findings": [found]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_on_its_way_in_is_blocked_wherever_it_hides() {
    // A secret on its way in is blocked wherever it hides.
    let scene = scene(vec![tool("echo", Script::Echo)]).await;
    let cases = [
        (json!({"notes": ["x", {"deep": format!("use {TOKEN} now")}]}), "/notes/1/deep"),
        (json!({"a/b~c": TOKEN}), "/a~1b~0c"),
        (json!({TOKEN: 1}), "/[REDACTED:github_token]"),
        (json!({"encoded": base64(TOKEN)}), "/encoded"),
        (json!({"escaped": TOKEN.replace('_', "%5F")}), "/escaped"),
    ];

    for (input, path) in cases {
        let answer = scene.invoke("echo", input).await;

        let event = scene.check(&answer, DENIED).await;
        has!(answer, "/governance/policy": "dlp-default", "/governance/dlp_result": "blocked",
            "/error/details/policy": "dlp-default");
        let told = one_token("input", path);
        assert_eq!(answer.at("/error/details/dlp"), &told, "{}", answer.text);
        assert_eq!(findings(&event, "input"), [["github_token", path, "block"]]);
        assert!(!answer.text.contains(TOKEN), "{}", answer.text);
    }
    assert!(scene.upstream.calls().is_empty());

    // What is only flagged passes unchanged.
    let scene = scene.anew();

    let flagged = scene.invoke("echo", json!({"to": EMAIL})).await;
    let clean = scene.invoke("echo", json!({"to": "nobody"})).await;

    let event = scene.check(&flagged, SUCCESS).await;
    has!(flagged, "/governance/dlp_result": "flagged", "/result/to": EMAIL);
    assert_eq!(findings(&event, "input"), [["email", "/to", "flag"]]);
    assert_eq!(findings(&event, "output"), [["email", "/to", "flag"]]);
    has!(scene.check(&clean, SUCCESS).await, "/governance/dlp_findings": []);
    assert_eq!(clean.at("/governance/dlp_result"), "passed");

    // A card number alone is reported and passes.
    let scene = scene.anew();

    for number in
        ["\"4111111111111111\"", "4111111111111111", "4111111111111111.0", "4.111111111111111E15"]
    {
        let answer = scene.post("echo", &format!("{{\"input\":{{\"value\":{number}}}}}")).await;

        let event = scene.check(&answer, SUCCESS).await;
        assert_eq!(answer.at("/governance/dlp_result"), "flagged", "{}", answer.text);
        for stage in ["input", "output"] {
            assert_eq!(findings(&event, stage), [["card_number_alone", "/value", "flag"]]);
        }
        assert!(answer.at("/result/value").as_str().is_none_or(|it| it == "4111111111111111"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_reads_findings_blocks_in_its_own_name() {
    let policies = r#"
        @id("all") permit (principal, action, resource);
        @id("no-cards") @reason("no card numbers, please")
        forbid (principal, action in Mcp::Action::"*:*", resource)
        when { context.dlp.findings.contains("credit_card") };
        @id("no-addresses-out") @reason("addresses do not leave") @phase("response")
        forbid (principal, action in Mcp::Action::"*:*", resource)
        when { context has dlp_output && context.dlp_output.findings.contains("email") };
    "#;
    let scene = scene_under(policies, vec![tool("echo", Script::Echo)]).await;

    let blocked = scene.invoke("echo", json!({"card": CARD})).await;
    let withheld = scene.invoke("echo", json!({"to": EMAIL})).await;

    scene.check(&blocked, DENIED).await;
    has!(blocked, "/governance/policy": "no-cards", "/governance/dlp_result": "blocked",
        "/error/details/dlp/findings/0/path": "/card");
    let event = scene.check(&withheld, WITHHELD).await;
    has!(withheld, "/governance/policy": "no-addresses-out", "/governance/dlp_result": "blocked",
        "/error/details/reason": "addresses do not leave", "/error/details/dlp/stage": "output");
    assert_eq!(findings(&event, "input"), [["email", "/to", "flag"]]);
    assert_eq!(findings(&event, "output"), [["email", "/to", "block"]]);
    assert!(!withheld.text.contains(EMAIL), "{}", withheld.text);
    assert_eq!(scene.upstream.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn redacted_input_goes_up_masked_if_it_still_fits() {
    let text = json!({"type": "string", "maxLength": 40});
    let narrow =
        json!({"type": "object", "properties": {"to": {"type": "string", "pattern": "@"}}});
    let tools = vec![
        tool("wide", Script::Echo)
            .taking(json!({"type": "object", "properties": {"to": text, "note": text}})),
        tool("narrow", Script::Echo).taking(narrow),
    ];
    let scene = scene_under(MASK_EMAIL, tools).await;

    let sent = scene.invoke("wide", json!({"to": EMAIL, "note": "kept"})).await;
    let stopped = scene.invoke("narrow", json!({"to": EMAIL})).await;

    let event = scene.check(&sent, SUCCESS).await;
    has!(sent, "/governance/dlp_result": "redacted", "/governance/policy": "all");
    assert_eq!(findings(&event, "input"), [["email", "/to", "redact"]]);
    let calls = scene.upstream.calls();
    assert_eq!(calls.len(), 1, "what no longer fits is not sent");
    assert_eq!(calls[0].arguments(), r#"{"to":"[REDACTED:email]","note":"kept"}"#);
    assert!(!calls[0].body.contains(EMAIL), "{}", calls[0].body);
    scene.check(&stopped, DENIED).await;
    has!(stopped, "/governance/policy": "mask-in", "/governance/dlp_result": "blocked");
}

/// Results with something to mask in every place a result has.
fn leaky() -> [(&'static str, Value, Value); 4] {
    let block = |text: &str| json!({"type": "text", "text": text});
    let resource = |text: &str| json!({"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": text}});
    [
        (
            "structured",
            json!({"structuredContent": {
                "rows": [{"note": format!("paid with {CARD}")}, {"card": 4_111_111_111_111_111_u64}],
                TOKEN: "in a key",
                "to": EMAIL,
            }}),
            json!({
                "rows": [{"note": "paid with [REDACTED:credit_card]"}, {"card": "[REDACTED:credit_card]"}],
                "[REDACTED:github_token]": "in a key",
                "to": "[REDACTED:email]",
            }),
        ),
        (
            "block",
            json!({"content": [block(&format!("token {TOKEN}, mail {EMAIL}")), block("clean")]}),
            json!({"content": [
                block("token [REDACTED:github_token], mail [REDACTED:email]"), block("clean"),
            ]}),
        ),
        (
            "resource",
            json!({"content": [resource(&format!("card: {CARD}"))], "structuredContent": [EMAIL]}),
            json!({
                "content": [resource("card: [REDACTED:credit_card]")],
                "structuredContent": ["[REDACTED:email]"],
            }),
        ),
        (
            "error",
            json!({"content": [block(&format!("{EMAIL} is unknown"))], "isError": true}),
            json!({"content": [block("[REDACTED:email] is unknown")], "isError": true}),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_masked_in_every_place() {
    let tools = leaky().iter().map(|(name, result, _)| giving(name, result)).collect();
    let scene = scene_under(MASK_EMAIL, tools).await;

    for (name, _, expected) in leaky() {
        let answer = scene.invoke(name, json!({})).await;

        let outcome = if name == "error" { "tool_error" } else { "success" };
        let event = scene.check(&answer, Ending { outcome, ..SUCCESS }).await;
        has!("{name}"; answer, "/result": expected, "/governance/dlp_result": "redacted");
        let found = findings(&event, "output");
        assert!(!found.is_empty() && found.iter().all(|[.., action]| *action == "redact"));
        assert_clean(&answer, name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_sees_is_taken_out_of_results_and_reported_in_input() {
    let seen = "\u{1b}[31mred\u{1b}[0m \u{1b}]8;;https://x.example\u{7}link\u{1b}]8;;\u{7} a\u{202e}b\u{9b}2Jc\u{7}";
    let result = json!({"structuredContent": {"text": seen, "k\u{200f}ey": "שלום\u{200f}!"}});
    let scene = scene(vec![giving("paints", &result), tool("echo", Script::Echo)]).await;

    let painted = scene.invoke("paints", json!({})).await;
    let sent = scene.invoke("echo", json!({"a": "b\u{1b}[1m"})).await;

    let event = scene.check(&painted, SUCCESS).await;
    let shown = json!({"text": "red link abc", "key": "שלום\u{200f}!"});
    has!(painted, "/result": shown, "/governance/dlp_result": "redacted");
    let masked = ["/text", "/key"].map(|path| ["hidden_characters", path, "redact"]);
    assert_eq!(findings(&event, "output"), masked);
    let event = scene.check(&sent, SUCCESS).await;
    assert_eq!(findings(&event, "input"), [["hidden_characters", "/a", "flag"]]);
    assert_eq!(scene.upstream.calls()[1].arguments(), "{\"a\":\"b\\u001b[1m\"}");
    assert_eq!(sent.at("/result/a"), "b");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_must_not_leave_is_withheld() {
    let result = json!({"structuredContent": {"rows": [{"note": TOKEN}]}});
    let config = "[dlp.actions.output]\nsecret = \"block\"";
    let tools = vec![giving("leak", &result)];
    let scene = scene_with(tools, "", |it| it.config(config)).await;

    let answer = scene.invoke("leak", json!({})).await;

    let event = scene.check(&answer, WITHHELD).await;
    has!(answer, "/governance/policy": "dlp-default", "/governance/dlp_result": "blocked",
        "/error/details/dlp": one_token("output", "/rows/0/note"));
    assert_eq!(findings(&event, "output"), [["github_token", "/rows/0/note", "block"]]);
    assert_clean(&answer, "leak");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mcp_view_is_masked_in_its_meta_too() {
    let block = |blob: &str, claim: &str| {
        json!({"type": "resource",
        "resource": {"uri": "file:///a", "blob": blob, "mimeType": claim}})
    };
    // Whatever type it claims, what is in base64 is text or it is none.
    let content = |texts: [&str; 3]| {
        let [env, note, recording] = texts.map(base64);
        json!([
            block(&env, "text/plain"), block(&note, "image/png"),
            {"type": "audio", "data": recording, "mimeType": "audio/wav"},
            block("iVBORw0KGgoAAAANSUhEUg==", "text/plain"),
        ])
    };
    let env = format!("token = {TOKEN}\n");
    let result = json!({
        "content": content([env.as_str(), "a note", TOKEN]),
        "_meta": {"note": TOKEN, "more": [format!("see {TOKEN}")]},
        "structuredContent": {"a": 1},
    });
    let kept = "[audit]\ncapture = \"redacted\"";
    let scene = scene_with(vec![giving("leak", &result)], "", |it| it.config(kept)).await;
    let path = "/v1/mcps/up:leak/invoke?view=mcp";

    let answer = scene.gateway.post(&scene.who, path, r#"{"input":{}}"#).await;

    let event = scene.check(&answer, SUCCESS).await;
    let masked = json!({
        "content": content(
            ["token = [REDACTED:github_token]\n", "a note", "[REDACTED:github_token]"]
        ),
        "_meta": {"note": "[REDACTED:github_token]", "more": ["see [REDACTED:github_token]"]},
        "structuredContent": {"a": 1},
    });
    assert_eq!([answer.at("/result"), &event["detached"]["output"]], [&masked; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_scanned_does_not_pass() {
    let rows: Vec<u32> = (0..100).collect();
    let tools = vec![
        tool("echo", Script::Echo),
        giving("wide", &json!({"structuredContent": {"rows": rows}})),
    ];
    let scene =
        scene_with(tools, "", |builder| builder.config("[dlp.limits]\nmax_nodes = 50")).await;

    let refused = scene.invoke("echo", json!({ "rows": rows })).await;
    let withheld = scene.invoke("wide", json!({})).await;
    let passed = scene.invoke("echo", json!({"rows": [1]})).await;

    for (answer, ending) in [(&refused, DENIED), (&withheld, WITHHELD)] {
        scene.check(answer, ending).await;
        has!(answer, "/governance/policy": "dlp-default", "/governance/dlp_result": "blocked");
        let reason = answer.at("/error/details/reason").as_str().unwrap_or_default();
        assert!(reason.contains("could not be scanned"), "{reason}");
    }
    scene.check(&passed, SUCCESS).await;
    assert_eq!(scene.upstream.count("echo"), 1);
}

fn assert_clean(answer: &Answer, what: &str) {
    assert_absent(what, &answer.text);
    assert_absent(what, &format!("{:?}", answer.headers));
}

fn assert_absent(what: &str, text: &str) {
    let digits = CARD.replace(' ', "");
    let encoded = base64(TOKEN);
    assert_absent_of(&[TOKEN, EMAIL, CARD, &digits, &encoded, "canary", "hunter2"], what, text);
}

fn assert_absent_of(canaries: &[&str], what: &str, text: &str) {
    for canary in canaries {
        if let Some(at) = text.find(canary) {
            let start = text[..at].char_indices().rev().nth(200).map_or(0, |(index, _)| index);
            panic!("{what} holds {canary}: …{}…", &text[start..at]);
        }
    }
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}
