//! The sample server's tools: what they are and what they do.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde_json::{Map, Value, json};

/// The tools there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    ListItems,
    GetCustomer,
    CreateNote,
    SlowEcho,
    AlwaysFails,
}

impl Tool {
    const ALL: [Self; 5] =
        [Self::ListItems, Self::GetCustomer, Self::CreateNote, Self::SlowEcho, Self::AlwaysFails];

    /// Returns true if calls of it may go on as tasks.
    pub(super) const fn may_be_task(self) -> bool {
        matches!(self, Self::SlowEcho)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::ListItems => "list_items",
            Self::GetCustomer => "get_customer",
            Self::CreateNote => "create_note",
            Self::SlowEcho => "slow_echo",
            Self::AlwaysFails => "always_fails",
        }
    }
}

pub(super) fn find(name: &str) -> Option<Tool> {
    Tool::ALL.into_iter().find(|tool| tool.name() == name)
}

/// All definitions, as `tools/list` gives them.
pub(super) fn list() -> Vec<Value> {
    Tool::ALL.into_iter().map(define).collect()
}

fn define(tool: Tool) -> Value {
    let (title, description) = words(tool);
    let read_only = tool != Tool::CreateNote;
    json!({
        "name": tool.name(),
        "title": title,
        "description": description,
        "inputSchema": input_schema(tool),
        "outputSchema": output_schema(tool),
        "annotations": {
            "readOnlyHint": read_only,
            "destructiveHint": false,
            "idempotentHint": read_only,
            "openWorldHint": false,
        },
    })
}

