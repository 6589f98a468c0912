//! Whatever is found stays nowhere: the whole product runs with canaries in every place that a
//! caller, a tool, a server or an operator can fill, and then everything it wrote is searched.

use super::{
    CARD, EMAIL, MASK_EMAIL, TOKEN, assert_absent, assert_absent_of, assert_clean, base64, leaky,
};
use crate::prelude::*;

/// The key that the provider gets, which the operator keeps in a variable.
const PROVIDER_KEY: &str = concat!("sk_live_", "CanaryF4k3F4k3F4k3F4k3F4k3");

/// A token in the form of this gateway that was never issued.
const OWN: &str = concat!("mcp_live_", "0EesofMSwCG8nv7cDAQcRILuT7BcZuvX1rxfbu");

async fn canaries() -> Scene {
    let mut tools: Vec<_> = leaky().iter().map(|(name, result, _)| giving(name, result)).collect();
    tools.push(tool("echo", Script::Echo));
    tools.push(tool("errs", Script::Rpc(-32603)));
    tools.push(tool("fails", Script::Status(500)));
    tools.push(tool("garbles", Script::Body(format!("{{\"{TOKEN}\": "))));
    tools.push(tool("hangs_up", Script::CloseInBody));
    tools.push(tool("chatty", Script::Echo).described(&format!("Use {TOKEN}.")));
    let in_schema = json!({"type": "object", "properties": {TOKEN: {"enum": [CARD]}}});
    tools.push(tool("leaky_schema", Script::Echo).taking(in_schema));
    tools.push(tool(TOKEN, Script::Echo));
    let numbers = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    tools.push(tool("typed", Script::Echo).taking(numbers));
    let closed = json!({"type": "object", "additionalProperties": false});
    tools.push(tool("closed", Script::Echo).taking(closed));
    tools.push(giving("own", &json!({"structuredContent": {"note": format!("use {OWN}")}})));
    let hidden = format!("\u{1b}]0;{TOKEN}\u{7}F4k3\u{1b}[2J\u{202e}");
    tools.push(giving("hidden", &json!({"structuredContent": {hidden.as_str(): hidden}})));
    tools.push(giving("lone", &json!({"structuredContent": {"n": 4_111_111_111_111_111_u64}})));
    let key = "auth = \"api_key\"\napi_key = { env = \"UP_KEY\" }";
    scene_with(tools, key, |builder| {
        let log = "[log]\nlevel = \"trace\"\n[server]\nmetrics_listen = \"127.0.0.1:0\"";
        builder.policies(MASK_EMAIL).config(log).env("UP_KEY", PROVIDER_KEY)
    })
    .await
}

