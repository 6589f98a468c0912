//! A walk over all methods as callers who may not use anything: nothing is told, nothing goes to the provider, and each
//! use leaves one event.

use portcullis_core::{json, mcp::Method as Asked};

use super::{ask_legacy, error, modern_named};
use crate::prelude::*;

/// Part of the name of everything that the provider has.
const HIDDEN: &str = "hidden";
const POLICIES: &str = r#"
@id("all") permit (principal, action, resource);
@id("none") forbid (principal is Mcp::User, action, resource);
"#;

fn offered() -> Vec<HostileTool> {
    let entry = json!({"frontmatter": {"name": "hidden", "description": "Does it."}, "resources": [
        {"uri": "skill://hidden/SKILL.md", "size": 1, "digest": json::sha256(&[b"a"])}]});
    vec![
        tool("hidden_tool", Script::Echo),
        tool("hidden_prompt", Script::Echo).prompting(json!([{"name": "who"}])),
        tool("notes://hidden", Script::Echo).reading(json!({"name": "a"})),
        tool("hidden://{part}", Script::Echo).reading(json!({"name": "b"})),
        tool("skill://hidden/SKILL.md", Script::Echo).instructing(entry),
    ]
}

/// Effect of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Greet,
    List(&'static str),
    Use,
    /// Reads what lists tell, without an event.
    Look,
    Listen,
    /// Asks about a task.
    Follow,
    /// Is not offered in this era.
    Nothing,
}

/// Meaning of a method in the stateless era, and its parameters.
fn wanted(method: Asked) -> (Does, Value) {
    let prompt = json!({"type": "ref/prompt", "name": "hidden_prompt"});
    match method {
        Asked::Discover => (Does::Greet, json!({})),
        Asked::Initialize | Asked::Ping => {
            (Does::Nothing, json!({"protocolVersion": "2025-11-25"}))
        }
        Asked::Subscribe | Asked::Unsubscribe => (Does::Nothing, json!({"uri": "notes://hidden"})),
        Asked::ListTools => (Does::List("tools"), json!({})),
        Asked::ListPrompts => (Does::List("prompts"), json!({})),
        Asked::ListResources => (Does::List("resources"), json!({})),
        Asked::ListTemplates => (Does::List("resourceTemplates"), json!({})),
        Asked::ListSkills => (Does::List("skills"), json!({})),
        Asked::CallTool => (Does::Use, json!({"name": "hidden_tool", "arguments": {}})),
        Asked::GetPrompt => (Does::Use, json!({"name": "hidden_prompt"})),
        Asked::ReadResource => (Does::Use, json!({"uri": "notes://hidden"})),
        Asked::GetSkill => (Does::Use, json!({"uri": "skill://hidden/SKILL.md"})),
        Asked::Complete => {
            (Does::Use, json!({"ref": prompt, "argument": {"name": "who", "value": ""}}))
        }
        Asked::ReadDirectory => (Does::Look, json!({"uri": "skill://hidden"})),
        Asked::Listen => {
            (Does::Listen, json!({"notifications": {"resourceSubscriptions": ["notes://hidden"]}}))
        }
        Asked::GetTask | Asked::CancelTask => (Does::Follow, json!({"taskId": "ptk_1"})),
        Asked::UpdateTask => (Does::Follow, json!({"taskId": "ptk_1", "inputResponses": {}})),
    }
}

/// Reason that a caller may use nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Barrier {
    /// There is none: what is hidden elsewhere is seen.
    None,
    NoToken,
    NoScope,
    OtherOrg,
    Policy,
}

struct Walk {
    gateway: Gateway,
    upstream: Hostile,
    callers: Vec<(Barrier, Principal)>,
}

async fn walk() -> Walk {
    let upstream = Hostile::start(offered()).await;
    let mut gateway = gateway().policies(POLICIES).prepare();
    let [org, other] = ["acme", "other"].map(|name| gateway.org(name, &ENOUGH));
    let kinds = json!(["prompts", "resources", "skills", "tasks", "tools"]);
    gateway.configure(&format!(
        "[[providers]]\nslug = \"up\"\nurl = \"{}\"\nallow_private = true\norg = \"{org}\"\n\
         expose = {kinds}",
        upstream.url()
    ));
    gateway.start();
    let scopes = "mcps:read mcps:invoke audit:read";
    let caller = |org: &str, name: &str, scopes: &str| {
        let kind = ["--type", "service", "--scopes", scopes];
        gateway.principal(org, name, &kind, &kind[2..])
    };
    let stranger = Principal { token: "pcl_none".to_owned(), ..caller(&org, "stranger", scopes) };
    let callers = vec![
        (Barrier::None, caller(&org, "allowed", scopes)),
        (Barrier::NoToken, stranger),
        (Barrier::NoScope, caller(&org, "reader", "audit:read")),
        (Barrier::OtherOrg, caller(&other, "elsewhere", scopes)),
        (Barrier::Policy, gateway.user(&org, "admin", scopes)),
    ];
    Walk { gateway, upstream, callers }
}

