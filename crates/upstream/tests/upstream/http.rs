//! HTTP servers that hang, drip, lie and flood.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::Body,
    http::{
        StatusCode,
        header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION},
    },
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{StreamExt, future::join_all, stream};
use portcullis_core::refusal::{Executed, UpstreamReason};
use portcullis_upstream::{CallErrorKind, Credential, Endpoint, Server, ServerSettings, Transport};
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket};

use crate::{
    fake::{Fake, FakeRequest, content, error, event, events, message, success, typed},
    support::{call, failure, server, settings, text, upstream},
};

async fn fails(
    answer: impl Fn(&FakeRequest) -> Response + Send + Sync + 'static,
) -> (CallErrorKind, Executed) {
    let fake = Fake::modern(answer).await;
    let ended = failure(&fake.client()).await;
    assert_eq!(fake.count("tools/call"), 1, "a call is sent once");
    ended
}

/// A client of what is there.
fn at(endpoint: Endpoint) -> Server {
    server(settings(Transport::Http { endpoint, credential: None }))
}

#[tokio::test]
async fn a_modern_call_carries_its_headers_and_the_credential() {
    let fake = Fake::modern(|seen| success(&seen.id(), &content("hello"))).await;
    let client = fake.client();

    let answer = call(&client, json!({"n": 1})).await.unwrap();

    let sent = fake.requests().pop().unwrap();
    assert_eq!(text(&answer), "hello");
    assert_eq!(fake.methods(), ["server/discover", "tools/call"]);
    assert_eq!(sent.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(sent.header("mcp-method"), Some("tools/call"));
    assert_eq!(sent.header("mcp-name"), Some("act"));
    assert_eq!(sent.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(sent.header("authorization"), Some("Bearer hunter2"));
    assert_eq!(sent.header("accept-encoding"), None);
    assert_eq!(sent.message["params"]["arguments"], json!({"n": 1}));
}

#[tokio::test]
async fn an_answer_in_a_stream_ends_the_call_while_the_stream_goes_on() {
    let fake = Fake::modern(|seen| {
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        let wrong = message(&json!(1), &content("wrong"));
        let right = message(&seen.id(), &content("right"));
        let first = [event(&changed.to_string()), event(&wrong), event(&right)];
        events([&[": hi\n\n".to_owned()][..], &first].concat(), stream::pending())
    })
    .await;
    let client = fake.client();
    let changed = client.tools_changed();

    let answer = call(&client, json!({})).await.unwrap();

    assert_eq!(text(&answer), "right");
    assert!(changed.has_changed().unwrap());
}

#[tokio::test]
async fn statuses_get_their_defined_answers() {
    use UpstreamReason::{Http5xx, ProtocolError};
    for (status, kind, executed) in [
        (401, CallErrorKind::AuthRequired, Executed::No),
        (403, CallErrorKind::Forbidden, Executed::No),
        (404, upstream(ProtocolError), Executed::No),
        (429, upstream(ProtocolError), Executed::No),
        (400, upstream(ProtocolError), Executed::Unknown),
        (302, upstream(ProtocolError), Executed::Unknown),
        (307, upstream(ProtocolError), Executed::Unknown),
        (500, upstream(Http5xx), Executed::Unknown),
        (503, upstream(Http5xx), Executed::Unknown),
        (202, upstream(ProtocolError), Executed::Unknown),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        let answer = (status, [("location", "/elsewhere")], "hunter2");
        let ended = fails(move |_| answer.into_response()).await;

        assert_eq!(ended, (kind, executed), "{status}");
    }
}

#[tokio::test]
async fn json_rpc_errors_say_whether_the_tool_may_have_run() {
    use UpstreamReason::{InteractionRequired, JsonrpcError};
    for (code, reason, executed) in [
        (-32601, JsonrpcError, Executed::No),
        (-32602, JsonrpcError, Executed::No),
        (-32603, JsonrpcError, Executed::Unknown),
        (-32021, InteractionRequired, Executed::Unknown),
        (-32042, InteractionRequired, Executed::Unknown),
    ] {
        for status in [StatusCode::OK, StatusCode::BAD_REQUEST] {
            let ended = fails(move |seen| error(status, &seen.id(), code)).await;

            assert_eq!(ended, (upstream(reason), executed), "{code} {status}");
        }
    }
}

#[tokio::test]
async fn what_is_not_mcp_is_a_protocol_error() {
    let unknown = (upstream(UpstreamReason::ProtocolError), Executed::Unknown);

    let html = fails(|_| typed("text/html", "<p>hunter2</p>"));
    assert_eq!(html.await, unknown);
    let garbage = fails(|_| typed("application/json", "hunter2"));
    assert_eq!(garbage.await, unknown);
    let other_id = fails(|_| success(&json!(1), &content("x")));
    assert_eq!(other_id.await, unknown);
    let twice = fails(|seen| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{0},"id":{0},"result":{{}}}}"#, seen.id());
        typed("application/json", body)
    });
    assert_eq!(twice.await, unknown);
    let no_result = fails(|seen| success(&seen.id(), &json!({"content": "x"})));
    assert_eq!(no_result.await, unknown);
    let packed = fails(|seen| {
        let body = typed("application/json", message(&seen.id(), &content("x")));
        ([(CONTENT_ENCODING, "gzip")], body).into_response()
    });
    assert_eq!(packed.await, unknown);
    let never_answered = fails(|_| events(vec![event("{}")], stream::empty()));
    assert_eq!(never_answered.await, unknown);
}

