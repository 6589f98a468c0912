//! Prompts, resources, templates and skills at `GET /console/tools`, `GET /console/tools/{id}`, `POST /console/tools/{id}`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portcullis_core::json;

use super::{Site, hidden, link};
use crate::{
    login::browser::{Browser, Page},
    prelude::*,
    v1::connect,
};

const KEYED: &str =
    "expose = [\"tools\", \"prompts\", \"resources\", \"skills\"]\nauth = \"api_key\"";

const POLICIES: &str = r#"
@id("all") permit (principal, action in Mcp::Action::"*:*", resource);
@id("made") permit (principal, action == Mcp::Action::"resource:up", resource) when { !context.resource.listed };
@id("never") forbid (principal, action == Mcp::Action::"prompt:up:never", resource);
@id("not-mia") forbid (principal in Mcp::Group::"Mia", action in [Mcp::Action::"prompt:up:greet", Mcp::Action::"skill:up:acme/refunds"], resource);
@id("no-board") forbid (principal, action in Mcp::Action::"kind:resource", resource is Mcp::Resource)
when { context.resource.path like "*/board" };
"#;

const ATTACK: &str = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}";
const SHOWN: &str =
    "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;";
const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"/>";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and so on";
const MANUAL: &str =
    "---\nname: refunds\ndescription: Does refunds.\n---\n<script>alert(1)</script>\n";
const SKILL: &str = "skill://acme/refunds/SKILL.md";

fn offered() -> Vec<HostileTool> {
    let result =
        |member: &str, value: Value| Script::Result(json!({ member: [value] }).to_string());
    let text = |uri: &str, media_type: &str, text: &str| {
        let content = json!({"uri": uri, "mimeType": media_type, "text": text});
        tool(uri, result("contents", content)).reading(json!({"name": "n", "mimeType": media_type}))
    };
    let blob = |uri: &str, media_type: &str, bytes: &[u8]| {
        let content = json!({"uri": uri, "mimeType": media_type, "blob": STANDARD.encode(bytes)});
        tool(uri, result("contents", content)).reading(json!({"name": "n"}))
    };
    let prompt = |name: &str, content: Value| {
        let said = result("messages", json!({"role": "assistant", "content": content}));
        let who = json!({"name": "who", "description": "<i>Whom</i> to greet", "required": true});
        tool(name, said).prompting(json!([who, {"name": "tone"}]))
    };
    let digest = json::sha256(&[MANUAL.as_bytes()]);
    let entry = json!({
        "frontmatter": {"name": "refunds", "description": "Does refunds."},
        "resources": [{"uri": SKILL, "digest": digest, "size": MANUAL.len()}],
    });
    let picture = json!({"type": "image", "data": STANDARD.encode(PNG), "mimeType": "image/png"});
    vec![
        tool("add", Script::Echo),
        prompt("greet", json!({"type": "text", "text": ATTACK})),
        prompt("look", picture),
        prompt("never", json!({"type": "text", "text": "x"})),
        text("notes://page", "text/html", ATTACK),
        text("notes://drawing", "image/svg+xml", SVG),
        text("notes://x/board", "text/plain", "minutes"),
        blob("notes://vector", "image/svg+xml", SVG.as_bytes()),
        blob("notes://picture", "image/png", PNG),
        blob("notes://forged", "image/png", b"<html><script>alert(1)</script></html>"),
        tool("notes://made/{name}{?part}", Script::Echo).reading(json!({"name": "t"})),
        tool(SKILL, Script::Echo).instructing(entry),
        text(SKILL, "text/markdown", MANUAL),
    ]
}

/// A site whose provider is connected by its org alone.
async fn exposed() -> Site {
    let upstream = Hostile::start(offered()).await;
    let builder = gateway().config("[login]\nlinks = true").policies(POLICIES);
    let gateway = builder.http("up", &upstream.url(), KEYED).start();
    let org = gateway.org("acme", &ENOUGH);
    let operator = gateway.service(&org, ALL_SCOPES);
    let key = json!({"api_key": "the-key-0123456789"});
    connect::connect(&gateway, &operator, "up", &key).await.ok();
    upstream.forget();
    Site { gateway, upstream, org }
}

