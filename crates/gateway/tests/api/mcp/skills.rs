//! Skills: listed with their manifests, described and read on the law of tools, and never changed.

mod withheld;

use portcullis_core::json;

use super::{ask, ask_legacy, error, own};
use crate::prelude::*;

const EXPOSED: &str = "expose = [\"resources\", \"skills\", \"tools\"]";

const POLICIES: &str = r#"
@id("all") permit (principal, action in Mcp::Action::"*:*", resource);
@id("site") permit (principal, action == Mcp::Action::"resource:up", resource) when { !context.resource.listed };
@id("no-audits") @reason("Audits are done by people")
forbid (principal, action == Mcp::Action::"skill:up:acme/audits", resource);
@id("no-scripts") @reason("Scripts stay inside")
forbid (principal, action in Mcp::Action::"kind:skill", resource is Mcp::Skill)
when { context.skill.uri like "*.sh" };
@id("mask-mail") @phase("response") @redact("output: email")
forbid (principal, action in Mcp::Action::"provider:up", resource)
when { context has dlp_output && context.dlp_output.findings.contains("email") };
"#;

/// The text of a `SKILL.md`.
fn manual(name: &str, rest: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\n{rest}\n")
}

fn contents(uri: &str, text: &str) -> Script {
    let content = json!({"uri": uri, "mimeType": "text/markdown", "text": text});
    Script::Result(json!({ "contents": [content] }).to_string())
}

/// A file of which the server gives one text and lists another.
struct SkillFile<'a> {
    name: &'a str,
    listed: String,
    given: String,
}

fn same<'a>(name: &'a str, text: &str) -> SkillFile<'a> {
    SkillFile { name, listed: text.to_owned(), given: text.to_owned() }
}

/// A skill in this folder with its files, each a resource that the server lists too.
fn skill(folder: &str, script: Script, files: &[SkillFile<'_>]) -> Vec<HostileTool> {
    let name = folder.rsplit('/').next().expect("a name");
    let uri = |file: &str| format!("{folder}/{file}");
    let manifest = files.iter().map(|it| {
        let digest = json::sha256(&[it.listed.as_bytes()]);
        json!({"uri": uri(it.name), "digest": digest, "size": it.listed.len()})
    });
    let frontmatter = json!({"name": name, "description": format!("Does {name}.")});
    let entry = json!({"frontmatter": frontmatter, "resources": manifest.collect::<Value>()});
    let file = |it: &SkillFile<'_>| {
        let script = contents(&uri(it.name), &it.given);
        tool(&uri(it.name), script).reading(json!({"name": it.name, "mimeType": "text/markdown"}))
    };
    let skill = tool(&uri("SKILL.md"), script).instructing(entry);
    [skill].into_iter().chain(files.iter().map(file)).collect()
}

const KEY: &str = "AKIAIOSFODNN7EXAMPLX";

fn offered() -> Vec<HostileTool> {
    let refunds = manual("refunds", "Read `a.md`.");
    let altered = |name, listed: &str, given: &str| SkillFile {
        name,
        listed: listed.to_owned(),
        given: given.to_owned(),
    };
    let other_entry = json!({"skill": {"uri": "skill://moved/SKILL.md", "resources": [],
        "frontmatter": {"name": "moved", "description": "Does moved."}}});
    let asked = json!({"resultType": "input_required", "requestState": "s", "inputRequests": {
        "a": {"method": "sampling/createMessage", "params": {"maxTokens": 5, "messages": []}}}});
    let mut all = vec![
        tool("docs://refunds/a", contents("docs://refunds/a", "Docs.")).reading(json!({"name": "a"})),
        tool("skill://open/note", contents("skill://open/note", "Note.")).reading(json!({"name": "n"})),
        tool("skill://acme/refunds/asks.md", Script::Asks(asked.to_string()))
            .reading(json!({"name": "q"})),
        // Files that the manifest does not name.
        tool("skill://acme/refunds/_manifest", Script::Echo).reading(json!({"name": "m"})),
        tool("skill://acme/refunds/{+path}", Script::Echo).reading(json!({"name": "t"})),
        tool("skill://acme/open/{+path}", Script::Echo).reading(json!({"name": "t"})),
        tool("skill://twice/SKILL.md", Script::Echo).instructing(json!({"resources": "dynamic",
            "frontmatter": {"name": "twice", "description": "Does twice."}})),
        tool("skill://secret/SKILL.md", Script::Echo).instructing(json!({
            "frontmatter": {"name": "secret", "description": format!("Use {KEY}.")},
            "resources": [{"uri": "skill://secret/SKILL.md", "digest": json::sha256(&[b"a"]), "size": 1}],
        })),
    ];
    all.extend(skill(
        "skill://acme/refunds",
        Script::Echo,
        &[
            same("SKILL.md", &refunds),
            same("a.md", "Ask a person."),
            same("run.sh", "true"),
            same("mail.md", "Write to ada@acme.example."),
            same("key.md", &format!("Use {KEY}.")),
            altered("size.md", "four", "fours"),
            altered("digest.md", "four", "Four"),
            same("asks.md", "Which?"),
            same("nested/SKILL.md", &manual("nested", "")),
        ],
    ));
    all.extend(skill(
        "skill://acme/audits",
        Script::Echo,
        &[same("SKILL.md", &manual("audits", ""))],
    ));
    let forged = manual("forged", "").replace("Does", "Undoes");
    all.extend(skill("skill://forged", Script::Echo, &[same("SKILL.md", &forged)]));
    let moved = Script::Result(other_entry.to_string());
    all.extend(skill("skill://moved", moved, &[same("SKILL.md", &manual("moved", ""))]));
    all
}

