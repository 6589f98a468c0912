//! `If-Match`: the versions of a resource that a change applies to. `If-None-Match`: those that a client has.

use axum::http::{HeaderMap, header};
use portcullis_app::Precondition;
use portcullis_core::refusal::Refusal;

/// Versions named at once.
const MOST: usize = 20;

/// The precondition of `If-Match` (RFC 9110 §13.1.1); none where it is absent or `*`. A weak version
/// matches nothing, for they are compared strongly. Rejects what is no list of versions.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Precondition, Refusal> {
    let mut versions = Vec::new();
    for value in headers.get_all(header::IF_MATCH) {
        let text = value.to_str().map_err(|_| malformed())?.trim();
        if text == "*" {
            return Ok(Precondition::None);
        }
        for tag in text.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
            let quoted = tag.strip_prefix("W/").unwrap_or(tag);
            let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            let inner = inner.filter(|inner| !inner.contains('"')).ok_or_else(malformed)?;
            let version = if quoted == tag { inner } else { "" };
            versions.push(version.to_owned());
        }
    }
    match versions.len() {
        0 if !headers.contains_key(header::IF_MATCH) => Ok(Precondition::None),
        1..=MOST => Ok(Precondition::OneOf(versions)),
        _ => Err(malformed()),
    }
}

/// Returns true if a client names this `ETag` in `If-None-Match` (RFC 9110 §13.1.2).
pub(crate) fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok());
    let mut tags = known.flat_map(|list| list.split(',')).map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

fn malformed() -> Refusal {
    let message = "`If-Match` takes the `ETag` of the resource as it was sent, in its quotes.";
    Refusal::bad_parameter("If-Match", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Result<Precondition, Refusal> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::IF_MATCH, value.parse().unwrap());
        }
        if_match(&headers)
    }

    #[test]
    fn versions_are_read_from_their_quotes() {
        let one_of =
            |tags: &[&str]| Precondition::OneOf(tags.iter().map(ToString::to_string).collect());

        assert_eq!(read(&[]).unwrap(), Precondition::None);
        assert_eq!(read(&["*"]).unwrap(), Precondition::None);
        assert_eq!(read(&["\"a\""]).unwrap(), one_of(&["a"]));
        assert_eq!(read(&["\"a\", \"b\"", "\"c\""]).unwrap(), one_of(&["a", "b", "c"]));
        assert_eq!(read(&["W/\"a\""]).unwrap(), one_of(&[""]), "weak ones match nothing");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for wrong in ["a", "\"a", "a\"", "", ",", "\"a\"b\"", "w/\"a\""] {
            assert!(read(&[wrong]).is_err(), "{wrong}");
        }
        assert!(read(&["\"a\"", &"\"a\",".repeat(20)]).is_err());
    }
}
