//! Tasks of providers: calls that their servers go on with, judged and recorded until their end.

use super::{EXTENSION, about, call_as, error, id_of, status, tasks};
use crate::{mcp::own, prelude::*};

pub(super) const EXPOSED: &str = "expose = [\"tools\", \"tasks\"]";
const KEY: &str = "AKIAIOSFODNN7EXAMPLX";

pub(super) const POLICIES: &str = r#"
@id("all") permit (principal, action in Mcp::Action::"*:*", resource);
@id("mask-mail") @phase("response") @redact("output: email")
forbid (principal, action in Mcp::Action::"*:*", resource)
when { context has dlp_output && context.dlp_output.findings.contains("email") };
@id("no-keys") @phase("response")
forbid (principal, action in Mcp::Action::"*:*", resource)
when { context has dlp_output && context.dlp_output.findings.contains("aws_access_key") };
"#;

/// Answer of a server about a task.
pub(super) fn task_state(id: &str, status: &str, more: &Value) -> String {
    let mut told = json!({
        "resultType": "complete", "taskId": id, "status": status,
        "createdAt": "2026-11-30T00:00:00Z", "lastUpdatedAt": "2026-11-30T00:00:01Z",
        "ttlMs": null, "pollIntervalMs": 1,
    });
    let members = told.as_object_mut().expect("members");
    members.extend(more.as_object().expect("members").clone());
    told.to_string()
}

/// A tool whose calls become a task, and the steps of that.
pub(super) fn job(name: &str, steps: &[(&str, Value)]) -> [HostileTool; 4] {
    let begun =
        task_state(name, "working", &json!({"resultType": "task", "result": {"content": []}}));
    let steps = steps.iter().map(|(status, more)| task_state(name, status, more)).collect();
    let taken = || Script::Result(json!({"resultType": "complete", "taskId": "x"}).to_string());
    [
        tool(name, Script::Result(begun)),
        tool(&format!("#{name}"), Script::Steps(steps)),
        tool(&format!("update#{name}"), taken()),
        tool(&format!("cancel#{name}"), taken()),
    ]
}

pub(super) fn done(text: &str) -> Value {
    json!({"result": {"content": [{"type": "text", "text": text}]}})
}

pub(super) fn asking(message: &str) -> Value {
    let params =
        json!({"message": message, "requestedSchema": {"type": "object", "properties": {}}});
    json!({"inputRequests": {"q": {"method": "elicitation/create", "params": params}}})
}

pub(super) async fn serving(jobs: Vec<[HostileTool; 4]>) -> Scene {
    let tools = jobs.into_iter().flatten().collect();
    scene_with(tools, EXPOSED, |builder| builder.policies(POLICIES)).await
}

pub(super) async fn begin(scene: &Scene, name: &str, input: Value) -> Answer {
    call_as(&scene.gateway, &scene.who, "/mcp/up", name, input, &tasks()).await
}

async fn get(scene: &Scene, id: &str) -> Answer {
    about(&scene.gateway, &scene.who, "/mcp/up", "tasks/get", id).await
}

/// Asks about a task with further members.
pub(super) async fn ask_with(
    scene: &Scene,
    method: &str,
    id: &str,
    more: &Value,
    declared: &Value,
) -> Answer {
    let mut params = json!({
        "taskId": id, "_meta": {"io.modelcontextprotocol/clientCapabilities": declared},
    });
    params.as_object_mut().expect("members").extend(more.as_object().expect("members").clone());
    let request = super::modern(&scene.gateway, &scene.who, "/mcp/up", method, &params);
    scene.gateway.send(request.header("mcp-name", id)).await
}

