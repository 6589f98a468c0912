//! A recorded call by its stages, and what DLP found in the places where it was.

use serde_json::Value;

use super::json::{Json, JsonBuilder};

/// A stage of a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) name: &'static str,
    /// Time that it took, with its unit; empty where the event has none.
    pub(super) took: String,
    /// Pointer of its moment; empty where the event has none.
    pub(super) at: &'static str,
    /// Pointer of a state that has a colour; empty without one.
    pub(super) state: &'static str,
    pub(super) text: String,
}

/// Stages between the arrival of a call and its outcome, with their names in records.
const MEASURED: [(&str, &str); 11] = [
    ("authenticate", "Authenticated"),
    ("limits", "Counted against the limits"),
    ("body", "Read"),
    ("validate", "Validated"),
    ("dlp_input", "Arguments scanned"),
    ("policy_input", "Decided"),
    ("connection", "Connected to the server"),
    ("intent", "Intent recorded"),
    ("upstream", "Tool called"),
    ("dlp_output", "Answer scanned"),
    ("policy_output", "Answer decided"),
];

/// The stages of a call that left a trace in its event, from its arrival to its place in the log.
pub(super) fn of(event: &Json) -> Vec<Stage> {
    let mut stages = vec![Stage { name: "Arrived", at: "/occurred_at", ..Stage::default() }];
    for (member, name) in MEASURED {
        let took = event.at(&format!("/durations/{member}")).0.as_u64().map(milliseconds);
        let told = describe(event, member);
        if took.is_some() || told.is_some() {
            let (state, text) = told.unwrap_or_default();
            stages.push(Stage { name, took: took.unwrap_or_default(), at: "", state, text });
        }
    }
    let text = format!("HTTP {}", event.text("/outcome/http_status"));
    let state = "/outcome/status";
    stages.push(Stage { name: "Answered", state, text, ..Stage::default() });
    if event.has("/sequence") {
        let text = format!("place {} of the log", event.text("/sequence"));
        stages.push(Stage { name: "Sealed", at: "/recorded_at", text, ..Stage::default() });
    }
    stages
}

/// The state and the text of a stage, if an event tells more of it than its time.
fn describe(event: &Json, member: &str) -> Option<(&'static str, String)> {
    let found = |part| {
        let texts = findings(event, part).into_iter();
        let texts = texts.map(|it| format!("{} {}", it.text("/detector"), it.text("/action")));
        let text = texts.collect::<Vec<_>>().join(", ");
        (!text.is_empty()).then_some(("", text))
    };
    match member {
        "dlp_input" => found("input"),
        "policy_input" => event.has("/governance/decision").then(|| {
            let text = event.first(&["/governance/reason", "/governance/policy"]);
            ("/governance/decision", text)
        }),
        "upstream" => event
            .has("/outcome/executed")
            .then(|| ("", format!("executed: {}", event.text("/outcome/executed")))),
        "dlp_output" => found("output"),
        _ => None,
    }
}

fn milliseconds(micros: u64) -> String {
    format!("{}.{:02} ms", micros / 1_000, micros % 1_000 / 10)
}

fn findings(event: &Json, part: &str) -> Vec<Json> {
    let mut findings = event.items("/governance/dlp_findings");
    findings.retain(|finding| finding.is("/stage", part));
    findings
}

/// The findings of an event where they were, within arguments and answer: each a title, and JSON with masks for what
/// was found and nothing else.
pub(super) fn places_of(event: &Json) -> Vec<(&'static str, String)> {
    let parts = [("In the arguments", "input"), ("In the answer", "output")].into_iter();
    let places = parts.filter_map(|(name, part)| {
        let mut shown = JsonBuilder::new();
        for finding in findings(event, part) {
            let path = finding.text("/path");
            let detector = finding.text("/detector");
            let count = finding.text("/count");
            let mask = format!("[{detector} \u{d7}{count}: {}]", finding.text("/action"));
            let earlier = shown.value.pointer(&path).and_then(Value::as_str);
            let mask = earlier.map_or_else(|| mask.clone(), |earlier| format!("{earlier} {mask}"));
            shown.put(&path, Value::String(mask));
        }
        let is_there = shown.value.as_object().is_none_or(|members| !members.is_empty());
        is_there.then(|| (name, Json(shown.value).pretty("")))
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
            "durations": {"intent": 1_250, "policy_input": 90, "upstream": 12_345, "body": 7},
            "sequence": 7,
        }))
    }

    #[test]
    fn a_call_is_told_by_the_stages_that_left_a_trace() {
        let stages = of(&event());
        let names: Vec<_> = stages.iter().map(|stage| stage.name).collect();

        let times: Vec<_> = stages.iter().map(|stage| &*stage.took).collect();

        let expected = [
            "Arrived", "Read", "Decided", "Intent recorded", "Tool called", "Answer scanned",
            "Answered", "Sealed",
        ];
        assert_eq!(names, expected);
        assert_eq!(times, ["", "0.00 ms", "0.09 ms", "1.25 ms", "12.34 ms", "", "", ""]);
        assert_eq!(stages[2].text, "readers");
        assert_eq!(stages[5].text, "email redact, iban redact, phone redact");
        let refused = Json(json!({"outcome": {"status": "not_found", "http_status": 404}}));
        let names: Vec<_> = of(&refused).iter().map(|stage| stage.name).collect();
        assert_eq!(names, ["Arrived", "Answered"]);
    }

    #[test]
    fn findings_stand_where_they_were() {
        let places = places_of(&event());

        let [("In the answer", shown)] = &places[..] else { panic!("{places:?}") };
        let shown: Value = serde_json::from_str(shown).unwrap();
        let both = "[email \u{d7}2: redact] [iban \u{d7}2: redact]";
        let expected = json!({"items": {"0": {"mail": both}}, "call": "[phone \u{d7}2: redact]"});
        assert_eq!(shown, expected);
    }
}
