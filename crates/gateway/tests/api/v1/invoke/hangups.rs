//! Callers who do not wait for the answer: the call ends all the same, and so does its event.

use futures_util::{StreamExt, stream};

use crate::prelude::*;

/// Sends an invocation over a connection of its own, which it gives.
async fn send(scene: &Scene, tool: &str, input: &Value) -> TcpStream {
    let body = json!({ "input": input }).to_string();
    begin(scene, tool, &body, body.len()).await
}

/// Sends an invocation whose body is this, but is declared to have this length.
pub(super) async fn begin(scene: &Scene, tool: &str, body: &str, length: usize) -> TcpStream {
    let address = scene.gateway.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.expect("a connection");
    let head = format!(
        "POST /v1/mcps/up:{tool}/invoke HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}",
        scene.who.token
    );
    stream.write_all(head.as_bytes()).await.expect("a request sent");
    stream
}

/// The invocation events of the caller, once there are as many as `wanted`.
async fn events(scene: &Scene, wanted: usize) -> Vec<Value> {
    eventually("events of all callers", async || {
        let events = list(&scene.gateway, &scene.who, "").await;
        (events.len() >= wanted).then_some(events)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_hangs_up_in_the_middle_leaves_one_event() {
    // A caller who hangs up in the middle stops nothing.
    let result = json!({"content": []}).to_string();
    let scene = scene(vec![tool("slow", Script::Held(result)), tool("echo", Script::Echo)]).await;
    let connection = send(&scene, "slow", &json!({})).await;
    scene.upstream.wait_for(1).await;

    drop(connection);
    // An answer to another caller: the gateway has seen the end of the connection by now or will
    // see it while the call is still running.
    scene.invoke("echo", json!({})).await;
    scene.upstream.release();

    let both = events(&scene, 2).await;
    assert_eq!(both.len(), 2, "{both:#?}");
    let slow = both.iter().find(|event| event["target"]["id"] == "up:slow").expect("its event");
    has!(slow, "/outcome/status": "success", "/outcome/executed": "yes");

    // A caller who hangs up within the body leaves one event.
    let scene = scene.anew();
    scene.invoke("echo", json!({})).await;

    drop(begin(&scene, "echo", r#"{"input":"#, 1000).await);
    let reset = begin(&scene, "echo", r#"{"input":"#, 1000).await;
    reset.set_zero_linger().expect("a connection to be reset");
    drop(reset);

    let all = events(&scene, 3).await;
    assert_eq!(all.len(), 3, "{all:#?}");
    for event in &all[1..] {
        has!(event, "/outcome/status": "invalid", "/outcome/http_status": 400);
    }
    assert_eq!(scene.upstream.calls().len(), 1);

    // A caller who gives up a stream within the body leaves one event.
    // Over HTTP/2 a caller can give up one request and keep the connection.
    let scene = scene.anew();
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build();
    let client = client.expect("a client");
    let url = format!("{}/v1/mcps/up:echo/invoke", scene.gateway.url());
    let request = || client.post(&url).bearer_auth(&scene.who.token);
    let whole = request().body(r#"{"input":{}}"#).send().await.expect("an answer");
    assert_eq!(whole.status(), 200);
    let start = stream::once(async { Ok::<_, std::io::Error>(r#"{"input":"#) });
    let endless = reqwest::Body::wrap_stream(start.chain(stream::pending()));

    let mut given_up = Box::pin(request().body(endless).send());
    let begun = async {
        // The second request goes over the same connection: when it is answered, the first has
        // begun.
        tokio::task::yield_now().await;
        request().body(r#"{"input":{}}"#).send().await.expect("an answer");
    };
    tokio::select! {
        answer = &mut given_up => panic!("an answer to half a request: {answer:?}"),
        () = begun => {}
    }
    drop(given_up);

    let events = events(&scene, 3).await;
    assert_eq!(events.len(), 3, "{events:#?}");
    let invalid = events.iter().filter(|event| event["outcome"]["status"] == "invalid");
    assert_eq!(invalid.count(), 1, "{events:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_hangs_up_before_a_denial_leaves_one_event() {
    let none = "@id(\"none\") forbid (principal, action, resource);";
    let scene = scene_under(none, vec![tool("echo", Script::Echo)]).await;

    for _ in 0..20 {
        drop(send(&scene, "echo", &json!({})).await);
    }
    let mut last = send(&scene, "echo", &json!({})).await;
    let mut answer = [0; 12];
    last.read_exact(&mut answer).await.expect("an answer");

    assert_eq!(&answer, b"HTTP/1.1 403");
    let events = list(&scene.gateway, &scene.who, "").await;
    // A connection that ends before its request was read leaves nothing; none leaves two.
    let requests = events.iter().map(|event| event["request"]["id"].to_string());
    assert_eq!(requests.collect::<BTreeSet<_>>().len(), events.len());
    assert!((1..=21).contains(&events.len()), "{}", events.len());
    for event in &events {
        assert_eq!(event["outcome"]["status"], "denied", "{event}");
    }
    assert!(scene.upstream.calls().is_empty());
}
