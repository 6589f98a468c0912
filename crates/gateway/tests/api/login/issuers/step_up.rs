//! A person proves more, and comes back to the same page.

use super::{Site, parameter};
use crate::{
    login::browser::{Browser, Page},
    prelude::*,
};

/// Owner of the things that a form of the console touches.
#[derive(Clone, Copy, PartialEq)]
enum Touches {
    /// The org, or what is another's: an admin has to prove the level for admins.
    Others,
    /// Nothing but what is the person's own.
    Own,
}

/// Each form of the console with its fields.
const FORMS: [(&str, &str, Touches); 16] = [
    ("/console/approvals/{id}", "decision=approve", Touches::Own),
    ("/console/clients/{id}/withdraw", "", Touches::Others),
    ("/console/dlp", "text=x", Touches::Own),
    ("/console/log", "format=ndjson", Touches::Own),
    ("/console/people", "name=zelda&kind=user&role=admin", Touches::Others),
    ("/console/people/{id}", "role=admin", Touches::Others),
    ("/console/providers/connect", "slug=sample&owner=org", Touches::Others),
    ("/console/providers/{id}/disconnect", "", Touches::Others),
    ("/console/providers/{id}/refresh", "", Touches::Others),
    ("/console/providers/{id}/test", "", Touches::Own),
    ("/console/sessions/{id}/end", "", Touches::Others),
    (
        "/console/tokens",
        "principal_id=sa_01M754BKTKX1YB8Q05NMW9TP4G&scopes=mcps:read",
        Touches::Others,
    ),
    ("/console/tokens/{id}/revoke", "", Touches::Others),
    ("/console/tools/{id}", "raw={}", Touches::Own),
    ("/console/waiting/{id}/accept", "version=x", Touches::Others),
    ("/console/workbench", "ask=check", Touches::Own),
];

const PAGE: &str = "%2Fapprovals%2Fx%3Fa%3Db";

