//! `GET /v1/audit/counts`, `GET /v1/audit/tool-counts`: calls over time.

use crate::{audit_log::invoke, prelude::*};

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_counted_by_minute_hour_and_day_for_those_who_may_read_the_log() {
    let (gateway, who) = serve(gateway().sample());
    let auditor = gateway.user(&who.org, "auditor", "audit:read");
    for _ in 0..3 {
        invoke(&gateway, &who).await;
    }
    gateway.invoke(&who, "sample:create_note", json!({"title": 7})).await;

    for (step, steps) in [("minute", 60), ("hour", 48), ("day", 30)] {
        let path = format!("/v1/audit/counts?step={step}");
        let total = |answer: &Answer, member: &str| -> u64 {
            let steps = answer.json["data"]["steps"].as_array().unwrap();
            steps.iter().map(|step| step[member].as_u64().unwrap()).sum()
        };
        let answer = until(|| gateway.get(&auditor, &path), |it| total(it, "calls") == 4).await;

        assert_enveloped(&answer, &path);
        assert_framed(&answer, &path);
        let counted = ["allowed", "undecided", "denied"].map(|member| total(&answer, member));
        assert_eq!(counted, [3, 1, 0], "{answer:?}");
        let data = &answer.json["data"];
        assert_eq!(data["step"], step);
        assert_eq!(data["steps"].as_array().unwrap().len(), steps);
        let last = data["steps"].as_array().unwrap().iter().rev();
        let timed = last.filter(|step| step["allowed"] != 0).all(|step| step["p99_ms"].is_number());
        assert!(timed, "{answer:?}");
    }
    let path = "/v1/audit/tool-counts?tools=sample:list_items,sample:create_note";
    let answer = gateway.get(&auditor, path).await;
    assert_enveloped(&answer, path);
    let calls = |nth: usize| {
        let calls = answer.json["data"]["items"][nth]["calls"].as_array().unwrap();
        (calls.len(), calls.iter().map(|it| it.as_u64().unwrap()).sum::<u64>())
    };
    assert_eq!((calls(0), calls(1)), ((24, 3), (24, 0)), "{answer:?}");
    for wrong in ["", "?tools=", &format!("?tools={}", "a,".repeat(201)), "?tools=a&step=hour"] {
        has!(gateway.get(&auditor, &format!("/v1/audit/tool-counts{wrong}")).await, 400);
    }
    let reader = gateway.service(&who.org, "mcps:read");
    assert_eq!(gateway.get(&reader, "/v1/audit/counts").await.code(), "insufficient_scope");
    for wrong in [
        "step=week",
        "from=2020-01-01T00:00:00Z",
        "step=day&from=2020-01-01T00:00:00Z",
        "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
        "by=tool",
    ] {
        has!("{wrong}"; gateway.get(&auditor, &format!("/v1/audit/counts?{wrong}")).await, 400);
    }
}
