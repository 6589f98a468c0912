//! Characters that a reader does not see, and how they are written for people who have to see all of a text.

use std::{borrow::Cow, fmt::Write as _};

use serde_json::{Map, Value};

/// Returns true if a reader would not see this character although a model reads it: controls except line
/// feed and tab, terminal escapes, and what Unicode lets programs ignore or turn (zero width, direction,
/// tags, fillers, selectors). The selector of emoji, U+FE0F, stays: texts are full of it.
#[must_use]
pub fn is_hidden(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_control() && letter != '\n' && letter != '\t';
    }
    matches!(letter,
        '\u{80}'..='\u{9f}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Begins a character that is written out, such as `[U+202E]`.
const OPENS: &str = "[U+";

/// The text with each hidden character written out as `[U+202E]`. A bracket that begins such a form in the
/// text itself is written as `[U+005B]`, so no two texts are written the same way.
#[must_use]
pub fn spelled(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) && !text.contains(OPENS) {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len() + 16);
    for (at, letter) in text.char_indices() {
        let opens = letter == '[' && text.get(at..).is_some_and(|rest| rest.starts_with(OPENS));
        if opens || is_hidden(letter) {
            spell(letter, &mut written);
        } else {
            written.push(letter);
        }
    }
    Cow::Owned(written)
}

/// Writes a character out as `[U+202E]`.
pub fn spell(letter: char, out: &mut String) {
    // A string takes everything.
    let _ = write!(out, "{OPENS}{:04X}]", u32::from(letter));
}

/// The value with the hidden characters of its texts and names [spelled].
#[must_use]
pub fn spelled_value(value: Value) -> Value {
    match value {
        Value::String(text) => match spelled(&text) {
            Cow::Owned(written) => Value::String(written),
            Cow::Borrowed(_) => Value::String(text),
        },
        Value::Array(items) => items.into_iter().map(spelled_value).collect(),
        Value::Object(members) => {
            let spell = |(name, member): (String, Value)| {
                (spelled(&name).into_owned(), spelled_value(member))
            };
            Value::Object(members.into_iter().map(spell).collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_nobody_sees_is_written_out() {
        for (text, written) in [
            ("Pay 10\u{e0041}\u{e007f}", "Pay 10[U+E0041][U+E007F]"),
            ("to \u{202e}98ED\u{202c}", "to [U+202E]98ED[U+202C]"),
            ("a\u{200b}b\u{feff}\u{ad}", "a[U+200B]b[U+FEFF][U+00AD]"),
            ("a\u{1b}[2Kb\r\0", "a[U+001B][2Kb[U+000D][U+0000]"),
            ("say [U+202E]", "say [U+005B]U+202E]"),
            ("[U+\u{202e}", "[U+005B]U+[U+202E]"),
            (
                "a list [1], [U], naïve\n\t日本 ❤\u{fe0f}",
                "a list [1], [U], naïve\n\t日本 ❤\u{fe0f}",
            ),
        ] {
            assert_eq!(spelled(text), written, "{text:?}");
        }
    }

    #[test]
    fn names_are_written_like_texts() {
        let value = json!({"a\u{200b}": ["\u{202e}x", 1, null], "b": {"[U+0041]": true}});

        let expected = json!({"a[U+200B]": ["[U+202E]x", 1, null], "b": {"[U+005B]U+0041]": true}});
        assert_eq!(spelled_value(value), expected);
    }

    /// The text that a reader of the form reads.
    fn read(written: &str) -> String {
        let mut text = String::new();
        let mut rest = written;
        while let Some((before, form)) = rest.split_once(OPENS) {
            let (digits, behind) = form.split_once(']').unwrap();
            text.push_str(before);
            text.push(char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap());
            rest = behind;
        }
        text + rest
    }

    proptest! {
        #[test]
        fn no_text_looks_like_another(text in r"([a\[\]U+0-9A-F]|\[U\+|\u{202e}|\u{e0041}|\u{200b}|\PC){0,12}") {
            let written = spelled(&text);

            prop_assert!(!written.contains(is_hidden));
            prop_assert_eq!(read(&written), text);
        }

        #[test]
        fn no_two_members_become_one(names in prop::collection::btree_set("(\\[U\\+|0041|\\]|\u{200b}|A){0,5}", 0..8)) {
            let members: BTreeMap<_, _> = names.iter().map(|name| (name.clone(), 1)).collect();

            let written = spelled_value(json!(members));

            prop_assert_eq!(written.as_object().unwrap().len(), names.len());
        }
    }
}
