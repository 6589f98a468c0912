//! Filters of lists as people give them: in a query, in a body, on a command line. One reading for all, so that a
//! filter never means two things.
//!
//! Each filter is declared once by `filter!`, beside the statement that it narrows.

use std::{collections::BTreeMap, fmt::Display, iter};

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor,
        value::{MapAccessDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};

use crate::search::LONGEST;

/// Values given, by the name of the filter.
pub type Given = BTreeMap<String, Vec<String>>;

/// Something given is wrong: which, and what about it, to stand behind its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` {problem}")]
pub struct Wrong {
    pub name: String,
    pub problem: String,
    /// All names, if there is no filter of this one.
    pub known: &'static [&'static str],
}

impl Wrong {
    /// A problem with what has this name.
    #[must_use]
    pub fn new(name: &str, problem: impl Into<String>) -> Self {
        Self { name: name.chars().take(100).collect(), problem: problem.into(), known: &[] }
    }
}

impl Error for Wrong {
    fn custom<T: Display>(problem: T) -> Self {
        let problem = problem.to_string();
        // Types say `not an id`.
        let verb = if problem.starts_with("not ") { "is " } else { "" };
        Self::new("", format!("{verb}{problem}"))
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        Self::new("", format!("takes {}", known.join(", ")))
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        let problem = format!("is no filter; there are {}", known.join(", "));
        Self { known, ..Self::new(name, problem) }
    }
}

/// Reads lists of values. Rejects as well a filter without any: one that came out empty by mistake must
/// not select everything.
pub fn read_given<'a, F: Deserialize<'a>>(given: &'a Given) -> Result<F, Wrong> {
    for (name, values) in given {
        if values.is_empty() || values.iter().any(|value| value.trim().is_empty()) {
            return Err(Wrong::new(name, "is empty; give it a value or leave it out"));
        }
        if values.iter().any(|value| value.contains('\0')) {
            return Err(Wrong::new(name, "is not a valid text"));
        }
    }
    read(given.iter().map(|(name, values)| (name.as_str(), Values::Each(values))))
}

/// The names of the parameters of a filter, which every other name is refused with.
#[must_use]
pub fn names<F: DeserializeOwned>() -> &'static [&'static str] {
    let none: Result<F, Wrong> = read(iter::once(("", Values::Each(&[]))));
    none.err().map_or(&[], |wrong| wrong.known)
}

/// Reads what is given and not empty. Rejects unknown names, and values that nothing can match.
pub fn read<'a, F: Deserialize<'a>>(
    given: impl Iterator<Item = (&'a str, Values<'a>)>,
) -> Result<F, Wrong> {
    F::deserialize(MapAccessDeserializer::new(Filters { given, next: None }))
}

struct Filters<'a, I> {
    given: I,
    next: Option<(&'a str, Values<'a>)>,
}

impl<'a, I: Iterator<Item = (&'a str, Values<'a>)>> MapAccess<'a> for Filters<'a, I> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, key: K) -> Result<Option<K::Value>, Wrong> {
        self.next = self.given.next();
        self.next.map(|(name, _)| key.deserialize(name.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, value: V) -> Result<V::Value, Wrong> {
        let (name, values) = self.next.unwrap_or(("", Values::Each(&[])));
        value.deserialize(values).map_err(|wrong| Wrong { name: name.to_owned(), ..wrong })
    }
}

/// Text or texts that are given for one filter.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// A text in which commas separate values, if there may be several.
    Text(&'a str),
    Each(&'a [String]),
}

impl<'a> Values<'a> {
    fn one(self) -> Result<&'a str, Wrong> {
        match self {
            Self::Text(one) => Ok(one),
            Self::Each([one]) => Ok(one),
            Self::Each(_) => Err(Wrong::custom("takes one value")),
        }
    }
}

impl<'de> Deserializer<'de> for Values<'de> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_borrowed_str(self.one()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_some(self)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let wrong = |_| Wrong::custom("has to be `true` or `false`");
        visitor.visit_bool(self.one()?.parse().map_err(wrong)?)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        visitor.visit_enum(self.one()?.into_deserializer())
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let values: Vec<&str> = match self {
            Self::Text(text) => {
                text.split(',').map(str::trim).filter(|it| !it.is_empty()).collect()
            }
            Self::Each(values) => values.iter().map(String::as_str).collect(),
        };
        visitor.visit_seq(SeqDeserializer::new(values.into_iter()))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct tuple tuple_struct map struct identifier ignored_any
    }
}

/// The beginning of a word that is searched for.
pub(crate) fn search<'de, D: Deserializer<'de>>(given: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(given)?;
    if text.chars().count() > LONGEST {
        return Err(D::Error::custom(format_args!("may be {LONGEST} characters long")));
    }
    Ok(Some(text))
}

/// Declares the filter of a list once, for those who give it and for the statement that it narrows: each parameter with
/// its description, and how the API document describes its text. Fields after `at` are no parameters.
macro_rules! filter {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$how:meta])* $parameter:ident: $type:ty $(as $shown:ty)? = $about:tt $(, $key:ident = $value:tt)*;)*
    } at { $($place:ident: $moment:ty),* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, serde::Deserialize, utoipa::IntoParams)]
        #[serde(default, deny_unknown_fields)]
        #[into_params(parameter_in = Query)]
        pub struct $name {
            $(
                #[doc = $about]
                $(#[$how])*
                #[param($(value_type = $shown,)? $($key = $value),*)]
                pub $parameter: $type,
            )*
            $(#[serde(skip)] pub $place: $moment,)*
        }
    };
}
pub(crate) use filter;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventFilter, EventTarget};

    fn event_filter(name: &str, values: &[&str]) -> Result<EventFilter, Wrong> {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        read_given(&Given::from([(name.to_owned(), values)]))
    }

    #[test]
    fn what_selects_nothing_or_everything_by_mistake_is_refused() {
        let long = "x".repeat(201);
        for (name, values) in [
            ("typ", &["mcp.invocation"][..]),
            ("from", &["2026-11-20T11:02:15Z"]),
            ("type", &[]),
            ("type", &["mcp.invocation", " "]),
            ("actor", &["alice"]),
            ("actor", &["usr_01M754BKTKX1YB8Q05NMW9TP4G", "usr_01M754BKTKX1YB8Q05NMW9TP4G"]),
            ("decision", &["maybe"]),
            ("outcome", &["denied", "refused"]),
            ("dlp_result", &["none"]),
            ("request_id", &["x"]),
            ("policy", &["a\0b"]),
            ("target", &[&long]),
        ] {
            let wrong = event_filter(name, values).unwrap_err();

            assert_eq!(wrong.name, name);
        }
    }

    #[test]
    fn commas_separate_values_in_a_text_and_a_star_ends_the_beginning_of_targets() {
        let text = [("policy", Values::Text("a,b, c,")), ("target", Values::Text("d,e*"))];

        let of_text: EventFilter = read(text.into_iter()).unwrap();
        let of_list = event_filter("policy", &["a,b", "c"]).unwrap();

        assert_eq!(of_text.policy, ["a", "b", "c"]);
        assert_eq!(of_text.target, Some(EventTarget::StartsWith("d,e".to_owned())));
        assert_eq!(of_list.policy, ["a,b", "c"]);
    }
}
