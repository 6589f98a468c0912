//! Answers of the API as templates read them.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use portcullis_core::{clock::Timestamp, hidden::spelled};
use serde_json::{Map, Value};

use crate::pages::html::{Html, Render, html};

/// Letters of an id that stand in an address as they are.
pub(super) const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'_').remove(b'.').remove(b'-').remove(b'~');

/// A label with what is known, if it is.
pub(super) fn fact(label: &str, value: &dyn Render) -> Html {
    let value = html("{}", &[value]);
    if value.is_empty() { value } else { html("<dt>{}</dt><dd>{}</dd>", &[&label, &value]) }
}

/// A value of an answer. Its texts are shown with hidden characters spelled out, for many come from
/// strangers; templates escape what stands between tags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Json(pub(super) Value);

impl Json {
    /// The value at a JSON Pointer; `null` if there is none.
    pub(super) fn at(&self, pointer: &str) -> Self {
        Self(self.0.pointer(pointer).cloned().unwrap_or_default())
    }

    /// The text, number or truth value at a pointer; empty if there is none.
    pub(super) fn text(&self, pointer: &str) -> String {
        match self.0.pointer(pointer) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => spelled(text).into_owned(),
            Some(other) => spelled(&other.to_string()).into_owned(),
        }
    }

    /// The first of these pointers that has a text.
    pub(super) fn first(&self, pointers: &[&str]) -> String {
        pointers.iter().map(|it| self.text(it)).find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// Returns true if there is something other than `null`, an empty list or an empty object.
    pub(super) fn has(&self, pointer: &str) -> bool {
        match self.0.pointer(pointer) {
            None | Some(Value::Null) => false,
            Some(Value::Array(items)) => !items.is_empty(),
            Some(Value::Object(members)) => !members.is_empty(),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => true,
        }
    }

    /// Returns true if the text at a pointer is this.
    pub(super) fn is(&self, pointer: &str, text: &str) -> bool {
        self.text(pointer) == text
    }

    /// The items of the list at a pointer.
    pub(super) fn items(&self, pointer: &str) -> Vec<Self> {
        let items = self.0.pointer(pointer).and_then(Value::as_array);
        items.into_iter().flatten().cloned().map(Self).collect()
    }

    /// The texts of the list at a pointer, with commas between.
    pub(super) fn joined(&self, pointer: &str) -> String {
        let texts: Vec<String> = self.items(pointer).iter().map(|item| item.text("")).collect();
        texts.join(", ")
    }

    /// The members of the object at a pointer.
    pub(super) fn members(&self, pointer: &str) -> Vec<(String, Self)> {
        let members = self.0.pointer(pointer).and_then(Value::as_object);
        let members = members.into_iter().flatten();
        members.map(|(name, value)| (spelled(name).into_owned(), Self(value.clone()))).collect()
    }

    /// The value at a pointer as indented JSON.
    pub(super) fn pretty(&self, pointer: &str) -> String {
        let value = self.0.pointer(pointer).unwrap_or(&Value::Null);
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        let lines: Vec<_> = text.lines().map(|line| spelled(line)).collect();
        lines.join("\n")
    }

    /// The state at a pointer, with its colour; this and what follows are empty if there is no text.
    pub(super) fn badge(&self, pointer: &str) -> Html {
        let badge = "<span class=\"badge\" data-state=\"{}\">{}</span>";
        self.wrap(pointer, |state| html(badge, &[&state, &state]))
    }

    pub(super) fn code(&self, pointer: &str) -> Html {
        self.wrap(pointer, |text| html("<code>{}</code>", &[&text]))
    }

    /// The moment at a pointer, which a script tells in the time of the reader.
    pub(super) fn time(&self, pointer: &str) -> Html {
        match self.moment(pointer) {
            none if none.is_empty() => Html::default(),
            moment => {
                let exact = self.text(pointer);
                html("<time datetime=\"{}\">{}</time>", &[&exact, &moment])
            }
        }
    }

    /// The name at a pointer as a link to the address that begins so.
    pub(super) fn link(&self, start: &str, pointer: &str) -> Html {
        self.link_of(start, pointer, &self.text(pointer))
    }

    /// The link to the address that ends with the id at a pointer.
    pub(super) fn link_of(&self, start: &str, pointer: &str, shown: &dyn Render) -> Html {
        self.wrap(pointer, |id| {
            let id = utf8_percent_encode(id, PLAIN).to_string();
            html("<a href=\"{}{}\">{}</a>", &[&start, &id, shown])
        })
    }

    fn wrap(&self, pointer: &str, around: impl FnOnce(&str) -> Html) -> Html {
        let text = self.text(pointer);
        if text.is_empty() { Html::default() } else { around(&text) }
    }

    /// The moment at a pointer, for readers: to the second, in UTC.
    pub(super) fn moment(&self, pointer: &str) -> String {
        let text = self.text(pointer);
        if Timestamp::parse_rfc3339(&text).is_none() {
            return String::new();
        }
        let (second, _) = text.split_at_checked(19).unwrap_or((&text, ""));
        second.replace('T', " ")
    }
}

