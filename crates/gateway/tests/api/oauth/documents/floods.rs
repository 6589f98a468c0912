//! Clients that make up documents, or hang up while they are fetched: `POST /oauth/token`.

use super::{APP, Documents, signed};
use crate::{
    oauth::{
        Site,
        client::{Client, Fields, encoded},
        error,
        grants::{Signer, proof_for},
    },
    prelude::*,
};

/// A gateway that trusts the site, behind a proxy, so that the source of a request can be chosen.
const PROXIED: &str =
    "private_hosts = [\"127.0.0.1\"]\n[server]\ntrusted_proxies = [\"127.0.0.0/8\"]";
/// Address of those whose requests are counted.
const SOURCE: &str = "203.0.113.7";
/// Failed requests without a valid token that an address may make in a minute.
const LIMIT: u32 = 60;
/// Requests of strangers at one address that may wait for documents.
const WAITING: u32 = 8;
const BUSY: &str = "too many clients are looked up";

/// Waits for a minute of which half is left, so that counts do not begin anew in the middle of a test.
async fn early_in_a_minute(site: &Site) {
    while now(&site.gateway).await.as_seconds() % 60 > 30 {
        tokio::task::yield_now().await;
    }
}

/// The answer to a token request from the address.
async fn token(site: &Site, fields: &Fields) -> Answer {
    let request = site.gateway.request(Method::POST, "/oauth/token").body(encoded(fields));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    site.gateway.send(request.header("x-forwarded-for", SOURCE)).await
}

/// Requests that the address has left, as the answer to one tells that costs nothing.
async fn left(site: &Site) -> u32 {
    let metadata = json!({"redirect_uris": [APP]});
    let request = site.gateway.request(Method::POST, "/oauth/register").json(&metadata);
    let answer = site.gateway.send(request.header("x-forwarded-for", SOURCE)).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.header("x-ratelimit-remaining").parse().unwrap()
}

/// A token request of a client to which nobody consented.
fn refresh(id: &str) -> Fields {
    Fields::from([
        ("grant_type", "refresh_token".to_owned()),
        ("client_id", id.to_owned()),
        ("refresh_token", "x".to_owned()),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn few_requests_of_an_address_wait_for_documents_and_each_is_charged_first() {
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::start(folder.path()).await;
    let site = documents.site(PROXIED);
    early_in_a_minute(&site).await;
    let fields = refresh(&documents.id("/slow.json"));

    let answers = join_all((0..WAITING + 4).map(|_| token(&site, &fields))).await;

    let unavailable = (503, "temporarily_unavailable");
    assert!(answers.iter().all(|it| error(it) == unavailable), "{answers:?}");
    assert_eq!(answers.iter().filter(|it| it.text.contains(BUSY)).count(), 4, "{answers:?}");
    assert_eq!(left(&site).await, LIMIT - WAITING - 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_waits_for_a_document_stays_in_the_budget_of_its_address() {
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::start(folder.path()).await;
    let site = documents.site(PROXIED);
    early_in_a_minute(&site).await;
    let mut fields = refresh(&documents.id("/slow.json"));
    fields.insert("padding", "a".repeat(60_000));
    let form = encoded(&fields);
    let mut waiting = JoinSet::new();
    for _ in 0..WAITING {
        let request = site.gateway.request(Method::POST, "/oauth/token").body(form.clone());
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        waiting.spawn(request.header("x-forwarded-for", SOURCE).send());
    }
    let all = async || (left(&site).await == LIMIT - WAITING).then_some(());
    eventually("forms that wait", all).await;

    // They are half of the share of 1 MiB; these are 600 KiB, at 4 KiB each.
    let head = format!(
        "POST /v1/auth/token HTTP/1.1\r\nhost: x\r\nx-forwarded-for: {SOURCE}\r\ncontent-length: 100\r\n\r\n{{"
    );
    let _held = join_all((0..150).map(async |_| {
        let mut stream = connect(&site.gateway).await;
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }))
    .await;
    let body = || {
        let request = site.gateway.request(Method::POST, "/v1/auth/token");
        site.gateway.send(request.header("x-forwarded-for", SOURCE).body("{}"))
    };
    has!(until(body, |it| it.status == 503).await, "/error/details/reason": "overloaded");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_left_behind_that_hung_up_is_charged_and_has_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::start(folder.path()).await;
    let site = documents.site(PROXIED);
    early_in_a_minute(&site).await;
    let id = documents.id("/slow.json");
    let assertion = Signer::new().sign("JWT", &proof_for(&id, site.gateway.url()));
    let fields = signed(refresh(&id), assertion);
    let form = encoded(&fields);
    let host = site.gateway.url().split_once("://").unwrap().1;
    let sent = format!(
        "POST /oauth/token HTTP/1.1\r\nhost: {host}\r\nx-forwarded-for: {SOURCE}\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
        form.len()
    );
    let connections: Vec<TcpStream> = join_all((0..WAITING).map(async |_| {
        let mut stream = connect(&site.gateway).await;
        stream.write_all(sent.as_bytes()).await.unwrap();
        stream
    }))
    .await;
    let all = async || (left(&site).await == LIMIT - WAITING).then_some(());
    eventually("assertions that are charged before anything came of them", all).await;

    drop(connections);
    let next = token(&site, &fields).await;

    assert_eq!(error(&next), (503, "temporarily_unavailable"), "{}", next.text);
    assert!(next.text.contains(BUSY), "{}", next.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn refreshes_while_the_host_of_a_document_is_down_cost_their_office_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let documents = Documents::start(folder.path()).await;
    let mut site = documents.site(PROXIED);
    let port = site.gateway.url().rsplit(':').next().unwrap().parse().unwrap();
    let fields = {
        let browser = site.browser().await;
        let client = Client { id: documents.id("/app.json"), ..site.client(APP).await };
        let tokens = client.tokens(&browser, &client.request()).await;
        client.refresh(&tokens.refresh)
    };
    documents.state.lock().unwrap().broken = true;
    site.gateway.stop();
    site.gateway.start_at(port);
    early_in_a_minute(&site).await;

    for number in 0..LIMIT + 10 {
        let refused = token(&site, &fields).await;
        let told = &refused.text;
        assert_eq!(error(&refused), (503, "temporarily_unavailable"), "{number}: {told}");
    }

    assert_eq!(left(&site).await, LIMIT);
}
