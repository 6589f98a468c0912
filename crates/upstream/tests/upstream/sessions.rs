//! Servers that forget their sessions, are restarted as others, or want to be greeted in their own way.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use portcullis_upstream::{Protocol, ServerSettings};
use serde_json::{Value, json};

use crate::{
    fake::{Fake, FakeRequest, content, error, initialized, success},
    support::{Diary, call, failure, hostile, server, settings, text},
};

/// A server with sessions that is restarted when it is told to: then it knows none of those it gave.
async fn forgetful(
    restarts: Arc<AtomicUsize>,
    stranger: impl Fn(&FakeRequest) -> Response + Send + Sync + 'static,
) -> Fake {
    Fake::start(move |seen| {
        let session = format!("s-{}", restarts.load(Ordering::SeqCst));
        let known = seen.header("mcp-session-id") == Some(session.as_str());
        match seen.method() {
            "server/discover" => error(StatusCode::BAD_REQUEST, &json!(null), -32000),
            "initialize" => initialized(seen, &session, "2025-06-18", &json!({})),
            _ if !known => stranger(seen),
            "tools/list" => success(&seen.id(), &json!({"tools": []})),
            "tools/call" if seen.message["params"]["arguments"]["fails"] == true => {
                error(StatusCode::OK, &seen.id(), -32000)
            }
            "tools/call" => success(&seen.id(), &content(&session)),
            "ping" => success(&seen.id(), &json!({})),
            _ => StatusCode::ACCEPTED.into_response(),
        }
    })
    .await
}

type Stranger = fn(&FakeRequest) -> Response;

/// Ways in which servers answer who shows a session that they do not know.
const STRANGERS: [(&str, Stranger); 9] = [
    ("400 and -32000", |_| error(StatusCode::BAD_REQUEST, &json!(null), -32000)),
    ("400 and -32600", |seen| error(StatusCode::BAD_REQUEST, &seen.id(), -32600)),
    ("404 and -32001", |_| error(StatusCode::NOT_FOUND, &json!(null), -32001)),
    ("404 in HTML", |_| (StatusCode::NOT_FOUND, "<p>no").into_response()),
    ("200 and -32001", |seen| error(StatusCode::OK, &seen.id(), -32001)),
    ("400 in words", |_| (StatusCode::BAD_REQUEST, "Invalid session").into_response()),
    ("401", |_| StatusCode::UNAUTHORIZED.into_response()),
    ("410", |_| StatusCode::GONE.into_response()),
    ("500", |_| StatusCode::INTERNAL_SERVER_ERROR.into_response()),
];

#[tokio::test]
async fn after_a_restart_one_call_fails_and_the_next_one_is_well_however_the_server_says_it() {
    for (manner, stranger) in STRANGERS {
        let restarts = Arc::new(AtomicUsize::new(0));
        let fake = forgetful(restarts.clone(), stranger).await;
        let client = fake.client();
        assert_eq!(text(&call(&client, json!({})).await.unwrap()), "s-0", "{manner}");

        restarts.store(1, Ordering::SeqCst);
        failure(&client).await;
        let next = call(&client, json!({})).await;

        assert_eq!(text(&next.expect(manner)), "s-1", "{manner}");
        assert_eq!(fake.count("tools/call"), 3, "{manner}: none is sent twice");
        assert_eq!(fake.count("initialize"), 2, "{manner}");
    }
}

#[tokio::test]
async fn a_list_notices_a_restart_and_is_answered() {
    for (manner, stranger) in STRANGERS {
        let restarts = Arc::new(AtomicUsize::new(0));
        let fake = forgetful(restarts.clone(), stranger).await;
        let client = fake.client();
        client.list().await.unwrap();

        restarts.store(1, Ordering::SeqCst);
        let listed = client.list().await;

        assert!(listed.is_ok(), "{manner}: {listed:?}");
        assert_eq!(text(&call(&client, json!({})).await.unwrap()), "s-1", "{manner}");
    }
}

