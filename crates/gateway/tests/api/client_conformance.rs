//! The official MCP conformance suite: its client scenarios, played through the REST API by
//! `tests/servers/conformance.mjs`. What a revision requires is named by the suite itself; all 50 scenarios
//! are played.

use std::process::Output;

use tokio::process::Command;

use crate::{mcp::clients::node, prelude::*};

/// The longest that one scenario may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

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
async fn conforms(revision: &str, scenarios: &str) {
    let mut failed = Vec::new();
    for scenario in scenarios.split(' ') {
        let output = play(scenario, revision).await;

        let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        if !(output.status.success() && told.contains("OVERALL: PASSED")) {
            failed.push(format!("== {scenario} of {revision}:\n{told}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

const STATELESS: &str = "2026-07-28";
const SESSIONS: &str = "2025-11-25";

/// Required of both revisions.
const AUTHORIZATION: &str = "auth/metadata-default auth/metadata-var1 auth/metadata-var2 \
    auth/metadata-var3 auth/basic-cimd auth/scope-from-www-authenticate \
    auth/scope-from-scopes-supported auth/scope-omitted-when-undefined auth/scope-step-up \
    auth/scope-retry-limit auth/token-endpoint-auth-basic auth/token-endpoint-auth-post \
    auth/token-endpoint-auth-none auth/pre-registration";

/// Required of the stateless revision besides.
const MORE_AUTHORIZATION: &str = "auth/resource-mismatch auth/offline-access-scope \
    auth/offline-access-not-supported auth/authorization-server-migration auth/iss-supported \
    auth/iss-not-advertised auth/iss-supported-missing auth/iss-wrong-issuer auth/iss-unexpected \
    auth/iss-normalized auth/metadata-issuer-mismatch";

/// Required of the stateless revision in speaking to servers.
const SPOKEN_STATELESS: &str = "tools_call request-metadata http-standard-headers \
    http-custom-headers http-invalid-tool-headers json-schema-ref-no-deref \
    sep-2322-client-request-state";

/// Required of the revision with sessions in speaking to servers.
const SPOKEN_WITH_SESSIONS: &str = "initialize tools_call elicitation-sep1034-client-defaults \
    sse-retry";

/// The client scenarios that the suite requires of a revision.
fn required(revision: &str) -> BTreeSet<String> {
    let package = servers().join("node_modules/@modelcontextprotocol/conformance");
    let file = package.join("requirements").join(format!("{revision}.yaml"));
    let text = fs::read_to_string(&file).expect("the requirements of a revision");
    let lines = text.lines().skip_while(|line| *line != "client:").skip(1);
    let names = lines.map_while(|line| line.strip_prefix("  - "));
    names.map(|name| name.trim().to_owned()).collect()
}

#[test]
fn each_of_the_50_required_scenarios_is_played() {
    let both = [
        (SESSIONS, vec![SPOKEN_WITH_SESSIONS, AUTHORIZATION]),
        (STATELESS, vec![SPOKEN_STATELESS, AUTHORIZATION, MORE_AUTHORIZATION]),
    ];
    let mut played = 0;

    for (revision, lists) in both {
        let names: BTreeSet<String> = lists.join(" ").split(' ').map(str::to_owned).collect();

        assert_eq!(names, required(revision), "{revision}");
        played += names.len();
    }
    assert_eq!(played, 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stateless_revision_is_spoken_as_the_suite_wants() {
    conforms(STATELESS, SPOKEN_STATELESS).await;
    // Not scored, and held nevertheless.
    conforms(STATELESS, "json-schema-2020-12-preservation").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_revision_with_sessions_is_spoken_as_the_suite_wants() {
    conforms(SESSIONS, SPOKEN_WITH_SESSIONS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_the_revision_with_sessions_are_connected_as_the_suite_wants() {
    conforms(SESSIONS, AUTHORIZATION).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_the_stateless_revision_are_connected_as_the_suite_wants() {
    conforms(STATELESS, AUTHORIZATION).await;
    conforms(STATELESS, MORE_AUTHORIZATION).await;
}
