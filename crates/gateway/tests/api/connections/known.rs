//! Bodies of callers whose org is known: `POST /scim/v2/Groups` has the largest.

use super::strangers::status_of_unfinished;
use crate::prelude::*;

/// Bodies that an org holds, and those of them for which there is room: 4 MiB each of its 64 MiB.
const HELD: usize = 32;
const WITHIN_SHARE: usize = 16;
/// Bytes that are sent of each.
const SENT: usize = (4 << 20) - 10;

#[tokio::test(flavor = "multi_thread")]
async fn an_org_holds_no_more_of_large_bodies_than_its_share_and_others_have_the_rest() {
    let gateway = gateway().start();
    let [greedy, other] =
        ["acme", "other"].map(|org| gateway.service(&gateway.org(org, &ENOUGH), "scim"));
    let host = gateway.url().split_once("://").unwrap().1.to_owned();
    let head = format!(
        "POST /scim/v2/Groups HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\n",
        greedy.token
    );
    let mut bodies = JoinSet::new();
    for _ in 0..HELD {
        let (host, head) = (host.clone(), head.clone());
        bodies.spawn(async move { status_of_unfinished(&host, &head, SENT).await });
    }
    let group = |who, room: usize| {
        let body = format!("{}{{\"displayName\": \"finance\"}}", " ".repeat(room));
        gateway.send(gateway.request_of(who, Method::POST, "/scim/v2/Groups").body(body))
    };

    for refused in 0..HELD - WITHIN_SHARE {
        let next = timeout(PATIENCE, bodies.join_next()).await;
        let next = next.unwrap_or_else(|_| panic!("{} bodies are held", HELD - refused));
        assert_eq!(next.unwrap().unwrap(), 503);
    }
    let large = group(&other, 3 << 20).await;
    let small = group(&greedy, 0).await;

    assert_eq!(
        (large.status.as_u16(), small.status.as_u16()),
        (201, 201),
        "{}, {}",
        large.text,
        small.text
    );
}
