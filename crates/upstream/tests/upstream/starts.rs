//! Programs that start slowly, never, or end at once.

use std::time::Duration;

use portcullis_core::refusal::{Executed, UpstreamReason};
use portcullis_testkit::eventually;
use portcullis_upstream::{CallErrorKind, Server, ServerSettings};
use serde_json::json;

use crate::support::{
    Diary, call, failure, has_ended, hostile, outbound, server, settings, text, upstream,
};

/// Waits until it is so.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    eventually(what, async || is_so().then_some(())).await;
}

#[tokio::test]
async fn a_start_outlasts_the_call_that_caused_it_and_serves_the_next() {
    let diary = Diary::new();
    let after = Duration::from_millis(200);
    let slow = settings(diary.child("slow", "echoes"));
    let server = server(ServerSettings { call_timeout: after, ..slow });

    let first = failure(&server).await;
    assert!(server.is_starting());
    until("it starts", || !server.is_starting()).await;
    let next = call(&server, json!({"n": 1})).await;

    assert_eq!(first, (CallErrorKind::Timeout { after }, Executed::No));
    assert_eq!(text(&next.unwrap()), r#"{"n":1}"#);
    assert_eq!(diary.of("started").len(), 1);
}

#[tokio::test]
async fn a_start_that_takes_too_long_is_ended() {
    let diary = Diary::new();
    let start_timeout = Duration::from_millis(500);
    let mute = settings(diary.child("mute", "x"));
    let server = server(ServerSettings { start_timeout, ..mute });

    let ended = failure(&server).await;

    assert_eq!(ended, (CallErrorKind::Timeout { after: start_timeout }, Executed::No));
    until("it is ended", || has_ended(diary.of("started")[0])).await;
    assert_eq!(failure(&server).await, (upstream(UpstreamReason::ConnectFailed), Executed::No));
}

#[tokio::test]
async fn a_program_that_is_starting_is_ended_at_once() {
    let diary = Diary::new();
    let mute = settings(diary.child("mute", "x"));
    let server = server(ServerSettings { call_timeout: Duration::from_millis(200), ..mute });
    failure(&server).await;
    until("it is started", || !diary.of("started").is_empty()).await;

    server.shutdown().await;

    until("it is ended", || has_ended(diary.of("started")[0])).await;
    assert_eq!(failure(&server).await, (upstream(UpstreamReason::ConnectFailed), Executed::No));
}

#[tokio::test]
async fn a_few_programs_start_at_a_time() {
    let diary = Diary::new();
    let outbound = outbound();
    let one = || {
        let mute = settings(diary.child("mute", "x"));
        let start_timeout = Duration::from_secs(3);
        let call_timeout = Duration::from_millis(100);
        let settings = ServerSettings { start_timeout, call_timeout, ..mute };
        Server::new(settings, &outbound).unwrap()
    };
    let servers: Vec<Server> = (0..6).map(|_| one()).collect();
    for server in &servers {
        failure(server).await;
    }

    until("four start", || diary.of("started").len() >= 4).await;
    let first = diary.of("started");
    until("the others start", || diary.of("started").len() >= 6).await;

    assert_eq!(first.len(), 4, "the others wait for their turn");
}

#[tokio::test]
async fn a_program_that_ends_says_how_and_why() {
    let server = server(settings(hostile(&["modern", "dies_at_start"])));

    failure(&server).await;

    until("it ends", || server.cause().is_some()).await;
    let told = server.cause().unwrap();
    assert!(told.starts_with("the program ended with exit code 3; its words: loading"), "{told}");
    for part in ["no such", "database"] {
        assert!(told.contains(part) && !told.contains('\u{1b}'), "{told}");
    }
}
