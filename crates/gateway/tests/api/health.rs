//! `GET /healthz`, `GET /readyz`, `GET /openapi.json`: no token needed.

use reqwest::Method;

use crate::gateway;

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_can_govern_is_ready() {
    let gateway = gateway().start();

    for path in ["/healthz", "/readyz", "/openapi.json"] {
        let answer = gateway.send(gateway.request(Method::GET, path)).await;

        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        assert_eq!(answer.header("x-ratelimit-resource"), "unauthenticated", "{path}");
    }
}
