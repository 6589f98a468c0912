//! Fixtures and checks of many tests.

use std::{
    fs,
    process::Output,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use portcullis_core::{
    clock::Timestamp,
    id::OrgId,
    limits::{Window, window_offset},
};
use portcullis_store::{DatabaseSettings, DatabaseUrl, RowKey, Store};
use portcullis_testkit::{Answer, Builder, Gateway, Principal, eventually};
use reqwest::Method;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// The longest a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The number of calls without an outcome, in SQL: on SQLite the intents of others are removed later.
pub(crate) const OPEN_INTENTS: &str = "SELECT count(*) FROM audit_intents i \
    WHERE NOT EXISTS (SELECT 1 FROM audit_events e WHERE e.id = i.id)";

/// Every scope a service account can have.
pub(crate) const ALL_SCOPES: &str = "mcps:read mcps:invoke providers:read providers:write \
                                     policies:read audit:read audit:export approvals:read approvals:decide \
                                     admin";

/// An enterprise plan so large that no test meets its limits.
pub(crate) const ENOUGH: [&str; 6] = plan("1000000", "1000000");

/// An enterprise plan with these limits of a minute.
pub(crate) const fn plan<'a>(requests: &'a str, invocations: &'a str) -> [&'a str; 6] {
    let calls = "--invocations-per-minute";
    ["--plan", "enterprise", "--requests-per-minute", requests, calls, invocations]
}

/// Starts a gateway, and makes a service account with every scope.
pub(crate) fn serve(builder: Builder) -> (Gateway, Principal) {
    serve_as(ALL_SCOPES, builder)
}

/// Starts a gateway, and makes a service account with these scopes.
pub(crate) fn serve_as(scopes: &str, builder: Builder) -> (Gateway, Principal) {
    let gateway = builder.start();
    let who = gateway.service(&gateway.org("acme", &ENOUGH), scopes);
    (gateway, who)
}

/// Starts a gateway, and makes an admin with every scope.
pub(crate) fn serve_admin(builder: Builder) -> (Gateway, Principal) {
    let gateway = builder.start();
    let who = gateway.user(&gateway.org("acme", &ENOUGH), "admin", ALL_SCOPES);
    (gateway, who)
}

/// An org that no other part of a test knows.
pub(crate) fn fresh_org(gateway: &Gateway) -> String {
    org_of(gateway, &ENOUGH)
}

/// The same with this plan.
fn org_of(gateway: &Gateway, plan: &[&str]) -> String {
    static MADE: AtomicU32 = AtomicU32::new(1);
    gateway.org(&format!("acme {}", MADE.fetch_add(1, Ordering::Relaxed)), plan)
}

/// A service account with every scope, in an org of its own.
pub(crate) fn tenant(gateway: &Gateway) -> Principal {
    gateway.service(&fresh_org(gateway), ALL_SCOPES)
}

/// The gateway's clock.
pub(crate) async fn now(gateway: &Gateway) -> Timestamp {
    let answer = gateway.send(gateway.request(Method::GET, "/healthz")).await;
    Timestamp::parse_rfc3339(answer.at("/meta/timestamp").as_str().unwrap()).unwrap()
}

/// An org whose minute lasts for at least half of it yet, so that counts do not begin anew in the
/// middle of a test.
pub(crate) async fn org_with_time_left(gateway: &Gateway, plan: &[&str]) -> String {
    loop {
        let org = org_of(gateway, plan);
        let id: OrgId = org.parse().unwrap();
        if Window::at(now(gateway).await, window_offset(id)).seconds_left(now(gateway).await) > 30 {
            return org;
        }
    }
}

/// Asks until the answer is as wanted.
pub(crate) async fn until<F: Future<Output = Answer>>(
    ask: impl Fn() -> F,
    wanted: impl Fn(&Answer) -> bool,
) -> Answer {
    eventually("an answer as it is wanted", async || {
        let answer = ask().await;
        wanted(&answer).then_some(answer)
    })
    .await
}

/// Fails unless the answer has all that every answer has to have.
pub(crate) fn assert_framed(answer: &Answer, what: &str) {
    let number = |name: &str| -> i64 {
        answer.header(name).parse().unwrap_or_else(|_| panic!("{what}: `{name}` of {answer:?}"))
    };
    let limit = number("x-ratelimit-limit");
    let remaining = number("x-ratelimit-remaining");
    assert!((0..=limit).contains(&remaining), "{what}: {remaining} of {limit}");
    assert!(number("x-ratelimit-reset") > 1_700_000_000, "{what}");
    let resource = answer.header("x-ratelimit-resource");
    assert!(["requests", "invocations", "unauthenticated"].contains(&resource), "{what}");
    let policy = answer.header("ratelimit-policy");
    let state = answer.header("ratelimit");
    assert!(policy.contains(&format!("\"{resource}\";q={limit};w=60")), "{what}: {policy}");
    assert!(state.contains(&format!("\"{resource}\";r={remaining};t=")), "{what}: {state}");
    assert_eq!(answer.header("cache-control"), "no-store", "{what}");
    assert_eq!(answer.header("x-content-type-options"), "nosniff", "{what}");
    assert!(is_id(answer.header("x-request-id"), "req_"), "{what}");
    let status = answer.status.as_u16();
    let later = [429, 503].contains(&status)
        || answer.code() == "idempotency_in_progress"
        || answer.json.pointer("/error/details/reason").is_some_and(|it| it == "circuit_open");
    assert_eq!(answer.headers.contains_key("retry-after"), later, "{what}");
    let challenged = status == 401 || answer.code() == "insufficient_scope";
    if !answer.text.is_empty() {
        assert_eq!(answer.headers.contains_key("www-authenticate"), challenged, "{what}");
    }
}

