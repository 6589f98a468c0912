//! Keys by which a caller says that two requests are the same one.
//!
//! Neither key nor request is stored: a row is found by the digest of scope and key, and a second
//! request is told from the first by the fingerprint of what was asked.

mod sealed;

pub use self::sealed::{ANSWERS, AnswerKey};

use std::fmt;

use serde_json::json;

use crate::{
    id::{OrgId, PrincipalId},
    json,
};

/// Seconds for which a key is remembered: 24 hours.
pub const LIFE_SECONDS: i64 = 24 * 60 * 60;

/// The longest key.
const LONGEST: usize = 255;

/// Value of an `Idempotency-Key` header: 1 to 255 visible ASCII characters. `Debug` hides it, for
/// it may be anything.
#[derive(Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Reads the value of the header, bare or as a quoted string (RFC 9651 §3.3.3); both name the
    /// same key. `None` if it is neither.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let key = match value.strip_prefix('"') {
            Some(rest) => unquoted(rest.strip_suffix('"')?)?,
            None => value.to_owned(),
        };
        let fits = (1..=LONGEST).contains(&key.len());
        (fits && key.bytes().all(|byte| byte.is_ascii_graphic())).then_some(Self(key))
    }
}

/// The text of a quoted string: a backslash stands before a quote or a backslash and nothing else.
fn unquoted(text: &str) -> Option<String> {
    let mut letters = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => letters.next().filter(|next| matches!(next, '"' | '\\'))?,
            '"' => return None,
            other => other,
        });
    }
    Some(plain)
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyKey(…)")
    }
}

/// Scope of a key: the same key elsewhere is another key.
#[derive(Debug, Clone, Copy)]
pub struct KeyScope<'a> {
    pub org: OrgId,
    pub principal: PrincipalId,
    /// On whose behalf.
    pub via: Option<PrincipalId>,
    /// The hands that the caller's token is in, if they are not its principal's own.
    pub hands: Option<&'a str>,
    /// Endpoint that is called: `invoke` or `export`.
    pub endpoint: &'static str,
    /// Of what: the tool id; empty where there is nothing to name.
    pub target: &'a str,
}

impl KeyScope<'_> {
    /// `sha256:…` of scope and key, by which the key is found again.
    #[must_use]
    pub fn digest(&self, key: &IdempotencyKey) -> String {
        let Self { org, principal, via, hands, endpoint, target } = self;
        let parts = json!([org, principal, via, hands, endpoint, target, key.0]);
        json::sha256(&[b"idempotency key v1\n", json::canonical(&parts).as_bytes()])
    }
}

/// `sha256:…` of a request in canonical form (RFC 8785).
#[must_use]
pub fn fingerprint(canonical: &str) -> String {
    json::sha256(&[b"idempotent request v1\n", canonical.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_be_bare_or_quoted_and_is_the_same() {
        let bare = IdempotencyKey::parse(r#"a\b"c"#).unwrap();

        assert_eq!(IdempotencyKey::parse(r#""a\\b\"c""#).unwrap(), bare);
        assert_eq!(format!("{bare:?}"), "IdempotencyKey(…)");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let long = "k".repeat(256);
        let quoted_long = format!("\"{long}\"");
        for text in
            ["", "\"\"", "a b", "\"a", "\"a\\n\"", "\"a\"b\"", "\"a\\", "ä", "a\u{7f}", "\"a\";p=1"]
                .into_iter()
                .chain([long.as_str(), quoted_long.as_str()])
        {
            assert_eq!(IdempotencyKey::parse(text), None, "{text}");
        }
        assert!(IdempotencyKey::parse(&"k".repeat(255)).is_some());
    }

    #[test]
    fn every_part_of_the_scope_makes_another_key() {
        let key = IdempotencyKey::parse("k").unwrap();
        let scope = KeyScope {
            org: "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap(),
            principal: "usr_01M754BKTKFVJC7V0B9VHVKZBP".parse().unwrap(),
            via: None,
            hands: None,
            endpoint: "invoke",
            target: "a:b",
        };
        let others = [
            KeyScope { org: "org_01M754BKTKX1YB8Q05NMW9TP4H".parse().unwrap(), ..scope },
            KeyScope { principal: "usr_01M754BKTKFVJC7V0B9VHVKZBQ".parse().unwrap(), ..scope },
            KeyScope { via: Some(scope.principal), ..scope },
            KeyScope { hands: Some("a client"), ..scope },
            KeyScope { endpoint: "export", ..scope },
            KeyScope { target: "a:c", ..scope },
        ];

        let digests = others.iter().map(|other| other.digest(&key));

        assert_eq!(scope.digest(&key), scope.digest(&IdempotencyKey::parse("\"k\"").unwrap()));
        assert!(digests.clone().all(|digest| digest != scope.digest(&key)));
        assert_ne!(scope.digest(&key), scope.digest(&IdempotencyKey::parse("K").unwrap()));
    }
}
