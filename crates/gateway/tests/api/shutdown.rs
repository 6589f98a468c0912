//! The end of a gateway: calls in flight are answered and recorded, nothing new begins.

use crate::prelude::*;

/// Begins a call that takes `seconds` and waits until it is under way.
async fn slow_call(gateway: &Gateway, who: &Principal, seconds: u32) -> JoinSet<Value> {
    let mut calls = JoinSet::new();
    let body = format!(r#"{{"input":{{"seconds":{seconds},"text":"done"}}}}"#);
    let request = gateway.json(who, "/v1/mcps/sample:slow_echo/invoke", &body);
    calls.spawn(async move {
        match request.send().await {
            Ok(answer) => serde_json::from_str(&answer.text().await.unwrap()).unwrap(),
            Err(_) => Value::Null,
        }
    });
    let begun = async {
        while gateway.ask(OPEN_INTENTS) == "0" {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, begun).await.expect("a call under way");
    calls
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_flight_is_answered_and_recorded_and_no_new_one_begins() {
    let (mut gateway, who) = serve(gateway().sample());
    let mut idle = connect(&gateway).await;
    let address = gateway.url().split_once("://").unwrap().1.to_owned();
    let mut calls = slow_call(&gateway, &who, 2).await;

    gateway.terminate();
    let refused = async { while TcpStream::connect(&address).await.is_ok() {} };
    timeout(PATIENCE, refused).await.expect("a port that is given up");

    assert_eq!(rest(&mut idle).await, "", "an idle connection ends");
    assert!(calls.try_join_next().is_none(), "the call goes on");
    let answer = calls.join_next().await.unwrap().unwrap();
    assert_eq!(answer["result"]["text"], "done", "{answer}");
    assert_eq!(gateway.ended(), Some(0));
    gateway.start();
    let id = answer["governance"]["audit_event_id"].as_str().unwrap();
    let event = gateway.get(&who, &format!("/v1/audit/events/{id}")).await;
    has!(event, "/data/outcome/status": "success", "/data/integrity/sealed": true);
}

/// Waits until `GET /readyz` says that the node ends.
async fn until_leaving(gateway: &Gateway) -> Answer {
    let ready = || gateway.send(gateway.request(Method::GET, "/readyz"));
    until(ready, |answer| answer.status == 503).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_ends_says_so_first_and_takes_calls_for_a_while() {
    let config = "[server]\ndrain_listen_seconds = 5";
    let (mut gateway, who) = serve(gateway().config(config).sample());
    let address = gateway.url().split_once("://").unwrap().1.to_owned();
    let mut calls = slow_call(&gateway, &who, 2).await;
    let mut kept = connect(&gateway).await;
    let http2 = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    // A connection of a known caller is kept for longer than one of a stranger.
    let mcps = format!("{}/v1/mcps", gateway.url());
    let over_http2 = || http2.get(&mcps).bearer_auth(&who.token).send();
    assert_eq!(over_http2().await.unwrap().status(), 200);

    gateway.terminate();
    has!(until_leaving(&gateway).await, "/error/details/reason": "shutdown");
    let input = json!({"title": "a", "text": "b"});
    gateway.invoke(&who, "sample:create_note", input).await.ok();
    let request = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n");
    kept.write_all(request.as_bytes()).await.unwrap();

    // A request that meets the end of its connection was not looked at, and may be sent again (RFC 9113 §6.8).
    // The client may take that connection more than once before it knows.
    let again = eventually("an answer", async || over_http2().await.ok()).await;
    assert_eq!(again.status(), 200);
    let last = rest(&mut kept).await.to_lowercase();
    assert!(last.starts_with("http/1.1 200 ") && last.contains("connection: close"), "{last}");
    let answer = calls.join_next().await.unwrap().unwrap();
    assert_eq!(answer["result"]["text"], "done", "{answer}");
    eventually("a port that is given up", async || {
        TcpStream::connect(&address).await.is_err().then_some(())
    })
    .await;
    assert_eq!(gateway.ended(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_wish_to_end_is_obeyed_at_once() {
    let mut gateway = gateway().config("[server]\ndrain_listen_seconds = 600").start();
    gateway.terminate();
    until_leaving(&gateway).await;

    assert_eq!(gateway.stop(), Some(130));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_does_not_end_in_time_is_ended_and_recorded_as_perhaps_executed() {
    let config = "[server]\ndrain_seconds = 1";
    let (mut gateway, who) = serve(gateway().config(config).sample());
    let mut calls = slow_call(&gateway, &who, 25).await;
    let begun = Instant::now();

    assert_eq!(gateway.stop(), Some(0));

    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let answer = calls.join_next().await.unwrap().unwrap();
    assert!(answer.get("result").is_none(), "{answer}");
    gateway.start();
    let events = gateway.get(&who, "/v1/audit/events?type=mcp.invocation").await;
    has!(events, "/data/items/0/outcome/executed": "unknown", "/data/items/1": null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_get_to_its_request_does_not_hold_up_the_end() {
    let config = "[server]\ndrain_seconds = 1\nheader_timeout_seconds = 60";
    let mut gateway = gateway().config(config).start();
    let silent = connect(&gateway).await;
    let begun = Instant::now();

    assert_eq!(gateway.stop(), Some(0));

    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_in_use_is_remembered_at_the_end() {
    let (mut gateway, who) = serve_as("mcps:read", gateway());
    assert_eq!(gateway.get(&who, "/v1/mcps").await.status, 200);

    gateway.stop();

    let listed = gateway.admin(&["token", "list", "--org", &who.org]);
    assert!(listed[0]["last_used_at"].is_string(), "{listed}");
}
