//! A value as the validator sees it: each look at it takes steps ([`super::meter`]).
//!
//! Costs that the library's own representation has beyond the linear ones are not here: equality and
//! uniqueness go by normal forms, and integers are told by their text.

use std::{borrow::Cow, collections::HashSet};

use jsonschema::{
    JsonType,
    json::{Array, Json, JsonNumber, Node, NodeIdentity, Object},
};
use serde_json::{Number, Value};

use super::{
    length,
    meter::{spend, spend_name, spend_visit},
};
use crate::json::{self, Document, JsonValue, Kind, number};

/// The representation of values that are counted.
pub(super) struct Metered;

/// One value.
#[derive(Clone, Copy)]
pub(super) struct Instance<'a>(pub(super) json::Node<'a>);

/// Steps for each error: as long as it is in memory, it takes some hundred bytes.
const ERROR_COST: u64 = 128;

/// Stands for the value in an error.
static NOTHING: Value = Value::Null;

impl Json for Metered {
    type Node<'a> = Instance<'a>;
    type PreparedKey = String;
    type StringBuffer = Document;

    // A look-up in a large object compares names at each halving.
    const KEYS_PER_LOOKUP: usize = 2;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut Document,
        string: &str,
        f: impl FnOnce(Instance<'_>) -> T,
    ) -> T {
        *buffer = Document::of(&Value::String(string.to_owned()));
        f(Instance(buffer.root()))
    }
}

impl<'a> Instance<'a> {
    /// Takes the steps for going through the whole value once.
    pub(super) fn spend_whole(self) -> bool {
        match self.0.kind() {
            Kind::Null | Kind::Bool(_) => spend(1),
            Kind::Number(literal) => spend(number_cost(literal)),
            Kind::Text(text) => spend(1 + length(text) / 8),
            Kind::Array(mut items) => spend(1) && items.all(|it| Instance(it).spend_whole()),
            Kind::Object(mut members) => {
                let paid = |(name, it): (&str, _)| {
                    spend(1 + length(name) / 8) && Instance(it).spend_whole()
                };
                spend(1) && members.all(paid)
            }
        }
    }

    /// The text that this value shares with all values that equal it; `None` without steps for it.
    pub(super) fn normal(self) -> Option<String> {
        self.spend_whole().then(|| json::normal(self.0))
    }

    /// The text, if it is one. The reader takes the steps for that.
    pub(super) fn text(self) -> Option<&'a str> {
        if self.0.is_text() { self.0.text() } else { None }
    }
}

impl<'a> Node<'a, Metered> for Instance<'a> {
    type Object = Members<'a>;
    type Array = Items<'a>;
    type Number = Literal<'a>;

    fn as_object(&self) -> Option<Members<'a>> {
        (spend(1) && self.0.is_object()).then_some(Members(self.0))
    }

    fn as_array(&self) -> Option<Items<'a>> {
        (spend(1) && self.0.is_array()).then_some(Items(self.0))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.text()?;
        spend(1 + length(text) / 4).then_some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<Literal<'a>> {
        let literal = self.0.number()?;
        spend(number_cost(literal)).then_some(Literal(literal))
    }

    fn as_boolean(&self) -> Option<bool> {
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        self.0.is_null()
    }

    fn is_number(&self) -> bool {
        spend(1) && self.0.number().is_some()
    }

    fn is_string(&self) -> bool {
        spend(1) && self.0.is_text()
    }

    fn json_type(&self) -> JsonType {
        spend(1);
        match self.0.kind() {
            Kind::Null => JsonType::Null,
            Kind::Bool(_) => JsonType::Boolean,
            Kind::Number(_) => JsonType::Number,
            Kind::Text(_) => JsonType::String,
            Kind::Array(_) => JsonType::Array,
            Kind::Object(_) => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.text()?;
        spend(1 + length(text) / 8).then(|| text.chars().count() as u64)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        // Members that discriminate are texts; whatever else is compared is so by normal form.
        if let Value::String(other) = expected {
            return spend(1 + length(other) / 8) && self.text() == Some(other);
        }
        spend(super::bytes(expected) / 8)
            && self.normal().is_some_and(|own| own == json::normal(expected))
    }

    /// Called for each error, which bounds their number. No error tells a value, so none holds one.
    fn to_value(&self) -> Cow<'a, Value> {
        spend(ERROR_COST);
        Cow::Borrowed(&NOTHING)
    }

    /// None: a schema that leads back to itself at the same value is refused before it is compiled,
    /// and looking for one costs more the deeper the validator is.
    fn identity(&self) -> Option<NodeIdentity> {
        None
    }

    /// Lets the validator remember what it found of a part of the value.
    fn container_identity(&self) -> Option<NodeIdentity> {
        let is_container = self.0.is_object() || self.0.is_array();
        (spend(1) && is_container).then(|| NodeIdentity::new(self.0.position()))
    }
}

/// Steps for one look at a number.
fn number_cost(text: &str) -> u64 {
    1 + length(text) / 8
}

/// The members of an object.
pub(super) struct Members<'a>(json::Node<'a>);

/// Goes through members.
pub(super) struct MembersIter<'a>(Option<json::Members<'a>>);

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Instance<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, member) = self.0.as_mut()?.next()?;
        spend_name(name).then_some((name, Instance(member)))
    }
}

impl<'a> Object<'a, Metered> for Members<'a> {
    type Node = Instance<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<Instance<'a>> {
        let paid = spend_visit() && spend(length(key) / 8);
        if paid { self.0.get(key).map(Instance) } else { None }
    }

    fn members(&self) -> MembersIter<'a> {
        MembersIter(self.0.members())
    }
}

/// The items of an array.
pub(super) struct Items<'a>(json::Node<'a>);

/// Goes through items.
pub(super) struct ItemsIter<'a>(Option<json::Items<'a>>);

impl<'a> Iterator for ItemsIter<'a> {
    type Item = Instance<'a>;

    fn next(&mut self) -> Option<Instance<'a>> {
        let item = self.0.as_mut()?.next()?;
        spend_visit().then_some(Instance(item))
    }
}

impl<'a> Array<'a, Metered> for Items<'a> {
    type Node = Instance<'a>;
    type ElementsIter = ItemsIter<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> ItemsIter<'a> {
        ItemsIter(self.0.items())
    }

    fn is_unique(&self) -> bool {
        let mut seen = HashSet::with_capacity(self.0.len());
        let mut items = self.0.items().into_iter().flatten();
        items.all(|item| Instance(item).normal().is_some_and(|text| seen.insert(text)))
    }
}

pub(super) struct Literal<'a>(&'a str);

impl Literal<'_> {
    fn number(&self) -> Option<Number> {
        self.0.parse().ok()
    }
}

impl JsonNumber for Literal<'_> {
    fn as_u64(&self) -> Option<u64> {
        self.0.parse().ok()
    }

    fn as_i64(&self) -> Option<i64> {
        self.0.parse().ok()
    }

    fn as_f64(&self) -> Option<f64> {
        self.0.parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0)
    }

    fn to_number(&self) -> Cow<'_, Number> {
        Cow::Owned(self.number().unwrap_or_else(|| Number::from(0)))
    }

    fn is_integer(&self) -> bool {
        number::is_integer(self.0)
    }
}
