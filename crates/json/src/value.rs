//! Values of JSON in either representation, read alike.

use std::borrow::Cow;

use serde_json::{Value, map};

use super::canonical::{Form, written};

/// A value of JSON: in a tree of `serde_json`, or in a [`Document`](super::Document).
pub trait JsonValue<'a>: Copy {
    /// The items of an array.
    type Items: Iterator<Item = Self> + Clone;
    /// The members of an object.
    type Members: Iterator<Item = (&'a str, Self)>;

    /// The value, one level deep.
    fn kind(self) -> Kind<'a, Self>;

    /// The member of an object.
    fn get(self, name: &str) -> Option<Self>;

    /// The text, if it is one.
    #[inline]
    fn text(self) -> Option<&'a str> {
        match self.kind() {
            Kind::Text(text) => Some(text),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Array(_) | Kind::Object(_) => None,
        }
    }

    /// The text of the value, if it is known to be its canonical form.
    #[inline]
    fn known_canonical(self) -> Option<&'a str> {
        None
    }

    /// The canonical form, as [`canonical`](super::canonical()) describes it.
    fn canonical(self) -> Cow<'a, str> {
        match self.known_canonical() {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(written(self, Form::Canonical)),
        }
    }
}

/// A value, one level deep.
pub enum Kind<'a, T: JsonValue<'a>> {
    Null,
    Bool(bool),
    /// A number, by its literal.
    Number(&'a str),
    /// A text without escapes.
    Text(&'a str),
    Array(T::Items),
    Object(T::Members),
}

impl<'a> JsonValue<'a> for &'a Value {
    type Items = std::slice::Iter<'a, Value>;
    type Members = TreeMembers<'a>;

    fn kind(self) -> Kind<'a, Self> {
        match self {
            Value::Null => Kind::Null,
            Value::Bool(flag) => Kind::Bool(*flag),
            Value::Number(number) => Kind::Number(number.as_str()),
            Value::String(text) => Kind::Text(text),
            Value::Array(items) => Kind::Array(items.iter()),
            Value::Object(members) => Kind::Object(TreeMembers(members.iter())),
        }
    }

    fn get(self, name: &str) -> Option<Self> {
        Value::get(self, name)
    }
}

/// The members of an object in a tree.
pub struct TreeMembers<'a>(map::Iter<'a>);

impl<'a> Iterator for TreeMembers<'a> {
    type Item = (&'a str, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, member)| (name.as_str(), member))
    }
}
