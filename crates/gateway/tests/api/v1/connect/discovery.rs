//! Discovery of the authorization server from the MCP server, and of the gateway's client there;
//! `GET /oauth/client-metadata.json`.

use portcullis_testkit::{CLIENT_ID, CLIENT_SECRET};

use super::{UNKNOWN, attacks::documents, finding, text};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_challenge_leads_to_its_authorization_server_and_the_gateway_registers() {
    let saas = Saas::start(Habits::default()).await;
    let origin = saas.origin();
    let (resource, mut server) = documents(&origin);
    server["registration_endpoint"] = json!(format!("{origin}/register"));
    server["authorization_response_iss_parameter_supported"] = json!(true);
    let registration = json!({
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "client_secret_expires_at": 0,
        "token_endpoint_auth_method": "client_secret_post",
    });
    saas.change(|habits| {
        habits.iss = Some(origin.clone());
        habits.challenge =
            Some(format!("Bearer resource_metadata=\"{origin}/about\", scope=\"read\""));
        habits.documents = BTreeMap::from([
            ("/about".to_owned(), (200, resource.to_string())),
            ("/.well-known/oauth-authorization-server".to_owned(), (200, server.to_string())),
            ("/register".to_owned(), (201, registration.to_string())),
        ]);
    });
    let scene = finding(saas);

    let (begun, code) = scene.consented(&scene.who, &json!({}), "octocat").await;
    let url = text(&begun, "/data/authorization_url");
    scene.connect(&scene.who, &json!({ "confirm": code })).await.ok();

    let escaped = format!("{origin}/mcp").replace(':', "%3A").replace('/', "%2F");
    assert!(url.contains(&format!("resource={escaped}")), "{url}");
    assert!(url.contains("scope=read") && url.contains(CLIENT_ID), "{url}");
    let asked = scene.saas.token_requests();
    assert_eq!(asked[0]["resource"], format!("{origin}/mcp"), "{asked:?}");
    has!(scene.whoami(&scene.who).await, "/result/account": "octocat");
    // Without its name in the callback, what this server sends is not believed (RFC 9207).
    scene.saas.change(|habits| habits.iss = None);
    let shown = scene.page("octocat").await;
    assert!(shown.contains("issuer_mismatch"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_looks_for_who_authorizes() {
    let saas = Saas::start(Habits::default()).await;
    let origin = saas.origin();
    let (resource, server) = documents(&origin);
    let gateway = gateway().http("found", &saas.mcp(), UNKNOWN).prepare();

    let lost = run(&gateway, &["check"]).await;
    saas.change(|habits| {
        // A challenge may name its document by a path.
        habits.challenge = Some("Bearer resource_metadata=\"/about\"".to_owned());
        habits.documents = BTreeMap::from([
            ("/about".to_owned(), (200, resource.to_string())),
            ("/.well-known/oauth-authorization-server".to_owned(), (200, server.to_string())),
        ]);
    });
    let found = gateway.admin(&["check"]);

    assert_eq!(lost.status.code(), Some(1));
    let told = String::from_utf8_lossy(&lost.stdout);
    assert!(told.contains("found: error") && told.contains("metadata"), "{told}");
    has!(found, "/providers/0/status": "pending", "/providers/0/waits_for": "person");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_tells_what_it_is_at_a_stable_address() {
    let gateway = gateway().config("[server]\npublic_url = \"https://gw.example\"").start();

    let answer = gateway.send(gateway.request(Method::GET, "/oauth/client-metadata.json")).await;

    assert_eq!(answer.status, 200);
    let expected = json!({
        "application_type": "web",
        "client_id": "https://gw.example/oauth/client-metadata.json",
        "client_name": "Portcullis",
        "redirect_uris": ["https://gw.example/oauth/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    assert_eq!(answer.json, expected);
    assert_ne!(answer.json, Value::Null);
}
