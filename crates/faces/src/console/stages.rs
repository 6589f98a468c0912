//! A recorded call by its stages, and what DLP found in the places where it was.

use serde_json::{Map, Value};

use super::{json::Json, schema_form::put};

/// A stage of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) name: &'static str,
    /// Pointer of its moment; empty where the event has none.
    pub(super) at: &'static str,
    /// Pointer of a state that has a colour; empty without one.
    pub(super) state: &'static str,
    pub(super) text: String,
}

/// The places of findings within arguments or an answer: JSON with masks for what was found, and nothing else.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundPlaces {
    pub(super) name: &'static str,
    pub(super) json: String,
}

/// The stages of a call that left a trace in its event, from its arrival to its place in the log.
pub(super) fn of(event: &Json) -> Vec<Stage> {
    let found = |part| {
        let texts = findings(event, part).into_iter();
        let texts = texts.map(|it| format!("{} {}", it.text("/detector"), it.text("/action")));
        texts.collect::<Vec<_>>().join(", ")
    };
    let executed = format!("executed: {}", event.text("/outcome/executed"));
    let http = format!("HTTP {}", event.text("/outcome/http_status"));
    let place = format!("place {} of the log", event.text("/sequence"));
    let reason = event.first(&["/governance/reason", "/governance/policy"]);
    let (arguments, answer) = (found("input"), found("output"));
    let stage = |name, at, state, text| Stage { name, at, state, text };
    [
        (true, stage("Arrived", "/occurred_at", "", String::new())),
        (event.has("/governance/decision"), stage("Decided", "", "/governance/decision", reason)),
        (!arguments.is_empty(), stage("Arguments scanned", "", "", arguments)),
        (event.has("/outcome/executed"), stage("Tool called", "", "", executed)),
        (!answer.is_empty(), stage("Answer scanned", "", "", answer)),
        (true, stage("Answered", "", "/outcome/status", http)),
        (event.has("/sequence"), stage("Sealed", "/recorded_at", "", place)),
    ]
    .into_iter()
    .filter_map(|(is_there, stage)| is_there.then_some(stage))
    .collect()
}

fn findings(event: &Json, part: &str) -> Vec<Json> {
    let mut findings = event.items("/governance/dlp_findings");
    findings.retain(|finding| finding.is("/stage", part));
    findings
}

/// The findings of an event where they were.
pub(super) fn places_of(event: &Json) -> Vec<FoundPlaces> {
    let parts = [("In the arguments", "input"), ("In the answer", "output")].into_iter();
    let places = parts.filter_map(|(name, part)| {
        let mut shown = Value::Object(Map::new());
        for finding in findings(event, part) {
            let path = finding.text("/path");
            let (detector, count) = (finding.text("/detector"), finding.text("/count"));
            let mask = format!("[{detector} \u{d7}{count}: {}]", finding.text("/action"));
            let earlier = shown.pointer(&path).and_then(Value::as_str);
            let mask = earlier.map_or_else(|| mask.clone(), |earlier| format!("{earlier} {mask}"));
            put(&mut shown, &path, Value::String(mask));
        }
        let is_there = shown.as_object().is_none_or(|members| !members.is_empty());
        is_there.then(|| FoundPlaces { name, json: Json(shown).pretty("") })
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event() -> Json {
        let finding = |stage: &str, detector: &str, path: &str| json!({"stage": stage, "detector": detector, "path": path, "count": 2, "action": "redact"});
        Json(json!({
            "governance": {"decision": "allow", "policy": "readers", "dlp_findings": [
                finding("output", "email", "/items/0/mail"),
                finding("output", "iban", "/items/0/mail"),
                finding("output", "phone", "/call"),
            ]},
            "outcome": {"status": "success", "http_status": 200, "executed": "yes"},
            "sequence": 7,
        }))
    }

    #[test]
    fn a_call_is_told_by_the_stages_that_left_a_trace() {
        let stages = of(&event());
        let names: Vec<_> = stages.iter().map(|stage| stage.name).collect();

        let expected =
            ["Arrived", "Decided", "Tool called", "Answer scanned", "Answered", "Sealed"];
        assert_eq!(names, expected);
        assert_eq!(stages[1].text, "readers");
        assert_eq!(stages[3].text, "email redact, iban redact, phone redact");
        let refused = Json(json!({"outcome": {"status": "not_found", "http_status": 404}}));
        let names: Vec<_> = of(&refused).iter().map(|stage| stage.name).collect();
        assert_eq!(names, ["Arrived", "Answered"]);
    }

    #[test]
    fn findings_stand_where_they_were() {
        let places = places_of(&event());

        assert_eq!(places.len(), 1);
        assert_eq!(places[0].name, "In the answer");
        let shown: Value = serde_json::from_str(&places[0].json).unwrap();
        let both = "[email \u{d7}2: redact] [iban \u{d7}2: redact]";
        let expected = json!({"items": {"0": {"mail": both}}, "call": "[phone \u{d7}2: redact]"});
        assert_eq!(shown, expected);
    }
}