/// The page at the id of what it is about, encoded whole.
fn page_of(id: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    format!("/console/tools/{}", id.bytes().map(letter).collect::<String>())
}

/// Sends the form of a page, and checks that its answer executes nothing.
async fn use_from(browser: &Browser<'_>, id: &str, fields: &[(&str, &str)]) -> Page {
    let token = hidden(&browser.open("/console/tools").await, "form_token");
    let fields: Vec<_> = fields.iter().copied().chain([("form_token", &*token)]).collect();
    let answer = browser.submit(&page_of(id), &fields).await;
    for refused in ["<script>", "<img src=x", "<svg", "data:image/svg", "\u{202e}"] {
        assert!(!answer.text.contains(refused), "{id} {refused}: {}", answer.text);
    }
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_is_listed_as_far_as_the_person_may_use_it() {
    let site = exposed().await;
    let ada = site.browser("Ada", "admin").await;
    let mia = site.browser("Mia", "member").await;

    // The query, what is shown to Ada, what is shown to nobody, and what is not shown to Mia alone.
    for (query, shown, unseen, not_to_mia) in [
        ("", "up:add", "up:look", "none"),
        ("?kind=tool&access=allow", "up:add", "up:look", "none"),
        ("?kind=prompt", "up:look", "up:never", "up:greet"),
        ("?kind=prompt&q=look&access=deny", "up:look", "up:greet", "none"),
        ("?kind=resource", "up:notes://picture", "up:notes://x/board", "none"),
        ("?kind=resource&provider=up", "up:notes://made/{name}", "up:add", "none"),
        ("?kind=skill", "Does refunds.", "up:notes://", "Does refunds."),
    ] {
        let path = format!("/console/tools{query}");
        let (to_ada, to_mia) = (ada.open(&path).await.ok(), mia.open(&path).await.ok());
        assert!(to_ada.text.contains(shown), "{query}: {}", to_ada.text);
        assert_eq!(to_mia.text.contains(shown), shown != not_to_mia, "{query}: {}", to_mia.text);
        assert!(!to_ada.text.contains(&format!(">{unseen}")), "{query}: {}", to_ada.text);
        assert!(!to_mia.text.contains(&format!(">{not_to_mia}<")), "{query}: {}", to_mia.text);
    }
    let list = ada.open("/console/tools?kind=resource&limit=2").await;
    let more = link(&list, "/console/tools?cursor=").replace("&amp;", "&");
    let next = ada.open(&more).await.ok();
    assert!(next.text.contains("<option value=\"resource\" selected>"), "{}", next.text);
    has!(ada.open("/console/tools?kind=resource_template").await, 400);

    for id in ["prompt:up:greet", &format!("skill:up:{SKILL}"), &format!("resource:up:{SKILL}")] {
        has!(ada.open(&page_of(id)).await, 200);
        has!(mia.open(&page_of(id)).await, 404);
    }
    assert!(site.upstream.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_and_resources_are_used_by_governed_calls_and_nothing_of_them_is_executed() {
    let site = exposed().await;
    let ada = site.browser("Ada", "admin").await;
    let greet = ada.open(&page_of("prompt:up:greet")).await.ok();
    for shown in ["in:/who", "&lt;i&gt;Whom&lt;/i&gt;", "who <b title=\"required\">*</b>"] {
        assert!(greet.text.contains(shown), "{shown}: {}", greet.text);
    }
    let [skill_file, of_skill] = ["resource", "skill"].map(|kind| format!("{kind}:up:{SKILL}"));
    let skill = ada.open(&page_of(&of_skill)).await.ok();
    let reader = page_of(&skill_file);
    assert!(skill.text.contains(&format!("href=\"{reader}\"")), "{reader}: {}", skill.text);
    let image = format!("src=\"data:image/png;base64,{}\"", STANDARD.encode(PNG));
    let not_shown = |bytes: usize| format!("{bytes} bytes · not shown");

    // Id, fields, what is shown, and the id in the event.
    for (id, fields, shown, target) in [
        ("prompt:up:greet", vec![("in:/who", "Ana")], SHOWN.to_owned(), "prompt:up:greet"),
        ("prompt:up:look", vec![("raw", "{\"who\": \"Ana\"}")], image.clone(), "prompt:up:look"),
        ("resource:up:notes://page", vec![], SHOWN.to_owned(), "resource:up:notes://page"),
        (
            "resource:up:notes://drawing",
            vec![],
            "&lt;svg".to_owned(),
            "resource:up:notes://drawing",
        ),
        ("resource:up:notes://vector", vec![], not_shown(SVG.len()), "resource:up:notes://vector"),
        ("resource:up:notes://forged", vec![], not_shown(38), "resource:up:notes://forged"),
        ("resource:up:notes://picture", vec![], image, "resource:up:notes://picture"),
        (
            "resource:up:notes://made/{name}{?part}",
            vec![("in:/name", "a b"), ("in:/part", "1")],
            "notes://made/a%20b?part=1".to_owned(),
            "resource:up:notes://made/{name}{?part}",
        ),
        (&*skill_file, vec![], "&lt;script&gt;alert(1)".to_owned(), &*of_skill),
    ] {
        let answer = use_from(&ada, id, &fields).await.ok();

        assert!(answer.text.contains("allow</span> by "), "{id}: {}", answer.text);
        assert!(answer.text.contains(&shown), "{id} {shown}: {}", answer.text);
        let csp = answer.headers["content-security-policy"].to_str().unwrap();
        let with_picture =
            if shown.starts_with("src=") { "img-src 'self' data:;" } else { "img-src 'self';" };
        assert!(csp.contains(with_picture), "{id}: {csp}");
        assert!(csp.contains("default-src 'none'; style-src 'self'; script-src 'self';"), "{id}");
        let event = ada.open(&link(&answer, "/console/events/evt_")).await;
        let page = page_of(target);
        assert!(event.text.contains(&format!("href=\"{page}\"")), "{page}: {}", event.text);
    }
    assert_eq!(site.upstream.calls().len(), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_use_it_gets_neither_its_page_nor_its_text_from_a_form() {
    let site = exposed().await;
    let ada = site.browser("Ada", "admin").await;
    let mia = site.browser("Mia", "member").await;
    let auditor = site.browser("Aud", "auditor").await;
    for (browser, id, opened, sent) in [
        (&ada, "prompt:up:never", 404, 404),
        (&ada, "resource:up:notes://x/board", 404, 404),
        (&ada, "resource:up:notes://made/board", 404, 404),
        (&ada, "resource:up:*", 404, 404),
        (&mia, "prompt:up:greet", 404, 404),
        (&auditor, "prompt:up:look", 200, 200),
    ] {
        let page = browser.open(&page_of(id)).await;
        let answer = use_from(browser, id, &[("raw", "{\"who\": \"x\"}")]).await;
        assert_eq!((page.status.as_u16(), answer.status.as_u16()), (opened, sent), "{id}");
        assert!(!page.text.contains("name=\"raw\""), "{id}: {}", page.text);
    }
    let token_of_ada = hidden(&ada.open("/console/tools").await, "form_token");

    // Another org, to which the provider is not connected.
    let site = site.anew();
    let eve = site.browser("Eve", "admin").await;
    for id in
        ["prompt:up:look", "resource:up:notes://page", "resource:up:notes://made/{name}{?part}"]
    {
        has!(eve.open(&page_of(id)).await, 404);
        has!(use_from(&eve, id, &[("raw", "{\"uri\": \"notes://page\"}")]).await, 404);
        for fields in [vec![], vec![("form_token", "AAAA")], vec![("form_token", &*token_of_ada)]] {
            has!(eve.submit(&page_of(id), &fields).await, 400);
        }
    }
    let listed = eve.open("/console/tools?kind=prompt").await.ok();
    assert!(listed.text.contains("No prompt is visible to you."), "{}", listed.text);
    assert!(site.upstream.calls().is_empty());
}
