//! The server scenarios of the official MCP conformance suite, of both revisions, against
//! `/mcp/{slug}` with the fixture server `tests/servers/fixtures.mjs` behind the gateway.
//!
//! Each scenario of the suite stands in [`TABLE`], with what has to come of it.

use std::{
    collections::BTreeSet,
    process::{Output, Stdio},
    time::Duration,
};

use portcullis_testkit::{Gateway, Principal, servers};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

use super::clients::{node, script};
use crate::{gateway, given::serve_as};

/// The longest that a scenario may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Required end of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Passed,
    /// Every check of it holds but these, for the reason at the name.
    Besides(&'static [&'static str]),
    /// The scenario does not concern this gateway, for this reason.
    Foreign(&'static str),
}

use Expected::{Besides, Foreign, Passed};

const STATELESS: &str = "2026-07-28";
const HANDSHAKE: &str = "2025-11-25";
const BOTH: &[&str] = &[HANDSHAKE, STATELESS];

const LOGGING: Expected = Foreign("logging is not offered");
const SESSIONS: Expected = Foreign("no session is opened: each request stands alone");
const NO_STREAM: Expected = Foreign("there is no stream of a session on which updates would come");
const OPEN_STREAM: Expected =
    Foreign("asks the client over a stream of a session, which the older era needs for it");

/// The suite changes the fixture's tools and prompts by a call and waits for the notification. The gateway tells of
/// what a caller sees, and a change is not seen before it is looked at again and accepted.
const HELD_CHANGES: Expected = Besides(&[
    "sep-2575-server-sends-tools-list-changed-on-subscription",
    "sep-2575-server-sends-prompts-list-changed-on-subscription",
]);

/// The suite answers questions without the state that came with them. Such answers are ignored, and
/// the call begins anew; answers with a state may have unknown members.
const STATE_FIRST: Expected = Besides(&["sep-2322-ignore-unexpected-params"]);

/// The scenarios, the revisions that have them, and what has to come of them.
const TABLE: &[(&str, &[&str], Expected)] = &[
    ("server-initialize", &[HANDSHAKE], Passed),
    ("server-session-lifecycle", &[HANDSHAKE], SESSIONS),
    ("server-stateless", &[STATELESS], HELD_CHANGES),
    ("ping", &[HANDSHAKE], Passed),
    ("tools-list", BOTH, Passed),
    ("tools-call-simple-text", BOTH, Passed),
    ("tools-call-image", BOTH, Passed),
    ("tools-call-audio", BOTH, Passed),
    ("tools-call-embedded-resource", BOTH, Passed),
    ("tools-call-mixed-content", BOTH, Passed),
    ("tools-call-error", BOTH, Passed),
    ("tools-call-with-logging", &[HANDSHAKE], LOGGING),
    ("tools-call-with-progress", BOTH, Passed),
    ("tools-call-sampling", &[HANDSHAKE], OPEN_STREAM),
    ("tools-call-elicitation", &[HANDSHAKE], OPEN_STREAM),
    ("elicitation-sep1034-defaults", &[HANDSHAKE], OPEN_STREAM),
    ("elicitation-sep1330-enums", &[HANDSHAKE], OPEN_STREAM),
    ("json-schema-2020-12", BOTH, Passed),
    ("dns-rebinding-protection", BOTH, Passed),
    ("caching", &[STATELESS], Passed),
    ("http-header-validation", &[STATELESS], Passed),
    ("http-custom-header-server-validation", &[STATELESS], Passed),
    ("server-sse-polling", &[HANDSHAKE], SESSIONS),
    ("server-sse-multiple-streams", &[HANDSHAKE], SESSIONS),
    ("server-sse-multiple-streams", &[STATELESS], Passed),
    ("input-required-result-basic-elicitation", &[STATELESS], Passed),
    ("input-required-result-basic-sampling", &[STATELESS], Passed),
    ("input-required-result-basic-list-roots", &[STATELESS], Passed),
    ("input-required-result-request-state", &[STATELESS], Passed),
    ("input-required-result-multiple-input-requests", &[STATELESS], Passed),
    ("input-required-result-multi-round", &[STATELESS], Passed),
    ("input-required-result-missing-input-response", &[STATELESS], Passed),
    ("input-required-result-non-tool-request", &[STATELESS], Passed),
    ("input-required-result-result-type", &[STATELESS], Passed),
    ("input-required-result-unsupported-methods", &[STATELESS], Passed),
    ("input-required-result-tampered-state", &[STATELESS], Passed),
    ("input-required-result-capability-check", &[STATELESS], Passed),
    ("input-required-result-ignore-extra-params", &[STATELESS], STATE_FIRST),
    ("input-required-result-validate-input", &[STATELESS], Passed),
    ("logging-set-level", &[HANDSHAKE], LOGGING),
    ("completion-complete", BOTH, Passed),
    ("resources-list", BOTH, Passed),
    ("resources-read-text", BOTH, Passed),
    ("resources-read-binary", BOTH, Passed),
    ("resources-templates-read", BOTH, Passed),
    ("resources-subscribe", &[HANDSHAKE], NO_STREAM),
    ("resources-unsubscribe", &[HANDSHAKE], NO_STREAM),
    ("sep-2164-resource-not-found", &[STATELESS], Passed),
    ("prompts-list", BOTH, Passed),
    ("prompts-get-simple", BOTH, Passed),
    ("prompts-get-with-args", BOTH, Passed),
    ("prompts-get-embedded-resource", BOTH, Passed),
    ("prompts-get-with-image", BOTH, Passed),
];

