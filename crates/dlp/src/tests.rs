//! Guarantees of the engine, tried on whole values.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::*;

mod cases;
mod clean;
mod configured;
mod embedded;
mod examples;
mod fuzz;
mod growth;
mod injections;
mod joined;
mod named;
mod numbers;
mod places;
mod readings;
mod redaction;
mod rules;
mod spellings;
mod words;

/// The engine with the default settings, made once: that takes longer than most scans.
fn engine() -> &'static Engine {
    static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(&Settings::default()).unwrap());
    &ENGINE
}

/// As many as `PROPTEST_CASES` says.
fn cases(usual: u32) -> proptest::prelude::ProptestConfig {
    let said = std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok());
    proptest::prelude::ProptestConfig::with_cases(said.unwrap_or(usual))
}

fn key() -> FingerprintKey {
    FingerprintKey::new([7; 32])
}

fn scan(value: &Value) -> Findings {
    engine().scan(value, &key()).unwrap()
}

/// `detector pointer` of each finding, with `(key)` where the key matched.
fn places(value: &Value) -> Vec<String> {
    let name = |finding: &Finding| {
        let key = if finding.is_in_key() { " (key)" } else { "" };
        format!("{} {}{key}", finding.detector(), finding.pointer())
    };
    scan(value).iter().map(name).collect()
}

/// Fails if there is any of those that are wrong, and shows some of them.
#[track_caller]
fn assert_none<T: std::fmt::Debug>(wrong: &[T], how: &str) {
    let shown = &wrong[..wrong.len().min(20)];
    assert!(wrong.is_empty(), "{} {how}, such as {shown:#?}", wrong.len());
}

/// Every byte in hex, each after the mark.
fn spelled(text: &str, mark: &str) -> String {
    text.bytes().fold(String::new(), |spelled, byte| format!("{spelled}{mark}{byte:02x}"))
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let engine = engine();
    let secret = json!(concat!("glpat-", "F4k3abcdefghijklmnop"));
    let card = json!("4111 1111 1111 1111");
    let email = json!("ada@example.org");

    let actions = |value: &Value| {
        let findings = engine.scan(value, &key()).unwrap();
        let finding = findings.iter().next().unwrap().clone();
        [Direction::Input, Direction::Output].map(|to| engine.default_action(&finding, to))
    };

    assert_eq!(actions(&secret), [Action::Block, Action::Redact]);
    assert_eq!(actions(&card), [Action::Flag, Action::Redact]);
    assert_eq!(actions(&email), [Action::Flag, Action::Flag]);
}

#[test]
fn settings_override_a_category_and_a_detector() {
    let settings: Settings = serde_json::from_value(json!({
        "actions": { "output": { "contact": "redact" } },
        "detectors": {
            "email": { "input": "block" },
            "iban": { "enabled": false },
            "credit_card": { "min_likelihood": "very_likely" }
        }
    }))
    .unwrap();
    let engine = Engine::new(&settings).unwrap();

    let findings = engine
        .scan(&json!(["ada@example.org", "DE89370400440532013000", "4111 1111 1111 1111"]), &key())
        .unwrap();

    assert_eq!(findings.detectors(), ["email"]);
    let email = findings.iter().next().unwrap();
    assert_eq!(engine.default_action(email, Direction::Input), Action::Block);
    assert_eq!(engine.default_action(email, Direction::Output), Action::Redact);
    assert!(engine.detectors().all(|detector| detector.name() != "iban"));
}

#[test]
fn wrong_settings_are_all_named_at_once() {
    let settings: Settings = serde_json::from_value(json!({
        "detectors": { "emial": {}, "ibam": {} },
        "limits": { "max_nodes": 0 }
    }))
    .unwrap();

    let error = Engine::new(&settings).unwrap_err();

    assert_eq!(error.problems().len(), 3);
    assert!(error.to_string().contains("there is no detector `emial` (did you mean `email`?)"));
    assert!(serde_json::from_value::<Settings>(json!({ "detector": {} })).is_err());
    assert!(
        serde_json::from_value::<Settings>(json!({ "actions": { "input": { "x": "flag" } } }))
            .is_err()
    );
}

#[test]
fn findings_add_up() {
    let findings = scan(&json!({
        "a": "ada@example.org, bob@example.org and ada@example.org",
        "b": { "card": "4111 1111 1111 1111" }
    }));

    assert_eq!(findings.detectors(), ["credit_card", "email"]);
    assert_eq!(findings.count(), 4);
    assert_eq!(findings.max_severity(), 3);
    let email = findings.iter().next().unwrap();
    assert_eq!((email.count(), email.fingerprints().len()), (3, 2));
    assert_eq!(scan(&json!("clean")).max_severity(), 0);
}

#[test]
fn fingerprints_correlate_equal_values_under_one_key_only() {
    let engine = engine();
    let print = |value: Value, bytes: u8| {
        let findings = engine.scan(&value, &FingerprintKey::new([bytes; 32])).unwrap();
        findings.iter().next().unwrap().fingerprints()[0]
    };

    let here = print(json!("4111 1111 1111 1111"), 1);

    assert_eq!(here, print(json!({ "card": 4_111_111_111_111_111_u64 }), 1));
    assert_ne!(here, print(json!("4111 1111 1111 1111"), 2));
    assert_ne!(here, print(json!("5555 5555 5555 4444"), 1));
}

#[test]
fn nothing_that_is_shown_holds_a_match() {
    let findings = scan(&json!({ "ada@example.org": { "card": ["4111 1111 1111 1111"] } }));

    let shown = format!("{findings:?} {:?}", key());

    assert_eq!(findings.count(), 2);
    assert!(!shown.contains("ada@") && !shown.contains("4111"), "{shown}");
    assert!(findings.iter().all(|finding| !finding.pointer().contains("ada")));
    assert!(shown.contains("/[REDACTED:email]/card/0"));
}