pub(super) async fn ended(scene: &Scene) -> Vec<Value> {
    list_of(&scene.gateway, &scene.who, "mcp.task_ended", "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_on_as_a_task_whose_end_is_told_once_and_kept() {
    let steps = [("working", json!({"statusMessage": "Half."})), ("completed", done("Done."))];
    let scene = serving(vec![job("report", &steps)]).await;
    for (path, name) in [("/mcp", "up__report"), ("/mcp/up", "report")] {
        scene.upstream.forget();
        let (gateway, who) = (&scene.gateway, &scene.who);
        let task = call_as(gateway, who, path, name, json!({"n": 7}), &tasks()).await;

        has!(task, 200, "/result/resultType": "task", "/result/status": "working",
            "/result/ttlMs": 24 * 60 * 60 * 1_000, "/result/pollIntervalMs": 500);
        let id = id_of(&task);
        assert!(id.starts_with("ptk_") && !task.text.contains("\"result\":{\"content"), "{id}");
        let call = own(&task, "governance")["audit_event_id"].as_str().expect("an event");
        let seen = scene.upstream.calls();
        let declared = "/params/_meta/io.modelcontextprotocol~1clientCapabilities/extensions";
        assert_eq!(seen[0].message.pointer(declared), Some(&json!({ (EXTENSION): {} })));
        has!(scene.gateway.event(who, call).await.at("/data"), "/outcome/status": "task",
            "/outcome/executed": "yes", "/outcome/http_status": 200, "/target/id": "up:report");

        let working = about(gateway, who, path, "tasks/get", &id).await;
        has!(working, 200, "/result/status": "working", "/result/statusMessage": "Half.",
            "/result/resultType": "complete", "/result/taskId": id.as_str(),
            "/result/lastUpdatedAt": "2026-11-30T00:00:01.000Z");
        assert!(ended(&scene).await.iter().all(|it| it["call"] != *call));

        for round in 0..2 {
            let done = about(gateway, who, path, "tasks/get", &id).await;
            has!("{round}"; done, 200, "/result/status": "completed", "/result/taskId": id.as_str(),
                "/result/result/content/0/text": "Done.",
                "/result/result/_meta/dev.portcullis~1governance/decision": "allow");
            assert!(!done.text.contains("disposition"), "{}", done.text);
        }
        let ends = ended(&scene).await;
        let ends: Vec<_> = ends.iter().filter(|it| it["call"] == *call).collect();
        assert_eq!(ends.len(), 1, "{ends:#?}");
        has!(ends[0], "/outcome/status": "success", "/target/id": "up:report",
            "/governance/decision": "allow");
        // The answer is kept: its server is not asked again.
        let asked: Vec<_> = scene.upstream.calls().iter().map(|it| it.tool.clone()).collect();
        assert_eq!(asked, ["report", "#report", "#report"]);
        assert_eq!(scene.upstream.calls()[1].headers["mcp-name"], "report");
        let taken = about(gateway, who, path, "tasks/cancel", &id).await;
        has!(taken, 200, "/result/resultType": "complete");
        assert_eq!(scene.upstream.calls().len(), 3);
    }
    assert_eq!(list_of(&scene.gateway, &scene.who, "mcp.replayed", "").await.len(), 2);
}

/// Name, status and further members that the server tells, status that the caller is told, a place and what stands there,
/// outcome of the end if it is one.
const STATES: &str = r#"
fine      | completed      | {"result": {"content": [{"type": "text", "text": "x"}]}} | completed | /result/result/content/0/text | "x" | success
sick      | completed      | {"result": {"content": [], "isError": true}} | completed | /result/result/isError | true | tool_error
mail      | completed      | {"result": {"content": [{"type": "text", "text": "MAIL"}]}} | completed | /result/result/content/0/text | "[REDACTED:email]" | success
leak      | completed      | {"result": {"content": [{"type": "text", "text": "KEY"}]}} | completed | /result/result/isError | true | denied
fail      | failed         | {"error": {"code": -32603, "message": "It broke.", "data": "KEY"}} | failed | /result/error/code | -32603 | upstream_error
fail_leak | failed         | {"error": {"code": -32603, "message": "KEY"}} | failed | /result/error/code | -32603 | upstream_error
gone      | cancelled      | {} | cancelled | /result/result | null | upstream_error
word      | working        | {"statusMessage": "MAIL"} | working | /result/statusMessage | "[REDACTED:email]" |
word_leak | working        | {"statusMessage": "KEY"} | working | /result/statusMessage | null |
asks      | input_required | {"inputRequests": {"q": {"method": "elicitation/create", "params": {"message": "MAIL"}}}} | input_required | /result/inputRequests/q/params/message | "[REDACTED:email]" |
asks_leak | input_required | {"inputRequests": {"q": {"method": "elicitation/create", "params": {"message": "KEY"}}}} | | /error/code | 403 |
asks_more | input_required | {"inputRequests": {"q": {"method": "sampling/createMessage", "params": {"maxTokens": 5}}}} | | /error/code | -32021 |
none      | input_required | {"inputRequests": {}} | | /error/code | 502 |
odd       | paused         | {} | | /error/code | 502 |
empty     | completed      | {} | completed | /result/result/isError | true | upstream_error
other     | working        | {"taskId": "another"} | | /error/code | 502 |
"#;

/// The columns of each row.
fn states() -> impl Iterator<Item = [String; 7]> {
    let rows = STATES.replace("MAIL", "ada@acme.example").replace("KEY", KEY);
    let rows: Vec<_> = rows.lines().filter(|row| !row.is_empty()).map(str::to_owned).collect();
    rows.into_iter().map(|row| {
        let columns: Vec<_> = row.split('|').map(|it| it.trim().to_owned()).collect();
        columns.try_into().expect("seven columns")
    })
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_tells_of_a_task_is_judged_as_an_answer() {
    let jobs = states().map(|[name, status, more, ..]| job(&name, &[(&status, read(&more))]));
    let scene = serving(jobs.collect()).await;
    let declared = json!({"extensions": {(EXTENSION): {}}, "elicitation": {}});
    for [name, _, _, wanted, pointer, value, outcome] in states() {
        let (pointer, value) = (pointer.as_str(), read(&value));
        let id = id_of(&begin(&scene, &name, json!({})).await);
        let before = ended(&scene).await.len();

        let answer = ask_with(&scene, "tasks/get", &id, &json!({}), &declared).await;

        assert!(!answer.text.contains(KEY) && !answer.text.contains("ada@"), "{}", answer.text);
        assert_eq!(answer.at(pointer), &value, "{name}: {}", answer.text);
        let told = answer.at("/result/status").as_str().unwrap_or_default();
        assert_eq!(told, wanted, "{name}: {}", answer.text);
        let ends = ended(&scene).await;
        assert_eq!(ends.len() - before, usize::from(!outcome.is_empty()), "{name}");
        if let Some(end) = ends.last().filter(|_| !outcome.is_empty()) {
            assert_eq!(end["outcome"]["status"], outcome, "{name}");
            assert!(!end.to_string().contains(KEY), "{name}");
        }
        let again = ask_with(&scene, "tasks/get", &id, &json!({}), &declared).await;
        assert_eq!(again.at(pointer), &value, "{name}: {}", again.text);
        assert_eq!(again.at("/result/status"), answer.at("/result/status"), "{name}");
    }
    // What was masked or asked is recorded once, what is withheld each time.
    let calls = list(&scene.gateway, &scene.who, "").await;
    let told = calls.iter().filter(|it| it["detached"]["method"] == "tasks/get");
    let told: Vec<_> =
        told.map(|it| (it["outcome"]["status"].as_str().unwrap(), &it["governance"])).collect();
    let statuses: Vec<_> = told.iter().map(|it| it.0).collect();
    assert_eq!(statuses, ["task", "input_required", "denied", "denied"]);
    assert_eq!(told[0].1["dlp_result"], "redacted");
    assert_eq!(told[2].1["policy"], "no-keys");
    let failed = begin(&scene, "fail", json!({})).await;
    let failed = get(&scene, &id_of(&failed)).await;
    assert!(failed.at("/result/error/message").as_str().expect("words").contains("It broke."));
    assert!(failed.at("/result/result").is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_a_task_and_its_end_by_the_caller_are_calls_in_the_log() {
    let scene = serving(vec![job("asks", &[("input_required", asking("Which?"))])]).await;
    let task = begin(&scene, "asks", json!({"n": 1})).await;
    let (id, call) = (id_of(&task), own(&task, "governance")["audit_event_id"].clone());
    let answering = |text: &str| {
        let content = json!({"action": "accept", "content": {"which": text}});
        json!({"inputResponses": {"q": content, "unknown": {}}})
    };
    let update = async |more: Value| ask_with(&scene, "tasks/update", &id, &more, &tasks()).await;

    let refused = update(answering(KEY)).await;
    assert_eq!(error(&refused), (200, 403), "{}", refused.text);
    assert!(!refused.text.contains(KEY));
    let many: serde_json::Map<_, _> = (0..17).map(|n| (n.to_string(), json!({}))).collect();
    for wrong in [
        json!({}),
        json!({"inputResponses": []}),
        json!({"inputResponses": {"q": "x"}}),
        json!({ "inputResponses": many }),
    ] {
        assert_eq!(error(&update(wrong.clone()).await), (400, -32602), "{wrong}");
    }
    has!(update(json!({"inputResponses": {}})).await, 200, "/result/resultType": "complete");
    assert_eq!(scene.upstream.calls().len(), 1);

    has!(update(answering("blue")).await, 200, "/result/resultType": "complete");
    has!(ask_with(&scene, "tasks/cancel", &id, &json!({}), &tasks()).await, 200,
        "/result/resultType": "complete", "/result/taskId": Value::Null);
    let seen = scene.upstream.calls();
    let asked: Vec<_> = seen.iter().map(|it| it.tool.as_str()).collect();
    assert_eq!(asked, ["asks", "update#asks", "cancel#asks"]);
    has!(seen[1].message, "/params/inputResponses/q/content/which": "blue",
        "/params/taskId": "asks", "/params/arguments": Value::Null, "/params/name": Value::Null);
    let calls = list(&scene.gateway, &scene.who, "").await;
    let told: Vec<_> = calls.iter().map(|it| it["outcome"]["status"].as_str().unwrap()).collect();
    assert_eq!(told, ["task", "denied", "success", "success"]);
    for (event, method) in calls[1..].iter().zip(["tasks/update", "tasks/update", "tasks/cancel"]) {
        has!("{method}"; event, "/detached/method": method, "/target/id": "up:asks", "/call": call.clone());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_a_provider_is_of_its_caller_address_and_time() {
    let working = [("working", json!({}))];
    let short = task_state("short", "working", &json!({"resultType": "task", "ttlMs": 300}));
    let mut jobs = vec![job("report", &working), job("short", &working)];
    jobs[1][0] = tool("short", Script::Result(short));
    let scene = serving(jobs).await;
    let gateway = &scene.gateway;
    let id = id_of(&begin(&scene, "report", json!({})).await);
    let task = begin(&scene, "short", json!({})).await;
    let call = own(&task, "governance")["audit_event_id"].clone();
    has!(task, 200, "/result/ttlMs": 300);
    let sibling = gateway.service(&scene.who.org, "mcps:invoke");
    let stranger = gateway.service(&gateway.org("other", &ENOUGH), "mcps:read mcps:invoke");
    let poor = gateway.service(&scene.who.org, "mcps:read");
    scene.upstream.forget();

    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        for who in [&sibling, &stranger] {
            let answer = about(gateway, who, "/mcp/up", method, &id).await;
            assert_eq!(error(&answer), (400, -32602), "{method}: {}", answer.text);
        }
        has!("{method}"; about(gateway, &poor, "/mcp/up", method, &id).await, 403);
        let undeclared = ask_with(&scene, method, &id, &json!({}), &json!({})).await;
        assert_eq!(error(&undeclared), (400, -32021), "{method}");
    }
    let flipped = |at: usize| {
        let mut bytes = id.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).expect("ASCII")
    };
    let mut forged: Vec<String> = (0..id.len()).step_by(5).map(flipped).collect();
    forged.extend([id.replacen("ptk_", "tsk_", 1), "ptk_".to_owned(), "report".to_owned()]);
    for id in forged {
        assert_eq!(error(&get(&scene, &id).await), (400, -32602), "{id}");
    }
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(error(&get(&scene, &id_of(&task)).await), (400, -32602));
    assert!(scene.upstream.calls().is_empty());

    // Its time is over.
    let admin = gateway.user(&scene.who.org, "admin", ALL_SCOPES);
    let ends = wait_for_events(gateway, &admin, "mcp.task_ended").await;
    assert_eq!(ends.len(), 1);
    has!(ends[0], "/call": call, "/outcome/status": "unknown", "/actor/type": "system",
        "/target/id": "up:short");
    assert_eq!(
        store(gateway).await.overdue_provider_tasks(now(gateway).await, 9).await.unwrap(),
        []
    );
    has!(get(&scene, &id).await, 200, "/result/status": "working");
    assert!(ended(&scene).await.is_empty(), "the caller has none of them");
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_of_now_decide_about_a_task_of_before() {
    let scene = serving(vec![job("report", &[("completed", done("x"))])]).await;
    let id = id_of(&begin(&scene, "report", json!({})).await);
    let forbid = r#"@id("no") @reason("Not now") forbid (principal, action, resource);"#;
    let write = |text: &str| {
        fs::write(scene.gateway.folder().join("policies/test.cedar"), text).expect("a policy file");
        scene.gateway.hang_up();
    };
    write(&format!("{POLICIES}{forbid}"));
    let is_denied = |it: &Answer| own(it, "error")["code"] == "policy_denied";
    until(|| begin(&scene, "report", json!({})), is_denied).await;
    scene.upstream.forget();

    let refused = get(&scene, &id).await;

    assert_eq!(error(&refused).1, 403, "{}", refused.text);
    assert!(scene.upstream.count("#report") == 0 && ended(&scene).await.is_empty());
    let denied = list(&scene.gateway, &scene.who, "outcome=denied").await;
    has!(denied.last().expect("an event"), "/detached/method": "tasks/get", "/governance/policy": "no");
    write(POLICIES);
    let done = until(|| get(&scene, &id), |it| it.at("/result").is_object()).await;
    assert_eq!(status(&done), "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_ask_at_once_are_told_one_end() {
    let scene = serving(vec![job("report", &[("completed", done("x"))])]).await;
    for _ in 0..4 {
        let id = id_of(&begin(&scene, "report", json!({})).await);
        let before = ended(&scene).await.len();
        let answers = join_all((0..16).map(|_| get(&scene, &id))).await;
        for answer in &answers {
            assert!(["working", "completed"].contains(&status(answer)), "{}", answer.text);
            let told = answer.at("/result/result/content/0/text");
            assert_eq!(told == "x", status(answer) == "completed", "{}", answer.text);
        }
        assert!(answers.iter().any(|answer| status(answer) == "completed"));
        assert_eq!(ended(&scene).await.len() - before, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_pass_only_where_they_are_exposed_and_only_small_calls_become_one() {
    let required = json!({"requiredCapabilities": {"extensions": {(EXTENSION): {}}}});
    let error_of = json!({"jsonrpc": "2.0", "id": "{id}", "error": {
        "code": -32021, "message": "Declare tasks.", "data": required}});
    let body = error_of.to_string().replace("\"{id}\"", "{id}");
    let tools = || {
        let needs = tool("needs", Script::Typed("application/json", body.clone()));
        job("report", &[("working", json!({}))]).into_iter().chain([needs]).collect()
    };
    let scene = scene_with(tools(), EXPOSED, |builder| builder).await;
    let (gateway, who) = (&scene.gateway, &scene.who);
    let refused = call_as(gateway, who, "/mcp/up", "needs", json!({}), &json!({})).await;
    assert_eq!(error(&refused), (400, -32021), "{}", refused.text);
    assert_eq!(refused.at("/error/data/requiredCapabilities"), &required["requiredCapabilities"]);
    let large = json!({"text": "x".repeat(70_000)});
    let refused = begin(&scene, "report", large).await;
    has!(own(&refused, "error"), "/details/reason": "interaction_required");

    let closed = scene_with(tools(), "", |builder| builder).await;
    for name in ["report", "needs"] {
        let refused = begin(&closed, name, json!({})).await;
        has!("{name}"; own(&refused, "error"), "/details/reason": "interaction_required");
        assert!(!closed.upstream.calls().last().expect("a call").body.contains(EXTENSION));
    }
}