async fn exposed() -> Scene {
    scene_with(offered(), EXPOSED, |builder| builder.policies(POLICIES)).await
}

async fn get(scene: &Scene, path: &str, method: &str, uri: &str) -> Answer {
    ask(&scene.gateway, &scene.who, path, method, json!({ "uri": uri })).await
}

const HOME: &str = "skill://acme/refunds";

#[tokio::test(flavor = "multi_thread")]
async fn skills_are_listed_with_their_manifests_and_not_among_the_resources() {
    let scene = exposed().await;
    let hidden = scene_with(offered(), "", |builder| builder).await;
    for (path, begin) in [("/mcp", "up+"), ("/mcp/up", "")] {
        let listed = ask(&scene.gateway, &scene.who, path, "skills/list", json!({})).await;
        let told = ask(&scene.gateway, &scene.who, path, "server/discover", json!({})).await;

        let all = listed.at("/result/skills").as_array().expect("a list");
        let uris: Vec<&str> = all.iter().map(|it| it["uri"].as_str().expect("a URI")).collect();
        let wanted = ["acme/refunds", "forged", "moved"];
        assert_eq!(
            uris,
            wanted.map(|it| format!("{begin}skill://{it}/SKILL.md")),
            "{}",
            listed.text
        );
        has!(listed, 200, "/result/cacheScope": "private", "/result/resultType": "complete",
            "/result/skills/0/frontmatter": {"name": "refunds", "description": "Does refunds."},
            "/result/skills/0/_meta/dev.portcullis~1tool": format!("up:{HOME}/SKILL.md"));
        let files = all[0]["resources"].as_array().expect("a manifest");
        let a_file = files.iter().find(|it| it["size"] == 13).expect("a.md");
        let digest = json::sha256(&[b"Ask a person."]);
        assert_eq!(
            *a_file,
            json!({"uri": format!("{begin}{HOME}/a.md"), "digest": digest, "size": 13})
        );
        assert_eq!(files.len(), 9);
        has!(told, 200, "/result/capabilities/extensions/io.modelcontextprotocol~1skills": {"directoryRead": true},
            "/result/capabilities/resources/listChanged": true);

        let resources = ask(&scene.gateway, &scene.who, path, "resources/list", json!({})).await;
        let all = resources.at("/result/resources").as_array().expect("a list").iter();
        let uris: Vec<&str> = all.map(|it| it["uri"].as_str().expect("a URI")).collect();
        assert_eq!(uris, [format!("{begin}docs://refunds/a"), format!("{begin}skill://open/note")]);
        let legacy = ask_legacy(
            &scene.gateway,
            &scene.who,
            path,
            "initialize",
            json!({"protocolVersion": "2025-11-25"}),
        )
        .await;
        assert!(!legacy.text.contains("skills"), "{}", legacy.text);
        for (scene, is_legacy) in [(&scene, true), (&hidden, false)] {
            for method in ["skills/list", "skills/get"] {
                let params = json!({"uri": format!("{begin}{HOME}/SKILL.md")});
                let (gateway, who) = (&scene.gateway, &scene.who);
                let refused = if is_legacy {
                    ask_legacy(gateway, who, path, method, params).await
                } else {
                    ask(gateway, who, path, method, params).await
                };
                assert_eq!(error(&refused).1, -32601, "{}", refused.text);
            }
        }
    }
    let admin = scene.gateway.user(&scene.who.org, "admin", "admin mcps:read");
    let left_out = scene.gateway.get(&admin, "/v1/tools/left-out?kind=skill").await.text;
    assert!(
        left_out.contains("allow_dynamic_skills") && left_out.contains("skill://secret"),
        "{left_out}"
    );
    assert!(!left_out.contains(KEY), "{left_out}");
}