/// Calls whose input, output, errors, path, query, headers and tokens hold canaries.
async fn call_all(scene: &Scene) -> Vec<Answer> {
    let mut answers = Vec::new();
    for (name, ..) in leaky() {
        answers.push(scene.invoke(name, json!({})).await);
    }
    for input in [
        json!({"secret": TOKEN}),
        json!({TOKEN: CARD, EMAIL: [CARD]}),
        json!({"to": EMAIL, "token": {"of": {"depth": base64(TOKEN)}}}),
    ] {
        for name in ["echo", "errs", "fails", "garbles", "hangs_up", "chatty", "typed", "closed"] {
            answers.push(scene.invoke(name, input.clone()).await);
        }
    }
    for name in ["errs", "fails", "garbles", "hangs_up"] {
        answers.push(scene.invoke(name, json!({"to": EMAIL})).await);
    }
    for name in ["own", "hidden"] {
        answers.push(scene.invoke(name, json!({})).await);
    }
    for body in [
        format!("{{\"input\":{{\"a\":\"{TOKEN}\""),
        format!("{{\"input\":\"{TOKEN}\"}}"),
        format!("{{\"input\":{{}},\"{TOKEN}\":1}}"),
    ] {
        answers.push(scene.post("echo", &body).await);
    }
    let gateway = &scene.gateway;
    let path = format!("/v1/mcps/up:echo/invoke?note={TOKEN}");
    let mut call = gateway.json(&scene.who, &path, r#"{"input":{}}"#);
    for name in ["user-agent", "traceparent", "x-forwarded-for", "idempotency-key"] {
        call = call.header(name, TOKEN);
    }
    for name in ["tracestate", "cookie"] {
        call = call.header(name, format!("a={TOKEN}"));
    }
    answers.push(gateway.send(call).await);
    answers.push(gateway.send(gateway.request(Method::GET, "/v1/mcps").bearer_auth(TOKEN)).await);
    answers.push(gateway.get(&scene.who, &format!("/v1/mcps?{TOKEN}=1")).await);
    answers
}

/// Requests of an auditor: simulations of calls with canaries and of recorded calls, and an export
/// with its file.
async fn look_back(scene: &Scene) -> Vec<Answer> {
    let gateway = &scene.gateway;
    let who = gateway.service(&scene.who.org, ALL_SCOPES);
    let one = json!({"tool": "up:echo", "input": {"secret": TOKEN, EMAIL: [CARD, OWN]}});
    let unfit = json!({"tool": "up:typed", "input": {TOKEN: EMAIL}});
    let mut answers = Vec::new();
    for asked in [one, unfit, json!({"replay": {}})] {
        answers.push(gateway.post(&who, "/v1/policies/simulate", &asked.to_string()).await.ok());
    }
    let value = json!({TOKEN: CARD, "to": [EMAIL, OWN]});
    for direction in ["input", "output"] {
        let scan = json!({"value": value, "direction": direction}).to_string();
        let scanned = gateway.post(&who, "/v1/dlp/scan", &scan).await.ok();
        assert!(scanned.text.contains("github_token"), "{}", scanned.text);
    }
    for wrong in [json!({"text": TOKEN, "value": OWN}), json!({"text": OWN, "direction": TOKEN})] {
        let refused = gateway.post(&who, "/v1/dlp/scan", &wrong.to_string()).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        answers.push(refused);
    }
    let export = gateway.post(&who, "/v1/audit/export", "{}").await.ok();
    let id = export.at("/data/id").as_str().expect("an id").to_owned();
    let file = gateway.get(&who, &format!("/v1/audit/exports/{id}/file")).await;
    assert!(file.text.contains("mcp.invocation"), "{}", file.text);
    answers.extend([export, file]);
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn no_found_value_stays_anywhere() {
    let scene = canaries().await;

    let mut answers = call_all(&scene).await;
    has!(scene.invoke("own", json!({})).await, "/result/note": "use [REDACTED:portcullis_token]");
    has!(scene.invoke("echo", json!({"note": OWN})).await, "/governance/dlp_result": "blocked");
    has!(scene.invoke("lone", json!({})).await, "/governance/dlp_result": "flagged");
    answers.extend(look_back(&scene).await);
    // A secret in the place of a tool's name: only its caller is told this path.
    scene.invoke(TOKEN, json!({})).await;

    for answer in &answers {
        assert_clean(answer, "an answer");
        assert_absent_of(&[OWN], "an answer", &answer.text);
    }
    for path in ["/v1/audit/events?limit=200", "/v1/mcps", "/v1/providers", "/v1/policies"] {
        assert_clean(&scene.gateway.get(&scene.who, path).await, path);
    }
    let counted = scene.gateway.metrics().await;
    assert!(counted.contains("portcullis_http_requests_total"), "{counted}");
    let arguments = fs::read(format!("/proc/{}/cmdline", scene.gateway.pid())).expect("arguments");
    let own = [PROVIDER_KEY, OWN, scene.who.token.as_str()];
    for (what, text) in [
        ("the metrics", counted),
        ("the log", scene.gateway.log()),
        ("the arguments", String::from_utf8_lossy(&arguments).into_owned()),
    ] {
        assert_absent(what, &text);
        assert_absent_of(&own, what, &text);
    }
    assert_files_clean(&scene, &own);
}

fn assert_files_clean(scene: &Scene, own: &[&str]) {
    let mut files = Vec::new();
    collect(scene.gateway.folder(), &mut files);
    let name = |file: &Path| file.file_name().expect("a name").to_string_lossy().into_owned();
    let on_sqlite = scene.gateway.database_url().starts_with("sqlite:");
    assert_eq!(files.iter().any(|file| name(file).ends_with("-wal")), on_sqlite, "{files:?}");
    let stored = String::from_utf8_lossy(&scene.gateway.stored()).into_owned();
    assert!(stored.contains(scene.who.token_id.as_str()), "the database is looked into");
    assert_absent("the database", &stored);
    assert_absent_of(own, "the database", &stored);
    for file in files {
        let bytes = fs::read(&file).expect("a readable file");
        let text = String::from_utf8_lossy(&bytes);
        assert_absent(&name(&file), &text);
        assert_absent_of(own, &name(&file), &text);
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}
