//! Members of the objects of programs, and of JSON that is not read as such: `"password": "value"`.

use std::ops::Range;

use super::given::{Form, LONGEST, Value, space, value_at};
use crate::{
    catalogue::naming,
    text::{labels, window::Window},
};

/// Space between signs, names and values.
const GAP: usize = 64;

/// `"password": "value"`.
pub(super) fn by_key(text: &Window<'_>, name: usize, at: usize) -> Option<(Form, Value)> {
    let is_json = is_json(text, name);
    let at = at + space(text, at);
    let value = value_at(text, at, &(at..at))?;
    let form = if is_json { Form::Plain } else { Form::Quoted };
    value.is_quoted.then_some((form, value))
}

/// Returns true if a text is JSON, or holds JSON where a name stands.
fn is_json(text: &Window<'_>, name: usize) -> bool {
    let begin = text.beginning();
    matches!(begin.trim_ascii_start().first(), Some(b'{' | b'['))
        || text.get(..name).is_some_and(is_in_json)
}

/// Returns true if the object that a name stands in begins a line or follows a colon, as JSON in a text
/// does and the literals of programs do not.
fn is_in_json(before: &[u8]) -> bool {
    let near = before.get(before.len().saturating_sub(LONGEST)..).unwrap_or_default();
    let Some(open) = near.iter().rposition(|byte| *byte == b'{') else { return false };
    let ahead = near.get(..open).unwrap_or_default();
    let is_space = |byte: &&u8| matches!(**byte, b' ' | b'\t');
    let spaces = ahead.iter().rev().take_while(is_space).count();
    let last = ahead.len().checked_sub(spaces + 1).and_then(|at| ahead.get(at));
    matches!(last, Some(b'\n' | b':')) && near.ends_with(b"\"")
}

/// `"name": "password", "value": "…"` and `"password", "…"`. The comma or the bracket behind the name stands at an
/// offset.
pub(super) fn by_label(text: &Window<'_>, name: &Range<usize>, at: usize) -> Option<(Form, Value)> {
    let next = value_at(text, at + 1 + gap(text, at + 1), &(at..at))?;
    if text.get(at) != Some(&b',') || !next.is_quoted {
        return None;
    }
    let rest = text.get(next.range.end..)?.iter().take(2);
    let quotes = rest.take_while(|byte| matches!(byte, b'"' | b'\'' | b'\\')).count();
    let sign = next.range.end + quotes;
    let sign = sign + gap(text, sign);
    if text.get(sign) != Some(&b':') {
        let are_alike = naming::are_alike(text.get(name.clone())?, text.get(next.range.clone())?);
        return (!are_alike).then_some((Form::Quoted, next));
    }
    let key = next.range.start;
    labels::is_value(text.get(next.range)?).then(|| by_key(text, key, sign + 1))?
}

/// Number of spaces and line ends at an offset.
fn gap(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.iter().take(GAP).take_while(|byte| byte.is_ascii_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Window<'_> {
        Window::around(text.as_bytes(), &(0..text.len()))
    }

    fn key(text: &str) -> Option<&str> {
        let name = text.find("password").unwrap();
        let at = text[name..].find(':').unwrap() + name + 1;
        by_key(&whole(text), name, at).map(|(_, value)| &text[value.range])
    }

    fn label(text: &str) -> Option<&str> {
        let name = text.find("password").unwrap();
        let end = name + "password".len();
        by_label(&whole(text), &(name..end), end + 1).map(|(_, value)| &text[value.range])
    }

    #[test]
    fn values_stand_below_and_beside_their_names() {
        assert_eq!(key(r#"{"password": "a1"}"#), Some("a1"));
        assert_eq!(label(r#"[{"name": "password", "value": "a1"}]"#), Some("a1"));
        assert_eq!(label(r#"["password", "a1"]"#), Some("a1"));
    }

    #[test]
    fn space_that_no_json_has_is_not_passed_over() {
        let spaces = " ".repeat(160);

        assert!(
            is_json(&whole(" {\"password"), 3)
                && !is_json(&whole(&format!("{spaces}[ password")), 0)
        );
        assert_eq!(label(&format!(r#"[{{"name": "password",{spaces}"value": "a1"}}]"#)), None);
    }

    #[test]
    fn other_members_are_no_values() {
        for text in [r#"{"password": {"type": "string", "min": 8}}"#, r#"{"passwords": [1, 2]}"#] {
            assert_eq!(key(text), None, "{text}");
        }
        for text in [
            r#"{"title": "a1", "name": "password"}"#,
            r#"{"name": "password", "color": "a1"}"#,
            r#"{"value": "a1", "color": "password"}"#,
        ] {
            assert_eq!(label(text), None, "{text}");
        }
    }
}
