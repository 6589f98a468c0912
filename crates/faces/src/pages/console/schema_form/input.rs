//! The input that the form of a tool was filled in to.

use serde_json::Value;

use super::{FormValues, InputField, Kind, Part, parts};
use crate::pages::{console::json::JsonBuilder, form::Form};

/// The input that a form was filled in to. Empty fields are left out, unless an empty text is the
/// only way to fill in a required one, and so are the fields of forms that were not chosen.
///
/// # Errors
/// A sentence about the field that is wrong.
pub(crate) fn input(schema: &Value, form: &Form) -> Result<Value, String> {
    let mut input = JsonBuilder::new();
    for part in parts(schema, FormValues::As(form)) {
        let Part::Field(field) = part else { continue };
        let sent = form.field(&field.name).unwrap_or_default();
        let has_text = field.required && field.kind == Kind::Text && !field.is_in_row();
        if (has_text || !sent.is_empty()) && is_chosen(field.path(), form) {
            input.put(field.path(), value(&field, sent)?);
        }
    }
    Ok(input.value)
}

/// Returns true if each form that the path leads through was chosen.
fn is_chosen(path: &str, form: &Form) -> bool {
    path.match_indices("~@").all(|(at, _)| {
        let (group, rest) = path.split_at(at);
        let number = rest.trim_start_matches("~@").split(['/', '~']).next();
        form.field(&format!("of:{group}")) == number
    })
}

fn value(field: &InputField, sent: &str) -> Result<Value, String> {
    let label = &field.label;
    match &field.kind {
        Kind::Text => Ok(Value::String(sent.replace("\r\n", "\n"))),
        Kind::Number => {
            let number = sent.trim().parse().map(Value::Number);
            number.map_err(|_| format!("`{label}` has to be a number."))
        }
        Kind::Boolean => Ok(Value::Bool(sent == "true")),
        Kind::Choice(_) => Ok(Value::String(sent.to_owned())),
        Kind::Lines => Ok(sent.lines().filter(|line| !line.is_empty()).collect()),
        Kind::Numbers => {
            let lines = sent.lines().map(str::trim).filter(|line| !line.is_empty());
            let numbers: Result<Value, _> =
                lines.map(|line| line.parse().map(Value::Number)).collect();
            numbers.map_err(|_| format!("`{label}` has to be numbers, one on each line."))
        }
        Kind::Json => serde_json::from_str(sent).map_err(|_| format!("`{label}` has to be JSON.")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::tests::schema, *};

    #[test]
    fn what_was_filled_in_becomes_the_input_with_its_types() {
        let form = Form::of([
            ("in:/title", ""),
            ("in:/count", "1e2"),
            ("in:/open", "false"),
            ("in:/state", "b"),
            ("in:/tags", "y\r\n\r\nz"),
            ("in:/where/a~1b", "z"),
            ("of:/target", "0"),
            ("in:/target~@0/kind", "person"),
            ("in:/target~@0/mail", "a@b.example"),
            ("in:/target~@1/number", "7"),
            ("of:/limit", "1"),
            ("in:/limit~@0", "3"),
            ("in:/limit~@1", "3"),
            ("in:/other", "not asked"),
            ("in:/sizes", " 4\r\n5"),
            ("rows:/rooms", "3"),
            ("in:/rooms/~#0/name", ""),
            ("in:/rooms/~#1/name", "hall"),
            ("rows:/rooms/~#1/doors", "2"),
            ("in:/rooms/~#1/doors/~#1/wide", "true"),
            ("rows:/rooms/~#2/doors", "1"),
            ("in:/rooms/~#2/doors/~#0/wide", "false"),
        ]);

        let expected = json!({"title": "", "open": false, "state": "b", "tags": ["y", "z"],
            "where": {"a/b": "z"}, "target": {"kind": "person", "mail": "a@b.example"}, "limit": "3",
            "sizes": [4, 5],
            "rooms": [{"name": "hall", "doors": [{"wide": true}]}, {"doors": [{"wide": false}]}]});
        let mut made = input(&schema(), &form).unwrap();
        let count = made.as_object_mut().unwrap().remove("count").unwrap();

        assert_eq!((made, count.as_f64()), (expected, Some(100.0)));
    }

    #[test]
    fn the_input_itself_may_have_several_forms() {
        let schema = json!({"oneOf": [
            {"type": "object", "properties": {"id": {"type": "string"}}},
            {"type": "object", "properties": {"name": {"type": "string"}}},
        ]});
        let form = Form::of([("of:", "1"), ("in:~@0/id", "x"), ("in:~@1/name", "y")]);

        assert_eq!(input(&schema, &form), Ok(json!({"name": "y"})));
    }

    #[test]
    fn a_field_that_is_wrong_is_named() {
        for (name, text) in [("in:/count", "many"), ("in:/parts", "["), ("in:/sizes", "1\nx")] {
            let wrong = input(&schema(), &Form::of([("in:/title", "x"), (name, text)]));

            assert!(wrong.unwrap_err().contains(name.strip_prefix("in:/").unwrap()));
        }
    }
}
