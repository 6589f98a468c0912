//! Authorization servers as they are deployed: with and without the last slash, with pages where documents are
//! looked for, without a memory.

use std::collections::BTreeMap;

use portcullis_testkit::{CLIENT_ID, CLIENT_SECRET, Gateway, Habits, Principal, Saas};
use serde_json::{Value, json};

use super::{USER, attacks::documents, code_on, come_back, connect, text};
use crate::{
    gateway,
    given::{ENOUGH, failure, until},
};

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// A service, a gateway that finds out about it, and a user.
struct Found {
    saas: Saas,
    gateway: Gateway,
    who: Principal,
}

type Documents = BTreeMap<String, (u16, String)>;

/// With the documents that `change` makes of those of a well-behaved server.
async fn found(habits: Habits, change: impl FnOnce(&str, &mut Documents)) -> Found {
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
    let provider = "auth = \"oauth2\"\nprotocol = \"legacy\"";
    let gateway = gateway().http("found", &saas.mcp(), provider).start();
    let who = gateway.user(&gateway.org("acme", &ENOUGH), "member", USER);
    Found { saas, gateway, who }
}

impl Found {
    /// Begins a connect, consents, and gives the page that the browser is shown.
    async fn consented(&self) -> String {
        let begun = connect(&self.gateway, &self.who, "found", &json!({})).await;
        assert_eq!(begun.status, 202, "{}", begun.text);
        let back = self.saas.consent(&text(&begun, "/data/authorization_url"), "octocat").await;
        come_back(&back).await.text().await.unwrap()
    }

    async fn connected(&self) {
        let code = code_on(&self.consented().await);
        connect(&self.gateway, &self.who, "found", &json!({ "confirm": code })).await.ok();
        let call = self.gateway.invoke(&self.who, "found:whoami", json!({})).await;
        assert_eq!(call.at("/result/account"), "octocat", "{}", call.text);
    }

    fn registered(&self) -> usize {
        self.saas.received().iter().filter(|it| it.starts_with("POST /register")).count()
    }
}

