//! The host that a request names.

use portcullis_core::json::{self, Bounds};

use crate::prelude::*;

fn get(target: &str, headers: &str) -> String {
    format!("GET {target} HTTP/1.1\r\n{headers}connection: close\r\n\r\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_exactly_one_host_by_name_or_address() {
    // A request names exactly one host.
    let gateway = gateway().start();

    for (target, headers) in [
        ("/healthz", ""),
        ("/healthz", "host:\r\n"),
        ("/healthz", "host: x\r\nhost: x\r\n"),
        ("/healthz", "host: x\r\nhost: y\r\n"),
        ("/healthz", "host: :80\r\n"),
        ("/healthz", "host: user@x\r\n"),
        ("/healthz", "host: x/y\r\n"),
        ("/healthz", "host: x?y\r\n"),
        ("/healthz", "host: x#y\r\n"),
        ("/healthz", "host: x, y\r\n"),
        ("/healthz", "host: x y\r\n"),
        ("/healthz", "host: x:99999\r\n"),
        ("http://x/healthz", "host: y\r\n"),
        ("http://x/healthz", ""),
        ("http://user@x/healthz", "host: user@x\r\n"),
        ("/v1/mcps", ""),
        ("/nothing", ""),
    ] {
        let answer = exchange(&gateway, get(target, headers).as_bytes()).await;

        assert!(answer.starts_with("HTTP/1.1 400 "), "{target} {headers:?}: {answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body = json::parse(body.as_bytes(), Bounds::REQUEST).unwrap();
        assert_eq!(body["error"]["code"], "invalid_request", "{target} {headers:?}");
        assert_eq!(body["error"]["details"]["parameter"], "Host", "{target} {headers:?}");
    }

    // A host may be a name or an address and stand in the target too.
    for (target, headers) in [
        ("/healthz", "host: gate.acme.example\r\n"),
        ("/healthz", "host: 127.0.0.1:8080\r\n"),
        ("/healthz", "host: [::1]:8080\r\n"),
        ("http://x/healthz", "host: X\r\n"),
    ] {
        let answer = exchange(&gateway, get(target, headers).as_bytes()).await;

        assert!(answer.starts_with("HTTP/1.1 200 "), "{target} {headers:?}: {answer}");
    }
    let old = exchange(&gateway, b"GET /healthz HTTP/1.0\r\n\r\n").await;
    assert!(old.starts_with("HTTP/1.0 200 ") || old.starts_with("HTTP/1.1 200 "), "{old}");
}