/// Method, URI, code of the JSON-RPC error or 0, outcome of the event, requests upstream, target of the event.
const USES: &str = "
get  skill://acme/refunds/SKILL.md                     0 success        1 skill:up:skill://acme/refunds/SKILL.md
read skill://acme/refunds/SKILL.md                     0 success        1 skill:up:skill://acme/refunds/SKILL.md
read skill://acme/refunds/a.md                         0 success        1 skill:up:skill://acme/refunds/SKILL.md
read skill://acme/refunds/nested/SKILL.md              0 success        1 skill:up:skill://acme/refunds/SKILL.md
read skill://acme/refunds/run.sh                     403 denied         0 skill:up:skill://acme/refunds/SKILL.md
# Nothing of a skill is masked.
read skill://acme/refunds/mail.md                    403 denied         1 skill:up:skill://acme/refunds/SKILL.md
read skill://acme/refunds/key.md                     403 denied         1 skill:up:skill://acme/refunds/SKILL.md
read skill://acme/refunds/size.md                    502 upstream_error 1 skill:up:skill://acme/refunds/SKILL.md
read skill://acme/refunds/digest.md                  502 upstream_error 1 skill:up:skill://acme/refunds/SKILL.md
# No manifest says what a server asks.
read skill://acme/refunds/asks.md                    502 upstream_error 1 skill:up:skill://acme/refunds/SKILL.md
read skill://forged/SKILL.md                         502 upstream_error 1 skill:up:skill://forged/SKILL.md
get  skill://forged/SKILL.md                           0 success        1 skill:up:skill://forged/SKILL.md
get  skill://moved/SKILL.md                          502 upstream_error 1 skill:up:skill://moved/SKILL.md
# What lies in the folder and not in the manifest is there in no other way.
read skill://acme/refunds/_manifest               -32602 not_found      0 resource:up:*
read skill://acme/refunds/other.md                -32602 not_found      0 resource:up:*
read skill://acme/refunds                         -32602 not_found      0 resource:up:*
read skill://acme/refunds/a.md?x                  -32602 not_found      0 resource:up:*
read skill://acme:80/refunds/a.md                 -32602 not_found      0 resource:up:*
read skill://ACME/refunds/a.md                    -32602 not_found      0 resource:up:*
read skill:acme/refunds/a.md                      -32602 not_found      0 resource:up:*
read skill://acme/refunds/%61.md                  -32602 not_found      0 resource:up:*
read skill://acme/open/b                               0 success        1 resource:up:skill://acme/open/{+path}
read skill://open/note                                 0 success        1 resource:up:skill://open/note
# Denied in any case: unknown.
get  skill://acme/audits/SKILL.md                 -32602 not_found      0 skill:up:*
read skill://acme/audits/SKILL.md                 -32602 not_found      0 resource:up:*
get  skill://acme/nothing/SKILL.md                -32602 not_found      0 skill:up:*
get  skill://acme/refunds/a.md                    -32602 not_found      0 -
# What was left out is none of the other resources either.
read skill://secret/SKILL.md                      -32602 not_found      0 resource:up:*
read skill://twice/other.md                       -32602 not_found      0 resource:up:*
get  skill://open/note                            -32602 not_found      0 -
get  skill://secret/SKILL.md                      -32602 not_found      0 skill:up:*
get  skill://twice/SKILL.md                       -32602 not_found      0 skill:up:*
";

/// The columns of each row.
fn uses() -> impl Iterator<Item = [&'static str; 6]> {
    let rows = USES.lines().filter(|row| !row.is_empty() && !row.starts_with('#'));
    rows.map(|row| row.split_whitespace().collect::<Vec<_>>().try_into().expect("six columns"))
}

