//! Arguments and results of the tool: clean JSON, as trackers and databases answer it.

use serde_json::{Value, json};

/// An object whose JSON is at least `bytes` long, and little more.
pub(crate) fn of_size(bytes: usize) -> Value {
    let mut rows = vec![row(1)];
    let mut length = r#"{"rows":[]}"#.len() + rows.iter().map(length_of).sum::<usize>();
    while length < bytes {
        let row = row(rows.len() + 1);
        length += length_of(&row) + 1;
        rows.push(row);
    }
    json!({ "rows": rows })
}

fn length_of(value: &Value) -> usize {
    value.to_string().len()
}

fn row(number: usize) -> Value {
    json!({
        "id": 4_000 + number,
        "title": format!("Rotate the signing keys of region {number}"),
        "state": if number.is_multiple_of(3) { "closed" } else { "open" },
        "labels": ["infrastructure", "routine"],
        "comments": number % 7,
    })
}

/// The JSON Schema of [`of_size`].
pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "rows": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": { "type": "integer", "minimum": 1 },
                        "title": { "type": "string", "maxLength": 200 },
                        "state": { "type": "string", "enum": ["open", "closed"] },
                        "labels": { "type": "array", "items": { "type": "string" } },
                        "comments": { "type": "integer", "minimum": 0 },
                    },
                    "required": ["id", "title", "state"],
                    "additionalProperties": false,
                },
            },
        },
        "required": ["rows"],
        "additionalProperties": false,
    })
}