#[tokio::test]
async fn a_tool_that_fails_does_not_cost_a_session_that_the_server_knows() {
    let stranger = |_: &FakeRequest| error(StatusCode::BAD_REQUEST, &json!(null), -32000);
    let fake = forgetful(Arc::default(), stranger).await;
    let client = fake.client();

    for _ in 0..3 {
        assert!(call(&client, json!({"fails": true})).await.is_err());
        assert_eq!(text(&call(&client, json!({})).await.unwrap()), "s-0");
    }

    assert_eq!(fake.count("initialize"), 1);
    assert_eq!(fake.count("ping"), 3);
}

#[tokio::test]
async fn a_server_that_fails_again_and_again_keeps_its_session() {
    for status in [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::UNAUTHORIZED] {
        let fake = Fake::start(move |seen| match seen.method() {
            "server/discover" => StatusCode::BAD_REQUEST.into_response(),
            "initialize" => initialized(seen, "s", "2025-06-18", &json!({})),
            "tools/call" => status.into_response(),
            "ping" => success(&seen.id(), &json!({})),
            _ => StatusCode::ACCEPTED.into_response(),
        })
        .await;
        let client = fake.client();

        for _ in 0..4 {
            failure(&client).await;
        }

        assert_eq!(fake.count("initialize"), 1, "{status}");
        assert_eq!(fake.count("ping"), 3, "{status}");
    }
}

#[tokio::test]
async fn a_server_that_knows_every_session_when_asked_is_believed_once() {
    let restarts = Arc::new(AtomicUsize::new(0));
    let fake = forgetful(restarts.clone(), |seen| match seen.method() {
        "ping" => success(&seen.id(), &json!({})),
        _ => error(StatusCode::BAD_REQUEST, &json!(null), -32000),
    })
    .await;
    let client = fake.client();
    call(&client, json!({})).await.unwrap();

    restarts.store(1, Ordering::SeqCst);
    failure(&client).await;
    failure(&client).await;

    assert_eq!(text(&call(&client, json!({})).await.unwrap()), "s-1");
}

#[tokio::test]
async fn who_is_let_in_to_initialize_and_not_to_discover_is_served() {
    for refusal in [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN] {
        let fake = Fake::start(move |seen| match seen.method() {
            "server/discover" => refusal.into_response(),
            "initialize" => success(&seen.id(), &json!({"protocolVersion": "2025-11-25"})),
            "tools/call" => success(&seen.id(), &content("in")),
            _ => StatusCode::ACCEPTED.into_response(),
        })
        .await;

        let answer = call(&fake.client(), json!({})).await;

        assert_eq!(text(&answer.expect("an answer")), "in", "{refusal}");
    }
}

/// Versions that a server was asked for.
type Asked = Arc<Mutex<Vec<String>>>;

/// A server that initializes in one version only, and refuses others in its own way.
async fn particular(version: &'static str, refuse: Stranger) -> (Fake, Asked) {
    let asked = Asked::default();
    let heard = asked.clone();
    let fake = Fake::start(move |seen| match seen.method() {
        "server/discover" => StatusCode::BAD_REQUEST.into_response(),
        "initialize" => {
            let wanted = seen.message["params"]["protocolVersion"].as_str().unwrap();
            heard.lock().unwrap().push(wanted.to_owned());
            if wanted == version {
                success(&seen.id(), &json!({"protocolVersion": version}))
            } else {
                refuse(seen)
            }
        }
        "tools/call" => success(&seen.id(), &content("in")),
        _ => StatusCode::ACCEPTED.into_response(),
    })
    .await;
    (fake, asked)
}

const REFUSALS: [Stranger; 4] = [
    |_| (StatusCode::BAD_REQUEST, "unknown version").into_response(),
    |seen| error(StatusCode::OK, &seen.id(), -32602),
    |seen| error(StatusCode::BAD_REQUEST, &seen.id(), -32602),
    |_| error(StatusCode::BAD_REQUEST, &json!(null), -32000),
];

