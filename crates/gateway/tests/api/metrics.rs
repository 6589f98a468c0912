//! The metrics listener: there only if asked for, with labels that callers cannot multiply.

use portcullis_testkit::Gateway;
use reqwest::Method;
use serde_json::json;

use crate::{
    gateway,
    given::{ALL_SCOPES, ENOUGH},
};

pub(crate) async fn scrape(url: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client.get(url).send().await.unwrap().text().await.unwrap()
}

async fn spray(gateway: &Gateway) {
    let who = gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES);
    for n in 0..10 {
        gateway.get(&who, &format!("/v1/mcps/sample:tool_{n}")).await;
        gateway.get(&who, &format!("/v1/nothing/{n}")).await;
        let method = Method::from_bytes(format!("VERB{n}").as_bytes()).unwrap();
        gateway.send(gateway.request(method, "/v1/mcps").bearer_auth(&who.token)).await;
    }
    gateway.invoke(&who, "sample:create_note", json!({"title": "a", "text": "b"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_route_method_and_status_and_by_nothing_a_caller_chooses() {
    let config = "[server]\nmetrics_listen = \"127.0.0.1:0\"";
    let gateway = gateway().config(config).sample().start();
    let (_, url) = gateway.starting_log().split_once("metrics on ").unwrap();
    let url = url.lines().next().unwrap();
    spray(&gateway).await;

    let text = scrape(url).await;

    for counted in [
        "portcullis_http_requests_total{method=\"GET\",path=\"/v1/mcps/{id}\",status=\"404\"} 10",
        "portcullis_http_requests_total{method=\"GET\",path=\"none\",status=\"404\"} 10",
        "portcullis_http_requests_total{method=\"other\",path=\"/v1/mcps\",status=\"405\"} 10",
        "portcullis_http_requests_total{method=\"POST\",path=\"/v1/mcps/{id}/invoke\",status=\"200\"} 1",
        "portcullis_invocations_total{outcome=\"success\",executed=\"yes\"} 1",
        "portcullis_provider_up{provider=\"sample\"} 1",
    ] {
        assert!(text.contains(counted), "{counted} in:\n{text}");
    }
    for chosen in ["tool_", "nothing", "VERB", "svc_live_", "create_note", "org_", "127.0.0.1"] {
        assert!(!text.contains(chosen), "{chosen} in:\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_port_has_no_metrics() {
    let gateway = gateway().start();

    let answer = gateway.send(gateway.request(Method::GET, "/metrics")).await;

    assert_eq!(answer.status, 404);
}
