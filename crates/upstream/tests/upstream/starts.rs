//! Programs that start slowly, never, or end at once.

use std::{path::Path, time::Duration};

use portcullis_core::refusal::{Executed, UpstreamReason};
use portcullis_testkit::eventually;
use portcullis_upstream::{CallErrorKind, Server, ServerSettings};
use rustix::process::{Pid, test_kill_process};
use serde_json::json;

use crate::support::{call, failure, hostile, outbound, server, settings, text, upstream};

/// The processes that wrote into a diary.
fn started(file: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().filter(|line| line.ends_with(" started"));
    lines.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

fn is_alive(process: i32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    test_kill_process(Pid::from_raw(process).unwrap()).is_ok() && !state.contains(") Z ")
}

/// Waits until it is so.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    eventually(what, async || is_so().then_some(())).await;
}

#[tokio::test]
async fn a_start_outlasts_the_call_that_caused_it_and_serves_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("diary");
    let after = Duration::from_millis(200);
    let slow = settings(hostile(&["slow", "echoes", file.to_str().unwrap()]));
    let server = server(ServerSettings { call_timeout: after, ..slow });

    let first = failure(&server).await;
    assert!(server.is_starting());
    until("it starts", || !server.is_starting()).await;
    let next = call(&server, json!({"n": 1})).await;

    assert_eq!(first, (CallErrorKind::Timeout { after }, Executed::No));
    assert_eq!(text(&next.unwrap()), r#"{"n":1}"#);
    assert_eq!(started(&file).len(), 1);
}

#[tokio::test]
async fn a_start_that_takes_too_long_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("diary");
    let start_timeout = Duration::from_millis(500);
    let mute = settings(hostile(&["mute", "x", file.to_str().unwrap()]));
    let server = server(ServerSettings { start_timeout, ..mute });

    let ended = failure(&server).await;

    assert_eq!(ended, (CallErrorKind::Timeout { after: start_timeout }, Executed::No));
    until("it is ended", || !is_alive(started(&file)[0])).await;
    assert_eq!(failure(&server).await, (upstream(UpstreamReason::ConnectFailed), Executed::No));
}

#[tokio::test]
async fn a_program_that_is_starting_is_ended_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("diary");
    let mute = settings(hostile(&["mute", "x", file.to_str().unwrap()]));
    let server = server(ServerSettings { call_timeout: Duration::from_millis(200), ..mute });
    failure(&server).await;
    until("it is started", || !started(&file).is_empty()).await;

    server.shutdown().await;

    until("it is ended", || !is_alive(started(&file)[0])).await;
    assert_eq!(failure(&server).await, (upstream(UpstreamReason::ConnectFailed), Executed::No));
}

#[tokio::test]
async fn a_few_programs_start_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("diary");
    let outbound = outbound();
    let one = || {
        let mute = settings(hostile(&["mute", "x", file.to_str().unwrap()]));
        let start_timeout = Duration::from_secs(3);
        let call_timeout = Duration::from_millis(100);
        let settings = ServerSettings { start_timeout, call_timeout, ..mute };
        Server::new(settings, &outbound).unwrap()
    };
    let servers: Vec<Server> = (0..6).map(|_| one()).collect();
    for server in &servers {
        failure(server).await;
    }

    until("four start", || started(&file).len() >= 4).await;
    let first: Vec<i32> = started(&file);
    until("the others start", || started(&file).len() >= 6).await;

    assert_eq!(first.len(), 4, "the others wait for their turn");
}

#[tokio::test]
async fn a_program_that_ends_says_how_and_why() {
    let server = server(settings(hostile(&["modern", "dies_at_start"])));

    failure(&server).await;

    until("it ends", || server.cause().is_some()).await;
    let told = server.cause().unwrap();
    assert!(told.starts_with("the program ended with exit code 3; its words: loading"), "{told}");
    assert!(
        told.contains("no such") && told.contains("database") && !told.contains('\u{1b}'),
        "{told}"
    );
}
