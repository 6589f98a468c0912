//! A simulation says what the invocation of the same call says, in the same words.

mod same_ruling;

use portcullis_core::{
    clock::Timestamp,
    dlp::{Engine, Settings},
    policy::PolicyFile,
};
use serde_json::{Value, json};

use super::{Simulation, Workbench};

const PEM: &str = concat!(
    "-----BEGIN RSA ",
    "PRIVATE KEY-----\nMIIBF4k3abcdefghijklmnop0123456789F4k3\n-----END RSA ",
    "PRIVATE KEY-----"
);

/// Result of one simulated call of a tool that sends mail.
fn simulated(policies: &str, call: &Value) -> Value {
    let text = json!({ "type": "string" });
    let to = json!({ "type": "string", "pattern": "^[a-z@.]+$" });
    let tool = json!({
        "id": "mail:send",
        "input_schema": { "type": "object", "properties": { "to": to, "text": text } },
        "output_schema": { "type": "object", "properties": { "sent_to": text } },
    });
    let engine = Engine::new(&Settings::default()).unwrap();
    let bench =
        Workbench::described(Vec::new(), &json!([tool]), engine, Timestamp::default()).unwrap();
    let text = format!("@id(\"all\") permit (principal, action, resource);\n{policies}");
    let set = bench.load(vec![PolicyFile { path: "p.cedar".to_owned(), text }]).unwrap();
    let mut body = json!({ "tool": "mail:send" });
    body.as_object_mut().unwrap().extend(call.as_object().unwrap().clone());

    let report = bench.simulate(&set, &Simulation::read(&body).unwrap()).unwrap();

    json!(report.results[0])
}

#[test]
fn a_block_by_default_gives_the_reason_of_the_invocation() {
    let result = simulated("", &json!({ "input": { "text": PEM } }));

    assert_eq!((&result["policy"], &result["cause"]), (&json!("dlp-default"), &json!("dlp")));
    assert_eq!(result["reason"], "the input contained private_key");
}

#[test]
fn input_that_no_longer_fits_once_masked_is_told_with_its_places() {
    let mask = r#"@id("mask") @reason("r") @redact("input: email")
        forbid (principal, action, resource);"#;

    let result = simulated(mask, &json!({ "input": { "to": "ana@acme.com" } }));

    assert_eq!((&result["policy"], &result["cause"]), (&json!("mask"), &json!("obligation")));
    let reason = "once redacted, the input no longer fits the tool's schema at /to";
    assert_eq!(result["reason"], reason);
}

#[test]
fn an_answer_is_masked_as_the_policies_on_its_call_ask() {
    let mask = r#"@id("mask") @reason("r") @redact("output: email")
        forbid (principal, action, resource);"#;
    let output = json!({ "sent_to": "ana@acme.com" });

    let result = simulated(mask, &json!({ "phase": "response", "output": output }));

    assert_eq!((&result["decision"], &result["policy"]), (&json!("allow"), &json!("dlp-default")));
    assert_eq!(result["dlp"], json!({ "findings": ["email"], "action": "redact" }));
}

#[test]
fn supposed_findings_are_acted_upon_like_others() {
    let result = simulated("", &json!({ "dlp": { "findings": ["private_key"] } }));

    assert_eq!((&result["decision"], &result["cause"]), (&json!("deny"), &json!("dlp")));
    assert_eq!(result["reason"], "the input contained private_key");
}

#[test]
fn an_answer_to_a_call_that_would_be_denied_is_judged_as_if_the_call_had_been_made() {
    let never = r#"@id("never") @reason("r") forbid (principal, action, resource);"#;

    let result = simulated(never, &json!({ "phase": "response", "output": { "sent_to": "x" } }));

    assert_eq!((&result["decision"], &result["cause"]), (&json!("allow"), &json!("permit")));
}
