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
async fn an_event_proves_what_went_in_and_out_and_says_who_called_what_and_when() {
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
    let other = json!({"limit": 11});
    assert_ne!(event["commitments"]["input"], commitment(&event, "input", &other));
    assert_eq!(event["integrity"]["leaf_hash"], leaf_hash(&event));
    let event = scene.check(&erred, FAILED).await;
    assert_eq!(event["commitments"]["input"], commitment(&event, "input", &input));
    assert!(event["commitments"]["output"].is_null(), "nothing came out: {event}");
    assert_eq!(event["integrity"]["leaf_hash"], leaf_hash(&event));

    // An event says who called what and when.
    let scene = scene.anew();
    let catalogue = scene.gateway.get(&scene.who, "/v1/mcps/up:echo").await;

    let answer = scene.invoke("echo", json!({})).await;

    let event = scene.check(&answer, SUCCESS).await;
    has!(event, "/type": "mcp.invocation", "/schema": 1, "/org_id": scene.who.org.as_str(),
        "/actor/type": "service", "/actor/id": scene.who.id.as_str(),
        "/actor/token_id": scene.who.token_id.as_str());
    assert!(event["actor"]["via"].is_null());
    has!(event, "/target/type": "mcp", "/target/id": "up:echo");
    assert_eq!(&event["target"]["version"], catalogue.at("/data/version"));
    assert_eq!(&event["target"]["provider_id"], catalogue.at("/data/provider_id"));
    has!(event, "/target/credential": "org", "/detached/source_ip": "127.0.0.1");
    let text = |name: &str| event[name].as_str().expect("a time");
    assert!(text("occurred_at") <= text("recorded_at"), "{event}");
    let place = event["sequence"].as_u64().expect("a place in the log");
    let next = scene.check(&scene.invoke("echo", json!({})).await, SUCCESS).await;
    assert!(next["sequence"].as_u64().is_some_and(|next| next > place), "{next}");
}
