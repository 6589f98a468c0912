//! The strict JSON parser takes what `serde_json` takes, but no name twice in an object, and reads the same from it.

#![no_main]

mod words;

use std::{collections::HashSet, fmt};

use libfuzzer_sys::fuzz_target;
use portcullis_json::{Bounds, Document, JsonValue as _, NumberRange, canonical};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

const WORDS: [&str; 8] = [
    "\"a\":", "\"\\u0061\":", "\\ud83d\\ude00", "1e400", "-0.0E+9", "null", "{\"a\":1,", "\"id\":",
];
const RESERVED: &str = "$serde_json::private::";
/// All that `serde_json` reads.
const WIDE: Bounds = Bounds {
    depth: 127,
    nodes: usize::MAX,
    string_bytes: usize::MAX,
    number_chars: usize::MAX,
    numbers: NumberRange::Any,
    reserved: true,
};

/// Any value in which no object has a name twice.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    /// Reads an object, or a number that is no short integer, which comes as an object of one member.
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if !names.insert(name) {
                return Err(A::Error::custom("a name stands twice"));
            }
            members.next_value::<Self>()?;
        }
        Ok(self)
    }
}

fuzz_target!(|input: &[u8]| {
    let text = words::expanded(input, &WORDS);
    let is_unique = serde_json::from_slice::<Unique>(&text).is_ok();
    assert_eq!(Document::parse(&text, WIDE).is_ok(), is_unique);

    let Ok(document) = Document::parse(&text, Bounds::REQUEST) else { return };
    assert!(is_unique);
    let value = document.root().to_value();
    assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), value);
    let form = document.root().canonical();
    assert_eq!(form, canonical(&value));
    let again = Document::parse(form.as_bytes(), Bounds::REQUEST);
    assert!(again.is_ok_and(|again| again.root().raw() == form) || form.contains(RESERVED));
    let _: IgnoredAny = serde_json::from_str(&form).unwrap();
});