/// Fails unless the answer tells what has to come of this use, and no more.
fn assert_told(answer: &Answer, code: i64, method: &str, asked: &str) {
    match (code, method) {
        (0, "skills/get") => {
            assert_eq!(answer.at("/result/skill/uri"), &json!(asked), "{}", answer.text);
            has!(answer, 200, "/result/cacheScope": "private", "/result/ttlMs": 0);
        }
        (0, _) => {
            assert_eq!(answer.at("/result/contents/0/uri"), &json!(asked), "{}", answer.text);
        }
        (-32602, _) => {
            assert_eq!(answer.at("/error/data/uri"), &json!(asked), "{}", answer.text);
            assert_eq!(own(answer, "governance"), &Value::Null, "{}", answer.text);
        }
        (502, _) => {
            let asks = asked.ends_with("asks.md");
            let reason = if asks { "interaction_required" } else { "digest_mismatch" };
            has!(answer, 200, "/error/data/dev.portcullis~1error/details/reason": reason);
        }
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_is_used_under_the_law_of_calls_and_leaves_one_event() {
    let scene = exposed().await;
    for [method, uri, code, outcome, sent, target] in uses() {
        let method = if method == "get" { "skills/get" } else { "resources/read" };
        let code: i64 = code.parse().expect("a code");
        let sent: usize = sent.parse().expect("a number");
        let target = target.trim_start_matches('-');
        for path in ["/mcp", "/mcp/up"] {
            scene.upstream.forget();
            let asked = if path == "/mcp" { format!("up+{uri}") } else { uri.to_owned() };
            let answer = get(&scene, path, method, &asked).await;

            let told = answer.at("/error/code").as_i64().unwrap_or_default();
            assert_eq!(
                (told, answer.status.as_u16()),
                (code, 200),
                "{method} {uri} {}",
                answer.text
            );
            assert_eq!(scene.upstream.calls().len(), sent, "{method} {uri}");
            let events = events(&scene.gateway, &scene.who, answer.header("x-request-id")).await;
            assert_eq!(events.len(), 1, "{uri}");
            let kind = target.split_once(':').map(|(kind, _)| kind);
            has!("{uri}"; events[0], "/type": "mcp.invocation", "/target/kind": kind);
            assert_eq!(events[0]["outcome"]["status"], outcome, "{method} {uri}");
            assert_eq!(
                events[0]["target"]["id"].as_str().unwrap_or_default(),
                target,
                "{method} {uri}"
            );
            assert!(!answer.text.contains(KEY) && !answer.text.contains("ada@"), "{}", answer.text);
            assert_told(&answer, code, method, &asked);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_are_read_from_the_manifests_of_skills_that_the_caller_may_use() {
    let scene = exposed().await;
    let all = "SKILL.md a.md asks.md digest.md key.md mail.md nested/ run.sh size.md";
    let method = "resources/directory/read";
    for (uri, children) in [
        (HOME, all),
        ("skill://acme/refunds/", all),
        ("skill://acme/refunds/nested", "SKILL.md"),
        ("skill://acme", "refunds/"),
        ("skill://acme/refunds//", ""),
        ("skill://acme/refunds/a.md", ""),
        ("skill://acme/ref", ""),
        ("skill://acme/audits", ""),
        ("skill://secret", ""),
        ("skill://twice", ""),
        ("skill://", "acme/ forged/ moved/"),
        ("skill:/", ""),
        ("docs://refunds", ""),
        ("", ""),
    ] {
        for (path, begin) in [("/mcp", "up+"), ("/mcp/up", "")] {
            let asked = format!("{begin}{uri}");
            let answer = get(&scene, path, method, &asked).await;

            if children.is_empty() {
                has!(answer, 200, "/error/code": -32602, "/error/data/uri": asked);
                continue;
            }
            has!(answer, 200, "/result/cacheScope": "private", "/result/resultType": "complete");
            let told = answer.at("/result/resources").as_array().expect("a list").iter();
            let told = told.map(|it| {
                let name = it["name"].as_str().expect("a name");
                let folder = asked.strip_suffix('/').unwrap_or(&asked);
                assert_eq!(it["uri"], format!("{folder}/{name}"));
                let is_folder = it["mimeType"] == "inode/directory";
                assert_ne!(is_folder, it["size"].is_u64(), "{it}");
                if is_folder { format!("{name}/") } else { name.to_owned() }
            });
            assert_eq!(told.collect::<Vec<_>>().join(" "), children, "{uri}");
        }
    }
    assert!(scene.upstream.calls().is_empty());
    let (gateway, who) = (&scene.gateway, &scene.who);
    let paged = ask(gateway, who, "/mcp/up", method, json!({"uri": HOME, "cursor": "a"})).await;
    assert_eq!(error(&paged).1, -32602);
    let legacy = ask_legacy(gateway, who, "/mcp/up", method, json!({"uri": HOME})).await;
    assert_eq!(error(&legacy), (200, -32601));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_dynamic_skills_are_read_where_policies_read_their_uris() {
    let only = "expose = [\"skills\"]\nallow_dynamic_skills = true";
    let scene = scene_with(offered(), only, |builder| builder.policies(POLICIES)).await;
    // Of a dynamic skill no file is read whose URI policies read otherwise than its server.
    for uri in [
        "skill://twice/run.s%68", "skill://twice/run.sh?", "skill://TWICE/run.sh",
        "skill://twice/skill.md",
    ] {
        assert_eq!(
            error(&get(&scene, "/mcp/up", "resources/read", uri).await),
            (200, -32602),
            "{uri}"
        );
        assert!(scene.upstream.calls().is_empty(), "{uri}");
    }
    assert_eq!(
        error(&get(&scene, "/mcp/up", "resources/read", "skill://twice/run.sh").await).1,
        403
    );
    // A server that is asked for files of a dynamic skill decides which there are.
    assert_eq!(
        error(&get(&scene, "/mcp/up", "resources/read", "skill://twice/x").await),
        (200, -32602)
    );
    assert_eq!(scene.upstream.calls().last().expect("a call").tool, "skill://twice/x");
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_pass_without_resources_and_over_rest() {
    let only = "expose = [\"skills\"]\nallow_dynamic_skills = true";
    let scene = scene_with(offered(), only, |builder| builder.policies(POLICIES)).await;
    for (method, list) in
        [("resources/list", "resources"), ("resources/templates/list", "resourceTemplates")]
    {
        let listed = ask(&scene.gateway, &scene.who, "/mcp/up", method, json!({})).await;
        assert_eq!(listed.at(&format!("/result/{list}")), &json!([]), "{}", listed.text);
    }
    let read = get(&scene, "/mcp/up", "resources/read", "skill://acme/refunds/a.md").await;
    has!(read, 200, "/result/contents/0/text": "Ask a person.");
    for uri in ["docs://refunds/a", "skill://open/note", "skill://acme/open/b"] {
        assert_eq!(
            error(&get(&scene, "/mcp/up", "resources/read", uri).await),
            (200, -32602),
            "{uri}"
        );
    }
    let listed = scene.gateway.get(&scene.who, "/v1/skills?provider=up").await.ok();
    let ids: Vec<&str> = listed
        .at("/data/items")
        .as_array()
        .expect("items")
        .iter()
        .map(|it| it["id"].as_str().expect("an id"))
        .collect();
    assert_eq!(
        ids,
        ["acme/refunds", "forged", "moved", "twice"].map(|it| format!("up:skill://{it}/SKILL.md"))
    );
    has!(listed, 200, "/data/items/3/resources": "dynamic", "/data/items/0/frontmatter/name": "refunds");
    let encoded = "up:skill:%2F%2Facme%2Frefunds%2FSKILL.md";
    let one = scene.gateway.get(&scene.who, &format!("/v1/skills/{encoded}")).await.ok();
    assert_eq!(one.at("/data/version"), listed.at("/data/items/0/version"));
    for hidden in ["up:skill:%2F%2Facme%2Faudits%2FSKILL.md", "up:a", "up:*", "other:x"] {
        let refused = scene.gateway.get(&scene.who, &format!("/v1/skills/{hidden}")).await;
        has!(refused, 404, "/error/code": "not_found", "/error/details/resource": "skill");
    }
    let body = json!({"uri": "skill://acme/refunds/a.md"}).to_string();
    let read = scene.gateway.post(&scene.who, "/v1/resources/read", &body).await.ok();
    has!(read, 200, "/result/contents/0/text": "Ask a person.");
    let body = json!({"uri": "skill://acme/refunds/digest.md", "provider": "up"}).to_string();
    let read = scene.gateway.post(&scene.who, "/v1/resources/read", &body).await;
    has!(read, 502, "/error/code": "upstream_error", "/error/details/reason": "digest_mismatch");
}