const fn words(tool: Tool) -> (&'static str, &'static str) {
    match tool {
        Tool::ListItems => {
            ("List items", "Lists the shop's items with their prices, in the order of their ids.")
        }
        Tool::GetCustomer => (
            "Look up a customer",
            "Gives the record of one customer: name, e-mail address and payment card. \
             There are `cus_1001`, `cus_1002` and `cus_1003`.",
        ),
        Tool::CreateNote => {
            ("Create a note", "Creates a note and gives its id. Notes are not kept anywhere.")
        }
        Tool::SlowEcho => {
            ("Echo slowly", "Waits for the given number of seconds, then gives the text back.")
        }
        Tool::AlwaysFails => (
            "Always fails",
            "Answers every call with an error of the tool, to see what that is like.",
        ),
    }
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn input_schema(tool: Tool) -> Value {
    match tool {
        Tool::ListItems => object(
            &json!({"limit": {
                "type": "integer", "minimum": 1, "maximum": 1000, "default": 10,
                "description": "How many items to list.",
            }}),
            &[],
        ),
        Tool::GetCustomer => object(
            &json!({"id": {
                "type": "string", "minLength": 1, "maxLength": 64,
                "description": "The customer's id, such as `cus_1001`.",
            }}),
            &["id"],
        ),
        Tool::CreateNote => object(
            &json!({
                "title": {
                    "type": "string", "minLength": 1, "maxLength": 200,
                    "description": "The note's title.",
                },
                "text": {"type": "string", "maxLength": 10_000, "description": "The note itself."},
            }),
            &["title", "text"],
        ),
        Tool::SlowEcho => object(
            &json!({
                "seconds": {
                    "type": "number", "minimum": 0, "maximum": 60,
                    "description": "How long to wait.",
                },
                "text": {"type": "string", "maxLength": 10_000, "description": "What to give back."},
            }),
            &["seconds", "text"],
        ),
        Tool::AlwaysFails => object(&json!({}), &[]),
    }
}

fn output_schema(tool: Tool) -> Value {
    let text = json!({"type": "string"});
    match tool {
        Tool::ListItems => {
            let item = object(
                &json!({"id": text, "name": text, "price": {"type": "number"}}),
                &["id", "name", "price"],
            );
            object(&json!({"items": {"type": "array", "items": item}}), &["items"])
        }
        Tool::GetCustomer => object(
            &json!({"id": text, "name": text, "email": text, "card_number": text, "since": text}),
            &["id", "name", "email", "card_number", "since"],
        ),
        Tool::CreateNote => object(&json!({"id": text, "title": text}), &["id", "title"]),
        Tool::SlowEcho | Tool::AlwaysFails => object(&json!({"text": text}), &["text"]),
    }
}

/// Carries out a call and gives the `CallToolResult`; wrong arguments are an error of the tool.
pub(super) async fn call(tool: Tool, arguments: &Map<String, Value>, notes: &AtomicU64) -> Value {
    let outcome = match tool {
        Tool::ListItems => list_items(arguments),
        Tool::GetCustomer => get_customer(arguments),
        Tool::CreateNote => create_note(arguments, notes),
        Tool::SlowEcho => slow_echo(arguments).await,
        Tool::AlwaysFails => Err("This tool always fails; nothing was done.".to_owned()),
    };
    match outcome {
        Ok(structured) => success(&structured),
        Err(message) => {
            json!({"content": [{"type": "text", "text": message}], "isError": true})
        }
    }
}

/// The `CallToolResult` of a call that went well.
pub(super) fn success(structured: &Value) -> Value {
    json!({
        "content": [{"type": "text", "text": structured.to_string()}],
        "structuredContent": structured,
        "isError": false,
    })
}

fn list_items(arguments: &Map<String, Value>) -> Result<Value, String> {
    const KINDS: [&str; 4] = ["Lantern", "Rope", "Compass", "Kettle"];
    const COLOURS: [&str; 5] = ["red", "green", "blue", "black", "brass"];
    let limit = match arguments.get("limit") {
        None => 10,
        Some(limit) => {
            let limit = limit.as_u64().filter(|limit| (1..=1000).contains(limit));
            limit.ok_or("`limit` must be an integer from 1 to 1000.")?
        }
    };
    let items = (1..=limit).zip(KINDS.iter().cycle().zip(COLOURS.iter().cycle()));
    let items: Vec<_> = items
        .map(|(number, (kind, colour))| {
            let name = format!("{kind}, {colour}");
            // Quarters have an exact text.
            let price = f64::from(u16::try_from(number % 400).unwrap_or(0)) * 0.25 + 4.5;
            json!({"id": format!("item-{number:04}"), "name": name, "price": price})
        })
        .collect();
    Ok(json!({ "items": items }))
}

fn get_customer(arguments: &Map<String, Value>) -> Result<Value, String> {
    customer(text(arguments, "id")?).ok_or_else(|| "There is no customer of that id.".to_owned())
}

/// The ids of all customers.
pub(super) const CUSTOMERS: [&str; 3] = ["cus_1001", "cus_1002", "cus_1003"];

/// The record of a customer.
pub(super) fn customer(id: &str) -> Option<Value> {
    let (name, email, card, since) = match id {
        "cus_1001" => ("Ada Okafor", "ada.okafor@example.com", "4111 1111 1111 1111", "2021-03-14"),
        "cus_1002" => ("Jonas Lind", "jonas.lind@example.org", "5555 5555 5555 4444", "2023-08-01"),
        "cus_1003" => ("Mei Tanaka", "mei.tanaka@example.net", "3782 822463 10005", "2025-11-30"),
        _ => return None,
    };
    Some(json!({"id": id, "name": name, "email": email, "card_number": card, "since": since}))
}

fn create_note(arguments: &Map<String, Value>, notes: &AtomicU64) -> Result<Value, String> {
    let title = text(arguments, "title")?;
    text(arguments, "text")?;
    let number = notes.fetch_add(1, Ordering::Relaxed) + 1;
    Ok(json!({"id": format!("note-{number}"), "title": title}))
}

/// The text that `slow_echo` gives back, and after how many seconds.
pub(super) fn echoed(arguments: &Map<String, Value>) -> Result<(&str, f64), String> {
    let text = text(arguments, "text")?;
    let seconds = arguments.get("seconds").and_then(Value::as_f64);
    let seconds = seconds.filter(|seconds| (0.0..=60.0).contains(seconds));
    Ok((text, seconds.ok_or("`seconds` must be a number from 0 to 60.")?))
}

async fn slow_echo(arguments: &Map<String, Value>) -> Result<Value, String> {
    let (text, seconds) = echoed(arguments)?;
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    Ok(json!({ "text": text }))
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    let text = arguments.get(name).and_then(Value::as_str);
    text.ok_or_else(|| format!("`{name}` must be a text."))
}
