//! Keys of services that give them no form of their own: the service and what the value is have to be named.

use crate::catalogue::secrets::{
    general::{is_key_text, is_other, is_uuid_of_hex},
    randomness::random,
};
use crate::{
    catalogue::{detector::Candidate, naming::name},
    text::words,
};

/// Words in the name of a value that make it a secret of the service.
const KEYS: &[&str] =
    &["key", "token", "secret", "apikey", "auth", "password", "credential", "bearer"];

/// Words in the name of a value that make it something else, besides those of other secrets.
const OTHERS: &[&str] = &[
    "sha1", "sha256", "sha512", "commit", "etag", "uuid", "guid", "revision", "row", "object",
    "cache", "primary",
];

/// The name says that it is a secret and nothing else, and the value is random or a UUID.
pub(crate) fn service_key(candidate: &Candidate<'_>) -> Option<i32> {
    let called = name(candidate)?;
    let is_secret =
        words::names(called, KEYS) && !words::names(called, OTHERS) && !is_other(called);
    let is_value = if is_uuid_of_hex(candidate.matched()) {
        random(candidate).is_some()
    } else {
        is_key_text(candidate)
    };
    (is_secret && is_value).then_some(4)
}