#[tokio::test]
async fn a_conversation_is_not_offered() {
    let ended = fails(|seen| success(&seen.id(), &json!({"resultType": "input_required"})));

    let expected = upstream(UpstreamReason::InteractionRequired);
    assert_eq!(ended.await, (expected, Executed::Unknown));
}

#[tokio::test]
async fn answers_that_are_too_large_are_cut_off_however_they_come() {
    let expected = (upstream(UpstreamReason::ResponseTooLarge), Executed::Yes);
    let large = || content(&"x".repeat(60_000));

    let announced = fails(move |seen| success(&seen.id(), &large()));
    assert_eq!(announced.await, expected);
    let endless = fails(|_| {
        let piece = Bytes::from_static(&[b' '; 4096]);
        let pieces = stream::repeat(Ok::<_, Infallible>(piece));
        typed("application/json", Body::from_stream(pieces))
    });
    assert_eq!(endless.await, expected);
    let in_an_event =
        fails(move |seen| events(vec![event(&message(&seen.id(), &large()))], stream::pending()));
    assert_eq!(in_an_event.await, expected);
}

#[tokio::test]
async fn a_stream_without_end_is_cut_off() {
    let ended = fails(|_| {
        let notification = event(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#);
        events(Vec::new(), stream::repeat(notification))
    });

    assert_eq!(ended.await, (upstream(UpstreamReason::ProtocolError), Executed::Unknown));
}

#[tokio::test]
async fn silence_and_dripping_end_at_the_deadline() {
    let drip = |_: &FakeRequest| {
        let slowly = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b" ")), ()))
        });
        typed("application/json", Body::from_stream(slowly))
    };
    let silent = |_: &FakeRequest| events(Vec::new(), stream::pending());
    for fake in [Fake::modern(drip).await, Fake::modern(silent).await] {
        let after = Duration::from_millis(500);
        let client = server(ServerSettings { call_timeout: after, ..settings(fake.transport()) });

        let ended = failure(&client).await;

        assert_eq!(ended, (CallErrorKind::Timeout { after }, Executed::Unknown));
    }
}

#[tokio::test]
async fn a_connection_that_breaks_in_the_middle_leaves_the_call_unknown() {
    let broken = || stream::once(async { Err::<Bytes, _>(std::io::Error::other("broken")) });
    let start = || stream::once(async { Ok(Bytes::from_static(b"{\"jsonrpc\":")) });

    for kind in ["application/json", "text/event-stream"] {
        let ended = fails(move |_| typed(kind, Body::from_stream(start().chain(broken())))).await;

        let expected = (upstream(UpstreamReason::ConnectionReset), Executed::Unknown);
        assert_eq!(ended, expected, "{kind}");
    }
}

