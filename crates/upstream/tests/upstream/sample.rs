//! The sample server, met as a child process like any other.

use std::time::Duration;

use portcullis_core::{
    capability::Capability, clock::Timestamp, json::Document, refusal::Executed,
};
use portcullis_upstream::{CallErrorKind, Protocol, Server, ServerSettings};
use serde_json::{Value, json};

use crate::support::{call_tool, hostile, result, server, settings, structured, text};

fn sample(protocol: Protocol) -> Server {
    server(ServerSettings {
        protocol,
        max_response_bytes: 4 << 20,
        ..settings(hostile(&["sample"]))
    })
}

#[tokio::test]
async fn it_speaks_both_eras_and_lists_usable_tools() {
    for protocol in [Protocol::Auto, Protocol::Modern, Protocol::Legacy] {
        let list = sample(protocol).list().await.unwrap();

        let names: Vec<_> = list.definitions.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names.join(" "), "list_items get_customer create_note slow_echo always_fails");
        assert_eq!((list.skipped.len(), list.truncated.len()), (0, 0));
        for definition in list.definitions {
            assert_eq!(definition.input_schema["additionalProperties"], false);
            let only_reads = definition.name.as_str() != "create_note";
            assert_eq!(definition.hint("readOnlyHint"), Some(only_reads));
            Capability::new(&"sample".parse().unwrap(), definition, Timestamp::default()).unwrap();
        }
    }
}

#[tokio::test]
async fn its_answers_fit_its_output_schemas() {
    let server = sample(Protocol::Auto);
    let list = server.list().await.unwrap();
    let structured = async |name: &str, arguments: Value| {
        let answer = call_tool(&server, name, arguments).await.unwrap();
        let found = list.definitions.iter().find(|tool| tool.name.as_str() == name).unwrap();
        let mut definition = found.clone();
        definition.input_schema = definition.output_schema.take().unwrap();
        let slug = "sample".parse().unwrap();
        let schema = Capability::new(&slug, definition, Timestamp::default()).unwrap();
        let structured = structured(&answer);
        let violations = schema.violations(Document::of(&structured).root());
        assert_eq!(violations.len(), 0, "{structured}");
        structured
    };

    let items = structured("list_items", json!({"limit": 1000})).await;
    let customer = structured("get_customer", json!({"id": "cus_1001"})).await;
    let note = structured("create_note", json!({"title": "T", "text": "x"})).await;
    let echo = structured("slow_echo", json!({"seconds": 0, "text": "x"})).await;

    assert_eq!(items["items"].as_array().unwrap().len(), 1000);
    assert_eq!(customer["card_number"], "4111 1111 1111 1111");
    assert_eq!(note, json!({"id": "note-1", "title": "T"}));
    assert_eq!(echo, json!({"text": "x"}));
}

#[tokio::test]
async fn its_failures_are_errors_of_the_tool() {
    let server = sample(Protocol::Auto);

    for (name, arguments) in [
        ("always_fails", json!({})),
        ("list_items", json!({"limit": 0})),
        ("get_customer", json!({"id": "cus_9"})),
        ("get_customer", json!({})),
        ("slow_echo", json!({"seconds": 61, "text": "x"})),
    ] {
        let answer = call_tool(&server, name, arguments).await.unwrap();
        assert!(result(&answer).is_error && !text(&answer).is_empty(), "{name}");
    }
    let unknown = call_tool(&server, "nothing", json!({})).await.unwrap_err();
    assert_eq!(unknown.executed, Executed::No);
}

#[tokio::test]
async fn a_slow_call_holds_up_no_other() {
    let call_timeout = Duration::from_secs(2);
    let server = server(ServerSettings { call_timeout, ..settings(hostile(&["sample"])) });

    let (slow, quick) = tokio::join!(
        call_tool(&server, "slow_echo", json!({"seconds": 60, "text": "x"})),
        call_tool(&server, "list_items", json!({})),
    );

    assert!(matches!(slow.unwrap_err().kind, CallErrorKind::Timeout { .. }));
    assert!(quick.is_ok());
}
