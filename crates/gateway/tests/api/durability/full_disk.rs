//! A disk that is full, and has room again: nothing is invoked meanwhile, nothing is lost, and no
//! restart is needed.

use portcullis_testkit::SmallDisk;

use super::{UNRECORDED, assert_unrecorded};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_stops_calls_until_there_is_room_again() {
    let Some(disk) = SmallDisk::mount(16) else { return };
    let upstream = Hostile::start(vec![tool("echo", Script::Echo)]).await;
    let database = format!("[database]\nurl = \"sqlite:{}\"", disk.path().join("p.db").display());
    let (gateway, who) = serve_as(
        "mcps:invoke audit:read",
        gateway().http("up", &upstream.url(), "").config(&database),
    );
    let before = gateway.invoke(&who, "up:echo", json!({"n": 0})).await;
    check(&gateway, &who, &before, SUCCESS).await;

    disk.fill();
    // The log has some pages of its own left; then it is over.
    let text = "x".repeat(100_000);
    let mut answered = vec![before];
    let refused = loop {
        let answer = gateway.invoke(&who, "up:echo", json!({ "text": text })).await;
        if answer.status != 200 {
            break answer;
        }
        answered.push(answer);
        assert!(answered.len() < 1_000, "the disk is never full");
    };
    let sent = upstream.calls().len();

    let executed = refused.at("/error/details/executed").as_str().unwrap_or_default().to_owned();
    assert_unrecorded(&refused, &executed);
    let again = gateway.invoke(&who, "up:echo", json!({})).await;
    assert_unrecorded(&again, "no");
    assert_eq!(upstream.calls().len(), sent, "nothing is sent while it is full");
    let ready = || gateway.send(gateway.request(Method::GET, "/readyz"));
    until(ready, |it| it.status == 503).await;

    fs::remove_file(disk.filler()).expect("the filler");
    until(ready, |it| it.status == 200).await;

    let after = gateway.invoke(&who, "up:echo", json!({"n": 1})).await;
    check(&gateway, &who, &after, SUCCESS).await;
    for answer in &answered {
        check(&gateway, &who, answer, SUCCESS).await;
    }
    // The refusals are recorded once there is room.
    let late = async || list(&gateway, &who, &format!("outcome={UNRECORDED}")).await.len();
    eventually("a record of the refusals", async || (late().await >= 2).then_some(())).await;
}