impl Walk {
    async fn ask(&self, who: &Principal, path: &str, method: Asked) -> (Does, Answer) {
        let (does, mut params) = wanted(method);
        if path == "/mcp" {
            let text = params.to_string().replace("notes://", "up+notes://");
            let text = text.replace("skill://", "up+skill://").replace("hidden_", "up__hidden_");
            params = serde_json::from_str(&text).expect("JSON");
        }
        let name = ["name", "uri", "taskId"].iter().find_map(|it| params.get(*it)?.as_str());
        let word = method.as_str();
        let request = modern_named(&self.gateway, who, path, word, &params, name);
        if does != Does::Listen {
            return (does, self.gateway.send(request).await);
        }
        let mut answer = request.send().await.expect("an answer");
        let (status, headers) = (answer.status(), answer.headers().clone());
        let told =
            if status == 200 { answer.chunk().await } else { answer.bytes().await.map(Some) };
        let text = String::from_utf8_lossy(&told.expect("news").unwrap_or_default()).into_owned();
        let json = serde_json::from_str(&text).unwrap_or_default();
        (does, Answer { status, headers, text, json })
    }

    async fn events(&self, who: &Principal, request: &str) -> usize {
        events(&self.gateway, who, request).await.len()
    }
}

/// Fails unless the answer tells a caller behind a barrier no more than that.
fn assert_closed(barrier: Barrier, does: Does, place: &str, answer: &Answer) {
    let (status, code) = error(answer);
    match (barrier, does) {
        (Barrier::NoToken, _) => assert_eq!(status, 401, "{place} {}", answer.text),
        (Barrier::OtherOrg, Does::Nothing) => assert_eq!(status, 404, "{place}"),
        (_, Does::Nothing) => assert_eq!((status, code), (404, -32601), "{place}"),
        (Barrier::NoScope, Does::Greet) => assert_eq!(status, 200, "{place}"),
        (Barrier::NoScope, Does::Follow) => assert_ne!(code, 0, "{place} {}", answer.text),
        (Barrier::NoScope, Does::Use) => {
            let told = answer.text.contains("insufficient_scope") || code == -32601;
            assert!(told || status == 403, "{place} {}", answer.text);
        }
        (Barrier::NoScope, _) => {
            assert!(status == 403 || code == -32601, "{place} {}", answer.text);
        }
        (Barrier::OtherOrg, Does::Greet | Does::List(_) | Does::Listen) if code != 0 => {}
        (_, Does::Greet | Does::Listen) => assert_eq!(status, 200, "{place} {}", answer.text),
        (_, Does::List(member)) => {
            assert_eq!(answer.at(&format!("/result/{member}")), &json!([]), "{place}");
        }
        (_, Does::Use | Does::Look | Does::Follow) => {
            let is_refusal = answer.at("/result/isError") == &json!(true);
            assert!(code != 0 || is_refusal, "{place} {}", answer.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_told_or_sent_for_callers_who_may_use_nothing() {
    let walk = walk().await;
    for method in Asked::ALL {
        for path in ["/mcp", "/mcp/up"] {
            for (barrier, who) in &walk.callers {
                walk.upstream.forget();
                let (does, answer) = walk.ask(who, path, method).await;
                let place = format!("{} at {path} behind {barrier:?}", method.as_str());
                let sent = walk.upstream.calls().len();
                let is_use = does == Does::Use;
                if *barrier == Barrier::None {
                    if matches!(does, Does::List(_) | Does::Look) {
                        assert!(answer.text.contains(HIDDEN), "{place} {}", answer.text);
                    }
                    assert_eq!(sent, usize::from(is_use), "{place} {}", answer.text);
                    assert_eq!(walk.events(who, answer.header("x-request-id")).await, sent);
                    continue;
                }
                assert_eq!(sent, 0, "{place}");
                assert_closed(*barrier, does, &place, &answer);
                if !matches!(does, Does::Use | Does::Look | Does::Follow) {
                    assert!(!answer.text.contains(HIDDEN), "{place} {}", answer.text);
                }
                if *barrier != Barrier::NoToken {
                    let events = walk.events(who, answer.header("x-request-id")).await;
                    let is_offered = ![-32601, 404].contains(&error(&answer).1);
                    assert_eq!(events, usize::from(is_use && is_offered), "{place}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_stateless_era_has_is_not_offered_in_the_older_one() {
    let walk = walk().await;
    let (_, who) = &walk.callers[0];
    for method in Asked::ALL {
        let (_, params) = wanted(method);
        let answer = ask_legacy(&walk.gateway, who, "/mcp/up", method.as_str(), params).await;
        let is_offered = error(&answer).1 != -32601;
        let is_new = matches!(
            method,
            Asked::Discover
                | Asked::Listen
                | Asked::ListSkills
                | Asked::GetSkill
                | Asked::ReadDirectory
                | Asked::GetTask
                | Asked::UpdateTask
                | Asked::CancelTask
        );
        let has_no_stream = matches!(method, Asked::Subscribe | Asked::Unsubscribe);
        assert_eq!(is_offered, !is_new && !has_no_stream, "{} {}", method.as_str(), answer.text);
    }
}
