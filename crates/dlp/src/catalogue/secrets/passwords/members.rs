//! Members of JSON that a text holds, and of the objects of programs: `"password": "value"`.

use std::ops::Range;

use super::given::{Form, LONGEST, Value, space, value_at};
use crate::{
    catalogue::naming,
    text::{labels, window::Window},
};

/// Bytes of an object below a name, and of the beginning of a text, that are looked at.
const NEAR: usize = 160;

/// Space between signs, names and values.
const GAP: usize = 64;

/// `"password": "value"`, and in JSON `"password": {"type": "string", "value": "…"}` and
/// `"passwords": ["…", "…"]`.
pub(super) fn by_key(text: &Window<'_>, name: usize, at: usize) -> Option<(Form, Value)> {
    let is_json = is_json(text, name);
    let at = at + space(text, at);
    let value = match text.get(at)? {
        b'{' if is_json => below(text, at + 1)?,
        b'[' if is_json => items(text, at + 1)?,
        _ => value_at(text, at, &(at..at))?,
    };
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

/// The text of the member of an object that says only that it is the value.
fn below(text: &[u8], at: usize) -> Option<Value> {
    let object = text.get(at..text.len().min(at + NEAR))?;
    let object = object.split(|byte| matches!(byte, b'{' | b'}')).next()?;
    let colons = object.iter().enumerate().filter(|(_, byte)| **byte == b':');
    colons.map(|(colon, _)| at + colon).find_map(|colon| {
        let (key, _) = quoted_before(text, colon)?;
        labels::is_value(text.get(key)?)
            .then(|| value_at(text, colon + 1 + gap(text, colon + 1), &(at..at)))?
    })
}

/// The texts of a list, as one.
fn items(text: &[u8], at: usize) -> Option<Value> {
    let first = value_at(text, at + gap(text, at), &(at..at)).filter(|it| it.is_quoted)?;
    let mut range = first.range;
    loop {
        let next = range.end + 1 + gap(text, range.end + 1);
        if text.get(next) != Some(&b',') || range.len() > LONGEST {
            return Some(Value { range, is_quoted: true });
        }
        let item = value_at(text, next + 1 + gap(text, next + 1), &(at..at));
        match item.filter(|item| item.is_quoted) {
            Some(item) => range.end = item.range.end,
            None => return Some(Value { range, is_quoted: true }),
        }
    }
}

/// `"name": "password", "value": "…"`, `"value": "…", "name": "password"`, and `"password", "…"`. The
/// comma or the bracket behind the name stands at an offset.
pub(super) fn by_label(text: &Window<'_>, name: &Range<usize>, at: usize) -> Option<(Form, Value)> {
    if let Some(value) = before_label(text, name.start) {
        return is_json(text, name.start).then_some((Form::Plain, value));
    }
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

/// The value of the member before the one whose text, a name, begins at an offset.
fn before_label(text: &[u8], name: usize) -> Option<Value> {
    let open = name.checked_sub(1).filter(|open| text.get(*open) == Some(&b'"'))?;
    let sign = sign_before(text, open, b':')?;
    let (key, start) = quoted_before(text, sign)?;
    labels::rank(text.get(key)?)?;
    let comma = sign_before(text, start, b',')?;
    let (value, start) = quoted_before(text, comma)?;
    let sign = sign_before(text, start, b':')?;
    let (key, _) = quoted_before(text, sign)?;
    labels::is_value(text.get(key)?).then_some(Value { range: value, is_quoted: true })
}

/// Offset of a sign before another, with nothing but space between them.
fn sign_before(text: &[u8], at: usize, sign: u8) -> Option<usize> {
    let before = text.get(..at - gap_before(text, at))?;
    (before.last() == Some(&sign)).then(|| before.len() - 1)
}

/// The text in quotes that ends before an offset, and where its first quote stands.
fn quoted_before(text: &[u8], at: usize) -> Option<(Range<usize>, usize)> {
    let before = text.get(..at - gap_before(text, at))?.strip_suffix(b"\"")?;
    let near = before.get(before.len().saturating_sub(LONGEST)..)?;
    let open = before.len() - near.len() + near.iter().rposition(|byte| *byte == b'"')?;
    Some((open + 1..before.len(), open))
}

/// Number of spaces and line ends before an offset.
fn gap_before(text: &[u8], at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    before.iter().rev().take(GAP).take_while(|byte| byte.is_ascii_whitespace()).count()
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
        assert_eq!(key(r#"{"password": {"type": "string", "value": "a1"}}"#), Some("a1"));
        assert_eq!(key(r#"{"passwords": [ "a1", "b2" ], "c": "d"}"#), Some(r#"a1", "b2"#));
        assert_eq!(label(r#"[{"name": "password", "value": "a1"}]"#), Some("a1"));
        assert_eq!(label(r#"[{"value": "a1", "name": "password"}]"#), Some("a1"));
        assert_eq!(label(r#"["password", "a1"]"#), Some("a1"));
    }

    #[test]
    fn space_that_no_json_has_is_not_passed_over() {
        let spaces = " ".repeat(NEAR);

        assert!(
            is_json(&whole(" {\"password"), 3)
                && !is_json(&whole(&format!("{spaces}[ password")), 0)
        );
        assert_eq!(label(&format!(r#"[{{"value": "a1",{spaces}"name": "password"}}]"#)), None);
    }

    #[test]
    fn other_members_are_no_values() {
        for text in [
            r#"{"password": {"type": "string", "min": 8}}"#,
            r#"{"passwords": [1, 2]}"#,
            r#"{"password": {"value": 7}}"#,
        ] {
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
