//! Connections beyond what the node holds, or an address may.

use std::io;

use futures_util::{StreamExt, stream::FuturesUnordered};

use crate::prelude::*;

/// Slow sockets that one address opens.
const SLOW: usize = 300;

/// Connections on which a request begins and never ends.
async fn slow(gateway: &Gateway, count: usize) -> Vec<TcpStream> {
    join_all((0..count).map(async |_| {
        let mut stream = connect(gateway).await;
        stream.write_all(b"GET /v1/mcps HTTP/1.1\r\nhost: x\r\n").await.unwrap();
        stream
    }))
    .await
}

/// Waits until the gateway has closed this many of them.
async fn closed(streams: &mut [TcpStream], count: usize) {
    let mut ends: FuturesUnordered<_> =
        streams.iter_mut().map(async |stream| stream.read(&mut [0]).await).collect();
    let closing = async {
        for _ in 0..count {
            let end = ends.next().await;
            assert!(matches!(end, Some(Ok(0) | Err(_))), "fewer than {count}: {end:?}");
        }
    };
    timeout(PATIENCE, closing).await.unwrap_or_else(|_| panic!("fewer than {count} are closed"));
}

/// Number of those that are still open.
fn open(streams: &[TcpStream]) -> usize {
    let waits = |stream: &&TcpStream| {
        let read = stream.try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    };
    streams.iter().filter(waits).count()
}

/// A client at another loopback address.
fn neighbour() -> reqwest::Client {
    let other = std::net::IpAddr::from([127, 0, 0, 2]);
    reqwest::Client::builder().no_proxy().local_address(other).build().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_slow_sockets_of_one_address_leave_another_client_alone() {
    // No more than those sockets: without a share for each address they would hold them all.
    let config = "[server]\nmax_connections = 290\nunauthenticated_idle_seconds = 120\n\
                  header_timeout_seconds = 120";
    let (gateway, who) = serve(gateway().config(config));
    let mut slow = slow(&gateway, SLOW).await;
    closed(&mut slow, SLOW - 256 - 4).await;
    let client = neighbour();
    let url = format!("{}/v1/mcps", gateway.url());

    for _ in 0..100 {
        let answer = client.get(&url).bearer_auth(&who.token).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    }

    // The share of the address, and up to four of the reserve for probes.
    let open = open(&slow);
    assert!((256..=256 + 4).contains(&open), "{open} are held");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_connections_are_counted_by_the_limit_that_they_met() {
    let config = "[server]\nmetrics_listen = \"127.0.0.1:0\"\nmax_connections_per_address = 2";
    let gateway = gateway().config(config).start();
    let mut slow = slow(&gateway, 10).await;
    // Two are held, and four of the reserve for a moment.
    closed(&mut slow, 4).await;

    let shown = gateway.metrics().await;

    let counted = shown.split("portcullis_connections_refused_total{limit=\"address\"} ").nth(1);
    let counted = counted.and_then(|rest| rest.lines().next()).unwrap();
    assert!((4..=8).contains(&counted.parse().unwrap()), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_node_answers_probes_and_tells_everybody_else_at_once() {
    let config = "[server]\nmax_connections = 2\nunauthenticated_idle_seconds = 15";
    let gateway = gateway().config(config).start();
    let _slow = slow(&gateway, 2).await;

    for path in ["/healthz", "/readyz"] {
        let answer = gateway.send(gateway.request(Method::GET, path)).await;

        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        assert_eq!(answer.header("connection"), "close", "{path}");
    }
    let answer = gateway.send(gateway.request(Method::GET, "/v1/mcps")).await;

    has!(answer, 503 "unavailable", "/error/details/reason": "overloaded");
    assert_eq!(answer.header("connection"), "close");
    assert_framed(&answer, "a full node");
    assert_enveloped(&answer, "a full node");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_over_the_limit_get_in_when_there_is_room() {
    let config = "[server]\nmax_connections = 2\nunauthenticated_idle_seconds = 1";
    let gateway = gateway().config(config).start();
    let mut slow = slow(&gateway, 2).await;
    for stream in &mut slow {
        rest(stream).await;
    }

    has!(gateway.send(gateway.request(Method::GET, "/v1/mcps")).await, 401 "missing_token");
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_have_a_listener_of_their_own_on_which_nothing_else_is() {
    let config = "[server]\nhealth_listen = \"127.0.0.1:0\"\nmax_connections_per_address = 1";
    let gateway = gateway().config(config).start();
    let (_, health) = gateway.starting_log().split_once("health probes on ").unwrap();
    let health = health.split("/healthz").next().unwrap().to_owned();
    let _slow = slow(&gateway, 20).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();

    for (path, status) in
        [("/healthz", 200), ("/readyz", 200), ("/v1/mcps", 404), ("/openapi.json", 404)]
    {
        let answer = client.get(format!("{health}{path}")).send().await.unwrap();

        assert_eq!(answer.status(), status, "{path}");
        assert!(answer.headers().contains_key("x-request-id"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_kept_for_longer_once_somebody_has_authenticated() {
    let (gateway, who) = serve(gateway().config("[server]\nunauthenticated_idle_seconds = 1"));
    let request = |more: &str| format!("GET /v1/mcps HTTP/1.1\r\nhost: x\r\n{more}\r\n");
    let known = request(&format!("authorization: Bearer {}\r\n", who.token));
    let mut kept = connect(&gateway).await;
    kept.write_all(known.as_bytes()).await.unwrap();
    let mut some = [0; 8192];
    assert!(kept.read(&mut some).await.unwrap() > 0);

    let refused = exchange(&gateway, request("").as_bytes()).await;
    let silent = exchange(&gateway, b"").await;

    assert!(refused.starts_with("HTTP/1.1 401 ") && silent.is_empty(), "{refused}{silent}");
    kept.write_all(known.as_bytes()).await.unwrap();
    let read = kept.read(&mut some).await.unwrap();
    assert!(String::from_utf8_lossy(&some[..read]).starts_with("HTTP/1.1 200 "), "it is kept");
}
