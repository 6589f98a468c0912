//! Eras, sessions, catalogues and announcements over HTTP.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use portcullis_core::refusal::{Executed, UpstreamReason};
use portcullis_upstream::{Forms, Protocol, ServerSettings};
use serde_json::{Value, json};

use crate::{
    fake::{
        Fake, FakeRequest, content, discovered, error, event, events, initialized, message, success,
    },
    support::{call, call_by, call_with_forms, failure, form, server, settings, text, upstream},
};

/// A server of the older era; `call` answers `tools/call` in a session.
async fn legacy(
    session: impl Fn() -> String + Send + Sync + 'static,
    call: impl Fn(&FakeRequest) -> Response + Send + Sync + 'static,
) -> Fake {
    Fake::start(move |seen| match (&seen.verb, seen.method()) {
        (&Method::POST, "initialize") => initialized(seen, &session(), "2025-06-18", &json!({})),
        (&Method::POST, "tools/call") => call(seen),
        (&Method::POST, method) if method.starts_with("notifications/") => {
            StatusCode::ACCEPTED.into_response()
        }
        (&Method::DELETE, _) => StatusCode::OK.into_response(),
        _ => error(StatusCode::BAD_REQUEST, &json!(null), -32000),
    })
    .await
}

#[tokio::test]
async fn a_server_of_the_older_era_gets_a_session_that_is_used_and_ended() {
    let fake = legacy(|| "s-1".to_owned(), |seen| success(&seen.id(), &content("old"))).await;
    let client = fake.client();

    let answer = call(&client, json!({})).await.unwrap();
    call(&client, json!({})).await.unwrap();
    client.shutdown().await;
    let late = failure(&client).await;

    let seen = fake.requests();
    assert_eq!(late, (upstream(UpstreamReason::ConnectFailed), Executed::No));
    assert_eq!(text(&answer), "old");
    let begin = ["server/discover", "initialize", "notifications/initialized"];
    assert_eq!(fake.methods(), [&begin[..], &["tools/call", "tools/call", ""]].concat());
    assert_eq!(seen[1].header("mcp-session-id"), None);
    for later in &seen[2..] {
        assert_eq!(later.header("mcp-session-id"), Some("s-1"));
        assert_eq!(later.header("mcp-protocol-version"), Some("2025-06-18"));
        assert_eq!(later.header("mcp-method"), None);
    }
    assert_eq!(seen[5].verb, Method::DELETE);
}

#[tokio::test]
async fn a_call_in_a_forgotten_session_is_not_sent_again_and_the_next_one_has_a_new_session() {
    let sessions = AtomicUsize::new(0);
    let next = move || format!("s-{}", sessions.fetch_add(1, Ordering::Relaxed));
    // It may have carried the call out before it forgot the session: the gateway cannot tell.
    let fake = legacy(next, |seen| match seen.header("mcp-session-id") {
        Some("s-0") => error(StatusCode::NOT_FOUND, &json!(null), -32001),
        _ => success(&seen.id(), &content("renewed")),
    })
    .await;
    let client = fake.client();
    let changed = client.tools_changed();

    let lost = failure(&client).await;
    let sent = fake.count("tools/call");
    let next = call(&client, json!({})).await.unwrap();

    assert_eq!(lost, (upstream(UpstreamReason::SessionLost), Executed::Unknown));
    assert_eq!(sent, 1);
    assert_eq!(text(&next), "renewed");
    assert!(changed.has_changed().unwrap());
}

#[tokio::test]
async fn a_new_session_gets_no_call_before_it_has_listed_the_tools() {
    let sessions = AtomicUsize::new(0);
    let next = move || format!("s-{}", sessions.fetch_add(1, Ordering::Relaxed));
    let fake = Fake::start(move |seen| match (seen.header("mcp-session-id"), seen.method()) {
        (_, "initialize") => initialized(seen, &next(), "2025-06-18", &json!({})),
        (_, "tools/list") => success(&seen.id(), &json!({"tools": []})),
        (Some("s-0"), "tools/call") => error(StatusCode::NOT_FOUND, &json!(null), -32001),
        (Some(_), "tools/call") => success(&seen.id(), &content("renewed")),
        (Some(_), _) => StatusCode::ACCEPTED.into_response(),
        (None, _) => error(StatusCode::BAD_REQUEST, &json!(null), -32000),
    })
    .await;
    let client = fake.client();
    let first = client.list().await.unwrap().peer;
    assert!(client.is_peer(first));
    call_by(&client, first).await.unwrap_err();

    let unlisted = call_by(&client, first).await.unwrap_err();

    assert!(unlisted.is_new_peer() && !client.is_peer(first), "{unlisted}");
    assert_eq!(fake.count("tools/call"), 1);
    let second = client.list().await.unwrap().peer;
    assert_eq!(text(&call_by(&client, second).await.unwrap()), "renewed");
}

