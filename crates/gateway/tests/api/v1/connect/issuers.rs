//! A client of the configuration belongs to an issuer: its secret goes to no other server,
//! whichever issuer the MCP server names.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portcullis_testkit::{CLIENT_ID, CLIENT_SECRET};

use super::{Scene, attacks::documents, connect, delete, text};
use crate::prelude::*;

const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
const SERVER: &str = "/.well-known/oauth-authorization-server";

/// The metadata of the MCP server at `server`, which names `issuers`.
fn naming(server: &Saas, issuers: &[&Saas]) -> Value {
    let (mut resource, _) = documents(&server.origin());
    let issuers: Vec<String> = issuers.iter().map(|it| it.origin()).collect();
    resource["authorization_servers"] = json!(issuers);
    resource
}

/// The metadata of the authorization server at `server`, which is true to itself.
fn describing(server: &Saas) -> Value {
    let (_, mut document) = documents(&server.origin());
    document["revocation_endpoint"] = json!(format!("{}/revoke", server.origin()));
    document
}

fn publish(server: &Saas, resource: &Value, issuer: &Value) {
    server.change(|habits| {
        habits.documents = BTreeMap::from([
            (RESOURCE.to_owned(), (200, resource.to_string())),
            (SERVER.to_owned(), (200, issuer.to_string())),
        ]);
    });
}

/// A scene whose provider is the MCP server at `server`, with a client at the issuer `origin`.
fn bound(server: Saas, origin: &str) -> Scene {
    let builder = client_of(&server, &format!("issuer = \"{origin}\""));
    Scene::of(server, "found", builder)
}

/// A gateway whose provider is the MCP server at `server`, with a client of `more`.
fn client_of(server: &Saas, more: &str) -> Builder {
    let provider = format!(
        "auth = \"oauth2\"\nprotocol = \"legacy\"\n[providers.oauth]\nclient_id = \"{CLIENT_ID}\"\n\
         client_secret = {{ env = \"SAAS_SECRET\" }}\ntoken_auth = \"client_secret_post\"\n{more}"
    );
    gateway().env("SAAS_SECRET", CLIENT_SECRET).http("found", &server.mcp(), &provider)
}

/// Fails if the secret came there in any form.
fn never_had_the_secret(server: &Saas) {
    let basic = STANDARD.encode(format!("{CLIENT_ID}:{CLIENT_SECRET}"));
    for request in server.received() {
        assert!(!request.contains(CLIENT_SECRET) && !request.contains(&basic), "{request}");
    }
}

async fn failed_connects(gateway: &Gateway, org: &str) -> Vec<Value> {
    let auditor =
        gateway.principal(org, "auditor", &["--role", "auditor"], &["--scopes", "audit:read"]);
    list_of(gateway, &auditor, "provider.connect_failed", "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_without_an_issuer_is_refused_before_anything_is_asked() {
    let hostile = Saas::start(Habits::default()).await;
    publish(&hostile, &naming(&hostile, &[&hostile]), &describing(&hostile));
    let gateway = client_of(&hostile, "").prepare();

    let (_, told) = failure(&gateway, &["check"]).await;

    assert!(told.contains("`oauth.client_id` needs `oauth.issuer`"), "{told}");
    assert!(hostile.received().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_server_that_is_true_to_itself_gets_neither_the_secret_nor_a_connect() {
    let real = Saas::start(Habits::default()).await;
    publish(&real, &naming(&real, &[&real]), &describing(&real));
    let authorize = format!("{}/authorize", real.origin());
    for lends_the_real_consent in [false, true] {
        let hostile = Saas::start(Habits::default()).await;
        let mut described = describing(&hostile);
        if lends_the_real_consent {
            described["authorization_endpoint"] = json!(authorize);
        }
        publish(&hostile, &naming(&hostile, &[&hostile]), &described);
        let scene = bound(hostile, &real.origin());
        let gateway = &scene.gateway;
        let who = &scene.who;

        let answer = scene.connect(who, &json!({})).await;

        has!(answer, 502 "upstream_error", "/error/details/reason": "issuer_mismatch");
        assert!(items(&gateway.get(who, "/v1/providers?status=pending").await).is_empty());
        let events = failed_connects(gateway, &who.org).await;
        let connection = &events[0]["detached"]["connection"];
        assert_eq!(connection["reason"], "issuer_mismatch", "{events:?}");
        never_had_the_secret(&scene.saas);
        assert!(real.token_requests().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_issuers_the_configured_one_is_asked_and_no_other() {
    let real = Saas::start(Habits::default()).await;
    let hostile = Saas::start(Habits::default()).await;
    publish(&real, &naming(&real, &[&hostile, &real]), &describing(&real));
    publish(&hostile, &naming(&hostile, &[&hostile]), &describing(&hostile));
    let origin = real.origin();
    let scene = bound(real, &origin);

    scene.connected(&scene.who, &json!({}), "octocat").await;

    let real = &scene.saas;
    assert_eq!(real.token_requests()[0]["client_secret"], CLIENT_SECRET);
    assert_eq!(real.token_requests()[0]["resource"], real.mcp(), "as the server names itself");
    assert!(hostile.received().is_empty(), "{:?}", hostile.received());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_names_another_issuer_later_gets_no_token_and_check_says_so() {
    let habits = Habits { expires_in: Some(3600), ..Habits::default() };
    let real = Saas::start(habits).await;
    let hostile = Saas::start(Habits::default()).await;
    publish(&real, &naming(&real, &[&real]), &describing(&real));
    publish(&hostile, &naming(&hostile, &[&hostile]), &describing(&hostile));
    let origin = real.origin();
    let scene = bound(real, &origin);
    let done = scene.connected(&scene.who, &json!({}), "octocat").await;
    let id = text(&done, "/data/id");
    let Scene { saas: real, mut gateway, who, .. } = scene;
    gateway.stop();
    let before = run(&gateway, &["check"]).await;

    publish(&real, &naming(&real, &[&hostile]), &describing(&real));
    let after = run(&gateway, &["check"]).await;
    gateway.start();
    let again = connect(&gateway, &who, "found", &json!({})).await;
    let refreshed = gateway.post(&who, &format!("/v1/providers/{id}/refresh"), "{}").await;
    has!(delete(&gateway, &who, &id).await, "/data/upstream_revocation": "done");

    let told = |output: &std::process::Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let bound = format!("bound to the issuer {}", real.origin());
    assert_eq!(before.status.code(), Some(0), "{}", told(&before));
    assert!(told(&before).contains(&bound), "{}", told(&before));
    assert_eq!(after.status.code(), Some(1), "{}", told(&after));
    let differs = format!("as its authorization server, but {}", hostile.origin());
    assert!(told(&after).contains(&bound) && told(&after).contains(&differs), "{}", told(&after));
    assert_eq!(again.at("/error/details/reason"), "issuer_mismatch", "{}", again.text);
    assert_eq!(refreshed.status, 200, "by the issuer that granted it: {}", refreshed.text);
    assert_eq!(real.revoked().len(), 2);
    assert!(hostile.received().is_empty(), "{:?}", hostile.received());
}
