//! Reading a request strictly: what is not known is refused and named, values are never echoed.

use std::collections::BTreeMap;

use portcullis_core::{clock::Timestamp, refusal::Violation};
use serde_json::{Map, Value};

/// The members of an object, taken one by one; what is left over is a mistake.
pub(super) struct Members<'a> {
    map: &'a Map<String, Value>,
    path: String,
    known: Vec<&'static str>,
}

pub(super) type Read<T> = Result<T, Violation>;

/// A place in the request and what is wrong there.
pub(super) fn violation(path: &str, message: impl Into<String>) -> Violation {
    Violation { path: path.to_owned(), keyword: None, message: message.into() }
}

impl<'a> Members<'a> {
    /// Begins with the members of `value`, which stands at `path`.
    pub(super) fn of(value: &'a Value, path: &str) -> Read<Self> {
        match value {
            Value::Object(map) => Ok(Self { map, path: path.to_owned(), known: Vec::new() }),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(violation(path, "has to be an object")),
        }
    }

    /// Place of a member.
    pub(super) fn at(&self, name: &str) -> String {
        format!("{}/{}", self.path, name.replace('~', "~0").replace('/', "~1"))
    }

    fn wrong<T>(&self, name: &str, what: &str) -> Read<T> {
        Err(violation(&self.at(name), format!("has to be {what}")))
    }

    /// Returns true if the member is present; `null` counts as absent, and is no mistake.
    pub(super) fn has(&mut self, name: &'static str) -> bool {
        let value = self.map.get(name);
        if value.is_some_and(Value::is_null) {
            self.known.push(name);
        }
        value.is_some_and(|value| !value.is_null())
    }

    /// A member of any type.
    pub(super) fn any(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&mut self, name: &'static str) -> Read<Option<&'a str>> {
        match self.any(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() <= 1024 => Ok(Some(text)),
            Some(_) => self.wrong(name, "a text of at most 1024 bytes"),
        }
    }

    /// A text that has to be given.
    pub(super) fn required(&mut self, name: &'static str) -> Read<&'a str> {
        let text = self.text(name)?;
        text.ok_or_else(|| violation(&self.at(name), "is required"))
    }

    /// One of these texts.
    pub(super) fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        choices: &[(&'static str, T)],
    ) -> Read<Option<T>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        if let Some((_, meant)) = choices.iter().find(|(choice, _)| *choice == text) {
            return Ok(Some(*meant));
        }
        let all: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
        self.wrong(name, &format!("one of {}", all.join(", ")))
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Read<Option<bool>> {
        match self.any(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => self.wrong(name, "true or false"),
        }
    }

    /// A whole number within these bounds.
    pub(super) fn whole(&mut self, name: &'static str, least: u64, most: u64) -> Read<Option<u64>> {
        let Some(value) = self.any(name) else { return Ok(None) };
        match value.as_u64().filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => self.wrong(name, &format!("a whole number from {least} to {most}")),
        }
    }

    /// A share, above 0 and at most 1.
    pub(super) fn share(&mut self, name: &'static str) -> Read<Option<f64>> {
        let Some(value) = self.any(name) else { return Ok(None) };
        match value.as_f64().filter(|share| *share > 0.0 && *share <= 1.0) {
            Some(share) => Ok(Some(share)),
            None => self.wrong(name, "a number above 0 and at most 1"),
        }
    }

    /// A moment.
    pub(super) fn time(&mut self, name: &'static str) -> Read<Option<Timestamp>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        match Timestamp::parse_rfc3339(text) {
            Some(time) => Ok(Some(time)),
            None => self.wrong(name, "an RFC 3339 time such as 2026-11-20T11:02:15Z"),
        }
    }

    /// A list of at most so many texts.
    pub(super) fn texts(&mut self, name: &'static str, most: usize) -> Read<Option<Vec<String>>> {
        let Some(value) = self.any(name) else { return Ok(None) };
        match texts_of(value).filter(|texts| texts.len() <= most) {
            Some(texts) => Ok(Some(texts)),
            None => self.wrong(name, &format!("a list of at most {most} texts")),
        }
    }

    /// Lists of texts by name; one text stands for a list of it.
    pub(super) fn text_lists(
        &mut self,
        name: &'static str,
    ) -> Read<Option<BTreeMap<String, Vec<String>>>> {
        let Some(value) = self.any(name) else { return Ok(None) };
        let Value::Object(map) = value else { return self.wrong(name, "an object") };
        let mut lists = BTreeMap::new();
        for (key, value) in map {
            let texts = match value {
                Value::String(text) => Some(vec![text.clone()]),
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_) => texts_of(value),
            };
            let Some(texts) = texts else { return self.wrong(name, "texts or lists of texts") };
            lists.insert(key.clone(), texts);
        }
        Ok(Some(lists))
    }

    /// An object, to be read in turn.
    pub(super) fn object(&mut self, name: &'static str) -> Read<Option<Members<'a>>> {
        let path = self.at(name);
        self.any(name).map(|value| Members::of(value, &path)).transpose()
    }

    /// The items of a list of at most so many, each with its place.
    pub(super) fn items(
        &mut self,
        name: &'static str,
        most: usize,
    ) -> Read<Vec<(String, &'a Value)>> {
        let path = self.at(name);
        match self.any(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) if items.len() <= most => {
                let place = |(at, item)| (format!("{path}/{at}"), item);
                Ok(items.iter().enumerate().map(place).collect())
            }
            Some(_) => self.wrong(name, &format!("a list of at most {most}")),
        }
    }

    /// The members whose names are values of the request, each with its place.
    pub(super) fn entries(self) -> impl Iterator<Item = (String, &'a str, &'a Value)> {
        let path = self.path;
        self.map.iter().map(move |(name, value)| {
            let token = name.replace('~', "~0").replace('/', "~1");
            (format!("{path}/{token}"), name.as_str(), value)
        })
    }

    /// Rejects unknown members.
    pub(super) fn end(self) -> Read<()> {
        match self.map.keys().find(|name| !self.known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => {
                let name: String = name.chars().take(100).collect();
                let known = self.known.join(", ");
                Err(violation(&self.at(&name), format!("is not known here; known are {known}")))
            }
        }
    }
}

fn texts_of(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}
