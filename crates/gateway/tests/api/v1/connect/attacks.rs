//! Attacks on connects (docs/threat-model.md, "OAuth towards providers").

use super::{USER, come_back, connect, finding, scene, text};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn states_and_codes_are_good_for_who_began_and_once() {
    // A victim who consents to an attackers link gives nothing away.
    let scene = scene(Habits::default()).await;
    let gateway = &scene.gateway;
    let victim = &scene.who;
    let org = gateway.org("evil", &ENOUGH);
    let attacker = gateway.user(&org, "member", USER);

    // The attacker begins and sends the link; the victim's browser is the one that consents.
    let (begun, code) = scene.consented(&attacker, &json!({}), "victim").await;
    let id = text(&begun, "/data/provider/id");

    // The attacker has the Bearer and not the code.
    let record = gateway.get(&attacker, &format!("/v1/providers/{id}")).await;
    assert_eq!(record.at("/data/status"), "pending");
    assert!(!record.text.contains(&code));
    assert_eq!(scene.whoami(&attacker).await.code(), "not_found");
    // The victim has the code and not the Bearer of who began.
    let other = connect(gateway, victim, "saas", &json!({ "confirm": code })).await;
    assert_eq!(other.refusal(), (400, "invalid_request"));
    let colleague = gateway.principal(&org, "eve", &["--role", "member"], &["--scopes", USER]);
    let third = connect(gateway, &colleague, "saas", &json!({ "confirm": code })).await;
    assert_eq!(third.status, 400, "not even a colleague of the attacker");
    assert_eq!(scene.saas.calls().len(), 0);

    // A state is good for one callback and a code for its own attempt.
    let who = &scene.who;
    let begun = scene.connect(who, &json!({})).await;
    let back = scene.consent(&begun, "octocat").await;
    assert_eq!(come_back(&back).await.status(), 200);

    let again = come_back(&back).await;

    assert_eq!(again.status(), 400, "used");
    let page = again.text().await.unwrap();
    assert!(!page.contains("saas") && !page.contains("prv_"), "nothing is told: {page}");
    let callback = format!("{}/oauth/callback", gateway.url());
    let state = "A".repeat(43);
    for query in [
        String::new(),
        "?state=".to_owned(),
        format!("?state={state}&code=x"),
        format!("?state={}&code=x", "'".repeat(43)),
        format!("?code=x&state={state}&state={state}"),
        format!("?state={state}%00&code=x"),
        "?error=access_denied".to_owned(),
    ] {
        let unknown = come_back(&format!("{callback}{query}")).await;
        assert_eq!(unknown.status(), 400, "{query}");
        assert_eq!(unknown.headers()["content-type"], "text/html; charset=utf-8");
    }

    // A code that was granted to another attempt is of no use in this one: PKCE.
    let admin = gateway.user(&who.org, "admin", ALL_SCOPES);
    let code_in =
        |back: &str| back.split("code=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let theirs = scene.connect(&admin, &json!({})).await;
    let stolen = code_in(&scene.consent(&theirs, "victim").await);
    let mine = scene.connect(who, &json!({})).await;
    let own = scene.consent(&mine, "octocat").await;
    let injected = come_back(&own.replace(&code_in(&own), &stolen)).await;
    let page = injected.text().await.unwrap();
    assert!(page.contains("not connected") && !page.contains("<code>"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_in_another_issuers_name_redeems_nothing() {
    let iss = Some("https://evil.example".to_owned());
    let scene = scene(Habits { iss, ..Habits::default() }).await;

    let shown = scene.page("octocat").await;

    assert!(shown.contains("issuer_mismatch"), "{shown}");
    assert!(scene.saas.token_requests().is_empty(), "no code went anywhere");
}

/// The documents of a well-behaved server at this origin.
pub(super) fn documents(origin: &str) -> (Value, Value) {
    let resource = json!({
        "resource": format!("{origin}/mcp"),
        "authorization_servers": [origin],
        "scopes_supported": ["read"],
    });
    let server = json!({
        "issuer": origin,
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": format!("{origin}/token"),
        "registration_endpoint": format!("{origin}/register"),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["client_secret_post"],
    });
    (resource, server)
}

const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
const SERVER: &str = "/.well-known/oauth-authorization-server";

#[tokio::test(flavor = "multi_thread")]
async fn metadata_that_cannot_be_trusted_begins_nothing() {
    type Lie = fn(&str, &mut Value, &mut Value);
    let lies: [(&str, Lie); 5] = [
        ("another issuer", |_, _, server| server["issuer"] = json!("https://evil.example")),
        ("PKCE is downgraded", |_, _, server| {
            server["code_challenge_methods_supported"] = json!(["plain"]);
        }),
        ("a token endpoint in the cloud's metadata", |_, _, server| {
            server["token_endpoint"] = json!("http://169.254.169.254/latest");
        }),
        ("a script for a browser", |_, _, server| {
            server["authorization_endpoint"] = json!("javascript:alert(1)");
        }),
        ("an authorization server in a private network", |_, resource, _| {
            resource["authorization_servers"] = json!(["http://10.0.0.1"]);
        }),
    ];
    for (what, lie) in lies {
        let scene = finding(Saas::start(Habits::default()).await);
        let saas = &scene.saas;
        let (mut resource, mut server) = documents(&saas.origin());
        lie(&saas.origin(), &mut resource, &mut server);
        saas.change(|habits| {
            habits.documents = BTreeMap::from([
                (RESOURCE.to_owned(), (200, resource.to_string())),
                (SERVER.to_owned(), (200, server.to_string())),
            ]);
        });

        let answer = scene.connect(&scene.who, &json!({})).await;

        assert_eq!(answer.refusal(), (502, "upstream_error"), "{what}");
        assert!(!answer.text.contains("evil") && !answer.text.contains("169.254"), "{what}");
        assert!(saas.token_requests().is_empty(), "{what}");
        let registered = saas.received().iter().any(|it| it.starts_with("POST /register"));
        assert!(!registered, "{what}");
        let path = "/v1/providers?status=pending,connected";
        let all = scene.gateway.get(&scene.who, path).await;
        assert!(items(&all).is_empty(), "{what}: nothing is left");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_redirect_or_do_not_end_are_not_followed() {
    for (what, status, body) in [
        ("a redirect", 302, "http://169.254.169.254/latest/meta-data".to_owned()),
        ("a document of 5 MiB", 200, format!("{{\"x\":\"{}\"}}", "y".repeat(5 << 20))),
        ("two names", 200, "{\"resource\":\"a\",\"resource\":\"b\"}".to_owned()),
    ] {
        let scene = finding(Saas::start(Habits::default()).await);
        scene.saas.change(|habits| {
            for path in [RESOURCE, "/.well-known/oauth-protected-resource"] {
                habits.documents.insert(path.to_owned(), (status, body.clone()));
            }
        });

        has!("{what}"; scene.connect(&scene.who, &json!({})).await, 502 "upstream_error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_without_an_end_are_read_to_the_cap_or_for_ten_seconds() {
    for (pause, status, code) in [
        (Duration::ZERO, 502, "upstream_error"),
        (Duration::from_millis(50), 504, "upstream_timeout"),
    ] {
        let scene = finding(Saas::start(Habits::default()).await);
        scene.saas.change(|habits| {
            for path in [RESOURCE, "/.well-known/oauth-protected-resource"] {
                habits.unending.insert(path.to_owned(), pause);
            }
        });

        let begun = Instant::now();
        let answer = scene.connect(&scene.who, &json!({})).await;

        assert_eq!(answer.refusal(), (status, code), "{}", answer.text);
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    }
}
