//! Links of the operator, and the sessions that begin by them.

use super::{Browser, LINKS, Site, hidden};
use crate::prelude::*;

const SESSION: &str = "portcullis-session";

#[tokio::test(flavor = "multi_thread")]
async fn a_link_logs_one_browser_in_once_and_its_secrets_are_no_others() {
    // A link logs one browser in once and a preview does not spend it.
    let site = Site::start();
    let browser = Browser::new(&site.gateway);
    let (path, code) = site.link();

    let offers = [browser.open(&path).await.ok(), browser.open(&path).await.ok()];
    let signed_in = browser.submit("/login/link", &[("code", &code)]).await.ok();
    let again = Browser::new(&site.gateway).submit("/login/link", &[("code", &code)]).await;

    for offer in &offers {
        assert!(offer.text.contains("Ana &lt;b&gt;") && offer.text.contains("acme"), "{offer:?}");
        assert_eq!(hidden(offer, "code"), code);
        assert!(offer.headers.get("set-cookie").is_none());
        assert!(offer.header("content-security-policy").contains("form-action 'self'"));
        assert!(offer.header("content-security-policy").contains("frame-ancestors 'none'"));
    }
    assert!(signed_in.text.contains("url=/console\""), "{}", signed_in.text);
    assert_eq!(again.status, 400, "{}", again.text);
    assert!(again.headers.get("set-cookie").is_none());
    let page = browser.open("/login").await.ok();
    assert!(page.text.contains("Ana &lt;b&gt;") && page.text.contains("member"), "{}", page.text);
    for second in
        [browser.open(&path).await, browser.submit("/login/link", &[("code", &code)]).await]
    {
        let second = second.ok();
        assert!(second.text.contains("You are signed in as <strong>Ana &lt;b&gt;"), "{second:?}");
        assert!(second.headers.get("set-cookie").is_none());
    }
    let events = site.events("login.succeeded", 1).await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["actor"]["id"], site.ana.as_str());
    assert_eq!(events[0]["actor"]["auth"]["method"], "operator");
    assert!(page.text.contains(events[0]["target"]["id"].as_str().unwrap()));
    assert_eq!(site.events("login.link_issued", 1).await[0]["target"]["id"], site.ana.as_str());

    // A secret that a browser brings never becomes that of a person.
    let planted = "A".repeat(43);
    let victim = Browser::new(&site.gateway);
    victim.plant(SESSION, &planted);
    let attacker = victim.stolen();

    let (_, code) = site.link();
    victim.submit("/login/link", &[("code", &code)]).await.ok();

    assert_ne!(victim.cookie(SESSION).unwrap(), planted);
    assert!(attacker.open("/login").await.ok().text.contains("login-link"));
    let stored = site.gateway.stored();
    let secret = victim.cookie(SESSION).unwrap();
    let holds = |text: &str| stored.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(!holds(&secret) && !holds(&code), "secrets are stored as hashes only");
    assert!(!site.gateway.log().contains(&secret) && !site.gateway.log().contains(&code));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_forms_of_this_gateways_pages_log_in_and_out() {
    // Only forms of this gateways pages log in and out.
    let site = Site::start();
    let browser = site.browser().await;
    let page = browser.open("/login").await.ok();
    let token = hidden(&page, "form_token");
    let (_, code) = site.link();
    let own = site.gateway.url();
    let bad: [&[(&str, &str)]; 8] = [
        &[],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("origin", own), ("sec-fetch-site", "cross-site")],
        &[("origin", own), ("sec-fetch-site", "same-site")],
        &[("origin", own), ("origin", own)],
        &[("origin", "https://evil.example"), ("sec-fetch-site", "same-origin")],
        &[("origin", own), ("host", "evil.example")],
    ];

    for headers in bad {
        for (path, fields) in
            [("/login/link", [("code", &code)]), ("/logout", [("form_token", &token)])]
        {
            let fields = fields.map(|(name, value)| (name, value.as_str()));
            let mut request = browser.form(path, &fields);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            has!("{path} {headers:?}"; browser.send(request).await, 400);
        }
    }
    for token in ["", "wrong", &browser.cookie(SESSION).unwrap()] {
        has!(browser.submit("/logout", &[("form_token", token)]).await, 400);
    }

    assert!(browser.open("/login").await.ok().text.contains("Ana"));
    assert!(browser.open(&format!("/login/link?code={code}")).await.ok().text.contains("Ana"));

    // A new login ends the session that the browser had.
    let before = browser.stolen();

    let (_, code) = site.link();
    browser.submit("/login/link", &[("code", &code)]).await.ok();

    assert!(browser.open("/login").await.ok().text.contains("Ana"));
    assert!(!before.open("/login").await.ok().text.contains("Ana"));
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_ends_this_session_or_all_of_them() {
    let site = Site::start();
    let [one, two, three] = [site.browser().await, site.browser().await, site.browser().await];
    let is_in =
        async |browser: &Browser<'_>| browser.open("/login").await.ok().text.contains("Signed in");
    let stolen = one.stolen();

    let token = hidden(&one.open("/login").await, "form_token");
    one.submit("/logout", &[("form_token", &token)]).await.ok();
    let after_one = [is_in(&one).await, is_in(&stolen).await, is_in(&two).await];
    let token = hidden(&two.open("/login").await, "form_token");
    two.submit("/logout", &[("form_token", &token), ("everywhere", "1")]).await.ok();

    assert_eq!(one.cookie(SESSION), None);
    assert_eq!(after_one, [false, false, true]);
    assert!(!is_in(&two).await && !is_in(&three).await);
    assert_eq!(site.events("session.ended", 3).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_for_people_and_unknown_ones_are_charged_to_their_source() {
    let site = Site::start();
    site.gateway.service(&site.org, "mcps:read");
    let browser = Browser::new(&site.gateway);

    let link = ["login-link", "--principal", "service for mcps:read"];
    assert_fails(&site.gateway, &link, 1, "service account").await;
    for wrong in ["", "?code=x", "?code=%ff", "?code=a&code=b"] {
        assert_eq!(browser.open(&format!("/login/link{wrong}")).await.status, 400, "{wrong}");
    }
    let unknown = format!("/login/link?code={}", "x".repeat(43));
    // Two windows of a minute at most.
    for tried in 0..=120 {
        let page = browser.open(&unknown).await;
        if page.status == 429 {
            return assert!(tried >= 60, "{tried} were charged");
        }
        assert_eq!(page.status, 400, "{}", page.text);
    }
    panic!("unknown links are charged to nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_returns_to_a_path_of_this_gateway_only() {
    // A login returns to a path of this gateway only.
    let site = Site::start();
    let after_login = async |return_to: &str| {
        let browser = Browser::new(&site.gateway);
        browser.open(&format!("/login?return_to={return_to}")).await.ok();
        let (_, code) = site.link();
        let page = browser.submit("/login/link", &[("code", &code)]).await.ok();
        let (_, rest) = page.text.split_once("url=").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };

    let good = after_login("%2Fapprovals%2Fapr_01M754BKTKX1YB8Q05NMW9TP4G%3Fa%3D1%26b%3D2").await;

    assert_eq!(good, "/approvals/apr_01M754BKTKX1YB8Q05NMW9TP4G?a=1&amp;b=2");
    for evil in ["%2F%2Fevil.example", "https%3A%2F%2Fevil.example"] {
        assert_eq!(after_login(evil).await, "/console", "{evil}");
    }
    let browser = site.browser().await;
    let planted = [("portcullis-return", "%2F%2Fevil.example"), ("portcullis-return", "x")];
    for (name, value) in planted {
        browser.plant(name, value);
        let (_, code) = site.link();
        let page = browser.submit("/login/link", &[("code", &code)]).await.ok();
        assert!(page.text.contains("url=/console\""), "{}", page.text);
    }
    let approval = "%2Fapprovals%2Fapr_01M754BKTKX1YB8Q05NMW9TP4G";
    let signed_in = browser.open(&format!("/login?return_to={approval}")).await;
    assert_eq!(signed_in.status, 303, "{}", signed_in.text);
    assert_eq!(signed_in.headers["location"], "/approvals/apr_01M754BKTKX1YB8Q05NMW9TP4G");

    // A disabled person is out within five seconds and logs in no more.
    let (path, code) = site.link();

    site.gateway.admin(&["principal", "disable", &site.ana]);

    until(|| browser.open("/login"), |page| !page.text.contains("Signed in")).await;
    assert!(browser.open(&path).await.ok().text.contains("Ana"));
    has!(browser.submit("/login/link", &[("code", &code)]).await, 400);
    assert_eq!(site.events("login.failed", 1).await[0]["actor"]["id"], site.ana.as_str());
    let link = ["login-link", "--principal", &site.ana];
    assert_fails(&site.gateway, &link, 1, "is disabled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_login_is_set_up_there_is_none() {
    let site = Site::of(gateway().start());
    let browser = Browser::new(&site.gateway);

    for path in ["/login", "/login/link?code=x"] {
        let page = browser.open(path).await;
        assert_eq!(page.status, 404, "{path}: {}", page.text);
        assert!(page.text.contains("[login]"), "{}", page.text);
    }
    let link = ["login-link", "--principal", &site.ana];
    assert_fails(&site.gateway, &link, 1, "links = true").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_tls_the_cookie_belongs_to_the_host() {
    let config = format!(
        "{LINKS}\n[server]\npublic_url = \"https://gateway.acme.example\"\nbehind_tls_proxy = true"
    );
    let site = Site::of(gateway().config(&config).start());
    let browser = Browser::new(&site.gateway);
    let (_, code) = site.link();

    let request = browser.form("/login/link", &[("code", &code)]);
    let request = request.header("host", "gateway.acme.example");
    let page = browser.send(request.header("origin", "https://gateway.acme.example")).await.ok();

    let cookies = page.headers.get_all("set-cookie").iter().map(|it| it.to_str().unwrap());
    for cookie in cookies {
        assert!(
            cookie.starts_with("__Host-portcullis-") && cookie.ends_with("; Secure"),
            "{cookie}"
        );
    }
    assert!(browser.cookie("__Host-portcullis-session").is_some());
    assert!(browser.open("/login").await.ok().text.contains("Ana"));
}
