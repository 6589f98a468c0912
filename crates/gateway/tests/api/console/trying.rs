//! Tools tried from their pages: `POST /console/tools/{id}`, `POST /console/providers/{id}/test`.

use std::process::Command;

use portcullis_testkit::CLIENT_SECRET;

use super::{POLICIES, Site, hidden, link, looks::run_browser};
use crate::{prelude::*, v1::connect::come_back};

/// The text of the first block of code after a heading, with its entities read.
fn block(page: &str, heading: &str) -> String {
    let (_, rest) = page.split_once(&format!("<h3>{heading}</h3><pre>")).expect("a snippet");
    let (text, _) = rest.split_once("</pre>").unwrap();
    [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")]
        .into_iter()
        .fold(text.to_owned(), |text, (entity, letter)| text.replace(entity, letter))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_several_shapes_makes_the_call() {
    let schema = json!({"type": "object", "required": ["target"], "properties": {
        "target": {"oneOf": [
            {"title": "a person", "type": "object", "properties": {"mail": {"type": "string"}}, "required": ["mail"]},
            {"title": "a <b>room</b>", "type": "object", "properties": {"number": {"$ref": "#/$defs/Number"}}, "required": ["number"]},
        ]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5, "description": "The most"},
    }, "$defs": {"Number": {"type": "integer", "minimum": 1}}});
    let upstream = Hostile::start(vec![tool("book", Script::Echo).taking(schema)]).await;
    let gateway = gateway()
        .config("[login]\nlinks = true")
        .policies(POLICIES)
        .http("up", &upstream.url(), "")
        .start();
    let org = gateway.org("acme", &ENOUGH);
    let site = Site { gateway, upstream, org };
    let browser = site.browser("Ada", "admin").await;
    let page = browser.open("/console/tools/up%3Abook").await;
    for shown in [
        "name=\"of:/target\" value=\"1\"",
        "a &lt;b&gt;room&lt;/b&gt;",
        "placeholder=\"5\"",
        "<li class=\"depth2\"><code>number</code>",
        "integer \u{b7} minimum 1",
    ] {
        assert!(page.text.contains(shown), "{shown}: {}", page.text);
    }
    let token = hidden(&page, "form_token");

    let fields = [
        ("form_token", &*token),
        ("of:/target", "1"),
        ("in:/target~@0/mail", "not@chosen.example"),
        ("in:/target~@1/number", "7"),
        ("in:/tags", "a\r\nb"),
        ("in:/limit", ""),
    ];
    let answer = browser.submit("/console/tools/up%3Abook", &fields).await;

    assert!(answer.text.contains("data-state=\"allow\""), "{}", answer.text);
    let sent: Value = serde_json::from_str(&site.upstream.calls()[0].arguments()).unwrap();
    assert_eq!(sent, json!({"target": {"number": 7}, "tags": ["a", "b"]}));
    let again = answer.text.split_once("name=\"in:/target~@1/number\"").unwrap().1;
    assert!(again.split_once('>').unwrap().0.contains("value=\"7\""), "it is filled in: {again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lines_for_programs_make_the_same_call_and_clients_are_given_settings() {
    // The lines for programs make the same call.
    let site = Site::start().await;
    let browser = site.browser("Ada", "admin").await;
    let agent = site.gateway.service(&site.org, "mcps:read mcps:invoke");
    let token = hidden(&browser.open("/console/tools/up%3Aread").await, "form_token");
    let input = json!({"text": "it's \"quoted\" \\n $HOME `x` \u{1f600} \u{202e}", "none": null});
    let raw = input.to_string();

    let page =
        browser.submit("/console/tools/up%3Aread", &[("form_token", &token), ("raw", &raw)]).await;
    let run = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program)
            .args(arguments)
            .env("TOKEN", &agent.token)
            .env("NODE_PATH", servers().join("node_modules"))
            .current_dir(servers())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    };
    tokio::task::block_in_place(|| {
        run(Path::new("sh"), &["-c", &block(&page.text, "curl")]);
        let python = servers().join("venv/bin/python");
        run(&python, &["-c", &block(&page.text, "Python")]);
        let script = block(&page.text, "TypeScript");
        run(Path::new("node"), &["--input-type=module", "-e", &script]);
    });

    let calls = site.upstream.calls();
    assert_eq!(calls.len(), 4);
    for call in calls {
        let sent: Value = serde_json::from_str(&call.arguments()).unwrap();
        assert_eq!(sent, input);
    }

    // Clients are given settings and links.
    let site = site.anew();
    let page = site.browser("Mia", "member").await.open("/console/clients").await;

    for shown in [
        "Claude Code",
        "cursor://anysphere.cursor-deeplink/mcp/install?name=portcullis",
        "vscode:mcp/install?",
    ] {
        assert!(page.text.contains(shown), "{shown}: {}", page.text);
    }
    assert!(page.text.contains(&format!("{}/mcp", site.gateway.url())), "{}", page.text);
    assert!(!page.text.contains("PORTCULLIS_TOKEN"), "clients log people in here: {}", page.text);
    assert_eq!(link(&page, "vscode:").matches(' ').count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_on_when_its_connection_is_made() {
    let saas = Saas::start(Habits::default()).await;
    let gateway = gateway()
        .config("[login]\nlinks = true")
        .http("saas", &saas.mcp(), &saas.oauth())
        .env("SAAS_SECRET", CLIENT_SECRET)
        .start();
    let org = gateway.org("acme", &ENOUGH);
    let upstream = Hostile::start(Vec::new()).await;
    let site = Site { gateway, upstream, org };
    let browser = site.browser("Ada", "admin").await;
    let unconnected = browser.open("/console/providers").await;
    assert!(unconnected.text.contains("a person who authorizes it"), "{}", unconnected.text);
    let token = hidden(&unconnected, "form_token");
    let connecting = async |more: &[(&str, &str)]| {
        let mut fields = vec![("form_token", &*token), ("slug", "saas"), ("owner", "me")];
        fields.extend(more);
        browser.submit("/console/providers/connect", &fields).await
    };
    let come_back_from = async |begun: &str, account: &str| {
        let (_, address) = begun.split_once("url=").expect("a page that goes on");
        let address =
            address.split_once('"').unwrap().0.replace("&amp;", "&").replace("&#38;", "&");
        let back = come_back(&saas.consent(&address, account).await).await;
        let back = back.headers()["location"].to_str().unwrap().to_owned();
        let path = back.strip_prefix(site.gateway.url()).expect("the own console").to_owned();
        browser.open(&path).await
    };

    let page = come_back_from(&connecting(&[]).await.text, "octocat").await;
    has!(connecting(&[("confirm", &hidden(&page, "confirm"))]).await, 303);
    let list = browser.open("/console/providers").await;
    assert!(!list.text.contains("Not connected yet"), "{}", list.text);
    let id = link_of_test(&list.text);
    let tested = browser.submit(&id, &[("form_token", &token)]).await;
    assert!(tested.text.contains("<strong>saas listed"), "{}", tested.text);

    saas.end_all("octocat");
    let fields = [("form_token", &*token), ("raw", "{}")];
    let answer = browser.submit("/console/tools/saas%3Awhoami", &fields).await;
    assert!(answer.text.contains("Connect saas</button>"), "{}", answer.text);
    assert_eq!(hidden(&answer, "tool"), "saas:whoami");
    let tested = browser.submit(&id, &[("form_token", &token)]).await;
    assert!(tested.text.contains("saas was not reached"), "{}", tested.text);
    assert!(tested.text.contains("provider_auth_required"), "{}", tested.text);
    let calls = saas.calls().len();
    let page = come_back_from(&connecting(&[]).await.text, "hubot").await;
    let waiting = [("confirm", &*hidden(&page, "confirm")), ("tool", "saas:whoami"), ("raw", "{}")];
    let answer = connecting(&waiting).await.ok();

    let (_, shown) = answer.text.split_once("<section").expect("an answer");
    assert!(shown.contains("hubot"), "{shown}");
    assert_eq!(saas.calls().len(), calls + 1, "once");
}

fn link_of_test(page: &str) -> String {
    let (path, _) = page.split_once("/test\"").expect("a button that tests");
    format!("{}/test", path.rsplit_once("action=\"").unwrap().1)
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_browser_the_json_stays_in_step_and_an_approved_call_goes_on() {
    let schema = json!({"type": "object", "properties": {
        "text": {"type": "string"}, "count": {"type": "integer"},
        "to": {"oneOf": [{"title": "name", "type": "string"}, {"title": "id", "type": "integer"}]},
        "parts": {"type": "array", "items": {"type": "object", "properties": {
            "name": {"type": "string"}, "sizes": {"type": "array", "items": {"type": "number"}}}}},
    }});
    let upstream = Hostile::start(vec![tool("pay", Script::Echo).taking(schema)]).await;
    let gateway = gateway()
        .config("[login]\nlinks = true")
        .policies(POLICIES)
        .http("up", &upstream.url(), "")
        .start();
    let org = gateway.org("acme", &ENOUGH);
    let site = Site { gateway, upstream, org };
    let login = |name: &str| {
        let made = ["principal", "create", name, "--org", &site.org, "--role", "admin"];
        let id = site.gateway.admin(&made)["id"].as_str().unwrap().to_owned();
        site.gateway.admin(&["principal", "set-groups", &id, name]);
        let made = site.gateway.admin(&["login-link", "--principal", &id]);
        let (_, code) = made["url"].as_str().unwrap().split_once("code=").unwrap();
        format!("{}/login/link?code={code}", site.gateway.url())
    };
    let described = json!({
        "login": login("ada"), "approver": login("finance"), "paths": ["/console/tools/up%3Apay"],
    });

    let faults = run_browser("try", &described).await;

    assert!(faults.is_empty(), "{faults:#?}");
    let calls = site.upstream.calls();
    assert_eq!(calls.len(), 1, "the approved call, once");
    let sent: Value = serde_json::from_str(&calls[0].arguments()).unwrap();
    let parts = json!([{"name": "b", "sizes": [1, 2.5]}, {"name": "c"}]);
    assert_eq!(sent, json!({"text": "two\nlines", "count": 12, "to": 7, "parts": parts}));
}
