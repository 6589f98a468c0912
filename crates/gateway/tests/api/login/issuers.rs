//! Logins at a real OpenID provider: `GET /login/issuers/{name}`, `GET /login/callback`.

mod attacks;
mod nodes;
mod step_up;

use super::browser::{Browser, Page};
use crate::prelude::*;

/// The gateway, as the provider knows it.
const CLIENT: &str = "gateway";
const SECRET: &str = "a secret of the gateway at its issuer";
const SESSION: &str = "portcullis-session";
/// Beginning of the names of the cookies of logins that are under way.
const ATTEMPT: &str = "portcullis-login-";

/// A gateway at which people log in by a provider.
pub(crate) struct Site {
    pub(crate) gateway: Gateway,
    pub(crate) oidc: Oidc,
    pub(crate) org: String,
}

impl Site {
    fn start() -> Self {
        Self::with("", "")
    }

    /// With these settings of the login and of its issuer.
    fn with(login: &str, issuer: &str) -> Self {
        Self::configured(login, issuer, "")
    }

    /// The same with more in the configuration.
    fn configured(login: &str, issuer: &str, more: &str) -> Self {
        Self::enrolled(gateway().config(more), login, issuer)
    }

    /// The same of a gateway that is still to be started, which the provider knows.
    pub(crate) fn enrolled(builder: Builder, login: &str, issuer: &str) -> Self {
        let secret = format!("client_secret = {{ env = \"LOGIN_SECRET\" }}\n{issuer}");
        let builder = builder.env("LOGIN_SECRET", SECRET);
        let site = Self::of(builder, Oidc::start(), login, &secret);
        site.oidc.client(CLIENT, Some(SECRET), site.gateway.url());
        site
    }

    fn of(builder: Builder, oidc: Oidc, login: &str, issuer: &str) -> Self {
        let mut gateway = builder.prepare();
        let org = gateway.org("acme", &ENOUGH);
        gateway.configure(&rule(&oidc, &org));
        gateway.configure(&format!("[login]\n{login}\n{}", entry(&oidc, issuer)));
        gateway.start();
        Self { gateway, oidc, org }
    }

    /// The address at the provider that a browser is sent to for a path of the gateway.
    async fn begin(&self, browser: &Browser<'_>, path: &str) -> String {
        let page = browser.open(path).await;
        assert_eq!(page.status, 303, "{}", page.text);
        let to = page.header("location").to_owned();
        assert!(to.starts_with(self.oidc.issuer()), "{to}");
        to
    }

    /// The path at the gateway that the provider sends the browser of a person back to.
    fn logged_in(&self, at: &str, subject: &str, claims: &Value) -> String {
        let back = self.oidc.browse(at, subject, &person(claims), self.gateway.url());
        back[self.gateway.url().len()..].to_owned()
    }

    /// Logs a person in with a browser.
    async fn log_in(&self, browser: &Browser<'_>, subject: &str, claims: &Value) -> Page {
        let at = self.begin(browser, "/login/issuers/acme").await;
        browser.open(&self.logged_in(&at, subject, claims)).await
    }

    /// The sessions of the org, as the operator sees them.
    fn sessions(&self) -> Vec<Value> {
        let listed = self.gateway.admin(&["session", "list", "--org", &self.org]);
        listed.as_array().or_else(|| listed["items"].as_array()).expect("sessions").clone()
    }

    /// Asserts that the browser has no session.
    async fn assert_nobody(&self, browser: &Browser<'_>, refused: &Page, status: u16) {
        assert_eq!(refused.status, status, "{}", refused.text);
        assert!(browser.cookie(SESSION).is_none(), "{}", refused.text);
        assert!(!browser.open("/login").await.text.contains("Signed in"));
    }
}