#[tokio::test]
async fn a_forgotten_session_is_renewed_for_what_changes_nothing() {
    let sessions = AtomicUsize::new(0);
    let fake = Fake::start(move |seen| match seen.method() {
        "initialize" => {
            let session = format!("s-{}", sessions.fetch_add(1, Ordering::Relaxed));
            initialized(seen, &session, "2025-06-18", &json!({}))
        }
        "tools/list" if seen.header("mcp-session-id") == Some("s-0") => {
            error(StatusCode::NOT_FOUND, &json!(null), -32001)
        }
        "tools/list" => success(&seen.id(), &json!({"tools": []})),
        _ => StatusCode::ACCEPTED.into_response(),
    })
    .await;

    assert!(fake.client().list().await.is_ok());
}

#[tokio::test]
async fn a_server_that_forgets_every_session_gets_each_call_once() {
    let stranger = |_: &FakeRequest| error(StatusCode::NOT_FOUND, &json!(null), -32001);
    let fake = legacy(|| "s".to_owned(), stranger).await;

    let ended = failure(&fake.client()).await;

    assert_eq!(ended, (upstream(UpstreamReason::SessionLost), Executed::Unknown));
    assert_eq!(fake.count("tools/call"), 1);
}

#[tokio::test]
async fn many_first_calls_share_one_initialization() {
    let fake = legacy(|| "s".to_owned(), |seen| success(&seen.id(), &content("x"))).await;
    let client = fake.client();

    let calls = futures_util::future::join_all((0..20).map(|_| call(&client, json!({})))).await;

    assert!(calls.iter().all(Result::is_ok));
    assert_eq!(fake.count("initialize"), 1);
}

#[tokio::test]
async fn a_server_that_changes_its_era_is_found_out_again() {
    let modern = Arc::new(AtomicUsize::new(1));
    let is_modern = modern.clone();
    let fake = Fake::start(move |seen| {
        let modern = is_modern.load(Ordering::Relaxed) == 1;
        match seen.method() {
            "server/discover" if modern => discovered(seen),
            "initialize" if !modern => {
                success(&seen.id(), &json!({"protocolVersion": "2025-11-25"}))
            }
            "tools/call" if modern || seen.header("mcp-method").is_none() => {
                success(&seen.id(), &content("x"))
            }
            "notifications/initialized" => StatusCode::ACCEPTED.into_response(),
            _ => (StatusCode::BAD_REQUEST, "what?").into_response(),
        }
    })
    .await;
    let client = fake.client();
    call(&client, json!({})).await.unwrap();
    modern.store(0, Ordering::Relaxed);

    let lost = failure(&client).await;
    let found = call(&client, json!({})).await;

    assert_eq!(lost, (upstream(UpstreamReason::ProtocolError), Executed::Unknown));
    assert!(found.is_ok());
}

#[tokio::test]
async fn a_failing_handshake_never_means_that_a_call_was_carried_out() {
    use UpstreamReason::{Http5xx, ProtocolError};
    for (status, kind) in [(500, Http5xx), (404, ProtocolError), (200, ProtocolError)] {
        let status = StatusCode::from_u16(status).unwrap();
        let fake = Fake::start(move |_| (status, "hunter2").into_response()).await;

        assert_eq!(failure(&fake.client()).await, (upstream(kind), Executed::No), "{status}");
    }
}

