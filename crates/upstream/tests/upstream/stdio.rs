//! Children that hang, die, lie, flood and forget.

use std::time::Duration;

use futures_util::future::join_all;
use portcullis_core::refusal::{Executed, UpstreamReason};
use portcullis_upstream::{
    CallErrorKind, Forms, Program, Protocol, Server, ServerSettings, Transport,
};
use rustix::process::{Pid, test_kill_process};
use serde_json::json;

use crate::support::{
    Diary, call, call_with_forms, failure, form, has_ended, hostile, server, settings, text,
    upstream,
};

fn child(era: &str, behaviour: &str) -> Server {
    server(settings(hostile(&[era, behaviour])))
}

/// The time for a call of [`hurried`]: enough for a child that answers, also on a busy machine.
const HURRY: Duration = Duration::from_millis(1_500);

fn hurried(transport: Transport) -> ServerSettings {
    ServerSettings { call_timeout: HURRY, ..settings(transport) }
}

fn is_alive(process: i32) -> bool {
    test_kill_process(Pid::from_raw(process).unwrap()).is_ok()
}

#[tokio::test]
async fn both_eras_are_found_out_and_answer_calls() {
    for era in ["modern", "legacy"] {
        let server = child(era, "echoes");

        let list = server.list().await.unwrap();
        let answer = call(&server, json!({"n": 1})).await.unwrap();

        assert_eq!(list.definitions[0].name.as_str(), "act", "{era}");
        assert_eq!(text(&answer), r#"{"n":1}"#, "{era}");
    }
}

#[tokio::test]
async fn a_server_that_ignores_strange_questions_is_taken_for_a_legacy_one() {
    let silence = Duration::from_millis(200);
    let patient = settings(hostile(&["silent", "echoes"]));
    let server = server(ServerSettings { connect_timeout: silence, ..patient });

    assert_eq!(text(&call(&server, json!({})).await.unwrap()), "{}");
}

#[tokio::test]
async fn a_configured_era_is_not_asked_for() {
    for (era, protocol) in [("modern", Protocol::Modern), ("legacy", Protocol::Legacy)] {
        let settings = settings(hostile(&[era, "echoes"]));
        let server = server(ServerSettings { protocol, ..settings });

        assert!(call(&server, json!({})).await.is_ok(), "{era}");
    }
    let wrong = settings(hostile(&["legacy", "echoes"]));
    let server = server(ServerSettings { protocol: Protocol::Modern, ..wrong });

    assert_eq!(failure(&server).await, (upstream(UpstreamReason::ProtocolError), Executed::No));
}

#[tokio::test]
async fn a_hung_call_times_out_and_the_next_one_is_answered_by_the_same_child() {
    let diary = Diary::new();
    let server = server(hurried(diary.child("modern", "hangs")));

    let timeout = CallErrorKind::Timeout { after: HURRY };
    assert_eq!(failure(&server).await, (timeout, Executed::Unknown));
    server.list().await.unwrap();

    assert_eq!(diary.of("started").len(), 1);
    assert_eq!(diary.of("notifications/cancelled").len(), 1);
}

#[tokio::test]
async fn a_program_that_hangs_is_ended_and_the_next_call_starts_it_again() {
    for era in ["modern", "legacy"] {
        let diary = Diary::new();
        let server = server(hurried(diary.child(era, "blocks")));
        server.list().await.unwrap();
        let process = diary.of("started")[0];

        let blocking = |ms: u32| call(&server, json!({ "ms": ms }));
        let (hung, waited) = tokio::join!(blocking(3_600_000), blocking(0));
        while !has_ended(process) {
            tokio::task::yield_now().await;
        }
        let next = blocking(0).await;

        for ended in [hung, waited] {
            let error = ended.unwrap_err();
            assert_eq!(error.kind, CallErrorKind::Timeout { after: HURRY }, "{era}");
        }
        assert_eq!(text(&next.unwrap()), "at last", "{era}");
        assert_eq!(diary.of("started").len(), 2, "{era}");
        assert!(diary.of("tools/call").len() <= 3, "no call is sent twice");
    }
}

#[tokio::test]
async fn a_program_that_is_only_late_is_not_ended() {
    let diary = Diary::new();
    let server = server(hurried(diary.child("modern", "blocks")));

    let late = call(&server, json!({"ms": 1_700})).await.unwrap_err();
    // Longer than it has for a sign of life.
    for _ in 0..10 {
        assert_eq!(text(&call(&server, json!({"ms": 400})).await.unwrap()), "at last");
    }

    assert_eq!(late.executed, Executed::Unknown);
    assert_eq!(diary.of("started").len(), 1);
    assert_eq!(diary.of("notifications/cancelled").len(), 1);
}

#[tokio::test]
async fn a_death_fails_the_calls_in_flight_and_the_next_call_starts_a_new_child() {
    for behaviour in ["dies", "dies_in_the_middle"] {
        let server = child("modern", behaviour);
        let mut changed = server.tools_changed();

        let expected = (upstream(UpstreamReason::ConnectionReset), Executed::Unknown);
        assert_eq!(failure(&server).await, expected, "{behaviour}");
        assert_eq!(failure(&server).await, expected, "{behaviour}");
        assert!(changed.has_changed().unwrap(), "{behaviour}");
        changed.mark_unchanged();
    }
}

#[tokio::test]
async fn a_child_that_dies_again_and_again_is_left_alone_for_a_while() {
    let diary = Diary::new();
    let server = server(settings(diary.child("modern", "dies_at_start")));

    let first = failure(&server).await;
    let second = failure(&server).await;

    assert_eq!(first, (upstream(UpstreamReason::ConnectionReset), Executed::No));
    assert_eq!(second, (upstream(UpstreamReason::ConnectFailed), Executed::No));
    // It may want another first message, and is asked for that once.
    assert_eq!(diary.of("started").len(), 2);
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_a_failed_connection() {
    let program = Program::new("/nowhere/to/be/found", &[]);
    let server = server(settings(Transport::Stdio(program)));

    assert_eq!(failure(&server).await, (upstream(UpstreamReason::ConnectFailed), Executed::No));
}

#[tokio::test]
async fn lies_and_floods_get_their_defined_answers() {
    use UpstreamReason::{InteractionRequired, JsonrpcError, ProtocolError, ResponseTooLarge};
    for (behaviour, reason, executed) in [
        ("garbled_answer", ProtocolError, Executed::Unknown),
        ("huge", ResponseTooLarge, Executed::Yes),
        ("huge_without_id", UpstreamReason::ConnectionReset, Executed::Unknown),
        ("endless_line", UpstreamReason::ConnectionReset, Executed::Unknown),
        ("refuses", JsonrpcError, Executed::No),
        ("breaks", JsonrpcError, Executed::Unknown),
        ("wants_input", InteractionRequired, Executed::Unknown),
    ] {
        let server = child("modern", behaviour);

        assert_eq!(failure(&server).await, (upstream(reason), executed), "{behaviour}");
    }
}

#[tokio::test]
async fn garbage_and_answers_to_other_calls_leave_the_call_waiting() {
    for behaviour in ["garbage", "wrong_id"] {
        let server = server(hurried(hostile(&["modern", behaviour])));

        let expected = (CallErrorKind::Timeout { after: HURRY }, Executed::Unknown);
        assert_eq!(failure(&server).await, expected, "{behaviour}");
    }
}

#[tokio::test]
async fn a_flood_of_notifications_and_second_answers_are_survived() {
    for (behaviour, expected) in [("flood", "after the flood"), ("twice", "first")] {
        let server = child("modern", behaviour);

        for _ in 0..2 {
            assert_eq!(text(&call(&server, json!({})).await.unwrap()), expected);
        }
    }
}

#[tokio::test]
async fn answers_reach_the_calls_they_belong_to_in_any_order() {
    let server = child("modern", "reversed");
    let one = |n: i32| {
        let server = server.clone();
        async move { text(&call(&server, json!({"n": n})).await.unwrap()) }
    };

    let (a, b, c) = tokio::join!(one(1), one(2), one(3));

    assert_eq!([a, b, c], [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#]);
}

#[tokio::test]
async fn requests_of_the_server_are_answered() {
    let server = child("legacy", "asks_back");

    let heard = call(&server, json!({})).await.unwrap();

    assert!(text(&heard).contains(r#"{"jsonrpc":"2.0","id":"p","result":{}}"#), "{heard:?}");
    assert!(text(&heard).contains(r#""id":"s","error":{"code":-32601"#), "{heard:?}");
}

#[tokio::test]
async fn a_form_is_answered_with_its_defaults_where_the_operator_says_so() {
    let given = json!({"form": form(&json!({"type": "integer", "default": 3}))});
    let open = json!({"form": form(&json!({"type": "integer"}))});
    let refusing = child("legacy", "presents");
    let answering = |era| {
        let settings = settings(hostile(&[era, "presents"]));
        server(ServerSettings { forms: Forms::Defaults, ..settings })
    };
    let legacy = answering("legacy");
    let modern = answering("modern");
    assert!(refusing.forms().is_none());
    let answered = legacy.forms().unwrap();
    let refused = legacy.forms().unwrap();
    let unasked = modern.forms().unwrap();

    let none = call(&refusing, given.clone()).await.unwrap();
    let some = call_with_forms(&legacy, given.clone(), &answered).await.unwrap();
    let ended = call_with_forms(&legacy, open, &refused).await.unwrap_err();
    let strange = call_with_forms(&modern, given, &unasked).await.unwrap();

    assert!(text(&none).contains("-32601"), "{none:?}");
    assert!(text(&some).contains(r#""result":{"action":"accept","content":{"a":3}}"#), "{some:?}");
    assert_eq!(ended.kind, upstream(UpstreamReason::InteractionRequired));
    assert_eq!(ended.executed, Executed::Unknown);
    assert!(text(&strange).contains("-32601"), "there is no such request: {strange:?}");
    let told = [answered, refused, unasked].map(|it| (it.accepted(), it.refused()));
    assert_eq!(told, [(1, 0), (0, 1), (0, 0)]);
}

#[tokio::test]
async fn a_change_of_tools_is_heard() {
    let server = child("modern", "changes");
    let mut changed = server.tools_changed();
    changed.mark_unchanged();

    call(&server, json!({})).await.unwrap();

    changed.changed().await.unwrap();
}

#[tokio::test]
async fn a_child_that_never_reads_costs_its_calls_their_time_and_no_more() {
    let settings = hurried(hostile(&["modern", "never_reads"]));
    let blocked = server(ServerSettings { max_in_flight: 200, ..settings });
    let other = child("modern", "echoes");
    let large = json!({"x": "x".repeat(200_000)});
    let stuck = join_all((0..100).map(|_| call(&blocked, large.clone())));

    let (ended, answer) = tokio::join!(stuck, call(&other, json!({})));

    assert!(answer.is_ok());
    let ended = ended.into_iter().map(|end| end.unwrap_err().executed);
    let unsent = ended.filter(|executed| *executed == Executed::No);
    assert!(unsent.count() > 90, "what was never written was not executed");
}

#[tokio::test]
async fn too_many_calls_are_shed_at_once() {
    let settings = hurried(hostile(&["modern", "hangs"]));
    let server = server(ServerSettings { max_in_flight: 2, ..settings });

    let ended = join_all((0..5).map(|_| failure(&server))).await;

    let shed = ended.iter().filter(|end| **end == (CallErrorKind::Overloaded, Executed::No));
    assert_eq!(shed.count(), 3, "{ended:?}");
}

#[tokio::test]
async fn shutting_down_ends_even_a_child_that_ignores_the_end_of_its_input() {
    for behaviour in ["echoes", "ignores_eof"] {
        let diary = Diary::new();
        let server = server(settings(diary.child("modern", behaviour)));
        call(&server, json!({})).await.unwrap();
        let process = diary.of("started")[0];
        assert!(is_alive(process));

        server.shutdown().await;

        assert!(!is_alive(process), "{behaviour}");
        assert_eq!(failure(&server).await.1, Executed::No);
    }
}

#[tokio::test]
async fn dropping_the_server_ends_the_child_and_its_children() {
    let diary = Diary::new();
    let hostile = env!("CARGO_BIN_EXE_portcullis-hostile-mcp");
    let file = diary.file();
    let file = file.display();
    let script =
        format!("sleep 1000 & echo $! grandchild >> {file}; {hostile} modern echoes {file}");
    let program = Program::new("/bin/sh", &["-c", &script]);
    let outbound = crate::support::outbound();
    let server = Server::new(settings(Transport::Stdio(program)), &outbound).unwrap();
    call(&server, json!({})).await.unwrap();
    let child = diary.of("started")[0];
    let grandchild = diary.of("grandchild")[0];
    assert!(is_alive(child) && is_alive(grandchild));

    drop(server);
    outbound.drained().await;

    while !has_ended(child) || !has_ended(grandchild) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_child_sees_only_the_variables_it_may_see() {
    let hostile = env!("CARGO_BIN_EXE_portcullis-hostile-mcp");
    let mut program = Program::new(hostile, &["modern", "environment"]);
    let secret = portcullis_core::secret::Secret::new("s".to_owned());
    program.env.insert("API_KEY".to_owned(), secret);
    let server = server(settings(Transport::Stdio(program)));

    let answer = call(&server, json!({})).await.unwrap();

    let text = text(&answer);
    let names: Vec<_> = text.split(',').collect();
    assert!(names.contains(&"API_KEY") && names.contains(&"PATH"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
}