fn changed(documents: &mut Documents, path: &str, member: &str, value: Value) {
    let (_, text) = documents.get_mut(path).unwrap();
    let mut document: Value = serde_json::from_str(text).unwrap();
    document[member] = value;
    *text = document.to_string();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_without_a_path_is_the_same_with_and_without_the_last_slash() {
    for (listed, own) in [("/", ""), ("", "/"), ("/", "/")] {
        let found = found(Habits::default(), |origin, documents| {
            let listed = json!([format!("{origin}{listed}")]);
            changed(documents, &format!("{RESOURCE}/mcp"), "authorization_servers", listed);
            changed(documents, SERVER, "issuer", json!(format!("{origin}{own}")));
        })
        .await;
        let iss = |slash: &str| Some(format!("{}{slash}", found.saas.origin()));
        found.saas.change(|habits| habits.iss = iss(own));

        found.connected().await;

        // In the callback it is the server's own name, and to the letter.
        found.saas.change(|habits| habits.iss = iss(if own.is_empty() { "/" } else { "" }));
        let page = found.consented().await;
        assert!(page.contains("issuer_mismatch"), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_with_a_path_is_taken_to_the_letter() {
    let found = found(Habits::default(), |origin, documents| {
        let listed = json!([format!("{origin}/tenant/")]);
        changed(documents, &format!("{RESOURCE}/mcp"), "authorization_servers", listed);
        changed(documents, SERVER, "issuer", json!(format!("{origin}/tenant")));
        let server = documents.remove(SERVER).unwrap();
        documents.insert(format!("{SERVER}/tenant"), server);
    })
    .await;

    let begun = connect(&found.gateway, &found.who, "found", &json!({})).await;

    assert_eq!(begun.status, 502, "{}", begun.text);
    assert_eq!(found.registered(), 0);
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

    found.connected().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_challenge_may_name_its_document_by_a_path() {
    let found = found(Habits::default(), |_, documents| {
        let resource = documents.remove(&format!("{RESOURCE}/mcp")).unwrap();
        documents.insert("/about".to_owned(), resource);
    })
    .await;
    found.saas.change(|habits| {
        habits.challenge = Some("Bearer resource_metadata=\"/about\"".to_owned());
    });

    found.connected().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forgot_the_gateway_is_registered_with_anew() {
    let found = found(Habits::default(), |_, _| {}).await;
    let forgotten = json!({"error": "invalid_client"}).to_string();
    found.saas.change(|habits| {
        habits.documents.insert("/token".to_owned(), (401, forgotten));
    });

    let page = found.consented().await;
    found.saas.change(|habits| {
        habits.documents.remove("/token");
    });
    found.connected().await;
    found.connected().await;

    assert!(page.contains("code_not_redeemed"), "{page}");
    assert_eq!(found.registered(), 2, "once more, and then no more");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_only_a_page_says_that_the_client_is_unknown_the_status_says_what_to_do() {
    let found = found(Habits::default(), |_, _| {}).await;
    let begun = connect(&found.gateway, &found.who, "found", &json!({})).await;
    let id = text(&begun, "/data/provider/id");

    let waiting = found.gateway.get(&found.who, &format!("/v1/providers/{id}")).await;
    let registered = found.gateway.admin(&["provider", "register", "--again", "found"]);
    let (_, unknown) = failure(&found.gateway, &["provider", "register", "other"]).await;
    found.connected().await;

    let told = waiting.at("/data/last_error").as_str().unwrap();
    assert!(told.contains("portcullis provider register --again found"), "{told}");
    assert_eq!(registered["client_id"], CLIENT_ID);
    assert_eq!(registered["issuer"], found.saas.origin());
    assert!(unknown.contains("no provider `other` is declared"), "{unknown}");
    assert_eq!(found.registered(), 2);
    let after = found.gateway.get(&found.who, &format!("/v1/providers/{id}")).await;
    assert_eq!(after.at("/data/last_error"), &Value::Null, "{}", after.text);
    let listed = found.gateway.admin(&["provider", "list"]);
    assert_eq!((&listed[0]["slug"], &listed[0]["status"]), (&json!("found"), &json!("connected")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_that_is_refused_because_of_a_forgotten_client_needs_a_person_and_a_new_client() {
    let found = found(Habits { expires_in: Some(3), ..Habits::default() }, |_, _| {}).await;
    found.connected().await;
    let forgotten = json!({"error": "invalid_client"}).to_string();
    found.saas.change(|habits| {
        habits.documents.insert("/token".to_owned(), (401, forgotten));
    });

    let status = |it: &portcullis_testkit::Answer| it.at("/data/items/0/status") == "needs_auth";
    until(|| found.gateway.get(&found.who, "/v1/providers"), status).await;
    found.saas.change(|habits| {
        habits.documents.remove("/token");
        habits.expires_in = Some(3_600);
    });
    found.connected().await;

    assert_eq!(found.registered(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_that_is_refused_for_its_resource_is_asked_for_without_and_that_is_remembered() {
    let habits = Habits { expires_in: Some(2), refuses_resource: true, ..Habits::default() };
    let found = found(habits, |_, _| {}).await;
    found.connected().await;

    let renewals = || {
        let all = found.saas.token_requests();
        all.into_iter().filter(|it| it["grant_type"] == "refresh_token").collect::<Vec<_>>()
    };
    portcullis_testkit::eventually("a third renewal", async || {
        (renewals().len() >= 3).then_some(())
    })
    .await;

    let named: Vec<bool> = renewals().iter().map(|it| it.contains_key("resource")).collect();
    assert_eq!(named[..3], [true, false, false]);
    found.gateway.invoke(&found.who, "found:whoami", json!({})).await.ok();
}
