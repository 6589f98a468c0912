//! Rate limits: exact under concurrency, shown on every answer, and whose they are.

use crate::{login::browser::Browser, prelude::*};

fn note() -> Value {
    json!({"title": "a", "text": "b"})
}

/// The three numbers and the name.
fn limit_headers(answer: &Answer) -> (i64, i64, String) {
    let number = |name| answer.header(name).parse().unwrap();
    let resource = answer.header("x-ratelimit-resource").to_owned();
    (number("x-ratelimit-limit"), number("x-ratelimit-remaining"), resource)
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_exactly_as_many_pass_as_the_plan_allows_and_a_429_tells_when_to_come_back()
{
    // Of sixty requests at once exactly as many pass as the plan allows.
    let gateway = gateway().sample().start();
    let org = org_with_time_left(&gateway, &plan("20", "5")).await;
    let both = [gateway.service(&org, ALL_SCOPES), gateway.user(&org, "member", "mcps:read")];

    let calls = (0..60).map(|n| gateway.get(&both[n % 2], "/v1/mcps"));
    let answers = join_all(calls).await;

    assert_eq!((count(&answers, 200), count(&answers, 429)), (20, 40));
    for answer in answers {
        assert!(answer.status != 200 || (0..20).contains(&limit_headers(&answer).1), "{answer:?}");
        assert_framed(&answer, "one of sixty");
    }

    // Of forty invocations at once exactly as many pass as the plan allows.
    let org = org_with_time_left(&gateway, &plan("1000", "10")).await;
    let who = gateway.service(&org, ALL_SCOPES);

    let calls = (0..40).map(|_| gateway.invoke(&who, "sample:create_note", note()));
    let answers = join_all(calls).await;

    assert_eq!((count(&answers, 200), count(&answers, 429)), (10, 30));
    let ending = Ending { status: 429, code: "rate_limited", outcome: "rate_limited", ..INVALID };
    let limited = answers.iter().find(|answer| answer.status == 429).unwrap();
    check(&gateway, &who, limited, ending).await;
    let events = gateway.get(&who, "/v1/audit/events?type=mcp.invocation&outcome=rate_limited");
    assert_eq!(items(&events.await).len(), 30, "every attempt is recorded");
    assert_eq!(gateway.get(&who, "/v1/mcps").await.status, 200, "only invocations are used up");

    // A 429 tells when to come back and costs nothing.
    let org = org_with_time_left(&gateway, &plan("3", "1")).await;
    let who = gateway.service(&org, ALL_SCOPES);
    assert_eq!(gateway.invoke(&who, "sample:create_note", note()).await.status, 200);

    let invocations = gateway.invoke(&who, "sample:create_note", note()).await;
    let last = gateway.get(&who, "/v1/mcps").await;
    let requests = gateway.get(&who, "/v1/mcps").await;
    let again = gateway.invoke(&who, "sample:create_note", note()).await;

    assert_eq!(limit_headers(&invocations), (1, 0, "invocations".to_owned()));
    assert_eq!((last.status.as_u16(), limit_headers(&last)), (200, (3, 0, "requests".to_owned())));
    for (answer, resource, limit) in
        [(&invocations, "invocations", 1), (&requests, "requests", 3), (&again, "requests", 3)]
    {
        assert_eq!(answer.refusal(), (429, "rate_limited"));
        assert_framed(answer, resource);
        assert_enveloped(answer, resource);
        let details = answer.at("/error/details");
        assert_eq!((&details["resource"], &details["limit"]), (&json!(resource), &json!(limit)));
        assert_eq!(limit_headers(answer), (limit, 0, resource.to_owned()));
        let wait: i64 = answer.header("retry-after").parse().unwrap();
        let reset: i64 = answer.header("x-ratelimit-reset").parse().unwrap();
        assert_eq!(details["retry_after"].to_string(), wait.to_string());
        assert!((1..=60).contains(&wait), "{wait}");
        let waited = now(&gateway).await.as_seconds() + wait;
        assert!((reset..=reset + 3).contains(&waited), "{waited} for {reset}");
        let reset_at = Timestamp::from_micros(reset * 1_000_000);
        assert_eq!(details["reset_at"], json!(reset_at));
    }
    assert_eq!(invocations.at("/error/details/executed"), "no");
    assert_eq!(again.at("/meta/outcome"), &Value::Null, "it was no attempt");
    let head = gateway.request_of(&who, Method::HEAD, "/v1/mcps");
    assert_eq!(gateway.send(head).await.status, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_call_costs_an_invocation_and_one_that_names_no_tool_does_not() {
    let policies = "@id(\"never\") forbid (principal, action, resource);";
    let gateway = gateway().sample().policies(policies).start();
    let org = org_with_time_left(&gateway, &plan("100", "50")).await;
    let who = gateway.service(&org, ALL_SCOPES);
    let reader = gateway.service(&org, "mcps:read");
    let remaining = |answer: &Answer| {
        assert_eq!(answer.header("x-ratelimit-resource"), "invocations");
        limit_headers(answer).1
    };

    let denied = gateway.invoke(&who, "sample:create_note", note()).await;
    let unknown = gateway.invoke(&who, "sample:nothing", note()).await;
    let unreadable = gateway.post(&who, "/v1/mcps/sample:create_note/invoke", "{").await;
    let unscoped = gateway.invoke(&reader, "sample:create_note", note()).await;
    let misfit = gateway.invoke(&who, "sample:create_note", json!({})).await;

    assert_eq!((denied.status.as_u16(), remaining(&denied)), (403, 49));
    assert_eq!((unknown.status.as_u16(), remaining(&unknown)), (404, 49));
    assert_eq!((unreadable.status.as_u16(), remaining(&unreadable)), (400, 49));
    assert_eq!((unscoped.status.as_u16(), remaining(&unscoped)), (403, 49));
    assert_eq!((misfit.status.as_u16(), remaining(&misfit)), (400, 48));
    let both = misfit.header("ratelimit-policy");
    assert_eq!(both, "\"requests\";q=100;w=60, \"invocations\";q=50;w=60");
    assert!(misfit.header("ratelimit").starts_with("\"requests\";r=95;t="), "{misfit:?}");
    assert_framed(&misfit, "misfit");
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_are_those_that_were_promised_and_orgs_share_no_limit() {
    let mut gateway = gateway().start();
    let org = org_with_time_left(&gateway, &[]).await;
    let who = gateway.user(&org, "auditor", "mcps:read");
    let limit = async || gateway.get(&who, "/v1/mcps").await.header("x-ratelimit-limit").to_owned();
    assert_eq!(limit().await, "60");

    for (change, wanted) in [
        (["--plan", "pro"].as_slice(), "\"requests\";q=600;w=60, \"invocations\";q=100;w=60"),
        (&["--plan", "free"], "\"requests\";q=60;w=60, \"invocations\";q=10;w=60"),
        (&plan("7", "2"), "\"requests\";q=7;w=60, \"invocations\";q=2;w=60"),
    ] {
        let mut command = vec!["org", "set-plan", &org];
        command.extend(change);
        gateway.admin(&command);
        // The head of an unknown path costs a request like any other, so few are asked.
        let ask = || gateway.get(&who, "/v1/nothing");
        until(ask, |it| it.header("ratelimit-policy") == wanted).await;
    }

    // Orgs do not share their limits and a restart begins anew.
    let org = org_with_time_left(&gateway, &plan("1", "1")).await;
    let who = gateway.user(&org, "admin", "mcps:read");
    let other = gateway.user(&gateway.org("other", &plan("1", "1")), "admin", "mcps:read");
    assert_eq!(gateway.get(&who, "/v1/mcps").await.status, 200);
    assert_eq!(gateway.get(&who, "/v1/mcps").await.status, 429);
    assert_eq!(gateway.get(&other, "/v1/mcps").await.status, 200);

    gateway.stop();
    gateway.start();

    assert_eq!(gateway.get(&who, "/v1/mcps").await.status, 200);
}

/// Sends a request without a valid token as if from this address.
async fn stranger(gateway: &Gateway, from: &str, bearer: Option<&str>) -> Answer {
    let mut request = gateway.request(Method::GET, "/v1/mcps").header("x-forwarded-for", from);
    if let Some(bearer) = bearer {
        request = request.bearer_auth(bearer);
    }
    gateway.send(request).await
}

/// The buckets of sources begin anew with each minute: waits for one that has time left.
async fn minute_with_time_left(gateway: &Gateway) {
    while now(gateway).await.as_seconds() % 60 > 45 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_gets_sixty_refusals_a_minute_and_its_valid_tokens_pass_all_the_same() {
    let gateway = gateway().config("[server]\ntrusted_proxies = [\"127.0.0.0/8\"]").start();
    let who = gateway.user(&gateway.org("acme", &[]), "admin", "mcps:read");
    let fresh = gateway.user(&who.org, "auditor", "mcps:read");
    minute_with_time_left(&gateway).await;
    let bad = "203.0.113.7";
    assert_eq!(stranger(&gateway, bad, Some(&who.token)).await.status, 200);

    let garbage = "mcp_live_000000000000000000000000000000000000";
    let answers =
        join_all((0..100).map(|n| stranger(&gateway, bad, (n % 2 == 0).then_some(garbage)))).await;

    assert_eq!((count(&answers, 401), count(&answers, 429)), (60, 40));
    for answer in &answers {
        assert_framed(answer, "a stranger");
        assert_eq!(
            (limit_headers(answer).0, limit_headers(answer).2.as_str()),
            (60, "unauthenticated")
        );
        if answer.status == 429 {
            assert_eq!(answer.at("/error/details/resource"), "unauthenticated");
        }
    }
    assert_eq!(stranger(&gateway, bad, Some(&who.token)).await.status, 200, "a known token");
    assert_eq!(stranger(&gateway, bad, Some(&fresh.token)).await.status, 200, "a new one");
    assert_eq!(stranger(&gateway, "203.0.113.8", None).await.status, 401, "another source");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_neighbour_with_made_up_cookies_locks_out_neither_tokens_nor_sessions() {
    let gateway = gateway().config("[login]\nlinks = true").start();
    let org = gateway.org("acme", &ENOUGH);
    let admin = gateway.user(&org, "admin", ALL_SCOPES);
    let ci = gateway.service(&org, "mcps:read");
    let body = json!({"principal_id": ci.id, "scopes": "mcps:read"}).to_string();
    let mut new = Vec::new();
    for _ in 0..35 {
        let made = gateway.post(&admin, "/v1/tokens", &body).await;
        new.push(
            made.at("/data/token").as_str().unwrap_or_else(|| panic!("{}", made.text)).to_owned(),
        );
    }
    let link = gateway.admin(&["login-link", "--principal", &admin.id]);
    let (_, code) = link["url"].as_str().unwrap().split_once("code=").unwrap();
    let browser = Browser::new(&gateway);
    browser.submit("/login/link", &[("code", code)]).await.ok();
    let made_up = async |number: usize| {
        let cookie = format!("portcullis-session={number:0>43}");
        gateway.send(gateway.request(Method::GET, "/console").header("cookie", cookie)).await
    };
    let used = async |method: Method, path: &str, token: &str| {
        gateway.send(gateway.request(method, path).bearer_auth(token)).await
    };
    join_all((0..100).map(|number| made_up(200 + number))).await;
    assert_eq!(made_up(100).await.status, 429, "the source is exhausted");

    for (number, new) in new.iter().enumerate() {
        join_all((0..20).map(|more| made_up(1_000 + 20 * number + more))).await;

        let first = used(Method::GET, "/v1/mcps", new).await;
        // Whatever is remembered of the org's callers is looked up again after a revocation.
        let revoked = used(Method::DELETE, "/v1/auth/token", new).await;
        let in_use = used(Method::GET, "/v1/mcps", &admin.token).await;
        let page = browser.open("/console").await;

        let statuses = [&first, &revoked, &in_use, &page].map(|it| it.status.as_u16());
        assert_eq!(statuses, [200; 4], "{number}: {} {}", first.text, revoked.text);
    }
}
