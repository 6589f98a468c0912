//! Skills of which something is not known or not accepted yet, and what is recorded of those that are used.

use super::{EXPOSED, HOME, POLICIES, exposed, get, offered};
use crate::{
    mcp::{ask, error},
    prelude::*,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_changes_waits_and_its_files_with_it() {
    let exposed = format!("{EXPOSED}\npin = \"review\"");
    let scene = scene_with(offered(), &exposed, |builder| builder.policies(POLICIES)).await;
    let id = format!("skill:up:{HOME}/SKILL.md");
    scene.gateway.admin(&["capability", "accept", "resource:up:skill://acme/refunds/{+path}"]);
    scene.gateway.admin(&["capability", "accept", "resource:up:*"]);
    // A file of a skill that nobody accepted is read in no other way.
    let read = async || get(&scene, "/mcp/up", "resources/read", "skill://acme/refunds/a.md").await;
    assert_eq!(error(&read().await), (200, -32602));
    assert_eq!(
        error(&get(&scene, "/mcp/up", "skills/get", &format!("{HOME}/SKILL.md")).await),
        (200, -32602)
    );

    let waiting = scene.gateway.admin(&["capability", "list", "--waiting", "--kind", "skill"]);
    assert!(waiting.to_string().contains(&id), "{waiting}");
    scene.gateway.admin(&["capability", "accept", &id]);
    until(read, |it| it.at("/result/contents/0/text") == "Ask a person.").await;
}

/// While it is not known what the files of skills are, no resource is read.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_skills_that_fails_opens_no_files() {
    let broken = [tool("skills/list", Script::Rpc(-32603))].into_iter().chain(offered());
    let scene = scene_with(broken.collect(), EXPOSED, |builder| builder.policies(POLICIES)).await;
    for uri in ["skill://acme/refunds/a.md", "skill://open/note", "skill://acme/open/b"] {
        assert_eq!(
            error(&get(&scene, "/mcp/up", "resources/read", uri).await),
            (200, -32602),
            "{uri}"
        );
    }

    let scene = exposed().await;
    let read = async || get(&scene, "/mcp/up", "resources/read", "skill://acme/refunds/a.md").await;
    has!(read().await, 200, "/result/contents/0/text": "Ask a person.");
    let admin = scene.gateway.user(&scene.who.org, "admin", "providers:read providers:write");
    let id = scene.gateway.get(&admin, "/v1/providers").await.ok();
    let id = id.at("/data/items/0/id").as_str().expect("an id").to_owned();
    // Later, what was listed before holds, also if the server says that it has none.
    for code in [-32603, -32601] {
        scene.upstream.break_method("skills/list", code);
        scene.gateway.post(&admin, &format!("/v1/providers/{id}/test"), "{}").await.ok();

        has!(read().await, 200, "/result/contents/0/text": "Ask a person.");
        let other = get(&scene, "/mcp/up", "resources/read", "skill://secret/SKILL.md").await;
        assert_eq!(error(&other), (200, -32602), "{}", other.text);
        let listed = ask(&scene.gateway, &scene.who, "/mcp/up", "resources/list", json!({})).await;
        assert!(!listed.text.contains("refunds/a.md"), "{}", listed.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_pass_beside_apps_and_their_approvals_are_for_files() {
    let asks = r#"@id("all") permit (principal, action, resource);
        @id("asks") @require_approval("approvers=leads")
        forbid (principal, action == Mcp::Action::"skill:up:acme/refunds", resource)
        when { context.skill.uri like "*/SKILL.md" };"#;
    let exposed = "expose = [\"apps\", \"skills\", \"tools\"]";
    let scene = scene_with(offered(), exposed, |builder| builder.policies(asks)).await;

    let file = get(&scene, "/mcp", "resources/read", "up+skill://acme/refunds/a.md").await;
    let manual = get(&scene, "/mcp", "resources/read", "up+skill://acme/refunds/SKILL.md").await;
    let entry = get(&scene, "/mcp", "skills/get", "up+skill://acme/refunds/SKILL.md").await;
    let other = get(&scene, "/mcp", "resources/read", "up+skill://open/note").await;

    has!(file, 200, "/result/contents/0/text": "Ask a person.");
    assert_eq!(error(&other), (200, -32602), "{}", other.text);
    // Whoever asks for the entry asks nobody.
    assert_eq!(error(&manual).1, 403, "{}", manual.text);
    assert!(manual.text.contains("apr_"), "{}", manual.text);
    assert_eq!(error(&entry).1, 403, "{}", entry.text);
    assert!(!entry.text.contains("apr_"), "{}", entry.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_that_a_policy_reads_is_kept_and_explained() {
    let scene = exposed().await;
    let answer = get(&scene, "/mcp/up", "resources/read", "skill://acme/refunds/run.sh").await;
    let event = events(&scene.gateway, &scene.who, answer.header("x-request-id")).await.remove(0);
    let path = format!("/v1/audit/events/{}", event["id"].as_str().expect("an id"));
    let kept = scene.gateway.get(&scene.who, &path).await.ok();
    let inputs = kept.at("/data/detached/decision_inputs");
    assert_eq!(
        inputs.pointer("/input/uri"),
        Some(&json!("skill://acme/refunds/run.sh")),
        "{inputs}"
    );
    let scopes = "admin audit:read mcps:read policies:read";
    let admin = scene.gateway.user(&scene.who.org, "admin", scopes);
    let explained = scene.gateway.get(&admin, &format!("{path}?explain=1")).await.ok();
    has!(explained, "/data/explanation/decision/policy": "no-scripts", "/data/explanation/missing": []);
}
