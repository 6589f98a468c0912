//! The frame around a handler, with a gateway as boot makes it.

use std::sync::Arc;

use axum::{Router, body::Body, extract::Request, http::StatusCode, routing::get};
use http_body_util::BodyExt;
use portcullis_core::secret::Secret;
use portcullis_faces::{Gateway, RouteSpec, framed};
use serde_json::Value;
use tower::ServiceExt;

use crate::{boot, config::Config};

async fn gateway(folder: &std::path::Path) -> Arc<Gateway> {
    let config = Config { data_dir: folder.to_owned(), ..Config::default() };
    std::fs::create_dir(folder.join("policies")).unwrap();
    boot::new_key(&folder.join("key")).unwrap();
    let looking = boot::Mode::Check;
    let node = boot::Node::assemble(&config, portcullis_app::Fallback::Refuse, looking).await;
    node.unwrap().gateway
}

async fn boom() -> StatusCode {
    panic!("{}", Secret::new("hunter2".to_owned()).expose())
}

#[tokio::test]
async fn a_handler_that_panics_is_answered_like_any_failure_and_tells_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = gateway(folder.path()).await;
    let methods = framed(get(boom), RouteSpec::UNKNOWN, &gateway);
    let router = Router::new().route("/boom", methods).with_state(gateway);

    let request = Request::get("/boom").header("host", "localhost").body(Body::empty()).unwrap();
    let response = router.oneshot(request).await.unwrap();

    assert_eq!(response.status(), 500);
    for name in ["x-ratelimit-limit", "x-ratelimit-reset", "x-request-id", "cache-control"] {
        assert!(response.headers().contains_key(name), "{name}");
    }
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(!String::from_utf8_lossy(&body).contains("hunter2"));
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["error"]["code"], "internal_error");
    assert!(body["meta"]["request_id"].as_str().unwrap().starts_with("req_"));
}
