//! Skills of which something is not known or not accepted yet, and what is recorded of those that are used.

use portcullis_core::json;

use super::{EXPOSED, HOME, POLICIES, exposed, get, offered};
use crate::{
    mcp::{ask, error},
    prelude::*,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_waits_to_be_accepted_and_its_files_with_it() {
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
    let scopes = "admin providers:read providers:write";
    let admin = scene.gateway.user(&scene.who.org, "admin", scopes);
    let id = scene.gateway.get(&admin, "/v1/providers").await.ok();
    let id = id.at("/data/items/0/id").as_str().expect("an id").to_owned();
    let look = format!("/v1/providers/{id}/test");
    // Later, what was listed before holds, also if the server says that it has none.
    for code in [-32603, -32601] {
        scene.upstream.break_method("skills/list", code);
        // A tool that waits tells that its server was asked again.
        let mark = tool(&format!("mark{code}"), Script::Echo);
        scene.upstream.replace(offered().into_iter().chain([mark]).collect());
        let looked = async || {
            scene.gateway.post(&admin, &look, "{}").await.ok();
            scene.gateway.get(&admin, "/v1/tools/waiting").await
        };
        let wanted = format!("up:mark{code}");
        until(looked, |it| members(it, "id").contains(&wanted.as_str())).await;

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

/// Folders of skills, their descriptions and manifests, and the reasons for which they are left out.
fn left_out() -> Vec<(&'static str, &'static str, Value, &'static str)> {
    let file = |folder: &str, name: &str, size: u64| {
        let digest = json::sha256(&[b"a"]);
        json!({"uri": format!("skill://{folder}/{name}"), "digest": digest, "size": size})
    };
    let manual = |folder: &str| file(folder, "SKILL.md", 1);
    let digested = |folder: &str, digest: &str| {
        let mut file = manual(folder);
        file["digest"] = json!(digest);
        json!([file])
    };
    let many = |count: usize| {
        let more = (1..count).map(|at| file("many", &format!("{at}.md"), 1));
        [manual("many")].into_iter().chain(more).collect::<Value>()
    };
    vec![
        ("many", "Does.", many(513), "512 files"),
        ("large", "Does.", json!([manual("large"), file("large", "a", 16 << 20)]), "16 MiB"),
        ("upper", "Does.", digested("upper", &json::sha256(&[b"a"]).to_uppercase()), "lower-case"),
        (
            "digits",
            "Does.",
            digested("digits", &format!("sha256:{}", "A".repeat(64))),
            "lower-case",
        ),
        ("short", "Does.", digested("short", "sha256:abc"), "64"),
        ("twice", "Does.", json!([manual("twice"), manual("twice")]), "listed twice"),
        ("outside", "Does.", json!([manual("outside"), manual("other")]), "outside its folder"),
        ("lacks", "Does.", json!([file("lacks", "a.md", 1)]), "lack its `SKILL.md`"),
        ("hidden", "Do\u{200b}es.", json!([manual("hidden")]), "cannot be seen"),
        ("named", "Does.", json!([manual("named")]), "not that of its folder"),
        ("Case", "Does.", json!([manual("Case")]), "lower-case letters"),
        ("moving", "Does.", json!("dynamic"), "allow_dynamic_skills"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_that_is_left_out_is_told_with_its_reason_and_not_found() {
    let rows = left_out();
    let offered = rows.iter().map(|(folder, description, resources, _)| {
        let name = if *folder == "named" { "another" } else { folder };
        let frontmatter = json!({"name": name, "description": description});
        let entry = json!({"frontmatter": frontmatter, "resources": resources});
        tool(&format!("skill://{folder}/SKILL.md"), Script::Echo).instructing(entry)
    });
    let scene = scene_with(offered.collect(), EXPOSED, |builder| builder).await;

    let admin = scene.gateway.user(&scene.who.org, "admin", "admin mcps:read");
    let told = scene.gateway.get(&admin, "/v1/tools/left-out?kind=skill&limit=50").await.ok();

    assert_eq!(items(&told).len(), rows.len(), "{}", told.text);
    for (folder, .., reason) in rows {
        let uri = format!("skill://{folder}/SKILL.md");
        let row = items(&told).iter().find(|it| it["name"] == uri);
        let row = row.unwrap_or_else(|| panic!("no {uri} in {}", told.text));
        has!("{folder}"; row, "/kind": "skill", "/provider": "up");
        assert!(row["reason"].as_str().expect("a reason").contains(reason), "{row}");
        for method in ["skills/get", "resources/read"] {
            let answer = get(&scene, "/mcp/up", method, &uri).await;
            assert_eq!(error(&answer), (200, -32602), "{method} {uri}: {}", answer.text);
        }
    }
    assert!(scene.upstream.calls().is_empty());
    let listed = ask(&scene.gateway, &scene.who, "/mcp/up", "skills/list", json!({})).await;
    assert_eq!(listed.at("/result/skills"), &json!([]), "{}", listed.text);
    // Callers learn nothing of them.
    let own = scene.gateway.get(&scene.who, "/v1/tools/left-out?kind=skill").await.ok();
    assert!(items(&own).is_empty(), "{}", own.text);
}