#[tokio::test]
async fn nobody_at_the_address_is_a_failed_connection() {
    // Bound, so that no other test gets the port, and not listening.
    let nobody = TcpSocket::new_v4().unwrap();
    nobody.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = nobody.local_addr().unwrap();
    let endpoint = Endpoint::allowed(&format!("http://{address}/")).unwrap();

    let refused = failure(&at(endpoint)).await;
    assert_eq!(refused, (upstream(UpstreamReason::ConnectFailed), Executed::No));
}

#[tokio::test]
async fn a_name_that_leads_into_a_private_network_is_not_dialled() {
    let fake = Fake::modern(|seen| success(&seen.id(), &content("x"))).await;
    let url = format!("https://localhost:{}/", fake.address.port());
    let endpoint = Endpoint::public(&url).unwrap();

    let refused = failure(&at(endpoint)).await;
    assert_eq!(refused, (upstream(UpstreamReason::ConnectFailed), Executed::No));
    assert!(fake.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_is_not_followed_wherever_it_leads() {
    let trap = Fake::modern(|seen| success(&seen.id(), &content("x"))).await;
    let aside = format!("http://{}/", trap.address);
    for status in [301, 302, 303, 307, 308] {
        for target in [&aside, "http://169.254.169.254/latest/meta-data/", "file:///etc/passwd"] {
            let target = target.to_owned();
            let status = StatusCode::from_u16(status).unwrap();
            let aside =
                move |_: &FakeRequest| (status, [(LOCATION, target.clone())]).into_response();

            let ended = fails(aside).await;
            assert_eq!(ended, (upstream(UpstreamReason::ProtocolError), Executed::Unknown));
        }
    }
    assert!(trap.requests().is_empty(), "nobody followed");
}

#[tokio::test]
async fn too_many_calls_are_shed_and_a_hung_server_blocks_no_other() {
    let hung = Fake::modern(|_| events(Vec::new(), stream::pending())).await;
    let quick = Fake::modern(|seen| success(&seen.id(), &content("quick"))).await;
    let after = Duration::from_secs(2);
    let patient = settings(hung.transport());
    let hurried = ServerSettings { call_timeout: after, max_in_flight: 2, ..patient };
    let hung_client = server(hurried);
    let quick_client = quick.client();
    let calls = join_all((0..5).map(|_| failure(&hung_client)));

    let (ended, answer) = tokio::join!(calls, call(&quick_client, json!({})));

    let shed = ended.iter().filter(|end| **end == (CallErrorKind::Overloaded, Executed::No));
    assert_eq!(shed.count(), 3, "{ended:?}");
    assert!(answer.is_ok());
}

#[tokio::test]
async fn each_way_shows_its_own_credential_and_a_renewed_one_at_once() {
    let fake = Fake::modern(|seen| success(&seen.id(), &content("x"))).await;
    let shared = fake.client();
    let secret = |text: &str| portcullis_core::secret::Secret::new(text.to_owned());
    let bearer = |text: &str| Some(Credential::bearer(&secret(text)).unwrap());
    let ana = shared.beside(bearer("ana-1"));
    let ben = shared.beside(bearer("ben-1"));

    for client in [&ana, &ben, &shared, &ana] {
        call(client, json!({})).await.unwrap();
    }
    ana.set_credential(bearer("ana-2"));
    call(&ana, json!({})).await.unwrap();
    drop(ben);
    call(&ana, json!({})).await.unwrap();

    let seen = fake.requests();
    let calls = seen.iter().filter(|seen| seen.method() == "tools/call");
    let shown: Vec<_> = calls.map(|seen| seen.header("authorization").unwrap()).collect();
    let expected = ["ana-1", "ben-1", "hunter2", "ana-1", "ana-2", "ana-2"];
    assert_eq!(shown, expected.map(|token| format!("Bearer {token}")));
}

#[tokio::test]
async fn what_a_server_asks_for_when_it_refuses_is_remembered() {
    let fake = Fake::modern(|_| {
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"a b\"";
        (StatusCode::FORBIDDEN, [("www-authenticate", challenge)]).into_response()
    })
    .await;
    let client = fake.client();

    assert_eq!(failure(&client).await, (CallErrorKind::Forbidden, Executed::No));

    let challenge = client.challenge().unwrap();
    assert!(challenge.insufficient_scope);
    assert_eq!(challenge.scopes, ["a", "b"]);
}

#[tokio::test]
async fn what_is_said_twice_or_left_unended_is_read_where_it_can_mean_one_thing_only() {
    let answer = |seen: &FakeRequest| message(&seen.id(), &content("read"));
    let twice = move |seen: &FakeRequest| {
        let mut response = typed("application/json", answer(seen));
        response.headers_mut().append(CONTENT_TYPE, "Application/JSON; a=b".parse().unwrap());
        response
    };
    let joined =
        move |seen: &FakeRequest| typed("application/json, application/json", answer(seen));
    let unended =
        move |seen: &FakeRequest| typed("text/event-stream", format!("data: {}", answer(seen)));
    let begun =
        move |seen: &FakeRequest| typed("text/event-stream", format!("data: {}\n", answer(seen)));
    let fakes = [
        Fake::modern(twice).await,
        Fake::modern(joined).await,
        Fake::modern(unended).await,
        Fake::modern(begun).await,
    ];
    for (number, fake) in fakes.iter().enumerate() {
        let answered = call(&fake.client(), json!({})).await;
        assert_eq!(text(&answered.expect("an answer")), "read", "{number}");
    }

    let garbled = (upstream(UpstreamReason::ProtocolError), Executed::Unknown);
    let two = fails(move |seen| typed("application/json, text/event-stream", answer(seen)));
    assert_eq!(two.await, garbled);
    let half = fails(move |seen| {
        let text = answer(seen);
        typed("text/event-stream", format!("data: {}", &text[..text.len() - 1]))
    });
    assert_eq!(half.await, garbled);
}

type Answering = fn(&FakeRequest) -> Response;

#[tokio::test]
async fn what_keeps_a_server_from_use_is_told_in_words_for_its_operator() {
    let refused = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}/mcp", listener.local_addr().unwrap())
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("https://{}/", listener.local_addr().unwrap());
    let named = |url: &str| at(Endpoint::allowed(url).unwrap());
    let public = at(Endpoint::public("https://localhost/mcp").unwrap());
    let plain = Fake::start(|_| StatusCode::NO_CONTENT.into_response()).await;
    let tls = format!("https://{}/mcp", plain.address);
    let assert_told = async |client: Server, wanted: &str| {
        failure(&client).await;
        let cause = client.cause().unwrap_or_default();
        assert!(cause.contains(wanted), "{wanted}: {cause}");
    };
    for (client, wanted) in [
        (named(&refused), "nothing listens at its address and port"),
        (named(&silent), "no connection is made in time"),
        (named("https://no-such-host.invalid/mcp"), "its host name is unknown"),
        (public, "`allow_private = true` admits private ones"),
        (named(&tls), "TLS fails: "),
    ] {
        assert_told(client, wanted).await;
    }

    let moved: Answering =
        |_| (StatusCode::FOUND, [(LOCATION, "https://new.example/mcp")]).into_response();
    let answers: [(Answering, &str); 5] = [
        (moved, "it redirects to https://new.example/mcp; write that address in `url`"),
        (|_| StatusCode::NOT_FOUND.into_response(), "nothing at the path of its `url` (404)"),
        (|_| typed("text/html", "<p>Hello"), "it answers with text/html, which is not MCP"),
        (|_| StatusCode::BAD_GATEWAY.into_response(), "it answers with the status 502"),
        (|seen| error(StatusCode::OK, &seen.id(), -32602), "name that in `protocol`"),
    ];
    for (answer, wanted) in answers {
        let fake = Fake::start(answer).await;
        assert_told(fake.client(), wanted).await;
    }
    let fake = Fake::modern(|seen| success(&seen.id(), &content("x"))).await;
    let well = fake.client();
    call(&well, json!({})).await.unwrap();
    assert_eq!(well.cause(), None);
}
