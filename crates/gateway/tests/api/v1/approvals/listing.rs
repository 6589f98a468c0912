//! Lists of approvals: who sees which, page by page.

use super::Waiting;
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn everybody_lists_what_they_asked_for_and_what_they_may_decide() {
    // A list takes only what it knows.
    let it = Waiting::start().await;
    let ana = it.person("ana", &[]).await;
    for query in ["status=open", "status=pending,denied", "state=pending", "limit=0", "cursor=x"] {
        let answer = it.gateway.get(&ana, &format!("/v1/approvals?{query}")).await;
        assert_eq!(answer.refusal(), (400, "invalid_request"), "{query}: {}", answer.text);
    }

    // Everybody lists what they asked for and what they may decide.
    let ben = it.person("ben", &["finance"]).await;
    let cat = it.person("cat", &["sales"]).await;
    let auditor = it.login("aud", &["auditors"], &["pwd"], "approvals:read").await;
    let mut ids = Vec::new();
    for amount in 0..4 {
        ids.push(it.ask(&ana, "pay", json!({ "amount": amount })).await);
    }
    let hers = it.ask(&cat, "pay", json!({"amount": 0})).await;
    ids.push(hers.clone());
    ids.reverse();
    it.approve(&ben, &hers).await;

    for (who, expected) in [
        (&ana, &ids[1..]),
        (&cat, &ids[..1]),
        (&ben, &ids[..]),
        (&auditor, &ids[..]),
        (&it.agent, &[][..]),
    ] {
        let answer = it.gateway.get(who, "/v1/approvals").await;
        assert_eq!(members(&answer, "id"), expected, "{}", answer.text);
        assert_eq!(answer.at("/meta/pagination/next_cursor"), &json!(null));
    }
    for (query, expected) in [
        ("status=pending", &ids[1..]),
        ("status=approved", &ids[..1]),
        ("status=consumed", &[][..]),
    ] {
        let answer = it.gateway.get(&auditor, &format!("/v1/approvals?{query}")).await;
        assert_eq!(members(&answer, "id"), expected, "{query}");
    }
    let mut paged = Vec::new();
    let mut path = "/v1/approvals?limit=2".to_owned();
    loop {
        let page = it.gateway.get(&ana, &path).await;
        paged.extend(members(&page, "id").into_iter().map(str::to_owned));
        let Some(next) = page.at("/meta/pagination/next_cursor").as_str() else { break };
        path = format!("/v1/approvals?limit=2&cursor={next}");
    }
    assert_eq!(paged, ids[1..]);
    let shown = it.get(&ben, &ids[1]).await;
    let earlier = shown.at("/data/earlier").as_array().expect("earlier ones");
    assert_eq!(earlier.iter().map(|it| &it["id"]).collect::<Vec<_>>(), [&ids[2], &ids[3], &ids[4]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_large_approvals_end_by_their_bytes_and_miss_none() {
    let it = Waiting::start().await;
    let ana = it.person("ana", &[]).await;
    let text = "a".repeat(60_000);
    let mut ids = Vec::new();
    for amount in 0..20 {
        ids.push(it.ask(&ana, "pay", json!({ "amount": amount, "text": text })).await);
    }
    ids.reverse();

    let mut pages = Vec::new();
    let mut path = "/v1/approvals?limit=200".to_owned();
    loop {
        let page = it.gateway.get(&ana, &path).await;
        assert_eq!(page.at("/data/items/0/input/text"), &json!(text));
        pages.push(members(&page, "id").into_iter().map(str::to_owned).collect::<Vec<_>>());
        let Some(next) = page.at("/meta/pagination/next_cursor").as_str() else { break };
        path = format!("/v1/approvals?limit=200&cursor={next}");
    }

    assert_eq!(pages.concat(), ids);
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [17, 3]);
}
