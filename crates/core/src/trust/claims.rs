//! The claims of a JWT: strict JSON, and the registered claims of RFC 7519 that are checked.

use std::fmt;

use serde_json::Value;

use crate::{
    clock::Timestamp,
    json::{self, Bounds},
    trust::{ClaimPath, Rejection},
};

/// Seconds by which the clocks of issuer and gateway may differ.
pub const LEEWAY_SECONDS: i64 = 60;

/// Bounds on a header or a set of claims: far more than any issuer puts there.
pub(crate) const BOUNDS: Bounds =
    Bounds { depth: 8, nodes: 2_000, string_bytes: 8 << 10, number_chars: 32, ..Bounds::REQUEST };
/// Bounds on the claims of an ID token, which names groups.
pub(crate) const ID_TOKEN_BOUNDS: Bounds = Bounds { nodes: 20_000, ..BOUNDS };

/// The end of the year 9999; what lies beyond is no date.
const LAST_SECOND: i64 = 253_402_300_799;
/// Characters of a text that names a principal or a thing.
const MAX_NAME: usize = 255;

/// The claims of a JWT, verified or not.
#[derive(Clone, PartialEq)]
pub struct Claims {
    members: Value,
    issuer: String,
}

/// Claims can name people: they are not printed by accident.
impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claims(…)")
    }
}

impl Claims {
    /// Reads a JWT's payload. Rejects duplicate members, deep nesting and what is no object.
    pub(crate) fn parse(bytes: &[u8], bounds: Bounds) -> Result<Self, Rejection> {
        let members = json::parse(bytes, bounds)
            .map_err(|_| Rejection::Malformed("its claims are not one strict JSON value"))?;
        if !members.is_object() {
            return Err(Rejection::Malformed("its claims are no JSON object"));
        }
        if members.get("sub").is_some_and(|subject| !subject.is_string()) {
            return Err(Rejection::Malformed("`sub` is not a text"));
        }
        let issuer = members.get("iss").and_then(Value::as_str);
        let issuer = issuer.ok_or(Rejection::UnknownIssuer)?.to_owned();
        Ok(Self { members, issuer })
    }

    /// `iss`.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// A claim, wherever it stands.
    #[must_use]
    pub fn at(&self, claim: &ClaimPath) -> Option<&Value> {
        claim.find(&self.members)
    }

    /// Every claim, as a JSON object.
    #[must_use]
    pub fn members(&self) -> &Value {
        &self.members
    }

    /// A claim that names something: a text of 1 to 255 characters without control characters.
    #[must_use]
    pub fn name(&self, claim: &str) -> Option<&str> {
        self.members.get(claim).and_then(as_name)
    }

    /// Returns true if `aud` is `audience` or a list that holds it.
    #[must_use]
    pub fn is_for(&self, audience: &str) -> bool {
        match self.members.get("aud") {
            Some(Value::String(only)) => only == audience,
            Some(Value::Array(many)) => many.iter().any(|one| one.as_str() == Some(audience)),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
                false
            }
        }
    }

    /// Returns true if `aud` is `audience`, or a list of nothing else.
    #[must_use]
    pub fn is_only_for(&self, audience: &str) -> bool {
        match self.members.get("aud") {
            Some(Value::Array(many)) if many.len() != 1 => false,
            Some(_) | None => self.is_for(audience),
        }
    }

    /// The texts of a claim that is one text or a list of texts, at most `most`; none if it is
    /// absent. `None` if it is anything else.
    #[must_use]
    pub fn texts(&self, claim: &str, most: usize) -> Option<Vec<&str>> {
        match self.members.get(claim) {
            None => Some(Vec::new()),
            Some(Value::String(one)) => Some(vec![one]),
            Some(Value::Array(many)) if many.len() <= most => {
                many.iter().map(Value::as_str).collect()
            }
            Some(
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Object(_)
                | Value::Array(_),
            ) => None,
        }
    }

    /// Fails unless it ends within `seconds` of `now` (and 60 seconds of leeway), and within
    /// `seconds` of its `iat` if it says one. Gives the moment of `exp`.
    pub(crate) fn check_short(&self, now: Timestamp, seconds: i64) -> Result<Timestamp, Rejection> {
        let end = self.check_times(now)?;
        let issued = self.time("iat", "`iat` is no date")?;
        let outlives = |start: Timestamp| end > start.plus_seconds(seconds);
        if outlives(now.plus_seconds(LEEWAY_SECONDS)) || issued.is_some_and(outlives) {
            return Err(Rejection::BadTime("it is valid for more than an hour"));
        }
        Ok(end)
    }

    /// Fails before `nbf` or `iat`, after `exp`, and without an `exp`; 60 seconds of leeway each
    /// way. Gives the moment of `exp`.
    pub fn check_times(&self, now: Timestamp) -> Result<Timestamp, Rejection> {
        let end = self.time("exp", "`exp` is no date")?;
        let end = end.ok_or(Rejection::BadTime("there is no `exp`: it would never end"))?;
        if now >= end.plus_seconds(LEEWAY_SECONDS) {
            return Err(Rejection::Expired(end));
        }
        let not_before = self.time("nbf", "`nbf` is no date")?;
        let issued = self.time("iat", "`iat` is no date")?;
        for start in [not_before, issued].into_iter().flatten() {
            if now.plus_seconds(LEEWAY_SECONDS) < start {
                return Err(Rejection::NotYetValid(start));
            }
        }
        Ok(end)
    }

    /// Rejects tokens that the issuer signed for another purpose: security events and logout tokens
    /// (RFC 8417), and tokens bound to a key that their bearer would have to prove (RFC 7800),
    /// which the gateway does not ask for.
    pub fn check_purpose(&self) -> Result<(), Rejection> {
        if self.members.get("events").is_some() {
            return Err(Rejection::WrongPurpose("`events` makes it a security event, no identity"));
        }
        if self.members.get("cnf").is_some() {
            return Err(Rejection::WrongPurpose(
                "`cnf` binds it to a key, and the exchange takes bearer tokens only",
            ));
        }
        Ok(())
    }

    pub(super) fn time(
        &self,
        name: &str,
        wrong: &'static str,
    ) -> Result<Option<Timestamp>, Rejection> {
        let Some(value) = self.members.get(name) else { return Ok(None) };
        numeric_date(value).map(Some).ok_or(Rejection::BadTime(wrong))
    }
}

/// A text that can name a principal or a thing.
pub(crate) fn as_name(value: &Value) -> Option<&str> {
    let text = value.as_str()?;
    let fits = (1..=MAX_NAME).contains(&text.chars().count());
    (fits && text.trim() == text && !text.chars().any(char::is_control)).then_some(text)
}

/// A `NumericDate`: seconds since 1970, perhaps with a fraction, which is dropped.
pub(crate) fn numeric_date(value: &Value) -> Option<Timestamp> {
    let Value::Number(number) = value else { return None };
    let text = number.as_str();
    let whole = text.split_once('.').map_or(text, |(whole, fraction)| {
        if fraction.bytes().all(|digit| digit.is_ascii_digit()) { whole } else { "" }
    });
    let seconds: i64 = whole.parse().ok()?;
    (0..=LAST_SECOND).contains(&seconds).then(|| Timestamp::default().plus_seconds(seconds))
}
