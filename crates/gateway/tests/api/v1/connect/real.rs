//! End to end with software of other people: npm's `oidc-provider` authorizes, a `FastMCP` server
//! takes nothing but its tokens.

use portcullis_testkit::{Authorizer, GuardedServer};

use super::{USER, code_on, come_back, connect, text};
use crate::prelude::*;

const FOUND: &str = "auth = \"oauth2\"";

/// Connects as `subject`, to the end, through the real servers.
async fn connected(gateway: &Gateway, authorizer: &Authorizer, who: &Principal, subject: &str) {
    let begun = connect(gateway, who, "guarded", &json!({})).await;
    assert_eq!(begun.status, 202, "{}", begun.text);
    let url = text(&begun, "/data/authorization_url");
    let callback = format!("{}/oauth/callback", gateway.url());
    let back = tokio::task::block_in_place(|| authorizer.consent(&url, subject, &callback));
    let page = come_back(&back).await.text().await.unwrap();
    connect(gateway, who, "guarded", &json!({ "confirm": code_on(&page) })).await.ok();
}

/// A small generator of numbers, so that a failure can be repeated from its seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_users_of_two_orgs_never_call_with_each_others_credential() {
    let authorizer = Authorizer::start();
    let guarded = GuardedServer::start(authorizer.issuer());
    let gateway = gateway()
        .config("[server]\nprovider_patience_seconds = 30")
        .http("guarded", &guarded.url(), FOUND)
        .start();
    let people = ["ana", "ben"].map(|name| {
        let who = gateway.user(&gateway.org(&format!("org of {name}"), &ENOUGH), "member", USER);
        (name, who)
    });
    // Every few seconds there is another token, so that renewals fall between the calls.
    authorizer.set_life(6);
    for (name, who) in &people {
        connected(&gateway, &authorizer, who, name).await;
    }
    assert_eq!(authorizer.registered(), 1, "the gateway registered once");

    for seed in 1..=12_u64 {
        let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut work = Vec::new();
        for _ in 0..24 {
            let (name, who) = &people[usize::try_from(numbers.below(2)).unwrap()];
            let step = numbers.below(10);
            let pause = numbers.below(40);
            let gateway = &gateway;
            work.push(async move {
                tokio::time::sleep(Duration::from_millis(pause * 5)).await;
                if step == 0 {
                    let all = gateway.get(who, "/v1/providers").await;
                    let id = all.at("/data/items/0/id").as_str().unwrap_or_default().to_owned();
                    gateway.post(who, &format!("/v1/providers/{id}/refresh"), "").await.ok();
                } else {
                    let input = json!({"claims_to_be": name, "pause": 0.001});
                    let call = gateway.invoke(who, "guarded:whoami", input).await.ok();
                    assert_eq!(call.at("/result/subject"), name, "seed {seed}: {}", call.text);
                }
            });
        }
        join_all(work).await;
    }

    // One of them is gone upstream: the other does not notice.
    tokio::task::block_in_place(|| authorizer.end("ben"));
    let [(_, ana), (_, ben)] = &people;
    let input = |name: &str| json!({"claims_to_be": name});
    let bens = || gateway.invoke(ben, "guarded:whoami", input("ben"));
    has!(until(bens, |answer| answer.status == 409).await, "/error/code": "provider_auth_required");
    has!(gateway.invoke(ana, "guarded:whoami", input("ana")).await, "/result/subject": "ana");
    let foreign = gateway.invoke(ana, "guarded:foreign", json!({})).await;
    assert_eq!(foreign.at("/result/foreign"), &json!([]), "as the server itself saw it");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_names_itself_by_its_metadata_document() {
    let authorizer = Authorizer::start();
    let guarded = GuardedServer::start(authorizer.issuer());
    let public = "https://gw.example";
    let gateway = gateway()
        .config("[server]\npublic_url = \"https://gw.example\"\nprovider_patience_seconds = 30")
        .http("guarded", &guarded.url(), FOUND)
        .start();
    let who = gateway.user(&gateway.org("acme", &ENOUGH), "member", USER);
    let document = gateway.send(gateway.request(Method::GET, "/oauth/client-metadata.json")).await;
    authorizer.set_document(&format!("{public}/oauth/client-metadata.json"), &document.text);

    let begun = connect(&gateway, &who, "guarded", &json!({})).await;
    let url = text(&begun, "/data/authorization_url");
    let back = tokio::task::block_in_place(|| authorizer.consent(&url, "ana", public));
    let page = come_back(&back.replace(public, gateway.url())).await.text().await.unwrap();
    let done = connect(&gateway, &who, "guarded", &json!({ "confirm": code_on(&page) })).await;
    let id = text(&done, "/data/id");
    let gone = super::delete(&gateway, &who, &id).await;

    assert!(url.contains("client_id=https%3A%2F%2Fgw.example%2Foauth%2Fclient-metadata.json"));
    assert_eq!(done.at("/data/status"), "connected", "{}", done.text);
    assert_eq!(authorizer.registered(), 0, "it did not have to register");
    assert!(["done", "failed"].contains(&gone.at("/data/upstream_revocation").as_str().unwrap()));
}