#[tokio::test]
async fn a_server_that_refuses_a_version_is_asked_for_an_older_one() {
    for refuse in REFUSALS {
        let (fake, asked) = particular("2025-03-26", refuse).await;

        let answer = call(&fake.client(), json!({})).await;

        assert!(answer.is_ok(), "{answer:?}");
        assert_eq!(*asked.lock().unwrap(), ["2025-11-25", "2025-06-18", "2025-03-26"]);
    }
}

#[tokio::test]
async fn a_version_that_is_configured_is_the_only_one_that_is_asked_for() {
    let (fake, asked) = particular("2025-06-18", REFUSALS[0]).await;
    let with = |version| {
        let protocol = Protocol::Version(version);
        server(ServerSettings { protocol, ..settings(fake.transport()) })
    };

    assert!(call(&with("2025-06-18"), json!({})).await.is_ok());
    assert!(call(&with("2025-03-26"), json!({})).await.is_err());

    assert_eq!(*asked.lock().unwrap(), ["2025-06-18", "2025-03-26"]);
    assert_eq!(fake.count("server/discover"), 0);
}

/// The messages that a program was sent, by process.
fn lives(diary: &Diary) -> Vec<Vec<String>> {
    let mut lives: Vec<Vec<String>> = Vec::new();
    for (_, message) in diary.lines() {
        match (message.as_str(), lives.last_mut()) {
            ("started", _) | (_, None) => lives.push(Vec::new()),
            (message, Some(life)) => life.push(message.to_owned()),
        }
    }
    lives
}

#[tokio::test]
async fn a_program_that_ends_at_a_strange_first_message_is_initialized_from_then_on() {
    let diary = Diary::new();
    let server = server(settings(diary.child("strict", "dies_on_the_second")));

    let first = call(&server, json!({})).await;
    let died = call(&server, json!({})).await;
    let restarted = call(&server, json!({})).await;

    assert!(first.is_ok() && died.is_err() && restarted.is_ok(), "{first:?} {restarted:?}");
    let lives = lives(&diary);
    let firsts: Vec<_> = lives.iter().map(|life| life[0].as_str()).collect();
    assert_eq!(firsts, ["server/discover", "initialize", "initialize"]);
}

#[tokio::test]
async fn a_program_that_does_not_know_us_any_more_is_started_anew() {
    for era in ["legacy", "modern"] {
        let diary = Diary::new();
        let server = server(settings(diary.child(era, "forgets_us")));
        assert!(call(&server, json!({})).await.is_ok(), "{era}");

        let forgotten = call(&server, json!({})).await;
        let next = call(&server, json!({})).await;
        call(&server, json!({})).await.unwrap_err();
        let listed = server.list().await;

        assert!(forgotten.is_err(), "{era}");
        assert!(next.is_ok(), "{era}: {next:?}");
        assert!(listed.is_ok(), "{era}: {listed:?}");
        assert_eq!(lives(&diary).len(), 3, "{era}");
    }
}

#[tokio::test]
async fn a_program_whose_tools_fail_is_not_ended() {
    let diary = Diary::new();
    let server = server(settings(diary.child("legacy", "fails_oddly")));

    for _ in 0..4 {
        assert!(call(&server, json!({})).await.is_err());
    }

    let lives = lives(&diary);
    assert_eq!(lives.len(), 1, "{lives:?}");
    assert_eq!(lives[0].iter().filter(|message| *message == "tools/call").count(), 4);
}

#[tokio::test]
async fn a_program_that_refuses_a_version_is_asked_for_an_older_one() {
    let server = server(settings(hostile(&["old", "echoes"])));

    assert_eq!(text(&call(&server, json!({"n": 1})).await.unwrap()), r#"{"n":1}"#);
}

#[tokio::test]
async fn a_program_with_a_configured_version_is_not_asked_for_another() {
    let with = |version| {
        let protocol = Protocol::Version(version);
        server(ServerSettings { protocol, ..settings(hostile(&["old", "echoes"])) })
    };

    assert!(call(&with("2024-11-05"), Value::Object(serde_json::Map::new())).await.is_ok());
    assert!(call(&with("2025-06-18"), json!({})).await.is_err());
}
