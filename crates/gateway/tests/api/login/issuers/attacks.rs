//! Attacks on logins at an issuer.

use super::{ATTEMPT, SESSION, Site, parameter};
use crate::{login::browser::Browser, prelude::*};

/// A path with another value of a parameter; without the parameter for `None`.
fn with(path: &str, name: &str, value: Option<&str>) -> String {
    let mut url = reqwest::Url::parse(&format!("http://gateway{path}")).unwrap();
    let mut pairs: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(known, _)| known != name)
        .map(|it| (it.0.into(), it.1.into()))
        .collect();
    pairs.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    url.query_pairs_mut().clear().extend_pairs(pairs);
    format!("{}?{}", url.path(), url.query().unwrap())
}

fn code(path: &str) -> String {
    parameter(&format!("http://gateway{path}"), "code").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_another_issuer_browser_or_time_logs_nobody_in() {
    // An answer of another issuer logs nobody in.
    let site = Site::start();
    let other = Oidc::start();
    let browser = Browser::new(&site.gateway);
    for iss in [Some(other.issuer()), Some(""), Some("https://evil.example"), None] {
        let at = site.begin(&browser, "/login/issuers/acme").await;
        let back = site.logged_in(&at, "ana", &json!({}));

        let refused = browser.open(&with(&back, "iss", iss)).await;

        site.assert_nobody(&browser, &refused, 400).await;
        assert!(refused.text.contains("another issuer"), "{iss:?}: {}", refused.text);
    }

    // A code of another browser logs nobody in.
    let attacker = Browser::new(&site.gateway);
    let victim = Browser::new(&site.gateway);
    let at = site.begin(&attacker, "/login/issuers/acme").await;
    let attackers = site.logged_in(&at, "mallory", &json!({}));
    let at = site.begin(&victim, "/login/issuers/acme").await;
    let victims = site.logged_in(&at, "ana", &json!({}));

    has!("the state is of another browser"; victim.open(&attackers).await, 400);
    let injected = victim.open(&with(&victims, "code", Some(&code(&attackers)))).await;

    site.assert_nobody(&victim, &injected, 400).await;
    site.log_in(&victim, "ana", &json!({})).await.ok();
    let session = victim.cookie(SESSION);
    let at = site.begin(&attacker, "/login/issuers/acme").await;
    let signed_in = victim.open(&site.logged_in(&at, "mallory", &json!({}))).await.ok();
    assert!(signed_in.headers.get("set-cookie").is_none() && victim.cookie(SESSION) == session);
    assert!(injected.text.contains("does not accept the code"), "{}", injected.text);

    // An answer works once and in its own browser alone.
    let at = site.begin(&browser, "/login/issuers/acme").await;
    let back = site.logged_in(&at, "ana", &json!({}));
    let stolen = browser.stolen();
    let stranger = Browser::new(&site.gateway);

    let elsewhere = stranger.open(&back).await;
    browser.open(&back).await.ok();
    let again = browser.open(&back).await;
    let replayed = stolen.open(&back).await;

    site.assert_nobody(&stranger, &elsewhere, 400).await;
    assert!(again.ok().headers.get("set-cookie").is_none(), "it logs nobody in again");
    assert!(browser.open("/login").await.text.contains("Signed in"), "the session stays");
    site.assert_nobody(&stolen, &replayed, 400).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_was_changed_or_comes_again_is_no_login() {
    // A state is good for one session even if the issuer takes part.
    let site = Site::start();
    let browser = Browser::new(&site.gateway);
    let at = site.begin(&browser, "/login/issuers/acme").await;
    let copy = browser.stolen();

    browser.open(&site.logged_in(&at, "ana", &json!({}))).await.ok();
    let replayed = copy.open(&site.logged_in(&at, "ana", &json!({}))).await;

    site.assert_nobody(&copy, &replayed, 403).await;

    // A login that was changed or is that of another is no login.
    let browser = Browser::new(&site.gateway);
    let at = site.begin(&browser, "/login/issuers/acme").await;
    let back = site.logged_in(&at, "ana", &json!({}));
    let (name, sealed) = browser.cookies_of(ATTEMPT).remove(0);

    let other = if sealed.starts_with('A') { "B" } else { "A" };
    for (planted, path) in [
        (format!("{other}{}", &sealed[1..]), back.clone()),
        ("A".repeat(sealed.len()), back.clone()),
        (sealed.clone(), with(&back, "state", Some(&"A".repeat(43)))),
        (sealed.clone(), with(&back, "state", None)),
        (sealed.clone(), with(&back, "code", None)),
        (sealed.clone(), format!("{back}&code=x")),
    ] {
        let thief = Browser::new(&site.gateway);
        thief.plant(&name, &planted);
        let refused = thief.open(&path).await;
        site.assert_nobody(&thief, &refused, 400).await;
    }
    browser.open(&back).await.ok();

    // Words of an issuer do not stand on the page.
    let browser = Browser::new(&site.gateway);
    for (error, told) in [("access_denied", "access_denied"), ("%3Cscript%3Ex", "other")] {
        let at = site.begin(&browser, "/login/issuers/acme").await;
        let state = parameter(&at, "state").unwrap();
        let iss = site.oidc.issuer();

        let page = browser
            .open(&format!(
                "/login/callback?error={error}&error_description=evil-words&state={state}&iss={iss}"
            ))
            .await;

        site.assert_nobody(&browser, &page, 400).await;
        assert!(page.text.contains(&format!("<code>{told}</code>")), "{}", page.text);
        assert!(!page.text.contains("evil-words") && !page.text.contains("script"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_token_that_is_not_of_this_login_logs_nobody_in() {
    // A failed login of somebody that the issuer signed for is recorded.
    let site = Site::start();
    let browser = Browser::new(&site.gateway);

    let refused = site.log_in(&browser, "bo", &json!({"email_verified": false})).await;

    site.assert_nobody(&browser, &refused, 403).await;
    let auditor = site.gateway.service(&site.org, "audit:read");
    let path = "/v1/audit/events?type=login.failed";
    let found = until(
        || site.gateway.get(&auditor, path),
        |answer| answer.at("/data/items").as_array().is_some_and(|all| !all.is_empty()),
    );
    has!(found.await, "/data/items/0/actor/auth/method": "oidc", "/data/items/0/actor/id": null);

    // An id token that is not of this login logs nobody in.
    let plain = json!({});
    for (header, claims, told) in [
        (plain.clone(), json!({"nonce": "of another login"}), "replay"),
        (plain.clone(), json!({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}), "replay"),
        (plain.clone(), json!({"aud": "another-client"}), "audience"),
        (plain.clone(), json!({"iss": "https://evil.example"}), "issuer"),
        (plain.clone(), json!({"exp": 1_000_000_000}), "time"),
        (plain.clone(), json!({"email_verified": false}), "trust"),
        (json!({"alg": "none"}), plain.clone(), "signature"),
    ] {
        site.oidc.forge(&header, &claims);
        let browser = Browser::new(&site.gateway);

        let refused = site.log_in(&browser, "ana", &json!({})).await;

        site.assert_nobody(&browser, &refused, 403).await;
        assert!(
            refused.text.contains(&format!("<code>{told}</code>")),
            "{claims}: {}",
            refused.text
        );
    }
    site.oidc.forge_nothing();
    site.log_in(&Browser::new(&site.gateway), "ana", &json!({})).await.ok();
    assert_eq!(site.sessions().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_brings_no_session_and_comes_back_to_this_gateway_alone() {
    // A browser comes back to pages of this gateway alone.
    let site = Site::start();
    for evil in ["https%3A%2F%2Fevil.example", "%2F%5Cevil.example"] {
        let browser = Browser::new(&site.gateway);
        let path = format!("/login/issuers/acme?return_to={evil}");
        let at = site.begin(&browser, &path).await;

        let page = browser.open(&site.logged_in(&at, "ana", &json!({}))).await.ok();

        assert!(page.text.contains("url=/console\""), "{evil}: {}", page.text);
        assert!(!page.text.contains("evil"), "{}", page.text);
    }
    let browser = Browser::new(&site.gateway);
    let at = site.begin(&browser, "/login/issuers/acme").await;
    browser.plant("portcullis-return", "https%3A%2F%2Fevil.example");
    let page = browser.open(&site.logged_in(&at, "ana", &json!({}))).await.ok();
    assert!(page.text.contains("url=/console\""), "{}", page.text);

    // A session that was planted never becomes that of a person.
    let victim = Browser::new(&site.gateway);
    let planted = "A".repeat(43);
    victim.plant(SESSION, &planted);
    let attacker = victim.stolen();

    site.log_in(&victim, "ana", &json!({})).await.ok();

    assert_ne!(victim.cookie(SESSION).unwrap(), planted);
    assert!(!attacker.open("/login").await.text.contains("Signed in"));

    // Logins that come to nothing are limited by source.
    // A minute may end meanwhile.
    for _ in 0..200 {
        if browser.open("/login/callback?code=a&state=b").await.status == 429 {
            return;
        }
    }
    panic!("no limit");
}
