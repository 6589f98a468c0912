//! Reading a query string strictly: what is not known is refused and named, for a mistyped filter
//! that returns everything is a security bug.

use std::{collections::BTreeMap, str::FromStr};

use percent_encoding::percent_decode_str;
use portcullis_core::{clock::Timestamp, refusal::Refusal};

use super::body::shown_name;

/// Longest query string that is read.
const LONGEST: usize = 8 * 1024;

/// The parameters of a request, each at most once.
#[derive(Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads `raw`; rejects parameters outside `known`, repeated or empty ones and broken
    /// encodings.
    pub(crate) fn parse(raw: Option<&str>, known: &[&str]) -> Result<Self, Refusal> {
        let raw = raw.unwrap_or_default();
        if raw.len() > LONGEST {
            return Err(Refusal::bad_request("The query string is longer than 8192 bytes."));
        }
        let mut parameters = BTreeMap::new();
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name)
                .ok_or_else(|| Refusal::bad_request("A parameter name is not UTF-8."))?;
            if !known.contains(&name.as_str()) {
                return Err(unknown(&name, known));
            }
            let value = decode(value).filter(|value| !value.contains('\0'));
            let value = value.ok_or_else(|| {
                Refusal::bad_parameter(&name, format!("`{name}` is not valid UTF-8 text."))
            })?;
            // A filter that came out empty by mistake must not select everything.
            if is_empty(&value) {
                let message = format!("`{name}` is empty; give it a value or leave it out.");
                return Err(Refusal::bad_parameter(&name, message));
            }
            if parameters.insert(name.clone(), value).is_some() {
                return Err(Refusal::bad_parameter(&name, format!("`{name}` is given twice.")));
            }
        }
        Ok(Self(parameters))
    }

    /// Reads `raw` for a protocol whose clients are others' choice (RFC 7644 §3.4.2): parameters outside `known` and
    /// empty ones are ignored.
    pub(crate) fn parse_known(raw: Option<&str>, known: &[&str]) -> Result<Self, Refusal> {
        let counts = |pair: &&str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let is_known = decode(name).is_some_and(|name| known.contains(&name.as_str()));
            is_known && decode(value).is_none_or(|value| !is_empty(&value))
        };
        let pairs: Vec<&str> = raw.unwrap_or_default().split('&').filter(counts).collect();
        Self::parse(Some(&pairs.join("&")), known)
    }

    /// The names and texts of those that were given.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// The parameter's text, if it was given.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Text of at most `longest` characters.
    pub(crate) fn short(&self, name: &str, longest: usize) -> Result<Option<String>, Refusal> {
        match self.text(name) {
            Some(text) if text.chars().count() > longest => Err(Refusal::bad_parameter(
                name,
                format!("`{name}` may be {longest} characters long."),
            )),
            text => Ok(text.map(str::to_owned)),
        }
    }

    /// A comma-separated list; empty when it was not given.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let items = self.text(name).unwrap_or_default().split(',').map(str::trim);
        items.filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    /// One of `allowed`, if it was given.
    pub(crate) fn choice(&self, name: &str, allowed: &[&str]) -> Result<Option<&str>, Refusal> {
        match self.text(name) {
            Some(text) if !allowed.contains(&text) => Err(not_among(name, allowed)),
            text => Ok(text),
        }
    }

    /// A comma-separated list of which each item has to be one of `allowed`.
    pub(crate) fn any_of(&self, name: &str, allowed: &[&str]) -> Result<Vec<String>, Refusal> {
        let items = self.list(name);
        if items.iter().all(|item| allowed.contains(&item.as_str())) {
            Ok(items)
        } else {
            Err(not_among(name, allowed))
        }
    }

    /// A value that parses, if it was given; `form` says in words what would have been right.
    pub(crate) fn parsed<T: FromStr>(&self, name: &str, form: &str) -> Result<Option<T>, Refusal> {
        let wrong = |_| Refusal::bad_parameter(name, format!("`{name}` has to be {form}."));
        self.text(name).map(|text| text.parse().map_err(wrong)).transpose()
    }

    /// The bound of a range of moments, an RFC 3339 date-time, if it was given: the moments are told
    /// in milliseconds, so it is rounded up to one. A `+` that was not encoded reads as one.
    pub(crate) fn time(&self, name: &str) -> Result<Option<Timestamp>, Refusal> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let parsed = Timestamp::parse_rfc3339(&text.replace(' ', "+"));
        let message = format!("`{name}` has to be an RFC 3339 time such as 2026-11-20T11:02:15Z.");
        let bound = parsed.map(Timestamp::ceil_to_millis);
        bound.map(Some).ok_or_else(|| Refusal::bad_parameter(name, message))
    }
}

fn is_empty(value: &str) -> bool {
    value.trim_matches([',', ' ']).is_empty()
}

fn not_among(name: &str, allowed: &[&str]) -> Refusal {
    Refusal::bad_parameter(name, format!("`{name}` takes {}.", allowed.join(", ")))
}

fn unknown(name: &str, known: &[&str]) -> Refusal {
    let shown = shown_name(name).map_or_else(|| "A parameter".to_owned(), |it| format!("`{it}`"));
    let message = if name.contains("token") && name != "token_id" {
        "A token never belongs into a URL: send it as `Authorization: Bearer <token>`.".to_owned()
    } else if known.is_empty() {
        format!("{shown} is not known here; this path takes no parameters.")
    } else {
        format!("{shown} is not known here; this path takes {}.", known.join(", "))
    };
    match shown_name(name) {
        Some(name) => Refusal::bad_parameter(name, message),
        None => Refusal::bad_request(message),
    }
}

fn decode(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_parameters_are_decoded_once() {
        let query = Query::parse(Some("q=a%20b&type=x,y,"), &["q", "type", "from"]).unwrap();

        assert_eq!(query.text("q"), Some("a b"));
        assert_eq!(query.list("type"), ["x", "y"]);
        assert_eq!(query.text("from"), None);
    }

    #[test]
    fn unknown_repeated_and_broken_parameters_are_refused() {
        for raw in
            ["x=1", "q=1&q=2", "q=%ff", "q=%00", "access_token=abc", "%71q=1", "q=", "q", "q=,+"]
        {
            assert!(Query::parse(Some(raw), &["q"]).is_err(), "{raw}");
        }
    }

    #[test]
    fn foreign_and_empty_parameters_are_ignored_where_clients_are_others_choice() {
        let text = |raw: &str| {
            let query = Query::parse_known(Some(raw), &["q", "r"]).ok()?;
            Some(query.text("q").unwrap_or("none").to_owned())
        };

        for (raw, wanted) in [
            ("flag062020", Some("none")),
            ("flag&q=a&x=%ff&&", Some("a")),
            ("q=&r=1", Some("none")),
            ("Q=a", Some("none")),
            ("q=&q=a", Some("a")),
            ("q=a&q=b", None),
            ("q=%ff", None),
            ("q=%00", None),
        ] {
            assert_eq!(text(raw).as_deref(), wanted, "{raw}");
        }
    }

    #[test]
    fn a_time_needs_its_offset() {
        let query =
            Query::parse(Some("from=2026-11-20T11:02:15+01:00&to=2026"), &["from", "to"]).unwrap();

        assert!(query.time("from").unwrap().is_some());
        assert!(query.time("to").is_err());
    }
}
