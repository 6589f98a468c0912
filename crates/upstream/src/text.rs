//! Making text of strangers harmless to look at.

use std::{borrow::Cow, fmt::Write as _};

pub use portcullis_core::hidden::is_hidden;
use portcullis_core::terminal::sequence_length;
use serde_json::Value;

/// The text without what a reader cannot see: terminal sequences, controls except line feed and tab,
/// zero width, bidirectional, tag and filler characters.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.contains(is_hidden) {
        Cow::Owned(visible_letters(text).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// The visible text, cut to `max_chars` characters.
#[must_use]
pub fn clamp(text: &str, max_chars: usize) -> String {
    visible_letters(text).take(max_chars).collect()
}

/// The visible text on one line, cut to `max_chars` characters: fit for a log.
#[must_use]
pub fn one_line(text: &str, max_chars: usize) -> String {
    visible_letters(text)
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(max_chars)
        .collect()
}

/// Length of the shortest secret that is looked for, in bytes: shorter ones stand in any text.
const SHORTEST: usize = 6;

/// The text without these secrets.
pub(crate) fn without<'a>(text: &str, secrets: impl Iterator<Item = &'a str>) -> String {
    let secrets = secrets.filter(|secret| secret.len() >= SHORTEST);
    secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "[REDACTED]"))
}

/// The letters that a reader sees.
fn visible_letters(text: &str) -> impl Iterator<Item = char> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            let letter = rest.chars().next()?;
            if let Some(length) = sequence_length(rest.as_bytes()) {
                at += length;
                continue;
            }
            at += letter.len_utf8();
            if !is_hidden(letter) {
                return Some(letter);
            }
        }
    })
}

/// A schema with the hidden characters of its titles and descriptions removed, and the control
/// characters of its patterns spelled; `None` when a name in it has such characters. Values that
/// instances are compared with stay as they are.
pub(crate) fn visible_schema(mut schema: Value) -> Option<Value> {
    clean(&mut schema, Names::Keywords).then_some(schema)
}

/// Meaning of the member names of an object in a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Keywords,
    Free,
}

fn clean(node: &mut Value, names: Names) -> bool {
    match node {
        Value::Object(members) => members
            .iter_mut()
            .all(|(name, member)| !name.contains(is_hidden) && clean_member(name, member, names)),
        Value::Array(items) => items.iter_mut().all(|item| clean(item, Names::Keywords)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn clean_member(name: &str, member: &mut Value, names: Names) -> bool {
    if names == Names::Free {
        return clean(member, Names::Keywords);
    }
    match (name, member) {
        ("enum" | "const" | "default" | "examples", _) => true,
        ("title" | "description" | "$comment", Value::String(text)) => {
            if let Cow::Owned(seen) = visible(text) {
                *text = seen;
            }
            true
        }
        ("pattern", Value::String(pattern)) => {
            if let Some(spelled) = spelled(pattern) {
                *pattern = spelled;
            }
            true
        }
        (
            "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions",
            member,
        ) => clean(member, Names::Free),
        (_, member) => clean(member, Names::Keywords),
    }
}

/// The pattern with its control characters as escapes, which match the same. `None` when it has
/// none, or one that is escaped already: then it stays as it is.
fn spelled(pattern: &str) -> Option<String> {
    if !pattern.contains(char::is_control) {
        return None;
    }
    let mut spelled = String::with_capacity(pattern.len() + 5);
    let mut is_escaped = false;
    for letter in pattern.chars() {
        if letter.is_control() && is_escaped {
            return None;
        }
        if letter.is_control() {
            // A string takes everything.
            let _ = write!(spelled, "\\u{:04x}", u32::from(letter));
        } else {
            spelled.push(letter);
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    Some(spelled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hidden_characters_are_removed_and_the_rest_stays() {
        let hidden = "\u{1b}[31ma\u{200b}b\u{202e}c\u{e0041}d\u{feff}e\0f\u{ad}g\u{e0100}h";

        assert_eq!(visible(hidden), "abcdefgh");
        assert_eq!(visible("see \u{1b}]8;;https://x.example\u{7}this\u{1b}]8;;\u{7}"), "see this");
        assert_eq!(visible("naïve\n\t日本 ❤\u{fe0f}"), "naïve\n\t日本 ❤\u{fe0f}");
        assert_eq!(one_line("a\nb\rc", 10), "a bc");
        assert_eq!(clamp("a\u{200b}bcd", 2), "ab");
    }

    #[test]
    fn a_schema_loses_hidden_text_but_keeps_the_values_it_compares_with() {
        let schema = json!({
            "description": "x\u{200b}y",
            "properties": {
                "description": {"const": "a\u{200b}", "title": "t\u{e0041}"},
                "default": {"description": "x\u{200b}"},
            },
        });

        let seen = visible_schema(schema).unwrap();

        assert_eq!(seen["description"], "xy");
        assert_eq!(seen["properties"]["description"]["const"], "a\u{200b}");
        assert_eq!(seen["properties"]["description"]["title"], "t");
        assert_eq!(seen["properties"]["default"]["description"], "x");
    }

    #[test]
    fn a_pattern_shows_the_control_characters_that_it_matches() {
        let seen = |pattern: &str| visible_schema(json!({"pattern": pattern})).unwrap();

        assert_eq!(seen("^[^\0-\u{1f}]\\\\\n$"), json!({"pattern": r"^[^\u0000-\u001f]\\\u000a$"}));
        assert_eq!(seen("a\\\u{1}"), json!({"pattern": "a\\\u{1}"}));
        assert_eq!(seen(r"^\d+$"), json!({"pattern": r"^\d+$"}));
    }

    #[test]
    fn a_schema_with_a_hidden_name_is_unusable() {
        assert_eq!(visible_schema(json!({"properties": {"pa\u{200b}th": {}}})), None);
    }
}
