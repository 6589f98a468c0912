//! The API held against its OpenAPI document by Schemathesis, which makes requests of its own: those
//! that the document permits, and those that it does not.

use std::process::{Child, Command};

use crate::prelude::*;

/// Groups of operations. Each is examined from an address of its own, for strangers have a limit of
/// requests, and a part of the examination comes without a token.
const TAGS: [&str; 8] =
    ["admin", "approvals", "audit", "auth", "health", "mcps", "policies", "providers"];

/// Requests of each operation, and what chooses them.
const EXAMPLES: &str = "12";
const SEED: &str = "23";

/// The document cannot say all that makes a request a wrong one: that a cursor or a state was given by the
/// gateway, that a log has that size, what input a tool takes, whose connection a caller
/// may make, or that two members exclude each other. A wrong request is refused by any status of 4xx, also
/// by 413 and 429.
const SETTINGS: &str = r#"
[checks.negative_data_rejection]
expected-statuses = ["4xx", 503]

[[operations]]
include-path-regex = "^/oauth/callback$|^/v1/mcps/.id./invoke$|^/v1/providers/.slug./connect$|^/v1/(mcps|tools/left-out|providers|providers/waiting|approvals|principals|principals/.id.|tokens|tokens/inspect|tools|tools/waiting|tools/.id./accept|audit/holds|policies|policies/.id./override|policies/simulate|policies/check|dlp/scan|audit/events|audit/checkpoint|audit/counts|audit/tool-counts|audit/export|auth/token)$"
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 403, 404, 409, 429]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_server_does_what_its_openapi_document_says() {
    let gateway = gateway().sample().config(BEHIND_A_PROXY).start();
    let org = gateway.org("acme", &ENOUGH);
    let token = gateway.service(&org, ALL_SCOPES).token;
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("schemathesis.toml"), SETTINGS).expect("settings");

    let examined: Vec<(&str, Child)> = (1..)
        .zip(TAGS)
        .map(|(host, tag)| {
            let mut examination = Command::new(servers().join("venv/bin/schemathesis"));
            examination
                .current_dir(folder.path())
                .args(["run", &format!("{}/openapi.json", gateway.url()), "--include-tag", tag])
                .args(["--header", &format!("Authorization: Bearer {token}")])
                .args(["--header", &format!("X-Forwarded-For: 192.0.2.{host}")])
                // To revoke its own token would end the examination.
                .args(["--exclude-method", "DELETE", "--checks", "all", "--continue-on-failure"])
                .args(["--seed", SEED, "--max-examples", EXAMPLES])
                .stdin(Stdio::null())
                .stdout(Stdio::piped());
            (tag, examination.spawn().expect("schemathesis"))
        })
        .collect();

    for (tag, examination) in examined {
        let ended = examination.wait_with_output().expect("its end");
        let told = String::from_utf8_lossy(&ended.stdout);
        let failures = told.find("= FAILURES =").map_or(&*told, |at| &told[at..]);
        assert!(ended.status.success(), "{tag}: {failures}");
    }
}

const BEHIND_A_PROXY: &str = "[server]\ntrusted_proxies = [\"127.0.0.1/32\"]";
