//! A value as the validator sees it: each look at it takes steps ([`super::meter`]).
//!
//! Costs that the library's own representation has beyond the linear ones are not here: equality and
//! uniqueness go by normal forms, and integers are told by their text.

use std::{borrow::Cow, collections::HashSet};

use jsonschema::{
    JsonType,
    json::{Array, Json, JsonNumber, Node, NodeIdentity, Object},
};
use serde_json::{Map, Number, Value, map};

use super::{
    length,
    meter::{spend, spend_name, spend_visit},
};
use crate::json::{self, number};

/// The representation of values that are counted.
pub(super) struct Metered;

/// One value.
#[derive(Clone, Copy)]
pub(super) struct Instance<'a>(pub(super) &'a Value);

/// Steps for each error: as long as it is in memory, it takes some hundred bytes.
const ERROR_COST: u64 = 128;

/// Stands for any value once no steps are left.
static NOTHING: Value = Value::Null;

impl Json for Metered {
    type Node<'a> = Instance<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    // A look-up in the map of an object compares names at each of its levels.
    const KEYS_PER_LOOKUP: usize = 2;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut Value,
        string: &str,
        f: impl FnOnce(Instance<'_>) -> T,
    ) -> T {
        *buffer = Value::String(string.to_owned());
        f(Instance(buffer))
    }
}

impl<'a> Instance<'a> {
    /// Takes the steps for going through the whole value once.
    pub(super) fn spend_whole(self) -> bool {
        match self.0 {
            Value::Null | Value::Bool(_) => spend(1),
            Value::Number(literal) => spend(number_cost(literal.as_str())),
            Value::String(text) => spend(1 + length(text) / 8),
            Value::Array(items) => spend(1) && items.iter().all(|it| Instance(it).spend_whole()),
            Value::Object(members) => {
                let paid = |(name, it): (&String, &Value)| {
                    spend(1 + length(name) / 8) && Instance(it).spend_whole()
                };
                spend(1) && members.iter().all(paid)
            }
        }
    }

    /// The text that this value shares with all values that equal it; `None` without steps for it.
    pub(super) fn normal(self) -> Option<String> {
        self.spend_whole().then(|| json::normal(self.0))
    }

    /// The text, if it is one. Whoever reads it takes the steps for that.
    pub(super) fn text(self) -> Option<&'a str> {
        self.0.as_str()
    }
}

impl<'a> Node<'a, Metered> for Instance<'a> {
    type Object = Members<'a>;
    type Array = Items<'a>;
    type Number = Literal<'a>;

    fn as_object(&self) -> Option<Members<'a>> {
        if spend(1) { self.0.as_object().map(Members) } else { None }
    }

    fn as_array(&self) -> Option<Items<'a>> {
        if spend(1) { self.0.as_array().map(|items| Items(items)) } else { None }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_str()?;
        spend(1 + length(text) / 4).then_some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<Literal<'a>> {
        let Value::Number(literal) = self.0 else { return None };
        spend(number_cost(literal.as_str())).then_some(Literal(literal))
    }

    fn as_boolean(&self) -> Option<bool> {
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        self.0.is_null()
    }

    fn is_number(&self) -> bool {
        spend(1) && self.0.is_number()
    }

    fn is_string(&self) -> bool {
        spend(1) && self.0.is_string()
    }

    fn json_type(&self) -> JsonType {
        spend(1);
        match self.0 {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.0.as_str()?;
        spend(1 + length(text) / 8).then(|| text.chars().count() as u64)
    }

    fn equals_value(&self, expected: &Value) -> bool {
        // Members that discriminate are texts; whatever else is compared is so by normal form.
        match (self.0, expected) {
            (Value::String(own), Value::String(other)) => {
                spend(1 + length(other) / 8) && own == other
            }
            (own, other) => {
                std::mem::discriminant(own) == std::mem::discriminant(other)
                    && Instance(other).spend_whole()
                    && self.normal().is_some_and(|own| own == json::normal(other))
            }
        }
    }

    /// Called for each error, which bounds their number.
    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Borrowed(if spend(ERROR_COST) { self.0 } else { &NOTHING })
    }

    /// None: a schema that leads back to itself at the same value is refused before it is compiled,
    /// and looking for one costs more the deeper the validator is.
    fn identity(&self) -> Option<NodeIdentity> {
        None
    }

    /// Lets the validator remember what it found of a part of the value.
    fn container_identity(&self) -> Option<NodeIdentity> {
        let address = std::ptr::from_ref::<Value>(self.0).addr();
        (spend(1) && (self.0.is_object() || self.0.is_array())).then(|| NodeIdentity::new(address))
    }
}

/// Steps for one look at a number.
fn number_cost(text: &str) -> u64 {
    1 + length(text) / 8
}

/// The members of an object.
pub(super) struct Members<'a>(&'a Map<String, Value>);

/// Goes through members.
pub(super) struct MembersIter<'a>(map::Iter<'a>);

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, Instance<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, member) = self.0.next()?;
        spend_name(name).then_some((name.as_str(), Instance(member)))
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
        MembersIter(self.0.iter())
    }
}

/// The items of an array.
pub(super) struct Items<'a>(&'a [Value]);

/// Goes through items.
pub(super) struct ItemsIter<'a>(std::slice::Iter<'a, Value>);

impl<'a> Iterator for ItemsIter<'a> {
    type Item = Instance<'a>;

    fn next(&mut self) -> Option<Instance<'a>> {
        let item = self.0.next()?;
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
        ItemsIter(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        let mut seen = HashSet::with_capacity(self.0.len());
        self.0.iter().all(|item| Instance(item).normal().is_some_and(|text| seen.insert(text)))
    }
}

/// A number.
pub(super) struct Literal<'a>(&'a Number);

impl JsonNumber for Literal<'_> {
    fn as_u64(&self) -> Option<u64> {
        self.0.as_u64()
    }

    fn as_i64(&self) -> Option<i64> {
        self.0.as_i64()
    }

    fn as_f64(&self) -> Option<f64> {
        self.0.as_f64()
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0.as_str())
    }

    fn to_number(&self) -> Cow<'_, Number> {
        Cow::Borrowed(self.0)
    }

    fn is_integer(&self) -> bool {
        number::is_integer(self.0.as_str())
    }
}
