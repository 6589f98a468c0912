//! The console: `GET /console`, `GET /console/assets/{name}`, `GET /console/events`,
//! `GET /console/events/{id}`, `GET /console/tools`, `GET /console/tools/{id}`,
//! `POST /console/tools/{id}`, `GET /console/approvals`, `GET /console/approvals/{id}`,
//! `POST /console/approvals/{id}`, `GET /console/policies`, `GET /console/policies/{id}`,
//! `GET /console/providers`, `GET /console/people`, `GET /console/tokens`,
//! `POST /console/tokens/{id}/revoke`, `GET /console/sessions`, `POST /console/sessions/{id}/end`,
//! `GET /console/clients`, `POST /console/clients/{id}/withdraw`, `GET /console/waiting`,
//! `POST /console/waiting/{id}/accept`, `GET /console/live`, `GET /console/limits`, `GET /console/dlp`,
//! `POST /console/dlp`.

mod capabilities;
mod dlp;
mod empty;
mod log;
mod looks;
mod people;
mod trying;
mod waiting;
mod workbench;

use crate::{
    login::browser::{Browser, Page},
    prelude::*,
};

/// Pages without a parameter, and whether a member sees them.
const PAGES: [(&str, bool); 15] = [
    ("/console", true),
    ("/console/events", true),
    ("/console/log", false),
    ("/console/tools", true),
    ("/console/sessions", true),
    ("/console/clients", true),
    ("/console/providers", true),
    ("/console/policies", false),
    ("/console/workbench", false),
    ("/console/dlp", false),
    ("/console/approvals", true),
    ("/console/limits", false),
    ("/console/people", false),
    ("/console/tokens", false),
    ("/console/waiting", false),
];

const POLICIES: &str = r#"
@id("all") permit (principal, action, resource);
@id("no-wires") @reason("Wires are made by people") forbid (principal, action == Mcp::Action::"up:wire", resource);
@id("payouts") @require_approval("approvers=finance") forbid (principal, action == Mcp::Action::"up:pay", resource);
"#;

/// A gateway with a console, some tools, and people.
struct Site {
    gateway: Gateway,
    upstream: Hostile,
    org: String,
}

impl Site {
    async fn start() -> Self {
        let tools = ["pay", "wire", "read", "write"].map(|name| tool(name, Script::Echo));
        let upstream = Hostile::start(tools.to_vec()).await;
        let gateway = gateway()
            .config("[login]\nlinks = true")
            .policies(POLICIES)
            .http("up", &upstream.url(), "")
            .start();
        let org = gateway.org("acme", &ENOUGH);
        Self { gateway, upstream, org }
    }

    /// The same with another org, as if nothing had been called.
    fn anew(self) -> Self {
        self.upstream.forget();
        Self { org: fresh_org(&self.gateway), ..self }
    }

    /// The browser of a person with this role.
    async fn browser(&self, name: &str, role: &str) -> Browser<'_> {
        let person = ["principal", "create", name, "--org", &self.org, "--role", role];
        let made = self.gateway.admin(&person);
        let id = made["id"].as_str().unwrap().to_owned();
        if role == "member" {
            self.gateway.admin(&["principal", "set-groups", &id, name]);
        }
        let made = self.gateway.admin(&["login-link", "--principal", &id]);
        let (_, code) = made["url"].as_str().unwrap().split_once("code=").unwrap();
        let browser = Browser::new(&self.gateway);
        let page = browser.submit("/login/link", &[("code", code)]).await;
        assert!(page.text.contains("url=/console\""), "{}", page.text);
        browser
    }
}

/// The value of the hidden field `name` of a page.
fn hidden(page: &Page, name: &str) -> String {
    let (_, rest) = page.text.split_once(&format!("name=\"{name}\" value=\"")).expect("a field");
    rest.split_once('"').unwrap().0.to_owned()
}

/// The first address of a form of a page that begins so.
fn link_of_action(page: &Page, start: &str) -> String {
    let (_, rest) = page.text.split_once(&format!("action=\"{start}")).expect("an action");
    format!("{start}{}", rest.split_once('"').unwrap().0)
}