#[tokio::test]
async fn a_version_that_nobody_knows_is_a_protocol_error() {
    let fake = Fake::start(|seen| match seen.method() {
        "server/discover" => {
            success(&seen.id(), &json!({"supportedVersions": ["2099-01-01"], "capabilities": {}}))
        }
        _ => success(&seen.id(), &json!({"protocolVersion": "2099-01-01"})),
    })
    .await;

    for protocol in [Protocol::Auto, Protocol::Modern, Protocol::Legacy] {
        let client = server(ServerSettings { protocol, ..settings(fake.transport()) });
        let expected = (upstream(UpstreamReason::ProtocolError), Executed::No);
        assert_eq!(failure(&client).await, expected, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_resumed_where_it_stopped() {
    let id = Arc::new(std::sync::Mutex::new(json!(null)));
    let kept = id.clone();
    let fake = Fake::start(move |seen| match (&seen.verb, seen.method()) {
        (&Method::POST, "initialize") => {
            success(&seen.id(), &json!({"protocolVersion": "2025-11-25"}))
        }
        (&Method::POST, "tools/call") => {
            *kept.lock().unwrap() = seen.id();
            events(vec!["id: 41\nretry: 10\ndata:\n\n".to_owned()], stream::empty())
        }
        (&Method::GET, _) => {
            let id = id.lock().unwrap().clone();
            events(vec![event(&message(&id, &content("resumed")))], stream::pending())
        }
        (&Method::POST, "notifications/initialized") => StatusCode::ACCEPTED.into_response(),
        _ => StatusCode::BAD_REQUEST.into_response(),
    })
    .await;

    let answer = call(&fake.client(), json!({})).await.unwrap();

    let resumed = fake.requests().pop().unwrap();
    assert_eq!(text(&answer), "resumed");
    assert_eq!(resumed.header("last-event-id"), Some("41"));
    assert_eq!(fake.count("tools/call"), 1);
}

#[tokio::test]
async fn announcements_are_heard_on_a_stream_of_their_own() {
    let fake = Fake::start(|seen| match seen.method() {
        "server/discover" => {
            let tools = json!({"listChanged": true});
            let versions = ["2026-07-28"];
            let result = json!({"supportedVersions": versions, "capabilities": {"tools": tools}});
            success(&seen.id(), &result)
        }
        "subscriptions/listen" => {
            let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            events(vec![event(&changed.to_string())], stream::pending())
        }
        _ => success(&seen.id(), &json!({"tools": []})),
    })
    .await;
    let client = fake.client();
    let mut changed = client.tools_changed();

    client.list().await.unwrap();
    changed.changed().await.unwrap();

    let seen = fake.requests();
    let listen = seen.iter().find(|seen| seen.method() == "subscriptions/listen").unwrap();
    let wanted = json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
    });
    assert_eq!(listen.message["params"]["notifications"], wanted);
    assert_eq!(listen.header("mcp-method"), Some("subscriptions/listen"));
}

#[tokio::test]
async fn pages_are_followed_to_the_end_and_arguments_are_mirrored_afterwards() {
    let fake = Fake::start(|seen| match seen.method() {
        "server/discover" => discovered(seen),
        "tools/list" => {
            let page = seen.message["params"]["cursor"].as_str().map_or(0, |c| c.parse().unwrap());
            let tool = json!({"name": format!("t{page}"), "inputSchema": {"type": "object"}});
            let act = json!({"name": "act", "inputSchema": {"type": "object", "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
            }}});
            let mut result = json!({"tools": [tool], "ttlMs": 1000});
            match page {
                0 | 1 => result["nextCursor"] = json!((page + 1).to_string()),
                _ => result["tools"] = json!([tool, act]),
            }
            success(&seen.id(), &result)
        }
        _ => success(&seen.id(), &content("x")),
    })
    .await;
    let client = fake.client();

    let list = client.list().await.unwrap();
    call(&client, json!({"region": "us-west1"})).await.unwrap();

    let names: Vec<_> = list.definitions.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["t0", "t1", "t2", "act"]);
    assert!(list.truncated.is_empty());
    assert_eq!(list.fresh_for.map(|ttl| ttl.as_secs()), Some(1));
    assert_eq!(fake.requests().pop().unwrap().header("mcp-param-region"), Some("us-west1"));
}

#[tokio::test]
async fn requests_of_an_older_server_are_answered_while_the_call_waits() {
    let (answered, waits) = tokio::sync::watch::channel(0);
    let fake = Fake::start(move |seen| match seen.method() {
        "initialize" => success(&seen.id(), &json!({"protocolVersion": "2025-11-25"})),
        "tools/call" => {
            let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}).to_string();
            let ask = json!({"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage"});
            let last = message(&seen.id(), &content("heard"));
            let mut waits = waits.clone();
            let last = stream::once(async move {
                waits.wait_for(|count| *count == 2).await.unwrap();
                event(&last)
            });
            events(vec![event(&ping), event(&ask.to_string())], last)
        }
        "" if seen.id().is_string() => {
            answered.send_modify(|count| *count += 1);
            StatusCode::ACCEPTED.into_response()
        }
        "notifications/initialized" => StatusCode::ACCEPTED.into_response(),
        _ => StatusCode::BAD_REQUEST.into_response(),
    })
    .await;

    let answer = call(&fake.client(), json!({})).await.unwrap();

    assert_eq!(text(&answer), "heard");
}

