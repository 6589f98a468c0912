//! `GET /v1/audit/events`, `GET /v1/audit/events/{id}`: what happened, to whom it may be told.

use crate::prelude::*;

const POLICIES: &str = r#"@id("base") permit (principal, action, resource);
    @id("no-failing") @reason("It would only fail")
    forbid (principal, action == Mcp::Action::"sample:always_fails", resource);"#;

const INVOKE: &str = "/v1/mcps/sample:create_note/invoke";

fn start() -> (Gateway, Principal) {
    serve(gateway().sample().policies(POLICIES))
}

async fn note(gateway: &Gateway, who: &Principal) -> Answer {
    gateway.invoke(who, "sample:create_note", json!({"title": "a", "text": "b"})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_says_who_did_what_and_can_be_read_at_once() {
    // A record says who did what with what right and to what end.
    let (gateway, who) = start();
    let request = gateway.json(&who, INVOKE, r#"{"input":{"title":"a","text":"b"}}"#);
    let call = gateway.send(request.header("user-agent", "tests/1.0")).await;
    gateway.get(&who, "/v1/audit/events").await;

    let answer = gateway.event(&who, call.event_id()).await;

    let record = answer.at("/data");
    assert_eq!(record["schema"].to_string(), "1");
    assert_eq!(&record["request"]["id"], call.at("/meta/request_id"));
    let tool = gateway.get(&who, "/v1/mcps/sample:create_note").await;
    for (place, wanted) in [
        ("type", json!("mcp.invocation")),
        ("org_id", json!(who.org)),
        ("actor/type", json!("service")),
        ("actor/id", json!(who.id)),
        ("actor/via", Value::Null),
        ("actor/token_id", json!(who.token_id)),
        ("actor/auth/method", json!("operator")),
        ("target/type", json!("mcp")),
        ("target/id", json!("sample:create_note")),
        ("target/version", tool.at("/data/version").clone()),
        ("target/provider_id", tool.at("/data/provider_id").clone()),
        ("target/credential", json!("org")),
        ("governance/decision", json!("allow")),
        ("governance/policy", json!("base")),
        ("governance/dlp_result", json!("passed")),
        ("governance/reason", Value::Null),
        ("detached/source_ip", json!("127.0.0.1")),
        ("detached/user_agent", json!("tests/1.0")),
        ("detached/input", Value::Null),
        ("detached/output", Value::Null),
        ("detached/label", Value::Null),
    ] {
        assert_eq!(answer.at(&format!("/data/{place}")), &wanted, "{place}");
    }
    let outcome =
        json!({"error_code": null, "executed": "yes", "http_status": 200, "status": "success"});
    assert_eq!(record["outcome"].to_string(), outcome.to_string());
    assert!(record["occurred_at"].as_str() <= record["recorded_at"].as_str(), "{record}");
    assert!(!answer.text.contains(&who.token), "{}", answer.text);

    // An event can be read as soon as its answer has left.
    let mut calls = JoinSet::new();
    for _ in 0..20 {
        let request = gateway.json(&who, INVOKE, r#"{"input":{"title":"a","text":"b"}}"#);
        calls.spawn(async move { request.send().await.unwrap().text().await.unwrap() });
    }
    while let Some(text) = calls.join_next().await {
        let call: Value = serde_json::from_str(&text.unwrap()).unwrap();
        let id = call["governance"]["audit_event_id"].as_str().unwrap();

        let answer = gateway.event(&who, id).await;

        has!(answer, "/data/id": id, "/data/outcome/status": "success");
        assert_enveloped(&answer, id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_no_payloads_no_gaps_and_ranges_of_time() {
    // A list has neither payloads nor salts and its events follow each other.
    let (gateway, who) = start();
    for _ in 0..3 {
        note(&gateway, &who).await;
    }

    let list = || gateway.get(&who, "/v1/audit/events?order=asc&limit=200");
    // Orgs are told of providers by the way, and a list has the reading of the one before it.
    let told = |it: &Answer| {
        let types = members(it, "type");
        let late = ["audit.accessed", "provider.connected"];
        late.iter().all(|kind| types.contains(kind))
    };
    let sealed = |it: &Answer| items(it).iter().all(|event| event["integrity"]["sealed"] == true);
    let list = until(list, |it| it.status == 200 && told(it) && sealed(it)).await;

    for (place, event) in items(&list).iter().enumerate() {
        assert_eq!(event["sequence"].to_string(), place.to_string(), "gapless from 0");
        assert!(is_id(event["id"].as_str().unwrap(), "evt_"), "{event}");
        let detached = event["detached"].as_object().unwrap();
        assert!(!detached.contains_key("input") && !detached.contains_key("output"), "{event}");
        assert!(event["integrity"].get("salts").is_none(), "{event}");
    }
    let recorded = members(&list, "recorded_at");
    assert!(recorded.is_sorted(), "{recorded:?}");
    let mut types = members(&list, "type");
    types.sort_unstable();
    types.dedup();
    // Whether an org that was just made is told of the node depends on which of them was first.
    types.retain(|kind| *kind != "system.started");
    let wanted = "audit.accessed mcp.invocation org.changed principal.changed provider.connected \
                  token.issued";
    assert_eq!(types.join(" "), wanted);

    // A time range is half open on the time of recording.
    let who = tenant(&gateway);
    for _ in 0..5 {
        note(&gateway, &who).await;
        // Asking seals, so that each event has a time of its own.
        gateway.get(&who, "/v1/audit/events").await;
    }
    let all = gateway.get(&who, "/v1/audit/events?type=mcp.invocation&order=asc").await;
    let times = members(&all, "recorded_at");

    let path = "/v1/audit/events?type=mcp.invocation&order=asc";
    let some = gateway.get(&who, &format!("{path}&from={}&to={}", times[1], times[3])).await;

    let mut wanted = times.clone();
    wanted.retain(|time| (times[1]..times[3]).contains(time));
    assert_eq!(members(&some, "recorded_at"), wanted);
    assert!(!wanted.is_empty());
    let shifted = times[1].replace('Z', "%2B00:00");
    let rest = gateway.get(&who, &format!("{path}&from={shifted}")).await;
    assert_eq!(items(&rest).len(), times.iter().filter(|time| **time >= times[1]).count());
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_told_to_their_org_alone() {
    // One sees ones own events and with audit read those of the org.
    let (gateway, who) = start();
    let plain = gateway.service(&who.org, "mcps:invoke");
    let other = gateway.service(&gateway.org("other", &ENOUGH), ALL_SCOPES);
    let calls =
        [note(&gateway, &who).await, note(&gateway, &plain).await, note(&gateway, &other).await];
    let ids = calls.each_ref().map(Answer::event_id);

    for (reader, sees) in [
        (&who, [true, true, false]),
        (&plain, [false, true, false]),
        (&other, [false, false, true]),
    ] {
        let list = gateway.get(reader, "/v1/audit/events?type=mcp.invocation").await;
        let listed = members(&list, "id");
        for (id, seen) in ids.iter().zip(sees) {
            let answer = gateway.event(reader, id).await;
            assert_eq!(answer.status == 200, seen, "{}", answer.text);
            assert_eq!(listed.contains(id), seen, "{listed:?}");
            if !seen {
                has!(answer, 404 "not_found", "/error/details": {"resource": "event", "id": id});
            }
        }
    }
    let issued = gateway.get(&plain, "/v1/audit/events?type=token.issued").await;
    assert_eq!(items(&issued).len(), 0, "the operator's acts are not one's own");
    for id in ["evt_01M7W9Y2TKP17G0AVDQZTD2P3X", "evt_", "x", "%00"] {
        assert_eq!(gateway.event(&who, id).await.status, 404, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_filter_selects_what_it_says() {
    let (gateway, who) = start();
    let other = gateway.service(&who.org, "mcps:invoke");
    let call = async |who, tool: &str, input| {
        let answer = gateway.invoke(who, &format!("sample:{tool}"), input).await;
        answer.header("x-request-id").to_owned()
    };
    let note = call(&who, "create_note", json!({"title": "a", "text": "b"})).await;
    let denied = call(&who, "always_fails", json!({})).await;
    let masked = call(&other, "get_customer", json!({"id": "cus_1001"})).await;
    let failed = call(&other, "get_customer", json!({"id": "cus_none"})).await;
    let unknown = call(&who, "nothing", json!({})).await;
    let misfit = call(&who, "list_items", json!({"limit": 0})).await;
    let all = format!("{note} {denied} {masked} {failed} {unknown} {misfit}");
    let requests = async |query: &str| {
        let path = format!("/v1/audit/events?type=mcp.invocation&order=asc&{query}");
        let answer = gateway.get(&who, &path).await;
        let requests = items(&answer).iter().map(|event| event["request"]["id"].as_str().unwrap());
        requests.collect::<Vec<_>>().join(" ")
    };

    for (query, wanted) in [
        ("limit=200".to_owned(), all.clone()),
        (format!("actor={}", who.id), format!("{note} {denied} {unknown} {misfit}")),
        (format!("actor={}", other.token_id), format!("{masked} {failed}")),
        ("actor=sa_01M754BKTK9KV856N96WMEHWY9".to_owned(), String::new()),
        ("target=sample:get_customer".to_owned(), format!("{masked} {failed}")),
        ("target=sample:*".to_owned(), all.clone()),
        ("target=sample:get*".to_owned(), format!("{masked} {failed}")),
        ("target=sample:get".to_owned(), String::new()),
        ("target=%25".to_owned(), String::new()),
        ("target=sample_*".to_owned(), String::new()),
        ("decision=deny".to_owned(), denied.clone()),
        ("decision=allow".to_owned(), format!("{note} {masked} {failed}")),
        ("decision=allow,deny".to_owned(), format!("{note} {denied} {masked} {failed}")),
        ("policy=no-failing,none".to_owned(), denied.clone()),
        ("policy=base".to_owned(), format!("{note} {masked} {failed}")),
        ("dlp_result=redacted".to_owned(), masked.clone()),
        ("dlp_result=redacted,blocked".to_owned(), masked.clone()),
        ("outcome=denied".to_owned(), denied.clone()),
        ("outcome=tool_error,not_found".to_owned(), format!("{failed} {unknown}")),
        ("outcome=invalid".to_owned(), misfit.clone()),
        (format!("request_id={failed}"), failed.clone()),
        (format!("outcome=denied&actor={}", other.id), String::new()),
    ] {
        assert_eq!(requests(&query).await, wanted, "{query}");
    }
    let revoked = gateway.get(&who, "/v1/audit/events?type=token.revoked").await;
    assert_eq!(items(&revoked).len(), 0);
}

/// Pages through to the end and gives the sequence numbers.
async fn pages(gateway: &Gateway, who: &Principal, query: &str) -> Vec<u64> {
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = gateway.get(who, &format!("/v1/audit/events?{query}{cursor}")).await;
        seen.extend(items(&page).iter().map(|event| event["sequence"].as_u64().unwrap()));
        match page.at("/meta/pagination/next_cursor").as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return seen,
        }
        note(gateway, who).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_tails_neither_skip_nor_repeat_while_events_arrive() {
    // A tail never ends and never skips.
    let (gateway, who) = start();
    let other = gateway.service(&gateway.org("other", &ENOUGH), "mcps:read");
    let tail = async |who, cursor: &str| {
        let filter = "order=asc&tail=true&type=mcp.invocation&limit=3";
        let page = gateway.get(who, &format!("/v1/audit/events?{filter}{cursor}")).await;
        let next = page.at("/meta/pagination/next_cursor").as_str().unwrap();
        (format!("&cursor={next}"), page)
    };
    let (mut cursor, first) = tail(&who, "").await;
    assert_eq!(items(&first).len(), 0);
    let mut made = Vec::new();
    let mut seen = Vec::new();

    for round in 0..6 {
        for _ in 0..round {
            made.push(note(&gateway, &who).await.event_id().to_owned());
        }
        let (next, page) = tail(&who, &cursor).await;
        seen.extend(members(&page, "id").into_iter().map(str::to_owned));
        cursor = next;
    }
    while seen.len() < made.len() {
        let (next, page) = tail(&who, &cursor).await;
        assert!(!items(&page).is_empty(), "there is more");
        seen.extend(members(&page, "id").into_iter().map(str::to_owned));
        cursor = next;
    }

    assert_eq!(seen, made);
    let (_, empty) = tail(&other, "").await;
    assert_eq!(items(&empty).len(), 0);

    // Pages have neither gaps nor repetitions while events arrive.
    let who = tenant(&gateway);
    for _ in 0..12 {
        note(&gateway, &who).await;
    }

    let down = pages(&gateway, &who, "limit=4").await;
    let up = pages(&gateway, &who, "limit=4&order=asc").await;

    assert!(down.iter().copied().eq((0..=down[0]).rev()), "before the first page: {down:?}");
    assert!(up.iter().copied().eq((0..).take(up.len())), "arrives at the end: {up:?}");
    assert!(up.len() > down.len());
}
