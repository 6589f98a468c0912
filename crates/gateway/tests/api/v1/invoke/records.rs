//! Proofs that an event gives to its holder, checked with nothing of Portcullis.

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::prelude::*;

/// RFC 8785 for values without floats whose names are ASCII.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            let members =
                names.iter().map(|name| format!("{}:{}", json!(name), canonical(&members[*name])));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// The commitment to a value with the salt that an event gives for it.
pub(crate) fn commitment(event: &Value, name: &str, value: &Value) -> String {
    let salt = event["integrity"]["salts"][name].as_str().expect("a salt");
    let salt = STANDARD.decode(salt).expect("base64");
    assert_eq!(salt.len(), 32);
    let hash = digest(&SHA256, &[&salt, canonical(value).as_bytes()].concat());
    let digits = hash.as_ref().iter().map(|byte| format!("{byte:02x}"));
    format!("sha256:{}", digits.collect::<String>())
}

pub(crate) fn leaf_hash(event: &Value) -> String {
    let mut record = event.as_object().expect("a record").clone();
    record.remove("detached");
    record.remove("integrity");
    let leaf = [&[0], canonical(&Value::Object(record)).as_bytes()].concat();
    STANDARD.encode(digest(&SHA256, &leaf))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_proves_what_went_in_and_out() {
    // An event proves what went in and what came out.
    let scene = scene(vec![tool("echo", Script::Echo), tool("errs", Script::Rpc(-32603))]).await;
    let input =
        json!({"limit": 10, "names": ["é", "\u{2028}\"\\"], "deep": {"b": null, "a": true}});

    let answered = scene.invoke("echo", input.clone()).await;
    let erred = scene.invoke("errs", input.clone()).await;

    let event = scene.check(&answered, SUCCESS).await;
    for (name, value) in [("input", &input), ("output", answered.at("/result"))] {
        assert_eq!(event["commitments"][name], commitment(&event, name, value), "{name}");
        assert!(event["detached"][name].is_null(), "only the commitment is kept");
    }
    for name in ["actor_name", "source_ip"] {
        let kept = &event["detached"][name];
        assert!(kept.is_string(), "{name}: {event}");
        assert_eq!(event["commitments"][name], commitment(&event, name, kept), "{name}");
    }
    let salts = event["integrity"]["salts"].as_object().expect("salts");
    assert_eq!(event["commitments"].as_object().map(serde_json::Map::len), Some(salts.len()));
    let log = format!("localhost/audit/{}", scene.who.org);
    has!(event, "/integrity/sealed": true, "/integrity/log": log);
    let mut hashed = event.clone();
    for name in ["detached", "integrity"] {
        hashed.as_object_mut().expect("a record").remove(name);
    }
    assert!(!hashed.to_string().contains("127.0.0.1"), "the hashed part holds no address");
    let other = json!({"limit": 11});
    assert_ne!(event["commitments"]["input"], commitment(&event, "input", &other));
    assert_eq!(event["integrity"]["leaf_hash"], leaf_hash(&event));
    let event = scene.check(&erred, FAILED).await;
    assert_eq!(event["commitments"]["input"], commitment(&event, "input", &input));
    assert!(event["commitments"]["output"].is_null(), "nothing came out: {event}");
    assert_eq!(event["integrity"]["leaf_hash"], leaf_hash(&event));
}