/// Files of skills are listed by their manifests, and not among the resources.
const NOT_LISTED: Expected =
    Besides(&["sep-2640-skillmd-metadata-name", "sep-2640-skillmd-metadata-description"]);

/// The scenarios of extensions, of the stateless revision, and what has to come of them.
const EXTENSIONS: &[(&str, Expected)] = &[
    ("sep-2640-skills-enumeration", Passed),
    ("sep-2640-skills-manifest", NOT_LISTED),
    ("sep-2640-skills-directory", Passed),
    ("tasks-lifecycle", Passed),
    ("tasks-capability-negotiation", Passed),
    ("tasks-wire-fields", Passed),
    ("tasks-request-state-removal", Passed),
    ("tasks-mrtr-input", Passed),
    ("tasks-request-headers", Passed),
    ("tasks-dispatch-and-envelope", Passed),
    ("tasks-status-notifications", Passed),
    ("tasks-required-task-error", Passed),
    ("tasks-mrtr-composition", Passed),
];

impl Expected {
    /// Reads what the suite printed. A warning is a check that does not hold.
    fn is_met(self, told: &str) -> bool {
        let is_failed = |line: &&str| line.contains("FAILURE") || line.contains("WARNING");
        let failed: Vec<&str> = told.lines().filter(is_failed).collect();
        let is_there = |name: &&str| failed.iter().any(|line| line.contains(&format!("[{name}")));
        match self {
            Passed => told.contains(", 0 failed, 0 warnings"),
            Besides(names) => failed.len() == names.len() && names.iter().all(is_there),
            Foreign(_) => false,
        }
    }
}

fn suite(arguments: &[&str]) -> Command {
    let entry = servers().join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let mut command = Command::new(node());
    command.arg(entry).args(arguments).kill_on_drop(true);
    command
}

async fn ran(mut command: Command) -> Output {
    timeout(PATIENCE, command.output()).await.expect("an end in time").expect("a suite that starts")
}

