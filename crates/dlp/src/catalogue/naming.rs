//! Assignments in text: the name before a value, and the sign between them.

use crate::{catalogue::detector::Candidate, text::labels};

/// The name that a value is given: the word before the sign, or the key above. `None` when the
/// value is no value, but part of something longer.
pub(crate) fn name<'a>(candidate: &Candidate<'a>) -> Option<&'a [u8]> {
    let after = candidate.text.bytes().get(candidate.range.end..)?;
    let goes_on = match after {
        [b'-' | b'+' | b'/' | b'=' | b'(' | b'_', ..] => true,
        [b'.' | b':' | b'@' | b'%', next, ..] => next.is_ascii_alphanumeric(),
        _ => false,
    };
    if goes_on {
        return None;
    }
    let before = candidate.text.bytes().get(..candidate.range.start)?;
    if [b"${".as_slice(), b"$(", b"{{", b"<%"].iter().any(|opens| before.ends_with(opens)) {
        return None;
    }
    let is_quote =
        |byte: &u8| matches!(byte, b'"' | b'\'' | b'`' | b'\\') || byte.is_ascii_whitespace();
    let rest = trimmed(before, is_quote);
    let is_quoted = rest.len() < before.len();
    if candidate.head.is_some() && !matches!(rest, [.., b'=' | b':']) {
        return candidate.head;
    }
    match rest {
        [] => candidate.key.or(Some(b"")),
        [.., b','] => Some(declared(rest)).filter(|name| !are_alike(name, candidate.matched())),
        [.., b'=' | b':' | b'>' | b'(' | b'[' | b'{'] => Some(declared(rest)),
        // `token abc`: a word and nothing but a space.
        [.., last] if is_quoted && is_word(*last) => Some(word(rest)),
        _ => None,
    }
}

/// Returns true if two texts side by side begin with the same word and a joint, as names in a list do.
pub(crate) fn are_alike(name: &[u8], next: &[u8]) -> bool {
    const SHORTEST: usize = 3;
    let same = name.iter().zip(next).take_while(|(one, other)| one == other).count();
    let joint = name.iter().take(same).rposition(|byte| matches!(byte, b'_' | b'-' | b'.'));
    joint.is_some_and(|at| at >= SHORTEST)
}

/// Name of the member or variable whose value begins there, in JSON or code that is carried as text.
pub(crate) fn member<'a>(candidate: &Candidate<'a>) -> Option<&'a [u8]> {
    const LONGEST: usize = 64;
    let before = candidate.text.bytes().get(..candidate.range.start)?;
    let before = before.get(before.len().saturating_sub(LONGEST)..)?;
    let is_opening = |byte: &u8| matches!(byte, b' ' | b'+' | b'(' | b'"' | b'\'' | b'\\');
    let (sign, named) = trimmed(before, is_opening).split_last()?;
    let is_quoted = matches!(named, [.., b'"' | b'\'']);
    (*sign == b'=' || *sign == b':' && is_quoted).then_some(())?;
    Some(word(named)).filter(|name| !name.is_empty())
}

/// Types that programs write between a name and its value: `var token string = "…"`,
/// `token: &'static str = "…"`, `val token: String = "…"`.
const TYPES: &[&[u8]] = &[
    b"string", b"str", b"char", b"const", b"static", b"text", b"varchar", b"wstring", b"nstring",
    b"secretstr", b"object", b"any", b"final", b"default", b"type",
];

/// The last word of a text that is no type and says more than `value`, or the last word. In
/// `"name": "TOKEN", "value": …` that is the label.
fn declared(text: &[u8]) -> &[u8] {
    let last = word(text);
    let mut found = last;
    let mut rest = text;
    for _ in 0..4 {
        let is_type = TYPES.iter().any(|known| found.eq_ignore_ascii_case(known));
        if !is_type && !labels::is_value(found) {
            return if found.is_empty() { last } else { found };
        }
        rest = before_word(rest);
        found = word(rest);
    }
    last
}

/// The last word of a text, without the signs after it.
fn word(text: &[u8]) -> &[u8] {
    let text = trimmed(text, |byte| is_sign(*byte));
    let length = text.iter().rev().take(64).take_while(|byte| is_word(**byte)).count();
    text.get(text.len() - length..).unwrap_or_default()
}

/// Returns the text before the last word.
fn before_word(text: &[u8]) -> &[u8] {
    let text = trimmed(text, |byte| is_sign(*byte));
    let length = text.iter().rev().take(64).take_while(|byte| is_word(**byte)).count();
    text.get(..text.len() - length).unwrap_or_default()
}

/// Signs between a name and its value; also `.=` and `-=`.
fn is_sign(byte: u8) -> bool {
    !byte.is_ascii_alphanumeric() && byte != b'_'
}

fn trimmed(text: &[u8], is_spare: impl Fn(&u8) -> bool) -> &[u8] {
    let spare = text.iter().rev().take(64).take_while(|byte| is_spare(byte)).count();
    text.get(..text.len() - spare).unwrap_or_default()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::text::window::Window;

    fn name_of(text: &str) -> Option<String> {
        let start = text.find("V4LUE").unwrap();
        let range = start..start + 5;
        let text = Window::around(text.as_bytes(), &range);
        let steps = &Cell::new(0);
        let candidate = Candidate { text, range, key: Some(b"key"), head: None, steps };
        name(&candidate).map(|name| String::from_utf8(name.to_vec()).unwrap())
    }

    #[test]
    fn the_name_before_a_value_is_read() {
        for (text, expected) in [
            ("api_key = \"V4LUE\"", Some("api_key")),
            ("api-key: 'V4LUE',", Some("api-key")),
            ("\"apiKey\" => \"V4LUE\"", Some("apiKey")),
            ("set(\"API_KEY\", \"V4LUE\")", Some("API_KEY")),
            ("V4LUE", Some("key")),
            ("token V4LUE", Some("token")),
            ("$apiToken .= \"V4LUE\"", Some("apiToken")),
            ("var apiToken string = \"V4LUE\"", Some("apiToken")),
            ("api_token: &'static str = \"V4LUE\"", Some("api_token")),
            ("{\"api_token\": {\"default\": \"V4LUE\"}}", Some("api_token")),
            ("{\"name\": \"API_TOKEN\", \"value\": \"V4LUE\"}", Some("API_TOKEN")),
            ("- name: API_TOKEN\n  value: V4LUE", Some("API_TOKEN")),
            ("string = \"V4LUE\"", Some("string")),
            ("token-V4LUE", None),
            ("a/V4LUE", None),
            ("token=V4LUE-x", None),
        ] {
            assert_eq!(name_of(text).as_deref(), expected, "{text}");
        }
    }
}