/// An object that is made of values by where they stand in it.
#[derive(Debug)]
pub(super) struct JsonBuilder {
    pub(super) value: Value,
    /// Places that rows have in their lists.
    places: BTreeMap<String, usize>,
}

impl JsonBuilder {
    pub(super) fn new() -> Self {
        Self { value: Value::Object(Map::new()), places: BTreeMap::new() }
    }

    /// Puts a value at a JSON Pointer, in objects and lists that are made for it. In the pointer `~#` and a number are
    /// a row of a list, in which rows without a value have no place; `~@` and what follows it are left out.
    pub(super) fn put(&mut self, pointer: &str, value: Value) {
        let mut at = &mut self.value;
        let mut walked = String::new();
        for token in pointer.split('/').skip(1) {
            walked = format!("{walked}/{token}");
            at = if token.starts_with("~#") {
                if at.is_null() {
                    *at = Value::Array(Vec::new());
                }
                let Value::Array(items) = at else { return };
                let place = *self.places.entry(walked.clone()).or_insert(items.len());
                if place == items.len() {
                    items.push(Value::Null);
                }
                let Some(item) = items.get_mut(place) else { return };
                item
            } else {
                if at.is_null() {
                    *at = Value::Object(Map::new());
                }
                let Value::Object(members) = at else { return };
                let name = token.split("~@").next().unwrap_or_default();
                members.entry(name.replace("~1", "/").replace("~0", "~")).or_insert(Value::Null)
            };
        }
        *at = value;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_reads_texts_lists_and_moments() {
        let value = Json(json!({
            "a": {"b": "x\u{202e}y", "n": 7, "none": null},
            "list": ["p", "q"], "empty": [], "to": "up:a/<",
            "at": "2026-11-26T20:40:12.123456Z",
        }));

        assert_eq!(value.text("/a/b"), "x[U+202E]y");
        assert_eq!(value.text("/a/n"), "7");
        assert_eq!(value.text("/a/none"), "");
        assert_eq!(value.text("/no/where"), "");
        assert_eq!(value.first(&["/a/none", "/a/n"]), "7");
        assert_eq!(value.joined("/list"), "p, q");
        assert_eq!(value.moment("/at"), "2026-11-26 20:40:12");
        assert_eq!(value.moment("/a/b"), "");
        let shown =
            [value.badge("/a/n"), value.time("/at"), value.code("/a/none"), value.time("/a/b")];
        let shown = shown.map(Html::into_visible);
        let time = "<time datetime=\"2026-11-26T20:40:12.123456Z\">2026-11-26 20:40:12</time>";
        assert_eq!(shown, ["<span class=\"badge\" data-state=\"7\">7</span>", time, "", ""]);
        let link = fact("To", &value.link("/x/", "/to"));
        assert_eq!(
            link.into_visible(),
            "<dt>To</dt><dd><a href=\"/x/up%3Aa%2F%3C\">up:a/&lt;</a></dd>"
        );
        assert!(fact("To", &value.link("/x/", "/a/none")).is_empty());
        assert!(value.has("/list") && !value.has("/empty") && !value.has("/a/none"));
        assert_eq!(value.at("/a").pretty("/b"), "\"x[U+202E]y\"");
    }
}