/// The scenarios that the suite has for servers of a revision; of extensions for none.
async fn scenarios(revision: Option<&str>) -> BTreeSet<String> {
    let of_revision = revision.map(|it| ["--spec-version", it]);
    let arguments: Vec<&str> =
        ["list", "--server"].into_iter().chain(of_revision.into_iter().flatten()).collect();
    let listed = ran(suite(&arguments)).await;
    let listed = String::from_utf8(listed.stdout).expect("UTF-8");
    let names = listed.lines().filter_map(|line| line.trim().strip_prefix("- "));
    let wanted = names.filter(|line| revision.is_some() || line.contains("[extension]"));
    wanted.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn the_table_names_every_scenario_of_the_suite_and_no_other() {
    for revision in BOTH {
        let named = TABLE.iter().filter(|(_, revisions, _)| revisions.contains(revision));
        let named: BTreeSet<_> = named.map(|(name, ..)| (*name).to_owned()).collect();

        assert_eq!(named, scenarios(Some(revision)).await, "{revision}");
    }
    let named: BTreeSet<_> = EXTENSIONS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(named, scenarios(None).await);
}

/// A gateway with the fixture server behind it, and who may use it.
fn fixtures() -> (Gateway, Principal) {
    let node = node();
    let program = script("fixtures.mjs");
    let node = node.to_string_lossy().into_owned();
    let servers = servers();
    // It speaks older revisions, too, and would be taken for one of them if it was slow to start.
    let more = format!(
        "protocol = \"modern\"\nexpose = [\"prompts\", \"resources\", \"tasks\", \"tools\"]\n\
         env = {{ PORTCULLIS_TEST_SERVERS = {:?} }}",
        servers.to_string_lossy()
    );
    serve_as(
        "mcps:read mcps:invoke",
        gateway()
            .stdio("up", &[&node, &program], &more)
            .config("[server]\nprovider_patience_seconds = 60"),
    )
}

/// A proxy that adds the token to each request, which the suite has not, and its address.
async fn with_token(gateway: &Gateway, who: &Principal) -> (Child, String) {
    let mut proxy = Command::new(node())
        .arg(script("bearer.mjs"))
        .args([&format!("{}/mcp/up", gateway.url()), &who.token])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("a proxy that starts");
    let mut port = String::new();
    let output = proxy.stdout.take().expect("its output");
    BufReader::new(output).read_line(&mut port).await.expect("a port");
    (proxy, format!("http://127.0.0.1:{}/mcp", port.trim()))
}

/// Fails unless each scenario of a revision ends as the table says; a scenario that is missing and passes
/// has to be moved.
async fn serves(revision: &str) {
    let wanted = TABLE.iter().filter(|(_, revisions, _)| revisions.contains(&revision));
    let wanted = wanted.map(|(name, _, expected)| (*name, *expected));
    serves_all(fixtures(), revision, wanted).await;
}

/// Fails unless each of these scenarios ends as is wanted.
async fn serves_all(
    served: (Gateway, Principal),
    revision: &str,
    wanted: impl Iterator<Item = (&str, Expected)>,
) {
    let (gateway, who) = served;
    let (_proxy, url) = with_token(&gateway, &who).await;
    let mut wrong = Vec::new();
    for (scenario, expected) in wanted.filter(|it| !matches!(it.1, Foreign(_))) {
        // Of extensions the suite says that they are of no revision.
        let asked = ["server", "--url", &url, "--scenario", scenario, "--force"];
        let arguments = [&asked[..], &["--spec-version", revision]].concat();

        let output = ran(suite(&arguments)).await;

        let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        if !expected.is_met(&told) {
            wrong.push(format!("== {scenario} of {revision}, expected {expected:?}:\n{told}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stateless_revision_is_served_as_the_suite_wants() {
    serves(STATELESS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_revision_with_a_handshake_is_served_as_the_suite_wants() {
    serves(HANDSHAKE).await;
}

/// The skills are those of the sample server, the tasks those of the fixtures.
#[tokio::test(flavor = "multi_thread")]
async fn extensions_are_served_as_the_suite_wants() {
    let binary = env!("CARGO_BIN_EXE_portcullis");
    let builder = gateway().policies(r#"@id("all") permit (principal, action, resource);"#);
    let builder =
        builder.stdio("up", &[binary, "sample-mcp"], "expose = [\"resources\", \"skills\"]");
    let served = serve_as("mcps:read mcps:invoke", builder);

    let is_of_tasks = |it: &(&str, Expected)| it.0.starts_with("tasks-");
    let of_skills = EXTENSIONS.iter().copied().filter(|it| !is_of_tasks(it));
    serves_all(served, STATELESS, of_skills).await;
    serves_all(fixtures(), STATELESS, EXTENSIONS.iter().copied().filter(is_of_tasks)).await;
}
