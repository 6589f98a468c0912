//! Authorization servers as they are deployed: with and without the last slash, with pages where documents are
//! looked for, without a memory.

use portcullis_testkit::{CLIENT_ID, CLIENT_SECRET};

use super::{Scene, attacks::documents, finding, text};
use crate::prelude::*;

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

type Documents = BTreeMap<String, (u16, String)>;

/// A scene of discovery, with the documents that `change` makes of those of a well-behaved server.
async fn found(habits: Habits, change: impl FnOnce(&str, &mut Documents)) -> Scene {
    let saas = Saas::start(habits).await;
    let origin = saas.origin();
    let (resource, server) = documents(&origin);
    let registration = json!({
        "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET,
        "token_endpoint_auth_method": "client_secret_post",
    });
    let mut documents = BTreeMap::from([
        (format!("{RESOURCE}/mcp"), (200, resource.to_string())),
        (SERVER.to_owned(), (200, server.to_string())),
        ("/register".to_owned(), (201, registration.to_string())),
    ]);
    change(&origin, &mut documents);
    saas.change(|habits| habits.documents = documents);
    finding(saas)
}

fn registered(found: &Scene) -> usize {
    found.saas.received().iter().filter(|it| it.starts_with("POST /register")).count()
}

/// Lets the service forget the gateway, until [`remember`].
fn forget(found: &Scene) {
    let forgotten = json!({"error": "invalid_client"}).to_string();
    found.saas.change(|habits| {
        habits.documents.insert("/token".to_owned(), (401, forgotten));
    });
}

fn remember(found: &Scene) {
    found.saas.change(|habits| {
        habits.documents.remove("/token");
    });
}

fn changed(documents: &mut Documents, path: &str, member: &str, value: Value) {
    let (_, text) = documents.get_mut(path).unwrap();
    let mut document: Value = serde_json::from_str(text).unwrap();
    document[member] = value;
    *text = document.to_string();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_without_a_path_is_the_same_with_and_without_the_last_slash() {
    for (listed, own) in [("/", ""), ("", "/")] {
        let found = found(Habits::default(), |origin, documents| {
            let listed = json!([format!("{origin}{listed}")]);
            changed(documents, &format!("{RESOURCE}/mcp"), "authorization_servers", listed);
            changed(documents, SERVER, "issuer", json!(format!("{origin}{own}")));
        })
        .await;
        let iss = |slash: &str| Some(format!("{}{slash}", found.saas.origin()));
        found.saas.change(|habits| habits.iss = iss(own));

        found.connected_and_called().await;

        // In the callback it is the server's own name, and to the letter.
        found.saas.change(|habits| habits.iss = iss(if own.is_empty() { "/" } else { "" }));
        let page = found.page("octocat").await;
        assert!(page.contains("issuer_mismatch"), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_and_pages_at_one_place_do_not_end_the_search() {
    let found = found(Habits::default(), |origin, documents| {
        let resource = documents.remove(&format!("{RESOURCE}/mcp")).unwrap();
        documents.insert("/about".to_owned(), (200, "<!doctype html><p>Hello".to_owned()));
        let error = json!({"error": "not_found"}).to_string();
        documents.insert(format!("{RESOURCE}/mcp"), (200, error.clone()));
        documents.insert(RESOURCE.to_owned(), resource);
        let server = documents.insert(SERVER.to_owned(), (200, error)).unwrap();
        documents.insert(OPENID.to_owned(), server);
        assert!(origin.starts_with("http://"));
    })
    .await;
    found.saas.change(|habits| {
        habits.challenge = Some("Bearer resource_metadata=\"/about\", scope=\"read\"".to_owned());
    });

    found.connected_and_called().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forgot_the_gateway_is_registered_with_anew() {
    let found = found(Habits::default(), |_, _| {}).await;
    forget(&found);

    let page = found.page("octocat").await;
    remember(&found);
    found.connected_and_called().await;
    found.connected_and_called().await;

    assert!(page.contains("code_not_redeemed"), "{page}");
    assert_eq!(registered(&found), 2, "once more, and then no more");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_only_a_page_says_that_the_client_is_unknown_the_status_says_what_to_do() {
    let found = found(Habits::default(), |_, _| {}).await;
    let begun = found.connect(&found.who, &json!({})).await;
    let id = text(&begun, "/data/provider/id");

    let waiting = found.gateway.get(&found.who, &format!("/v1/providers/{id}")).await;
    let again = found.gateway.admin(&["provider", "register", "--again", "found"]);
    let (_, unknown) = failure(&found.gateway, &["provider", "register", "other"]).await;
    found.connected_and_called().await;

    let told = waiting.at("/data/last_error").as_str().unwrap();
    assert!(told.contains("portcullis provider register --again found"), "{told}");
    has!(again, "/client_id": CLIENT_ID, "/issuer": found.saas.origin());
    assert!(unknown.contains("no provider `other` is declared"), "{unknown}");
    assert_eq!(registered(&found), 2);
    let after = found.gateway.get(&found.who, &format!("/v1/providers/{id}")).await;
    assert_eq!(after.at("/data/last_error"), &Value::Null, "{}", after.text);
    let listed = found.gateway.admin(&["provider", "list"]);
    assert_eq!((&listed[0]["slug"], &listed[0]["status"]), (&json!("found"), &json!("connected")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_that_is_refused_because_of_a_forgotten_client_needs_a_person_and_a_new_client() {
    let found = found(Habits { expires_in: Some(3), ..Habits::default() }, |_, _| {}).await;
    found.connected_and_called().await;
    forget(&found);

    let listed = || found.gateway.get(&found.who, "/v1/providers");
    until(listed, |it| it.at("/data/items/0/status") == "needs_auth").await;
    remember(&found);
    found.saas.change(|habits| habits.expires_in = Some(3_600));
    found.connected_and_called().await;

    assert_eq!(registered(&found), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_that_is_refused_for_its_resource_is_asked_for_without_and_that_is_remembered() {
    let habits = Habits { expires_in: Some(2), refuses_resource: true, ..Habits::default() };
    let found = found(habits, |_, _| {}).await;
    found.connected_and_called().await;

    let named = eventually("a third renewal", async || {
        let mut renewals = found.saas.token_requests();
        renewals.retain(|it| it["grant_type"] == "refresh_token");
        let named: Vec<bool> = renewals.iter().map(|it| it.contains_key("resource")).collect();
        (named.len() >= 3).then_some(named)
    })
    .await;

    assert_eq!(named[..3], [true, false, false]);
    found.whoami(&found.who).await.ok();
}