/// An older server that presents a form in the stream of its session, once it is called, and gives back
/// the answer.
async fn presenting(form: Value) -> Fake {
    let (called, calls) = tokio::sync::watch::channel(0);
    let (answered, answers) = tokio::sync::watch::channel(Value::Null);
    Fake::start(move |seen| match (&seen.verb, seen.method()) {
        (&Method::GET, _) => {
            let mut calls = calls.clone();
            let form = form.clone();
            let first = stream::once(async move {
                calls.wait_for(|count| *count == 1).await.unwrap();
                let method = "elicitation/create";
                let form = json!({"jsonrpc": "2.0", "id": 9, "method": method, "params": form});
                event(&form.to_string())
            });
            events(Vec::new(), first.chain(stream::pending()))
        }
        (_, "initialize") => initialized(seen, "s", "2025-11-25", &json!({})),
        (_, "tools/call") => {
            called.send_modify(|count| *count += 1);
            let mut answers = answers.clone();
            let id = seen.id();
            let last = stream::once(async move {
                let answer = answers.wait_for(|it| !it.is_null()).await.unwrap().to_string();
                event(&message(&id, &content(&answer)))
            });
            events(Vec::new(), last)
        }
        (_, "") if seen.id() == 9 => {
            answered.send_replace(seen.message.clone());
            StatusCode::ACCEPTED.into_response()
        }
        (_, "notifications/initialized" | "notifications/cancelled") => {
            StatusCode::ACCEPTED.into_response()
        }
        _ => StatusCode::BAD_REQUEST.into_response(),
    })
    .await
}

#[tokio::test]
async fn a_form_in_the_stream_of_the_session_is_answered_for_the_call_that_waits() {
    let good = presenting(form(&json!({"type": "string", "default": "x"}))).await;
    let open = presenting(form(&json!({"type": "string"}))).await;
    let client = |fake: &Fake| {
        server(ServerSettings { forms: Forms::Defaults, ..settings(fake.transport()) })
    };
    let answering = client(&good);
    let refusing = client(&open);
    let answered = answering.forms().unwrap();
    let refused = refusing.forms().unwrap();
    let mut changed = answering.tools_changed();
    let secret = json!({"secret": "of the caller"});
    changed.mark_unchanged();

    let some = call_with_forms(&answering, secret, &answered).await.unwrap();
    let ended = call_with_forms(&refusing, json!({}), &refused).await.unwrap_err();

    let answer = json!({"action": "accept", "content": {"a": "x"}});
    let expected = json!({"jsonrpc": "2.0", "id": 9, "result": answer});
    assert_eq!(serde_json::from_str::<Value>(&text(&some)).unwrap(), expected);
    assert_eq!((answered.accepted(), refused.refused()), (1, 1));
    assert_eq!(ended.kind, upstream(UpstreamReason::InteractionRequired));
    assert!(!changed.has_changed().unwrap(), "the server announces nothing");
    let seen = good.requests();
    let initialize = seen.iter().find(|seen| seen.method() == "initialize").unwrap();
    let declared = &initialize.message["params"]["capabilities"];
    assert_eq!(declared, &json!({"elicitation": {"form": {}}}));
}

#[tokio::test]
async fn a_server_that_is_silent_to_strange_questions_is_taken_for_an_older_one() {
    let fake = Fake::start(|seen| match seen.method() {
        "server/discover" => events(Vec::new(), stream::pending()),
        "initialize" => success(&seen.id(), &json!({"protocolVersion": "2024-11-05"})),
        "tools/call" => success(&seen.id(), &content("x")),
        _ => StatusCode::ACCEPTED.into_response(),
    })
    .await;
    let timeout = std::time::Duration::from_secs(3);
    let client = server(ServerSettings { call_timeout: timeout, ..settings(fake.transport()) });

    assert!(call(&client, json!({})).await.is_ok());
}

#[tokio::test]
async fn an_older_server_announces_on_the_stream_of_its_session() {
    let fake = Fake::start(|seen| match (&seen.verb, seen.method()) {
        (&Method::GET, _) => {
            let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            events(vec![event(&changed.to_string())], stream::pending())
        }
        (_, "initialize") => initialized(seen, "s", "2025-11-25", &json!({"listChanged": true})),
        (_, "tools/list") => success(&seen.id(), &json!({"tools": []})),
        (_, "notifications/initialized") => StatusCode::ACCEPTED.into_response(),
        _ => StatusCode::BAD_REQUEST.into_response(),
    })
    .await;
    let client = fake.client();
    let mut changed = client.tools_changed();

    client.list().await.unwrap();
    changed.changed().await.unwrap();

    let seen = fake.requests();
    let listen = seen.iter().find(|seen| seen.verb == Method::GET).unwrap();
    assert_eq!(listen.header("mcp-session-id"), Some("s"));
    assert_eq!(listen.header("accept"), Some("text/event-stream"));
}
