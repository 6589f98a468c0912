//! `GET /`, `GET /healthz`, `GET /readyz`, `GET /openapi.json`: no token needed.

use portcullis_core::json::{self, Bounds};

use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_can_govern_is_ready_and_shows_its_openapi_document() {
    // A node that can govern is ready.
    let gateway = gateway().start();

    for (path, status) in [("/healthz", "ok"), ("/readyz", "ready")] {
        let answer = gateway.send(gateway.request(Method::GET, path)).await;

        has!("{path}"; answer, 200, "/data/status": status);
        assert_eq!(answer.header("x-ratelimit-resource"), "unauthenticated", "{path}");
        assert_framed(&answer, path);
        assert_enveloped(&answer, path);
    }

    // The openapi document is served to anybody as it is in the repository.
    let answer = gateway.send(gateway.request(Method::GET, "/openapi.json")).await.ok();

    assert_eq!(answer.header("content-type"), "application/json");
    assert_framed(&answer, "/openapi.json");
    assert_eq!(answer.text.trim(), DOCUMENT.trim(), "{STALE}");

    // A node whose database is locked says so and waits for no lock.
    let ready = || gateway.send(gateway.request(Method::GET, "/readyz"));
    assert_eq!(ready().await.status, 200);
    let lock = gateway.lock_database();

    // What was found before holds for a second. From then on every answer says so, also of those that
    // ask together, and the lock is held until all have theirs.
    until(ready, |answer| answer.status == 503).await;
    let mut answers = Vec::new();
    for _ in 0..10 {
        answers.extend(join_all([ready(), ready(), ready()]).await);
    }

    for answer in answers {
        has!(answer, 503 "unavailable", "/error/details/reason": "audit");
    }
    assert!(gateway.log().contains("the database is locked"), "{}", gateway.log());
    drop(lock);
    until(ready, |answer| answer.status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_binary_asks_the_node_of_its_configuration_whether_it_is_ready() {
    let mut gateway = gateway().start();
    let listen = gateway.url().trim_start_matches("http://").to_owned();
    let config = gateway.config_file();
    let ask = |gateway: &Gateway, more: &[&str], port: &str| {
        let mut ready = gateway.command();
        ready.env("PORTCULLIS_SERVER__LISTEN", port).arg("ready").args(more);
        ready.arg("--config").arg(&config).output().unwrap()
    };
    let everywhere = listen.replace("127.0.0.1", "0.0.0.0");
    let proxied = "PORTCULLIS_SERVER__BEHIND_TLS_PROXY";

    assert!(ask(&gateway, &[], &listen).status.success());
    assert!(ask(&gateway, &["--live"], &listen).status.success());
    let mut ready = gateway.command();
    ready.env("PORTCULLIS_SERVER__LISTEN", everywhere).env(proxied, "true").arg("ready");
    assert!(ready.arg("--config").arg(&config).status().unwrap().success());
    gateway.stop();
    let told = ask(&gateway, &[], &listen);

    assert_eq!(told.status.code(), Some(1));
    assert!(String::from_utf8(told.stderr).unwrap().contains("nothing answers"));
}

const DOCUMENT: &str = include_str!("../../../../docs/openapi.json");
const STALE: &str = "docs/openapi.json is stale: run `cargo run -- openapi > docs/openapi.json`";

#[test]
fn the_openapi_document_in_the_repository_is_the_one_that_the_binary_prints() {
    let printed = gateway().prepare().run(&["openapi"]);

    assert_eq!(printed.trim(), DOCUMENT.trim(), "{STALE}");
    let document = json::parse(printed.as_bytes(), Bounds::UPSTREAM).unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
}

#[test]
fn the_table_of_the_api_has_a_row_for_each_operation() {
    let document = json::parse(DOCUMENT.as_bytes(), Bounds::UPSTREAM).unwrap();
    let paths = document["paths"].as_object().unwrap();

    for (path, operations) in paths {
        for method in operations.as_object().unwrap().keys() {
            let row = format!("\n| `{} {path}` |", method.to_uppercase());
            assert!(TABLE.contains(&row), "docs/api.md has no row `{}`", row.trim());
        }
    }
}

const TABLE: &str = include_str!("../../../../docs/api.md");

#[tokio::test(flavor = "multi_thread")]
async fn the_address_itself_is_a_page_that_says_how_to_connect() {
    let gateway = gateway().config("[server]\npublic_url = \"https://gw.example\"").start();

    let answer = gateway.send(gateway.request(Method::GET, "/")).await.ok();

    assert_framed(&answer, "the page");
    assert!(answer.header("content-type").starts_with("text/html"));
    assert!(answer.header("content-security-policy").contains("default-src 'none'"));
    for wanted in ["It is ready.", "https://gw.example/mcp", "/openapi.json", "client-config"] {
        assert!(answer.text.contains(wanted), "{wanted}: {}", answer.text);
    }
}