/// The first link of a page that begins so.
fn link(page: &Page, start: &str) -> String {
    let found = page.text.split_once(&format!("href=\"{start}"));
    let (_, rest) = found.unwrap_or_else(|| panic!("no link {start}: {}", page.text));
    format!("{start}{}", rest.split_once('"').unwrap().0)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_signed_in_is_sent_to_the_login_and_comes_back() {
    let site = Site::start().await;
    let stranger = Browser::new(&site.gateway);

    for (path, _) in PAGES {
        let answer = stranger.open(path).await;

        let back = path.replace('/', "%2F");
        assert_eq!(answer.status, 303, "{path}");
        assert_eq!(answer.headers["location"], format!("/login?return_to={back}"), "{path}");
        assert!(!answer.text.contains("<table"), "{path}");
    }
    let live = stranger.open("/console/live").await;
    assert_eq!(live.headers["location"], "/login?return_to=%2Fconsole%2Flive");
    let own = site.gateway.url();
    for (path, page, back) in [
        ("/console/tools/up%3Aread", "", "/console/tools"),
        (
            "/console/tools/up%3Aread", "/console/tools/up%3Aread?a=b",
            "/console/tools/up%3Aread?a=b",
        ),
        ("/console/tokens/tok_x/revoke", "/console/tokens?q=x", "/console/tokens?q=x"),
        ("/console/tokens/tok_x/revoke", "/consoles", "/console/tokens"),
        ("/console/approvals/apr_x", "/login", "/console/approvals"),
    ] {
        let form = stranger.form(path, &[("raw", "{}")]).header("origin", own);
        let answer = stranger.send(form.header("referer", format!("{own}{page}"))).await;

        let back = back.replace('%', "%25").replace('/', "%2F").replace('?', "%3F");
        let back = back.replace('=', "%3D");
        assert_eq!(answer.status, 200, "{path}: a form leads to issuers by a page only");
        let to = format!("url=/login?return_to={back}\"");
        assert!(answer.text.contains(&to), "{to}: {}", answer.text);
    }
    assert_eq!(site.upstream.calls().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_shows_what_the_role_may_see_and_lets_nothing_foreign_in() {
    let site = Site::start().await;
    let admin = site.browser("Ada", "admin").await;
    let member = site.browser("Mia", "member").await;

    for (path, for_members) in PAGES {
        let seen = admin.open(path).await;
        let asked = member.open(path).await;

        assert_eq!(seen.status, 200, "{path}: {}", seen.text);
        let policy = seen.headers["content-security-policy"].to_str().unwrap();
        for needed in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(needed), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(seen.headers["cache-control"], "no-store", "{path}");
        assert!(seen.headers.contains_key("x-ratelimit-limit"), "{path}");
        assert_eq!(asked.status, if for_members { 200 } else { 403 }, "{path}: {}", asked.text);
        let entry = format!("<a href=\"{path}\"");
        assert!(seen.text.contains(&entry), "{path}");
        assert_eq!(asked.text.contains(&entry), for_members, "{path}: {}", asked.text);
        assert!(!seen.text.contains("onclick") && !seen.text.contains("style=\""), "{path}");
    }
    for (name, kind) in [
        ("console.css", "text/css; charset=utf-8"),
        ("console.js", "text/javascript; charset=utf-8"),
        ("log.js", "text/javascript; charset=utf-8"),
        ("proof.js", "text/javascript; charset=utf-8"),
        ("try.js", "text/javascript; charset=utf-8"),
        ("workbench.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ] {
        let asset = Browser::new(&site.gateway).open(&format!("/console/assets/{name}")).await;

        assert_eq!(
            (asset.status.as_u16(), asset.headers["content-type"].to_str().unwrap()),
            (200, kind)
        );
    }
    has!(Browser::new(&site.gateway).open("/console/assets/other").await, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_from_a_page_is_governed_and_what_a_page_cannot_send_calls_nothing() {
    // A call from a page is governed and leads to its event.
    let site = Site::start().await;
    let browser = site.browser("Ada", "admin").await;
    let home = browser.open("/console").await;
    assert!(home.text.contains("Make the first call"), "{}", home.text);
    let page = browser.open("/console/tools/up%3Aread").await;
    let token = hidden(&page, "form_token");

    let raw = r#"{"n": 1e2, "text": "<b>x</b>"}"#;
    let fields = [("form_token", &*token), ("raw", raw)];
    let answered = browser.submit("/console/tools/up%3Aread", &fields).await.ok();
    let refused = browser.submit("/console/tools/up%3Awire", &fields).await;

    assert!(
        answered.text.contains("&#60;b&#62;x&#60;/b&#62;")
            || answered.text.contains("&lt;b&gt;x&lt;/b&gt;")
    );
    assert!(!answered.text.contains("<b>x</b>"), "{}", answered.text);
    assert_eq!(site.upstream.calls().len(), 1, "the refused one reached no tool");
    let event = browser.open(&link(&answered, "/console/events/evt_")).await;
    assert!(event.text.contains("up:read") && event.text.contains("Ada"), "{}", event.text);
    for stage in ["Validated", "Decided", "Tool called"] {
        let timed = format!("<strong>{stage}</strong> <span class=\"took\">");
        assert!(event.text.contains(&timed), "{stage}: {}", event.text);
    }
    let denied = browser.open(&link(&refused, "/console/events/evt_")).await;
    assert!(denied.text.contains("<strong>Decided</strong> <span class=\"took\">"));
    assert!(!denied.text.contains("<strong>Tool called</strong> <span class=\"took\">"));
    assert!(denied.text.contains("Wires are made by people"), "{}", denied.text);
    let why = browser.open(&format!("{}?explain=1", link(&refused, "/console/events/evt_"))).await;
    assert!(why.text.contains("no-wires"), "{}", why.text);
    let list = browser.open("/console/events?decision=deny&type=").await;
    assert!(list.text.contains("up:wire") && !list.text.contains("up:read"), "{}", list.text);
    let wrong = browser.open("/console/events?decision=perhaps").await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.text.contains("decision"), "{}", wrong.text);

    // What a page cannot send is refused and calls nothing.
    site.upstream.forget();
    let token = hidden(&browser.open("/console/tools/up%3Aread").await, "form_token");
    let path = "/console/tools/up%3Aread";

    let without = browser.submit(path, &[("raw", "{}")]).await;
    let other = browser.submit(path, &[("raw", "{}"), ("form_token", "AAAA")]).await;
    let fields = [("raw", "{}"), ("form_token", &*token)];
    let foreign = browser.form(path, &fields).header("origin", "https://evil.example");
    let foreign = browser.send(foreign.header("sec-fetch-site", "cross-site")).await;

    for answer in [&without, &other, &foreign] {
        assert_eq!(answer.status, 400, "{}", answer.text);
    }
    for raw in ["[]", "{\"a\": 1, \"a\": 2}", "{}, \"b\": {}", "not json"] {
        let fields = [("raw", raw), ("form_token", &*token)];
        let answer = browser.submit(path, &fields).await;
        assert_eq!(answer.status, 200, "{raw}: {}", answer.text);
        assert!(answer.text.contains("role=\"alert\""), "{raw}: {}", answer.text);
    }
    assert_eq!(site.upstream.calls().len(), 0);
}

/// The next rows of a page that is open.
async fn rows(stream: &mut reqwest::Response) -> String {
    let mut text = String::new();
    while !text.ends_with("\n\n") || text.trim_start_matches(":\n\n").is_empty() {
        let piece = stream.chunk().await.unwrap().expect("rows");
        text += std::str::from_utf8(&piece).unwrap();
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn home_shows_calls_as_plots_and_open_pages_show_them_by_themselves() {
    let site = Site::start().await;
    let browser = site.browser("Ada", "admin").await;
    let member = site.browser("Mia", "member").await;
    let page = browser.open("/console/tools/up%3Aread").await;
    let token = hidden(&page, "form_token");
    let fields = [("form_token", &*token), ("raw", "{}")];
    browser.submit("/console/tools/up%3Aread", &fields).await;

    let list = browser.open("/console/events?type=mcp.invocation").await;
    assert!(list.text.contains("data-live=\"/console/live?type=mcp.invocation\""), "{}", list.text);
    assert!(!browser.open("/console/events?cursor=x").await.text.contains("data-live"));
    let mut stream = browser.listen("/console/live?type=mcp.invocation").await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let first = rows(&mut stream).await;
    assert!(first.contains("data: <tr>") && first.contains("up:read"), "{first}");
    browser.submit("/console/tools/up%3Awire", &fields).await;
    let second = rows(&mut stream).await;
    assert!(second.contains("up:wire") && !second.contains("up:read"), "{second}");
    has!(browser.open("/console/live?decision=perhaps").await, 400);

    for (path, is_there) in [
        ("/console", "Last hour"),
        ("/console?step=hour", "Last two days"),
        ("/console?step=day", "Last 30 days"),
    ] {
        let home = until(
            || browser.open(path),
            |home| home.text.contains("1 allowed") && home.text.contains("1 denied"),
        )
        .await;
        assert!(home.text.contains(is_there), "{path}: {}", home.text);
        assert!(home.text.contains("<svg") && home.text.contains("events signed"), "{path}");
        assert!(home.text.contains("Wires are made by people"), "{path}: {}", home.text);
    }
    let home = member.open("/console").await;
    assert!(!home.text.contains("plot-decisions"), "plots need `audit:read`: {}", home.text);
    let limits = browser.open("/console/limits").await;
    assert!(limits.text.contains("Nobody was over a limit"), "{}", limits.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_viewer_of_a_stream_is_recorded_and_it_ends_with_the_session() {
    // Each viewer of a stream is recorded as one who looks.
    let site = Site::start().await;
    let [ada, bo] = [site.browser("Ada", "auditor").await, site.browser("Bo", "auditor").await];
    let reader = site.gateway.user(&site.org, "admin", "admin audit:read");
    let mut first = ada.listen("/console/live").await;
    rows(&mut first).await;

    let mut second = bo.listen("/console/live").await;
    rows(&mut second).await;

    for name in ["Ada", "Bo"] {
        let path = "/v1/audit/events?type=audit.accessed&limit=100";
        let told = site.gateway.get(&reader, path).await.ok();
        let is_of = |event: &Value| event["detached"]["actor_name"] == name;
        assert!(items(&told).iter().any(is_of), "{name}: {}", told.text);
    }

    // A page that is open ends with its session.
    let site = site.anew();
    let member = site.browser("Mia", "member").await;
    let mut stream = member.listen("/console/live").await;
    let list = member.open("/console/sessions").await;
    let token = hidden(&list, "form_token");
    let path = link_of_action(&list, "/console/sessions/");
    let shown = list.text.contains("href=\"/console/events?actor=usr_");
    assert!(shown && list.text.contains("\">Mia</a>"), "{}", list.text);

    member.submit(&path, &[("form_token", &token)]).await;

    while let Some(piece) = stream.chunk().await.unwrap() {
        let text = String::from_utf8(piece.to_vec()).unwrap();
        assert!(text.starts_with("event: message") || text == ":\n\n", "{text}");
    }

    // Admins revoke tokens and people end their sessions.
    let site = site.anew();
    let admin = site.browser("Ada", "admin").await;
    let member = site.browser("Mia", "member").await;
    let agent = site.gateway.service(&site.org, "mcps:read");
    let token = hidden(&admin.open("/console/tokens").await, "form_token");
    let path = format!("/console/tokens/{}/revoke", agent.token_id);
    let stolen = hidden(&member.open("/console/sessions").await, "form_token");

    has!(member.submit(&path, &[("form_token", &stolen)]).await, 403);
    assert_eq!(site.gateway.get(&agent, "/v1/mcps").await.status, 200);
    has!(admin.submit(&path, &[("form_token", &token)]).await, 303);
    assert_eq!(site.gateway.get(&agent, "/v1/mcps").await.status, 401);

    let list = member.open("/console/sessions").await;
    let path = link_of_action(&list, "/console/sessions/");
    has!(member.submit(&path, &[("form_token", &stolen)]).await, 303);
    assert_eq!(member.open("/console").await.headers["location"], "/login?return_to=%2Fconsole");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_is_approved_in_the_queue_by_another_person() {
    let site = Site::start().await;
    let asking = site.browser("Mia", "member").await;
    let deciding = site.browser("finance", "member").await;
    let page = asking.open("/console/tools/up%3Apay").await;
    let call = [("form_token", hidden(&page, "form_token")), ("raw", "{\"sum\": 7}".to_owned())];
    let call: Vec<(&str, &str)> = call.iter().map(|(name, text)| (*name, &**text)).collect();

    let waits = asking.submit("/console/tools/up%3Apay", &call).await;
    let path = link(&waits, "/console/approvals/apr_");
    let own = asking.open(&path).await;
    let queue = until(
        || deciding.open("/console/approvals?status=pending"),
        |page| page.text.contains(&path),
    )
    .await;
    let shown = deciding.open(&link(&queue, "/console/approvals/apr_")).await;
    let digest = hidden(&shown, "digest");
    let token = hidden(&shown, "form_token");
    let wrong = format!("sha256:{}", "0".repeat(64));
    let decide = |digest: String| {
        let token = token.clone();
        let deciding = &deciding;
        let path = &path;
        async move {
            let fields = [("form_token", &*token), ("digest", &*digest), ("decision", "approve")];
            deciding.submit(path, &fields).await
        }
    };
    let other = decide(wrong).await;
    let approved = decide(digest).await;
    let again = asking.submit("/console/tools/up%3Apay", &call).await;

    let own = own.ok();
    assert!(!own.text.contains("value=\"approve\""), "{}", own.text);
    assert!(own.text.contains("somebody else decides"), "{}", own.text);
    assert!(shown.text.contains("value=\"approve\""), "{}", shown.text);
    assert!(other.text.contains("role=\"alert\""), "{}", other.text);
    assert_eq!(
        (approved.status.as_u16(), approved.headers["location"].to_str().unwrap()),
        (303, &*path)
    );
    assert!(again.text.contains("allow"), "{}", again.text);
    assert_eq!(site.upstream.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_strangers_is_text_in_every_page() {
    let evil = "</pre><script>alert(1)</script>\u{202e}\u{200b}<img src=x onerror=alert(1)>";
    let upstream = Hostile::start(vec![tool("read", Script::Echo).described(evil)]).await;
    let gateway = gateway().config("[login]\nlinks = true").http("up", &upstream.url(), "").start();
    let org = gateway.org("acme <i>", &ENOUGH);
    let site = Site { gateway, upstream, org };
    let browser = site.browser("Eve <script>", "admin").await;
    let page = browser.open("/console/tools/up%3Aread").await;
    let token = hidden(&page, "form_token");
    let raw = json!({ "text": evil }).to_string();
    let fields = [("form_token", &*token), ("raw", &*raw)];
    let answer = browser.submit("/console/tools/up%3Aread", &fields).await;
    let event = browser.open(&link(&answer, "/console/events/evt_")).await;
    let mut pages = vec![page, answer, event];
    for (path, _) in PAGES {
        pages.push(browser.open(path).await);
    }

    for page in pages {
        for markup in ["<script>alert", "<img src=x", "<i>", "\u{202e}", "\u{200b}"] {
            assert!(!page.text.contains(markup), "{markup}: {}", page.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_that_is_switched_off_answers_with_a_page_that_says_so() {
    let gateway = gateway().config("[login]\nlinks = true\n[console]\nenabled = false").start();
    for (path, _) in PAGES {
        let page = Browser::new(&gateway).open(path).await;

        assert_eq!(page.status, 404, "{path}");
        assert!(page.text.contains("[console] enabled"), "{path}: {}", page.text);
    }
}