/// The trust rule for people.
fn rule(oidc: &Oidc, org: &str) -> String {
    let more = "match = { email_verified = true }\nuser_from = \"sub\"\nmfa_acr = [\"urn:acme:two\"]\n\
                roles = { \"mcp-admins\" = \"admin\", \"*\" = \"member\" }";
    oidc.trust("people", org, CLIENT, more)
}

/// The issuer in the configuration.
fn entry(oidc: &Oidc, more: &str) -> String {
    let issuer = oidc.issuer();
    format!(
        "[[login.issuers]]\nname = \"acme\"\nlabel = \"Acme <ID>\"\nissuer = \"{issuer}\"\n\
         client_id = \"{CLIENT}\"\n{more}\n"
    )
}

/// The claims of a person, and these.
pub(crate) fn person(more: &Value) -> Value {
    let mut claims = json!({"email_verified": true, "name": "Ana <b>", "groups": ["staff"]});
    for (name, value) in more.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

/// A parameter of an address.
fn parameter(url: &str, name: &str) -> Option<String> {
    let url = reqwest::Url::parse(url).unwrap();
    url.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_at_an_issuer_with_what_its_id_token_names() {
    // A person logs in at an issuer and comes back to the page it came from.
    let site = Site::start();
    let browser = Browser::new(&site.gateway);
    let origin = site.gateway.url();

    let sent = browser.open("/login?return_to=%2Fapprovals%2Fx%3Fa%3Db").await;
    assert_eq!(sent.status, 303, "one issuer, and a page to come back to");
    let at = site.begin(&browser, sent.header("location")).await;
    let page =
        browser.open(&site.logged_in(&at, "ana", &json!({"groups": ["mcp-admins"]}))).await.ok();

    for (name, value) in [
        ("response_type", "code"),
        ("client_id", CLIENT),
        ("redirect_uri", &format!("{origin}/login/callback")),
        ("scope", "openid profile email"),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(parameter(&at, name).as_deref(), Some(value), "{at}");
    }
    for name in ["state", "nonce", "code_challenge"] {
        assert_eq!(parameter(&at, name).unwrap().len(), 43, "{name}");
    }
    assert!(page.text.contains("url=/approvals/x?a=b\""), "{}", page.text);
    assert!(browser.cookies_of(ATTEMPT).is_empty());
    let shown = browser.open("/login").await.ok();
    assert!(shown.text.contains("Ana &lt;b&gt;") && shown.text.contains("admin"), "{}", shown.text);
    let sessions = site.sessions();
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0]["method"], "oidc");
    let secret = browser.cookie(SESSION).unwrap();
    assert!(!site.gateway.log().contains(&secret));

    // An id token names many groups and what is too long is told as a limit.
    for (groups, status) in [(600, 200), (2_000, 502)] {
        let names = (0..groups).map(|number| format!("00000000-0000-0000-0000-{number:012}"));
        let groups: Vec<_> = names.collect();
        let browser = Browser::new(&site.gateway);

        let page = site.log_in(&browser, "ana", &json!({"groups": groups})).await;

        assert_eq!(page.status.as_u16(), status, "{}", page.text);
        let is_limit =
            page.text.contains("<code>id_token</code> of the issuer is longer than 64 KiB");
        assert_eq!(is_limit, status == 502, "{}", page.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_are_recorded_and_go_on_in_several_tabs_up_to_eight() {
    // A login is recorded and a principal is made once.
    let site = Site::start();
    let browser = Browser::new(&site.gateway);

    site.log_in(&browser, "ana", &json!({})).await.ok();
    site.log_in(&browser, "ana", &json!({"groups": ["mcp-admins"]})).await.ok();

    let ids: Vec<Value> = site.sessions().iter().map(|it| it["principal_id"].clone()).collect();
    assert_eq!(ids.len(), 1, "the session that the browser had has ended: {ids:?}");
    let auditor = site.gateway.service(&site.org, "audit:read");
    let path = "/v1/audit/events?type=login.succeeded&order=asc";
    let enough =
        |answer: &Page| answer.at("/data/items").as_array().is_some_and(|it| it.len() == 2);
    let events = until(|| site.gateway.get(&auditor, path), enough).await;
    for event in events.at("/data/items").as_array().unwrap() {
        has!(event, "/actor/id": ids[0], "/actor/auth/method": "oidc",
            "/actor/auth/trust": "people");
    }
    let page = browser.open("/login").await.ok();
    assert!(page.text.contains("with the role admin"), "today's role: {}", page.text);

    // Logins begun in several tabs each go on in any order.
    for order in [[0, 1], [1, 0]] {
        let browser = Browser::new(&site.gateway);
        let mut tabs = Vec::new();
        for tab in ["a", "b"] {
            let path = format!("/login/issuers/acme?return_to=%2Foauth%2Fauthorize%3Ftab%3D{tab}");
            let at = site.begin(&browser, &path).await;
            tabs.push((tab, site.logged_in(&at, "ana", &json!({}))));
        }

        for (tab, back) in order.map(|at| &tabs[at]) {
            let page = browser.open(back).await.ok();
            let to = format!("url=/oauth/authorize?tab={tab}\"");
            assert!(page.text.contains(&to), "{order:?}: {}", page.text);
            let session = browser.cookie(SESSION);

            let again = browser.open(back).await.ok();
            assert!(again.text.contains("url=/console\""), "a reload goes on: {}", again.text);
            assert!(
                again.headers.get("set-cookie").is_none() && browser.cookie(SESSION) == session
            );
        }
        assert!(browser.cookies_of(ATTEMPT).is_empty());
    }

    // A ninth login under way takes the place of the oldest.
    let browser = Browser::new(&site.gateway);
    let mut begun = Vec::new();
    for _ in 0..9 {
        begun.push(site.begin(&browser, "/login/issuers/acme").await);
    }
    assert_eq!(browser.cookies_of(ATTEMPT).len(), 8);

    let oldest = browser.open(&site.logged_in(&begun[0], "ana", &json!({}))).await;
    site.assert_nobody(&browser, &oldest, 400).await;
    browser.open(&site.logged_in(&begun[1], "ana", &json!({}))).await.ok();

    assert!(browser.open("/login").await.ok().text.contains("Signed in"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_lists_the_ways_to_log_in_and_cookies_leave_room() {
    // The page lists the ways to log in.
    let site = Site::with("links = true", "");
    let browser = Browser::new(&site.gateway);

    let page = browser.open("/login?return_to=%2Fapprovals").await.ok();
    has!(browser.open("/login/issuers/nobody").await, 404);

    assert!(page.text.contains("Log in with Acme &lt;ID&gt;"), "{}", page.text);
    assert!(page.text.contains("/login/issuers/acme?return_to=%2Fapprovals"), "{}", page.text);
    assert!(page.text.contains("login-link"));

    // Cookies leave room in the head that comes back from an issuer.
    let path = |length: usize| format!("return_to=%2F{}", "x".repeat(length - 1));
    let by_issuer = |length| format!("/login/issuers/acme?{}", path(length));
    let by_link = format!("/login?{}", path(4_000));
    let bytes = |browser: &Browser<'_>| -> usize {
        browser.cookies_of("portcullis-").iter().map(|it| it.0.len() + it.1.len()).sum()
    };

    let browser = Browser::new(&site.gateway);
    for _ in 0..3 {
        site.begin(&browser, &by_issuer(2_200)).await;
    }
    browser.open(&by_link).await.ok();
    assert!(bytes(&browser) <= 7 << 10, "{}", bytes(&browser));
    assert_eq!(browser.cookies_of(ATTEMPT).len(), 2);

    let browser = Browser::new(&site.gateway);
    browser.open(&by_link).await.ok();
    assert!(browser.cookie("portcullis-return").is_some());
    let at = site.begin(&browser, &by_issuer(2_600)).await;
    assert!(bytes(&browser) <= 7 << 10, "{}", bytes(&browser));
    let page = browser.open(&site.logged_in(&at, "ana", &json!({}))).await.ok();
    assert!(page.text.contains(&format!("url=/{}\"", "x".repeat(2_599))), "{}", page.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_proves_itself_with_a_key_where_it_has_one() {
    let oidc = Oidc::start();
    let pem = oidc.client_key();
    let key = "private_key = { env = \"LOGIN_KEY\" }";
    let site = Site::of(gateway().env("LOGIN_KEY", &pem), oidc, "", key);
    site.oidc.client(CLIENT, None, site.gateway.url());
    let browser = Browser::new(&site.gateway);

    site.log_in(&browser, "ana", &json!({})).await.ok();

    assert!(browser.open("/login").await.ok().text.contains("Signed in"));
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_end_with_the_session_the_issuer_and_the_person() {
    // Signing out leads to the logout of the issuer.
    let mut site = Site::start();
    let browser = Browser::new(&site.gateway);
    site.log_in(&browser, "ana", &json!({})).await.ok();
    let stolen = browser.stolen();

    let page = browser.open("/login").await.ok();
    let token = super::hidden(&page, "form_token");
    let out = browser.submit("/logout", &[("form_token", &token)]).await.ok();

    let (_, rest) = out.text.split_once("href=\"").unwrap();
    let address = rest.split_once('"').unwrap().0.replace("&amp;", "&");
    assert!(address.starts_with(&format!("{}/session/end?", site.oidc.issuer())), "{address}");
    assert_eq!(parameter(&address, "client_id").as_deref(), Some(CLIENT));
    let back = format!("{}/login", site.gateway.url());
    assert_eq!(parameter(&address, "post_logout_redirect_uri"), Some(back));
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let asked = client.get(&address).send().await.unwrap();
    assert!(asked.status().is_success(), "the provider asks");
    assert!(!stolen.open("/login").await.text.contains("Signed in"));

    // An issuer that is down is told on a page and what it said is good for a while.
    let at = site.begin(&browser, "/login/issuers/acme").await;
    let back = site.logged_in(&at, "ana", &json!({}));
    site.oidc.stop();

    site.begin(&Browser::new(&site.gateway), "/login/issuers/acme").await;
    let down = browser.open(&back).await;

    site.assert_nobody(&browser, &down, 502).await;
    assert!(down.text.contains("cannot be reached"), "{}", down.text);
    site.oidc.resume();
    site.log_in(&browser, "ana", &json!({})).await.ok();

    // A person who is disabled does not log in.
    site.log_in(&browser, "ana", &json!({})).await.ok();
    let id = site.sessions()[0]["principal_id"].as_str().unwrap().to_owned();

    site.gateway.admin(&["principal", "disable", &id, "--org", &site.org]);
    let other = Browser::new(&site.gateway);
    let refused = site.log_in(&other, "ana", &json!({})).await;

    site.assert_nobody(&other, &refused, 403).await;
    until(|| browser.open("/login"), |page| !page.text.contains("Signed in")).await;

    // Check says whether people can log in.
    site.gateway.stop();
    let usable = site.gateway.admin(&["check"]);
    site.oidc.stop();
    let (code, told) = failure(&site.gateway, &["check"]).await;

    assert_eq!(usable["login"][0]["usable"], true, "{usable}");
    assert_eq!(code, 1);
    assert!(told.contains("people cannot log in at some issuers"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_without_a_trust_rule_for_its_issuer_does_not_start() {
    let oidc = Oidc::start();
    let gateway = gateway().prepare();
    gateway.configure(&format!("[login]\n{}", entry(&oidc, "client_secret = \"s\"")));

    for part in ["[[trust]]", "audience = \"gateway\"", oidc.issuer()] {
        assert_fails(&gateway, &["serve", "--port", "0"], 1, part).await;
    }
}
