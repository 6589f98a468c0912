//! The pages in Chromium, on an org whose texts are hostile.

use tokio::process::Command;

use super::{PAGES, POLICIES, Site, hidden, link};
use crate::prelude::*;

const MARKUP: &str = "</pre></textarea><script>alert(1)</script>\"><img src=x onerror=alert(1)>";
/// Bidi overrides, zero width and tag characters: definitions with them are left out, approvals denied.
const HIDDEN: &str = "\u{202e}\u{200b}\u{2066}\u{e0041}";

/// Pages beside those of the navigation; `LIST > START` is the first such link of that list.
const OTHERS: [&str; 11] = [
    "/console/events > /console/events/evt_",
    "/console/tools > /console/tools/up",
    "/console/tools/up%3Apay",
    "/console/tools?kind=resource",
    "/console/tools?kind=prompt > /console/tools/prompt",
    "/console/tools?kind=skill > /console/tools/skill",
    "/console/tools?kind=resource&q=picture > /console/tools/resource",
    "/console/tools?kind=resource&q=made > /console/tools/resource",
    "/console/policies > /console/policies/",
    "/console/events?type=none",
    "/console/approvals?status=pending",
];

/// Pages that say what is wrong, of which pictures are taken.
const BROKEN: [&str; 4] = [
    "/console/tools/none%3Anone",
    "/console/events?decision=maybe",
    "/console/events?cursor=none",
    "/console/events/evt_01M754BKTKX1YB8Q05NMW9TP4G",
];

impl Site {
    /// A site where everything that strangers name is hostile.
    async fn start_hostile() -> Self {
        let long = format!("{MARKUP} {}", "long ".repeat(3_000));
        let entry = json!({"frontmatter": {"name": "refunds", "description": MARKUP}, "resources": [
            {"uri": "skill://x/refunds/SKILL.md", "digest": format!("sha256:{:064}", 7), "size": 7},
        ]});
        let tools = vec![
            tool("pay", Script::Echo).described(MARKUP),
            tool("write", Script::Large(1 << 20)),
            tool("read", Script::Echo).described(&long),
            tool("left", Script::Echo).described(HIDDEN),
            tool("ask", Script::Echo).described(MARKUP).prompting(json!([{"name": MARKUP}])),
            tool("notes://picture", Script::Echo).described(&long).reading(json!({"name": MARKUP})),
            tool("notes://made/{name}{?part}", Script::Echo).reading(json!({"name": MARKUP})),
            tool("skill://x/refunds/SKILL.md", Script::Echo).instructing(entry),
        ];
        let many = (0..60).map(|n| tool(&format!("{}_{n}", "long_name".repeat(6)), Script::Echo));
        let upstream = Hostile::start(tools.into_iter().chain(many).collect()).await;
        let gateway = gateway()
            .config("[login]\nlinks = true")
            .policies(POLICIES)
            .http(
                "up",
                &upstream.url(),
                "expose = [\"tools\", \"prompts\", \"resources\", \"skills\"]",
            )
            .stdio("down", &["sh", "-c", "echo '<b>DATABASE_URL</b> is missing' >&2; exit 3"], "")
            .start();
        let org = gateway.org("acme <i>", &ENOUGH);
        Self { gateway, upstream, org }
    }
}

/// Faults that `console.mjs` finds.
pub(super) async fn run_browser(mode: &str, input: &Value) -> Vec<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/servers/console.mjs");
    let output = Command::new("node")
        .args([script, mode, &input.to_string()])
        .env("PORTCULLIS_TEST_SERVERS", servers())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let faults = said["faults"].as_array().unwrap();
    faults.iter().map(|fault| fault.as_str().unwrap().to_owned()).collect()
}

/// With `PORTCULLIS_TEST_PICTURES`, a folder, the pages of this org are pictured there.
#[tokio::test(flavor = "multi_thread")]
async fn every_page_holds_in_every_look_with_keyboard_and_without_script() {
    let site = Site::start_hostile().await;
    let asking = site.browser("Mia <script>alert(1)</script>", "member").await;
    let mut approval = String::new();
    let hostile = json!({"text": format!("{MARKUP}{HIDDEN}")});
    for (name, input) in
        [("read", hostile), ("write", json!({})), ("pay", json!({ "text": MARKUP }))]
    {
        let path = format!("/console/tools/up%3A{name}");
        let token = hidden(&asking.open(&path).await, "form_token");
        let raw = input.to_string();
        let page = asking.submit(&path, &[("form_token", &token), ("raw", &raw)]).await;
        assert!(page.text.len() < 4 << 20 && !page.text.contains(MARKUP), "{name}");
        if name == "pay" {
            approval = link(&page, "/console/approvals/apr_");
        }
    }
    let providers = site.browser("Ada", "admin").await.open("/console/providers").await;
    let said = "&#60;b&#62;DATABASE_URL&#60;/b&#62; is missing";
    assert!(providers.text.contains(said), "{}", providers.text);
    let token = hidden(&asking.open("/console/tools/up%3Aread").await, "form_token");
    for n in 0..60 {
        let raw = json!({ "n": n }).to_string();
        let fields = [("form_token", &*token), ("raw", &raw)];
        asking.submit("/console/tools/up%3Aread", &fields).await;
    }
    let person = ["principal", "create", "finance", "--org", &site.org, "--role", "admin"];
    let id = site.gateway.admin(&person)["id"].as_str().unwrap().to_owned();
    site.gateway.admin(&["principal", "set-groups", &id, "finance"]);
    let made = site.gateway.admin(&["login-link", "--principal", &id]);
    let (_, code) = made["url"].as_str().unwrap().split_once("code=").unwrap();
    let paths: Vec<&str> = PAGES.iter().map(|(path, _)| *path).chain(OTHERS).collect();

    let login = format!("{}/login/link?code={code}", site.gateway.url());
    let folder = std::env::var("PORTCULLIS_TEST_PICTURES").ok();
    let described = json!({"login": login, "paths": paths, "approval": approval, "folder": folder,
        "broken": BROKEN});
    let faults = run_browser("check", &described).await;

    assert!(faults.is_empty(), "{faults:#?}");
}