/// Fails unless the body is an envelope that belongs to its headers.
pub(crate) fn assert_enveloped(answer: &Answer, what: &str) {
    assert_eq!(answer.header("content-type"), "application/json", "{what}");
    assert_eq!(answer.at("/meta/request_id"), answer.header("x-request-id"), "{what}");
    let timestamp = answer.at("/meta/timestamp").as_str().unwrap();
    assert!(Timestamp::parse_rfc3339(timestamp).is_some(), "{what}: {timestamp}");
    assert_eq!(timestamp.len(), "2026-11-20T11:02:15.123Z".len(), "{what}: {timestamp}");
    assert!(timestamp.ends_with('Z'), "{what}: {timestamp}");
    let members: Vec<&String> = answer.json.as_object().unwrap().keys().collect();
    if answer.status.is_success() {
        assert!(!members.iter().any(|name| *name == "error"), "{what}: {members:?}");
    } else {
        assert!(!members.iter().any(|name| *name == "data"), "{what}: {members:?}");
        assert!(answer.at("/error/message").as_str().is_some_and(|text| text.ends_with('.')));
        assert!(answer.at("/error/details").is_object(), "{what}: {answer:?}");
        assert!(!answer.code().is_empty(), "{what}: {answer:?}");
    }
}

pub(crate) fn count(answers: &[Answer], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

/// Returns true if `text` is this prefix and a ULID.
pub(crate) fn is_id(text: &str, prefix: &str) -> bool {
    let ulid = text.strip_prefix(prefix).unwrap_or_default();
    let crockford = |c: char| c.is_ascii_digit() || (c.is_ascii_uppercase() && !"ILOU".contains(c));
    ulid.len() == 26 && ulid.chars().all(crockford)
}

/// `data.items` of a page.
pub(crate) fn items(answer: &Answer) -> &Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.at("/data/items").as_array().unwrap()
}

/// The member `name` of every item.
pub(crate) fn members<'a>(answer: &'a Answer, name: &str) -> Vec<&'a str> {
    items(answer).iter().map(|item| item[name].as_str().unwrap_or("null")).collect()
}

/// A connection to the gateway's port.
pub(crate) async fn connect(gateway: &Gateway) -> TcpStream {
    let address = gateway.url().split_once("://").unwrap().1;
    TcpStream::connect(address).await.unwrap()
}

/// Sends these bytes as they are and reads until the gateway ends the connection.
pub(crate) async fn exchange(gateway: &Gateway, bytes: &[u8]) -> String {
    let mut stream = connect(gateway).await;
    stream.write_all(bytes).await.unwrap();
    rest(&mut stream).await
}

/// Bytes that still come until the gateway ends the connection.
pub(crate) async fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    // A reset ends a connection as well.
    let _ = read.expect("the gateway ends the connection");
    String::from_utf8_lossy(&answer).into_owned()
}

/// The store of a gateway, for what no command does.
pub(crate) async fn store(gateway: &Gateway) -> Store {
    let url: DatabaseUrl = gateway.database_url().parse().unwrap();
    let key = fs::read_to_string(gateway.folder().join("key")).unwrap();
    let key = STANDARD.decode(key.trim()).unwrap().try_into().unwrap();
    Store::open(&DatabaseSettings::new(url, RowKey::derive(&key))).await.unwrap()
}

/// Resident memory of the process in MiB.
pub(crate) fn resident(gateway: &Gateway) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", gateway.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() / 1024
}

pub(crate) fn words(command: &str) -> Vec<&str> {
    command.split(' ').collect()
}

/// Runs a command that ends by itself, whether it succeeds or not.
pub(crate) async fn run(gateway: &Gateway, command: &[&str]) -> Output {
    let mut process = tokio::process::Command::from(gateway.command());
    process.args(command).arg("--config").arg(gateway.config_file()).kill_on_drop(true);
    timeout(PATIENCE, process.output()).await.expect("a command that ends").unwrap()
}

/// Exit code and message of a command that does not succeed.
pub(crate) async fn failure(gateway: &Gateway, command: &[&str]) -> (i32, String) {
    let output = run(gateway, command).await;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && !told.contains("panicked"), "{command:?}: {told}");
    (output.status.code().unwrap(), told)
}

/// Fails unless the command ends with this code, and its message has this part.
pub(crate) async fn assert_fails(gateway: &Gateway, command: &[&str], code: i32, part: &str) {
    let (ended, told) = failure(gateway, command).await;
    assert_eq!(ended, code, "{command:?}: {told}");
    assert!(told.contains(part), "{command:?}: `{part}` in {told}");
}
