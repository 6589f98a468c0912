//! Lists of prompts, resources, templates and skills: in pages, up to their bound, and without icons.

use portcullis_core::json;
use portcullis_testkit::tool as mcp_tool;

use super::{ask, error};
use crate::prelude::*;

pub(super) const EXPOSED: &str =
    "expose = [\"prompts\", \"resources\", \"skills\", \"tools\"]\npin = \"off\"";

/// Method of a list, its member, the member that names an entry, and a part of the names here.
const LISTS: [(&str, &str, &str, &str); 4] = [
    ("prompts/list", "prompts", "name", "p"),
    ("resources/list", "resources", "uri", "notes://"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate", "notes://t/"),
    ("skills/list", "skills", "uri", "skill://s"),
];

/// The entry of a skill with one file.
fn entry(name: &str) -> Value {
    let file = format!("skill://{name}/SKILL.md");
    let file = json!({"uri": file, "size": 1, "digest": json::sha256(&[b"a"])});
    json!({"frontmatter": {"name": name, "description": "Does it."}, "resources": [file]})
}

/// A skill of this name.
pub(super) fn skill(name: &str) -> HostileTool {
    tool(&format!("skill://{name}/SKILL.md"), Script::Echo).instructing(entry(name))
}

/// So many of each kind. Resources have long names, of which a page has no room for a thousand.
fn many(prompts_and_skills: usize, resources: usize) -> Vec<HostileTool> {
    let named = || json!({"name": "a name"});
    let long = "x".repeat(1_000);
    let prompts = (0..prompts_and_skills)
        .map(|at| tool(&format!("p{at:04}"), Script::Echo).prompting(json!([])));
    let skills = (0..prompts_and_skills).map(|at| skill(&format!("s{at:04}")));
    let all = (0..resources)
        .map(|at| tool(&format!("notes://{at:04}/{long}"), Script::Echo).reading(named()));
    let templates = (0..resources)
        .map(|at| tool(&format!("notes://t/{at:04}/{{name}}"), Script::Echo).reading(named()));
    prompts.chain(skills).chain(all).chain(templates).collect()
}

/// All pages of a list.
async fn pages(gateway: &Gateway, who: &Principal, path: &str, method: &str) -> Vec<Answer> {
    let mut pages: Vec<Answer> = Vec::new();
    loop {
        let cursor = pages.last().map(|it| it.at("/result/nextCursor"));
        if cursor == Some(&Value::Null) {
            return pages;
        }
        assert!(pages.len() < 100, "{path} {method} has no end");
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        pages.push(ask(gateway, who, path, method, params).await.ok());
    }
}

/// The names in the entries of a page.
pub(super) fn entries(page: &Answer, list: &str, member: &str) -> Vec<String> {
    let all = page.at(&format!("/result/{list}")).as_array();
    let all = all.unwrap_or_else(|| panic!("no list: {}", page.text));
    all.iter().map(|it| it[member].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_every_kind_hold_each_entry_once_and_are_kept_for_the_same_time() {
    let one = Hostile::start(many(700, 1_400)).await;
    let two = Hostile::start(many(700, 0)).await;
    let builder = gateway().http("one", &one.url(), EXPOSED).http("two", &two.url(), EXPOSED);
    let (gateway, who) = serve_as("mcps:read mcps:invoke", builder);
    for path in ["/mcp/one", "/mcp/two"] {
        let last = || ask(&gateway, &who, path, "skills/list", json!({}));
        until(last, |it| it.text.contains("s0699")).await;
    }
    // Most bytes of a page, and what one more entry adds.
    let most_bytes = (1 << 20) + (8 << 10);
    for (path, counts, least) in
        [("/mcp", [1_400; 4], [2, 3, 2, 2]), ("/mcp/one", [700, 1_400, 1_400, 700], [1, 3, 2, 1])]
    {
        for ((method, list, member, part), (count, least)) in
            LISTS.into_iter().zip(counts.into_iter().zip(least))
        {
            let pages = pages(&gateway, &who, path, method).await;
            for page in &pages {
                has!("{path} {method}"; page.at("/result"), "/ttlMs": 60_000,
                    "/cacheScope": "private", "/resultType": "complete");
                assert!(entries(page, list, member).len() <= 1_000, "{path} {method}");
                assert!(page.text.len() <= most_bytes, "{path} {method} {}", page.text.len());
            }
            let all: Vec<String> =
                pages.iter().flat_map(|page| entries(page, list, member)).collect();
            let different: BTreeSet<&String> = all.iter().collect();
            assert_eq!((all.len(), different.len()), (count, count), "{path} {method}");
            assert!(all.iter().all(|name| name.contains(part)), "{path} {method}");
            assert!(pages.len() >= least, "{path} {method}: {} pages", pages.len());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_leads_on_in_its_own_list_alone() {
    let server = Hostile::start(many(0, 1_001)).await;
    let (gateway, who) = serve_as("mcps:read", gateway().http("up", &server.url(), EXPOSED));
    let templates = "resources/templates/list";
    let listed = || ask(&gateway, &who, "/mcp", templates, json!({}));
    let first = until(listed, |it| it.at("/result/nextCursor").is_string()).await;
    let cursor = first.at("/result/nextCursor");
    let other = gateway.service(&fresh_org(&gateway), "mcps:read");
    for (who, path, method, status) in [
        (&who, "/mcp", templates, 200),
        (&who, "/mcp/up", templates, 400),
        (&who, "/mcp", "resources/list", 400),
        (&who, "/mcp", "prompts/list", 400),
        (&who, "/mcp", "skills/list", 400),
        (&who, "/mcp", "tools/list", 400),
        (&other, "/mcp", templates, 400),
    ] {
        let answer = ask(&gateway, who, path, method, json!({ "cursor": cursor })).await;
        let code = if status == 400 { -32602 } else { 0 };
        assert_eq!(error(&answer), (status, code), "{path} {method} {}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_resources_beyond_the_bound_ten_thousand_are_kept_and_it_is_told() {
    let uri = |at: usize| format!("notes://{at:05}");
    let listed = (0..10_001).map(|at| json!({"uri": uri(at), "name": "a name"}));
    let listed = json!({ "resources": listed.collect::<Value>() });
    let offered = [
        tool("resources/list", Script::Result(listed.to_string())),
        tool(&uri(9_999), Script::Echo).reading(json!({})),
        tool(&uri(10_000), Script::Echo).reading(json!({})),
    ];
    let server = Hostile::start(offered.to_vec()).await;
    let mut gateway = gateway().http("up", &server.url(), EXPOSED).prepare();
    let who = gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES);
    gateway.start();
    let last = || ask(&gateway, &who, "/mcp/up", "resources/list", json!({}));
    until(last, |it| it.at("/result/nextCursor").is_string()).await;

    let pages = pages(&gateway, &who, "/mcp/up", "resources/list").await;
    let all: Vec<String> =
        pages.iter().flat_map(|page| entries(page, "resources", "uri")).collect();
    assert_eq!((pages.len(), all.len()), (10, 10_000));
    assert!(all.is_sorted_by(|one, other| one < other), "each stands once");
    assert_eq!(all.last(), Some(&uri(9_999)));
    for (at, code) in [(9_999, 0), (10_000, -32602)] {
        let params = json!({ "uri": uri(at) });
        let answer = ask(&gateway, &who, "/mcp/up", "resources/read", params).await;
        assert_eq!(error(&answer), (200, code), "{at} {}", answer.text);
    }
    assert_eq!(server.calls().len(), 1, "what is beyond is not asked for");
    let reason = "the list does not end within what is read of one";
    let left_out = gateway.get(&who, "/v1/tools/left-out?provider=up").await;
    assert_eq!(members(&left_out, "reason"), [reason]);
    assert_eq!(members(&left_out, "kind"), ["resource"]);
    let told = wait_for_events(&gateway, &who, "tool.skipped").await;
    assert!(told.len() == 1 && told[0].to_string().contains(reason), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn icons_of_servers_are_in_no_list() {
    let icon = "https://icons.example/a.png";
    let icons = json!([{"src": icon, "mimeType": "image/png", "sizes": ["48x48"]}]);
    let mut one = mcp_tool("one");
    one["icons"] = icons.clone();
    let old = McpServer::start(vec![one]).await;
    let mut entry = entry("s0000");
    entry["icons"] = icons.clone();
    let prompt =
        json!({"name": "p0000", "icons": icons, "arguments": [{"name": "a", "icons": icons}]});
    let prompts = json!({"prompts": [prompt], "icons": icons});
    let server = Hostile::start(vec![
        tool("prompts/list", Script::Result(prompts.to_string())),
        tool("notes://a", Script::Echo).reading(json!({"name": "a name", "icons": icons})),
        tool("notes://t/{name}", Script::Echo).reading(json!({"name": "a name", "icons": icons})),
        tool("skill://s0000/SKILL.md", Script::Echo).instructing(entry),
    ])
    .await;
    let builder = gateway().http("up", &server.url(), EXPOSED).http("old", &old.url(), "");
    let (gateway, who) = serve_as("mcps:read mcps:invoke", builder);
    let tools = || ask(&gateway, &who, "/mcp", "tools/list", json!({}));
    until(tools, |it| it.text.contains("old__one")).await;
    let skills = || ask(&gateway, &who, "/mcp", "skills/list", json!({}));
    until(skills, |it| it.text.contains("s0000")).await;

    let of_tools = ("tools/list", "tools", "name", "one");
    for path in ["/mcp", "/mcp/up", "/mcp/old"] {
        for (method, list, member, part) in LISTS.into_iter().chain([of_tools]) {
            let is_offered = path == "/mcp" || (path == "/mcp/old") == (list == "tools");
            if !is_offered {
                continue;
            }
            let listed = ask(&gateway, &who, path, method, json!({})).await;
            let names = entries(&listed, list, member);
            assert!(names.len() == 1 && names[0].contains(part), "{path} {}", listed.text);
            let text = &listed.text;
            assert!(!text.contains("icon"), "{path} {method} {text}");
        }
    }
    for (path, count) in [("mcps", 1), ("prompts", 1), ("resources", 2), ("skills", 1)] {
        let listed = gateway.get(&who, &format!("/v1/{path}")).await;
        assert_eq!(items(&listed).len(), count, "{}", listed.text);
        assert!(!listed.text.contains("icon"), "{path} {}", listed.text);
    }
    let whole = gateway.get(&who, "/v1/mcps/old:one").await.ok();
    assert!(!whole.text.contains("icon"), "{}", whole.text);
}
