//! Requests that are understood, and the errors that name the parts that are not.

use serde_json::json;

use super::*;

fn wrong(body: &Value) -> String {
    match Simulation::parse(body) {
        Ok(read) => panic!("{body} is understood: {read:?}"),
        Err(violation) => violation.path,
    }
}

#[test]
fn one_call_stands_for_a_list_of_it() {
    let body = json!({"tool": "a:b", "input": {"x": 1}, "policies": {"base": "empty"}});

    let read = Simulation::parse(&body).unwrap();

    assert_eq!(read.draft.base, Base::Empty);
    assert_eq!(read.baseline, None);
    assert!(matches!(&read.subject, Subject::Asks(asks) if asks[0].tool == "a:b"));
}

#[test]
fn a_replay_is_compared_with_the_set_in_force_unless_said() {
    let read = Simulation::parse(&json!({"replay": {}})).unwrap();

    assert_eq!(read.baseline, Some(Baseline::Live));
}

#[test]
fn what_is_not_understood_is_named_by_its_place() {
    for (body, place) in [
        (json!([]), ""),
        (json!({}), ""),
        (json!({"requests": [], "replay": {}}), ""),
        (json!({"tool": "a:b", "inputs": {}}), "/inputs"),
        (json!({"requests": [{"tool": "a:b", "input": 1}]}), "/requests/0/input"),
        (json!({"requests": [{"input": {}}]}), "/requests/0/tool"),
        (json!({"requests": [], "input": {}}), "/input"),
        (json!({"tool": "a:b", "principal": {"typ": "user"}}), "/principal/typ"),
        (json!({"tool": "a:b", "principal": {"type": "robot"}}), "/principal/type"),
        (json!({"tool": "a:b", "context": {"time": "now"}}), "/context/time"),
        (json!({"tool": "a:b", "baseline": "recorded"}), "/baseline"),
        (json!({"tool": "a:b", "policies": {"base": "mine"}}), "/policies/base"),
        (json!({"tool": "a:b", "policies": {"upsert": [{}]}}), "/policies/upsert/0/source"),
        (
            json!({"tool": "a:b", "policies": {"set_status": {"x/y": "on"}}}),
            "/policies/set_status/x~1y",
        ),
        (json!({"replay": {"limit": 0}}), "/replay/limit"),
        (json!({"replay": {"sample": 1.5}}), "/replay/sample"),
        (json!({"replay": {"event_ids": ["x"]}}), "/replay/event_ids"),
        (
            json!({"replay": {"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}}),
            "/replay/to",
        ),
        (json!({"tool": "a:b", "output": {}}), "/output"),
        (json!({"tool": "a:b", "agent": {"id": "x"}}), "/agent"),
        (json!({"tool": "a:b", "options": {"timeout_ms": 60_001}}), "/options/timeout_ms"),
    ] {
        assert_eq!(wrong(&body), place, "{body}");
    }
}