#[tokio::test(flavor = "multi_thread")]
async fn a_person_proves_more_and_comes_back_to_the_same_page() {
    // A second factor is asked for and the browser comes back to the same page.
    let site = Site::start();
    let browser = Browser::new(&site.gateway);
    site.log_in(&browser, "ana", &json!({"amr": ["pwd"]})).await.ok();
    let before = browser.stolen();
    let path = format!("/login?step_up=mfa&return_to={PAGE}");

    let sent = browser.open(&path).await;
    assert_eq!(sent.status, 303, "{}", sent.text);
    let at = site.begin(&browser, sent.header("location")).await;
    let claims = json!({"amr": ["pwd", "mfa"], "acr": "urn:acme:two"});
    let page = browser.open(&site.logged_in(&at, "ana", &claims)).await.ok();

    assert_eq!(parameter(&at, "acr_values").as_deref(), Some("urn:acme:two"), "as the rule says");
    assert_eq!(parameter(&at, "prompt").as_deref(), Some("login"));
    assert!(page.text.contains("url=/approvals/x?a=b\""), "{}", page.text);
    assert_eq!(
        browser.open(&path).await.header("location"),
        "/approvals/x?a=b",
        "it is enough now"
    );
    assert!(!before.open("/login").await.text.contains("Signed in"), "a new session");

    // A login anew is asked for and may be of another person.
    site.log_in(&browser, "ana", &json!({})).await.ok();

    let sent = browser.open(&format!("/login?step_up=again&return_to={PAGE}")).await;
    assert_eq!(sent.status, 303, "{}", sent.text);
    let at = site.begin(&browser, sent.header("location")).await;
    let page = browser.open(&site.logged_in(&at, "ben", &json!({"name": "Ben"}))).await.ok();

    assert_eq!(parameter(&at, "prompt").as_deref(), Some("login"));
    assert_eq!(parameter(&at, "acr_values"), None);
    assert!(page.text.contains("url=/approvals/x?a=b\""), "{}", page.text);
    assert!(browser.open("/login").await.ok().text.contains("You are <strong>Ben<"));

    // An issuer that confirms nothing is not asked for ever.
    site.log_in(&browser, "ana", &json!({"amr": ["pwd"]})).await.ok();

    let at = site.begin(&browser, "/login/issuers/acme?step_up=mfa").await;
    let refused = browser.open(&site.logged_in(&at, "ana", &json!({"amr": ["pwd"]}))).await;

    assert_eq!(refused.status, 403, "{}", refused.text);
    assert!(refused.text.contains("did not confirm a second factor"), "{}", refused.text);
    assert!(browser.open("/login").await.ok().text.contains("Signed in"), "the session stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_login_asks_for_the_levels_and_the_age_that_the_operator_wants() {
    let site =
        Site::with("", "acr_values = [\"urn:acme:one\", \"urn:acme:two\"]\nmax_age = \"1h\"");
    let browser = Browser::new(&site.gateway);

    let at = site.begin(&browser, "/login/issuers/acme").await;
    browser.open(&site.logged_in(&at, "ana", &json!({"acr": "urn:acme:one"}))).await.ok();

    assert_eq!(parameter(&at, "acr_values").as_deref(), Some("urn:acme:one urn:acme:two"));
    assert_eq!(parameter(&at, "max_age").as_deref(), Some("3600"));
    assert_eq!(parameter(&at, "prompt"), None);
    site.oidc.forge(&json!({}), &json!({"auth_time": 1_000_000_000}));
    let other = Browser::new(&site.gateway);
    let old = site.log_in(&other, "ana", &json!({})).await;
    site.assert_nobody(&other, &old, 403).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_acts_as_an_admin_by_a_login_of_the_level_for_admins_only() {
    let client =
        "[[oauth.client]]\nid = \"desktop\"\nredirect_uris = [\"https://desktop.example/cb\"]\n";
    let site = Site::configured("admin_acr = [\"urn:acme:gold\"]", "", client);
    let browser = Browser::new(&site.gateway);
    let admin = json!({"groups": ["mcp-admins"]});
    site.log_in(&browser, "ana", &admin).await.ok();
    let rest = format!("{}/v1", site.gateway.url());
    let ask = |scope: &str| {
        format!(
            "/oauth/authorize?response_type=code&client_id=desktop&scope={scope}&state=s\
             &resource={rest}&redirect_uri=https%3A%2F%2Fdesktop.example%2Fcb\
             &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256"
        )
    };

    browser.open(&ask("mcps:read")).await.ok();
    let sent = browser.open(&ask("admin%20mcps:read")).await;

    assert_eq!(sent.status, 302, "{}", sent.text);
    assert!(sent.header("location").contains("step_up=admin"), "{}", sent.header("location"));
    let sent = browser.open(sent.header("location")).await;
    let at = site.begin(&browser, sent.header("location")).await;
    assert_eq!(parameter(&at, "acr_values").as_deref(), Some("urn:acme:gold"));
    let gold = json!({"groups": ["mcp-admins"], "acr": "urn:acme:gold"});
    let page = browser.open(&site.logged_in(&at, "ana", &gold)).await.ok();
    assert!(page.text.contains("url=/oauth/authorize?"), "{}", page.text);
    browser.open(&ask("admin%20mcps:read")).await.ok();
}

/// Sends each form of the console about these ids.
async fn send_forms(browser: &Browser<'_>, ids: &[(&str, &str)]) -> Vec<Page> {
    let page = browser.open("/console").await.ok();
    let (_, rest) = page.text.split_once("name=\"form_token\" value=\"").unwrap();
    let form_token = rest.split_once('"').unwrap().0;
    let mut answers = Vec::new();
    for (path, fields, _) in FORMS {
        let of = ids.iter().find(|(start, _)| path.starts_with(start));
        let path = path.replace("{id}", of.map_or("unknown", |(_, id)| *id));
        let fields = fields.split('&').filter_map(|field| field.split_once('='));
        let fields: Vec<_> = fields.chain([("form_token", form_token)]).collect();
        answers.push(browser.submit(&path, &fields).await);
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_touches_what_is_anothers_or_the_orgs_by_a_login_of_the_level_for_admins_only() {
    let builder = gateway().sample();
    let site = Site::enrolled(builder, "admin_acr = [\"urn:acme:gold\"]", "");
    let [ana, ben, gold] = [(); 3].map(|()| Browser::new(&site.gateway));
    site.log_in(&ben, "ben", &json!({"name": "Ben"})).await.ok();
    let bens = site.sessions()[0].clone();
    site.log_in(&ana, "ana", &json!({"groups": ["mcp-admins"]})).await.ok();
    let page = ana.open("/console/providers").await.ok();
    let (_, rest) = page.text.split_once("action=\"/console/providers/prv_").unwrap();
    let sample = format!("prv_{}", rest.split_once('/').unwrap().0);
    let ids = [
        ("/console/sessions", bens["id"].as_str().unwrap()),
        ("/console/people", bens["principal_id"].as_str().unwrap()),
        ("/console/providers", &*sample),
        ("/console/tools", "sample%3Aadd"),
    ];

    let document = site.gateway.send(site.gateway.request(Method::GET, "/openapi.json")).await.ok();
    let paths = document.json["paths"].as_object().unwrap().iter();
    let posts = paths.filter(|(path, it)| path.starts_with("/console") && it["post"].is_object());
    let posts: BTreeSet<&str> = posts.map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        posts,
        FORMS.iter().map(|(path, _, _)| *path).collect(),
        "each form is in the table"
    );

    let answers = send_forms(&ana, &ids).await;
    for ((path, _, touches), answer) in FORMS.iter().zip(&answers) {
        let asked = answer.text.contains("step_up=admin");
        assert_eq!(asked, *touches == Touches::Others, "{path}: {}", answer.text);
    }
    assert!(site.sessions().iter().any(|it| it["id"] == bens["id"]), "Ben stays signed in");
    let page = ana.open("/console/people").await.ok();
    assert!(!page.text.contains("zelda"), "{}", page.text);

    // What is the person's own needs no more.
    let other = Browser::new(&site.gateway);
    site.log_in(&other, "ana", &json!({"groups": ["mcp-admins"]})).await.ok();
    let mut own =
        site.sessions().into_iter().filter(|it| it["principal_id"] != bens["principal_id"]);
    let last = own.next_back().unwrap();
    let answers = send_forms(&ana, &[("/console/sessions", last["id"].as_str().unwrap())]).await;
    let at = FORMS.iter().position(|(path, _, _)| path.ends_with("/end")).unwrap();
    assert_eq!(answers[at].status, 303, "{}", answers[at].text);
    assert!(!other.open("/login").await.text.contains("Signed in"));

    let claims = json!({"groups": ["mcp-admins"], "acr": "urn:acme:gold"});
    site.log_in(&gold, "ana", &claims).await.ok();
    for answer in send_forms(&gold, &ids).await {
        assert!(!answer.text.contains("step_up=admin"), "{}", answer.text);
    }
    assert!(site.sessions().iter().all(|it| it["id"] != bens["id"]), "Ben is signed out");
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_characters_of_a_persons_own_name_are_spelled_out() {
    let site = Site::with("links = true", "");
    let browser = Browser::new(&site.gateway);
    let name = json!({"name": "Ana\u{202e}<b>", "groups": ["mcp-admins"]});
    site.log_in(&browser, "ana", &name).await.ok();
    let id = site.sessions()[0]["principal_id"].as_str().unwrap().to_owned();
    let made = site.gateway.admin(&["login-link", "--principal", &id]);
    let (_, code) = made["url"].as_str().unwrap().split_once("code=").unwrap();

    for path in ["/login", "/console", "/console/people", &*format!("/login/link?code={code}")] {
        let page = browser.open(path).await.ok();

        assert!(page.text.contains("Ana[U+202E]"), "{path}: {}", page.text);
        assert!(!page.text.contains('\u{202e}'), "{path}");
    }
}
