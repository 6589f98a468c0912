//! More calls than can be judged at once.

use super::hangups::begin;
use crate::prelude::*;

const CALLS: usize = 60;

/// Only one call is judged at a time.
fn narrow(builder: Builder) -> Builder {
    builder.env("PORTCULLIS_SERVER__MAX_CALLS", "1")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_judged_soon_is_turned_away_early_and_all_that_is_answered_is_recorded() {
    // What cannot be judged soon is turned away and all that is answered is recorded.
    let scene = scene_with(vec![tool("echo", Script::Echo)], "max_in_flight = 100", narrow).await;

    let all = join_all((0..CALLS).map(|_| scene.invoke("echo", json!({})))).await;

    let (answered, away): (Vec<_>, Vec<_>) = all.iter().partition(|answer| answer.status == 200);
    assert!(!answered.is_empty() && !away.is_empty(), "{} answered", answered.len());
    for answer in &away {
        has!(answer, 503, "/error/details/reason": "overloaded");
        assert!(answer.header("retry-after").parse::<u32>().unwrap() > 0);
        assert!(answer.at("/governance").is_null() && answer.at("/meta/outcome").is_null());
    }
    assert_eq!(list(&scene.gateway, &scene.who, "").await.len(), answered.len());
    assert_eq!(scene.upstream.count("echo"), answered.len());

    // Who is turned away hears it before the body is sent.
    let crowd = async {
        loop {
            join_all((0..CALLS).map(|_| scene.invoke("echo", json!({})))).await;
        }
    };
    // Who comes in between two others is read, and waits here in vain.
    let silent = async {
        for _ in 0..20 {
            let mut stream = begin(&scene, "echo", "", 100).await;
            let mut answer = [0; 12];
            let read = timeout(Duration::from_millis(500), stream.read_exact(&mut answer)).await;
            if read.is_ok_and(|read| read.is_ok()) {
                return Some(answer);
            }
        }
        None
    };

    let heard = tokio::select! {
        heard = silent => heard,
        () = crowd => None,
    };

    assert_eq!(heard.as_ref(), Some(b"HTTP/1.1 503"));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_for_which_there_is_room_are_answered_also_those_who_wait_for_their_turn() {
    let room = |builder: Builder| builder.env("PORTCULLIS_SERVER__MAX_CALLS", "200");
    let scene = scene_with(vec![tool("echo", Script::Echo)], "max_in_flight = 200", room).await;

    let all = join_all((0..200).map(|_| scene.invoke("echo", json!({})))).await;

    assert!(all.iter().all(|answer| answer.status == 200));
    assert_eq!(scene.upstream.count("echo"), all.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_its_tool_keeps_no_other_from_being_judged() {
    let done = json!({"content": [{"type": "text", "text": "done"}]}).to_string();
    let tools = vec![tool("held", Script::Held(done)), tool("echo", Script::Echo)];
    let scene = scene_with(tools, "", narrow).await;
    let meanwhile = async {
        scene.upstream.wait_for(1).await;
        let other = scene.invoke("echo", json!({})).await;
        scene.upstream.release();
        other
    };

    let (held, other) = tokio::join!(scene.invoke("held", json!({})), meanwhile);

    scene.check(&other, SUCCESS).await;
    scene.check(&held, SUCCESS).await;
}
