//! Questions of tools (`input_required`): who is asked, what leaves, and who may answer.

mod posing;

use super::{error, modern, own};
use crate::prelude::*;

/// An error of a server that asks only clients that declared to be able to answer.
const INSISTING: &str = r#"{"jsonrpc":"2.0","id":{id},"error":{"code":-32021,"message":"hunter2",
    "data":{"requiredCapabilities":{"sampling":{}}}}}"#;

/// The input of most calls here.
pub(super) const FORM: &str = r#"{"n":1}"#;

/// A result that asks for a name, with a state.
pub(super) fn asking() -> Value {
    json!({"resultType": "input_required", "inputRequests": form("Your name?"), "requestState": "theirs"})
}

fn form(message: &str) -> Value {
    json!({"name": {
        "method": "elicitation/create",
        "params": {
            "mode": "form", "message": message,
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
    }})
}

pub(super) fn answers() -> Value {
    answering("Ada")
}

fn answering(name: &str) -> Value {
    json!({"name": {"action": "accept", "content": {"name": name}}})
}

/// A leg of a call by a client with these capabilities.
pub(super) async fn leg(
    gateway: &Gateway,
    who: &Principal,
    tool: &str,
    declared: &Value,
    input: &str,
    earlier: Option<(&str, Value)>,
) -> Answer {
    let input: Value = serde_json::from_str(input).expect("an object");
    let mut params = json!({
        "name": tool, "arguments": input,
        "_meta": {"io.modelcontextprotocol/clientCapabilities": declared},
    });
    if let Some((state, responses)) = earlier {
        params["requestState"] = json!(state);
        params["inputResponses"] = responses;
    }
    gateway.send(modern(gateway, who, "/mcp/up", "tools/call", &params)).await
}

/// The first leg of a call by a client that can fill in forms.
async fn first_leg(scene: &Scene, tool: &str) -> Answer {
    leg(&scene.gateway, &scene.who, tool, &json!({"elicitation": {}}), FORM, None).await
}

/// A leg that goes on from a state with these responses.
async fn next_leg(scene: &Scene, tool: &str, state: &str, responses: Value) -> Answer {
    let earlier = Some((state, responses));
    leg(&scene.gateway, &scene.who, tool, &json!({"elicitation": {}}), FORM, earlier).await
}

/// The same over REST.
async fn rest_leg(scene: &Scene, tool: &str, interaction: Option<Value>) -> Answer {
    let mut body = json!({"input": {"n": 1}});
    if let Some(interaction) = interaction {
        body["interaction"] = interaction;
    }
    scene.post(tool, &body.to_string()).await
}

fn asks(result: &Value) -> HostileTool {
    tool("asks", Script::Asks(result.to_string()))
}

fn state_of(answer: &Answer) -> String {
    let state = answer.at("/result/requestState").as_str();
    state.unwrap_or_else(|| panic!("no state: {}", answer.text)).to_owned()
}

async fn statuses(scene: &Scene, answer: &Answer) -> (String, String) {
    let request = own(answer, "request_id").as_str().or(answer.at("/meta/request_id").as_str());
    let request = request.unwrap_or_else(|| answer.header("x-request-id")).to_owned();
    let events = events(&scene.gateway, &scene.who, &request).await;
    assert_eq!(events.len(), 1, "{}", answer.text);
    let text =
        |pointer: &str| events[0].pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    (text("/outcome/status").unwrap_or_default(), text("/outcome/executed").unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rest_caller_is_asked_and_answers_in_the_same_call() {
    let without_state = json!({"resultType": "input_required", "inputRequests": form("?")});
    let scene =
        scene(vec![asks(&asking()), tool("bare", Script::Asks(without_state.to_string()))]).await;
    let declared = json!({"capabilities": {"elicitation": {}, "roots": {}}});

    let asked = rest_leg(&scene, "asks", Some(declared)).await;
    scene.check(&asked, Ending { outcome: "input_required", ..SUCCESS }).await;
    assert_eq!(asked.at("/result/interaction/requests"), &form("Your name?"));
    let state = asked.at("/result/interaction/state").clone();
    let again = json!({"state": state, "responses": answers()});
    let done = rest_leg(&scene, "asks", Some(again)).await;

    has!(done, "/result/responses": answers(), "/result/state": "theirs");
    scene.check(&done, SUCCESS).await;
    let meta = "/params/_meta/io.modelcontextprotocol~1clientCapabilities";
    for call in scene.upstream.calls() {
        let declared = json!({"elicitation": {"form": {}}, "roots": {}});
        assert_eq!(call.message.pointer(meta), Some(&declared), "in each leg");
    }
    // A tool that gave no state is given none.
    let asked = rest_leg(&scene, "bare", None).await;
    let state = asked.at("/result/interaction/state").clone();
    let again = json!({"state": state, "responses": answers()});
    has!(rest_leg(&scene, "bare", Some(again)).await, "/meta/outcome": "success");
    let calls = scene.upstream.calls();
    assert_eq!(calls.last().unwrap().message.pointer("/params/requestState"), None);
    assert_eq!(calls[2].message.pointer(meta), Some(&json!({})), "nothing was declared");
    for nothing in [json!(null), json!({"capabilities": null, "state": null, "responses": null})] {
        has!(rest_leg(&scene, "bare", Some(nothing)).await, "/meta/outcome": "input_required");
    }
    for wrong in [
        json!(7),
        json!({"state": 7}),
        json!({"more": 1}),
        json!({"more": null}),
        json!({"capabilities": []}),
    ] {
        has!(rest_leg(&scene, "asks", Some(wrong)).await, 400 "invalid_request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_cannot_answer_is_told_what_was_asked() {
    let url = json!({"method": "elicitation/create", "params": {"mode": "url", "url": "https://a.example"}});
    let asks_url = json!({"resultType": "input_required", "inputRequests": {"open": url}});
    let tools = vec![
        asks(&asking()),
        giving("opens", &asks_url),
        tool("insists", Script::Typed("application/json", INSISTING.to_owned())),
    ];
    let scene = scene(tools).await;
    let gateway = &scene.gateway;
    let who = &scene.who;

    for (tool, declared, required) in [
        ("asks", json!({}), json!({"elicitation": {"form": {}}})),
        ("asks", json!({"sampling": {}}), json!({"elicitation": {"form": {}}})),
        ("insists", json!({}), json!({"sampling": {}})),
        ("opens", json!({"elicitation": {}}), json!({"elicitation": {"url": {}}})),
    ] {
        let answer = leg(gateway, who, tool, &declared, FORM, None).await;

        assert_eq!(error(&answer), (400, -32021), "{}", answer.text);
        assert_eq!(answer.at("/error/data/requiredCapabilities"), &required);
        assert!(!answer.text.contains("hunter2"));
        assert!(!answer.text.contains("Your name?") && !answer.text.contains("a.example"));
        assert_eq!(statuses(&scene, &answer).await.0, "upstream_error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_worth_nothing_elsewhere() {
    let scene =
        scene(vec![asks(&asking()), tool("other", Script::Asks(asking().to_string()))]).await;
    let org = scene.gateway.org("rival", &ENOUGH);
    let stranger = scene.gateway.service(&org, "mcps:read mcps:invoke");
    let gateway = &scene.gateway;
    let who = &scene.who;
    let declared = json!({"elicitation": {}});
    let state = state_of(&first_leg(&scene, "asks").await);
    let changed = |at: usize| {
        let mut bytes = state.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).unwrap()
    };
    let half = &state[..state.len() / 2];
    let calls = scene.upstream.calls().len();

    for state in [&changed(state.len() / 2), half, "theirs", ""] {
        let answer = next_leg(&scene, "asks", state, answers()).await;
        assert_eq!(error(&answer), (400, -32602), "{}", answer.text);
    }
    for (who, tool, input) in
        [(who, "other", FORM), (who, "asks", "{\"n\":2}"), (&stranger, "asks", FORM)]
    {
        let answer = leg(gateway, who, tool, &declared, input, Some((&state, answers()))).await;
        assert_eq!(error(&answer), (400, -32602), "{tool} {input}: {}", answer.text);
    }
    assert_eq!(scene.upstream.calls().len(), calls, "nothing of it was sent");
    let rest =
        rest_leg(&scene, "other", Some(json!({"state": state, "responses": answers()}))).await;
    has!(rest, 400 "invalid_request", "/meta/outcome": "invalid");
    // Its owner still goes on with it.
    has!(next_leg(&scene, "asks", &state, answers()).await, "/result/resultType": "complete");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_can_answer_is_asked_and_answers_to_nothing_are_ignored() {
    // Answers without a state begin the call anew.
    let scene = scene(vec![asks(&asking())]).await;
    let mut params = json!({
        "name": "asks", "arguments": {},
        "_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}},
    });
    for responses in [answers(), json!(7)] {
        params["inputResponses"] = responses;
        let request = modern(&scene.gateway, &scene.who, "/mcp/up", "tools/call", &params);
        has!(scene.gateway.send(request).await, "/result/resultType": "input_required");
    }
    let rest = rest_leg(&scene, "asks", Some(json!({"responses": answers()}))).await;
    assert_eq!(rest.at("/meta/outcome"), "input_required", "{}", rest.text);
    assert!(!scene.upstream.calls().iter().any(|call| call.body.contains("inputResponses")));

    // What was asked has to be answered by an object.
    let scene = scene.anew();
    let state = state_of(&first_leg(&scene, "asks").await);
    for wrong in [json!({"name": 7}), json!([])] {
        let answer = next_leg(&scene, "asks", &state, wrong).await;
        assert_eq!(error(&answer), (400, -32602), "{}", answer.text);
    }

    // A client that can answer is asked and its answers reach the tool.
    let scene = scene.anew();
    let gateway = &scene.gateway;
    let who = &scene.who;
    let declared = json!({"elicitation": {"form": {}}, "extensions": {"a/b": {}}});

    let asked = leg(gateway, who, "asks", &declared, FORM, None).await.ok();

    assert_eq!(asked.at("/result/resultType"), "input_required");
    assert_eq!(asked.at("/result/inputRequests"), &form("Your name?"));
    assert_eq!(own(&asked, "governance")["decision"], "allow");
    assert!(asked.at("/result/content").is_null() && !asked.text.contains("theirs"));
    assert_eq!(statuses(&scene, &asked).await, ("input_required".to_owned(), "yes".to_owned()));
    let sent = &scene.upstream.calls()[0].message;
    let meta = &sent["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(meta, &json!({"elicitation": {"form": {}}}));

    // Answers to nothing are left out, whatever they are.
    let mut answers = answers();
    for (at, other) in
        [json!({"action": "accept"}), json!(7), json!(null), json!([1])].iter().enumerate()
    {
        answers[format!("other-{at}")] = other.clone();
    }
    let done = leg(gateway, who, "asks", &declared, FORM, Some((&state_of(&asked), answers))).await;

    assert_eq!(done.at("/result/resultType"), "complete", "{}", done.text);
    let told = done.at("/result/structuredContent");
    let expected = json!({"responses": self::answers(), "state": "theirs", "arguments": {"n": 1}});
    assert_eq!(told, &expected);
    assert_eq!(statuses(&scene, &done).await, ("success".to_owned(), "yes".to_owned()));
}

const KEY: &str = "AKIAIOSFODNN7EXAMPLX";
const MAIL: &str = "ada@acme.example";
const MASKING: &str = r#"
@id("all") permit (principal, action, resource);
@id("mask-mail") @redact("input: email")
forbid (principal, action == Mcp::Action::"up:asks", resource)
when { context has dlp && context.dlp.findings.contains("email") };
"#;

#[tokio::test(flavor = "multi_thread")]
async fn secrets_leave_neither_with_questions_nor_with_answers() {
    let secret = json!({
        "resultType": "input_required", "requestState": "theirs",
        "inputRequests": form(&format!("Is {KEY} yours?")),
    });
    let tools = vec![asks(&asking()), giving("leaks", &secret)];
    let scene = scene_under(MASKING, tools).await;

    let asked = first_leg(&scene, "leaks").await;
    assert!(!asked.text.contains(KEY), "{}", asked.text);
    let dlp = &own(&asked, "governance")["dlp_result"];
    assert!(dlp == "redacted" || dlp == "blocked", "{}", asked.text);

    let state = state_of(&first_leg(&scene, "asks").await);
    let blocked = next_leg(&scene, "asks", &state, answering(KEY)).await;
    assert_eq!(own(&blocked, "error")["code"], "policy_denied", "{}", blocked.text);
    let found = &own(&blocked, "error")["details"]["dlp"]["findings"][0]["path"];
    assert_eq!(found, "/responses/name/content/name", "{}", blocked.text);
    let told = blocked.at("/result/content/0/text").as_str().unwrap();
    assert!(told.contains(" at /responses/name/content/name"), "{told}");
    assert!(told.contains(" Found: ") && !told.contains(KEY), "{told}");
    assert_eq!(statuses(&scene, &blocked).await.0, "denied");
    assert_eq!(scene.upstream.count("asks"), 1);

    let masked = next_leg(&scene, "asks", &state, answering(MAIL)).await;
    assert_eq!(own(&masked, "governance")["dlp_result"], "redacted", "{}", masked.text);
    let told = masked.at("/result/structuredContent/responses/name");
    assert_eq!(told["action"], "accept", "{}", masked.text);
    assert_ne!(told["content"]["name"], MAIL);
    for secret in [KEY, MAIL] {
        assert!(!scene.upstream.calls().iter().any(|call| call.body.contains(secret)));
        assert!(!scene.gateway.log().contains(secret));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_judge_questions_and_each_leg_anew() {
    let policies = r#"
@id("all") permit (principal, action, resource);
@id("unasked") @phase("response")
forbid (principal, action == Mcp::Action::"up:mute", resource);
@id("no-mail") forbid (principal, action == Mcp::Action::"up:asks", resource)
when { context has dlp && context.dlp.findings.contains("email") };
"#;
    let tools = vec![asks(&asking()), giving("mute", &asking())];
    let scene = scene_under(policies, tools).await;

    let mute = first_leg(&scene, "mute").await;
    assert_eq!(own(&mute, "error")["details"]["policy"], "unasked", "{}", mute.text);
    assert!(!mute.text.contains("Your name?"));

    let state = state_of(&first_leg(&scene, "asks").await);
    let answers = answering("ada@acme.example");
    let denied = next_leg(&scene, "asks", &state, answers).await;
    assert_eq!(own(&denied, "error")["details"]["policy"], "no-mail", "{}", denied.text);
    assert_eq!(scene.upstream.count("asks"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_asks_for_ever_is_given_up() {
    let scene = scene(vec![giving("again", &asking())]).await;
    let mut answer = first_leg(&scene, "again").await;
    for _ in 1..31 {
        let state = state_of(&answer);
        answer = next_leg(&scene, "again", &state, answers()).await;
    }
    let state = state_of(&answer);

    let last = next_leg(&scene, "again", &state, answers()).await;

    assert_eq!(own(&last, "error")["details"]["reason"], "interaction_required", "{}", last.text);
    assert_eq!(scene.upstream.count("again"), 32);
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_beyond_their_bounds_are_not_passed_on() {
    let result = |requests: &Value, state: &str| json!({"resultType": "input_required", "inputRequests": requests, "requestState": state});
    let other = json!({"a": {"method": "tools/call", "params": {"name": "rm"}}});
    let tools = vec![
        giving("other", &result(&other, "s")),
        asks(&result(&form("?"), &"y\u{1}".repeat(32 << 10))),
    ];
    let scene = scene(tools).await;
    let gateway = &scene.gateway;
    let who = &scene.who;
    let declared = json!({"elicitation": {}, "roots": {}});

    let answer = leg(gateway, who, "other", &declared, FORM, None).await;
    assert_eq!(own(&answer, "error")["details"]["reason"], "interaction_required");
    has!(rest_leg(&scene, "other", None).await, 502);
    // The longest state comes back, however it has to be escaped.
    let state = state_of(&leg(gateway, who, "asks", &declared, FORM, None).await);
    let done = leg(gateway, who, "asks", &declared, FORM, Some((&state, answers()))).await;
    assert_eq!(done.at("/result/resultType"), "complete", "{}", done.status);
    let many: Value =
        (0..17).map(|n| (format!("q{n}"), json!({}))).collect::<serde_json::Map<_, _>>().into();
    let ignored = leg(gateway, who, "asks", &declared, FORM, Some((&state, many))).await;
    assert_eq!(ignored.at("/result/resultType"), "complete", "{}", ignored.text);
    assert!(ignored.at("/result/structuredContent/responses").is_null(), "none is passed on");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_leg_takes_a_key_of_its_own_and_a_kill_between_two_loses_nothing() {
    // Each leg takes an idempotency key of its own.
    let scene = scene(vec![asks(&asking())]).await;
    let keyed = |key: &str, earlier: Option<&str>| {
        let mut params = json!({
            "name": "asks", "arguments": {},
            "_meta": {
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
                "dev.portcullis/idempotency_key": key,
            },
        });
        if let Some(state) = earlier {
            params["requestState"] = json!(state);
            params["inputResponses"] = answers();
        }
        modern(&scene.gateway, &scene.who, "/mcp/up", "tools/call", &params)
    };

    let asked = scene.gateway.send(keyed("one", None)).await;
    let again = scene.gateway.send(keyed("one", None)).await;
    let state = state_of(&asked);
    let same = scene.gateway.send(keyed("one", Some(&state))).await;
    let done = scene.gateway.send(keyed("two", Some(&state))).await;
    let replayed = scene.gateway.send(keyed("two", Some(&state))).await;

    assert_eq!(state_of(&again), state);
    assert_eq!(again.at("/result/resultType"), "input_required");
    assert_eq!(error(&same), (400, -32602), "{}", same.text);
    assert_eq!(replayed.at("/result/structuredContent"), done.at("/result/structuredContent"));
    assert_eq!(done.at("/result/structuredContent/state"), "theirs", "{}", done.text);
    assert_eq!(scene.upstream.count("asks"), 2);

    // A kill between two legs loses nothing.
    let mut scene = scene.anew();
    let asked = first_leg(&scene, "asks").await;

    scene.gateway.kill();
    scene.gateway.start();
    let state = state_of(&asked);
    has!(next_leg(&scene, "asks", &state, answers()).await, "/result/resultType": "complete");

    assert_eq!(statuses(&scene, &asked).await.0, "input_required");
}
