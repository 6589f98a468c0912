//! Expectations of a rule about a claim.

use std::{fmt, str::FromStr};

use serde_json::Value;

use crate::trust::{Claims, claim::ClaimPath};

/// A text, or the beginning of one: `refs/heads/*`. A `*` means "whatever follows" and can only
/// stand at the end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    Exact(String),
    /// A text that begins with this; never empty.
    Prefix(String),
    /// Anything: `*` alone.
    Any,
}

/// The text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("an empty text matches nothing that proves anything")]
    Empty,
    #[error("`{0}`: a `*` can only stand at the end")]
    Star(String),
    #[error("`*` alone binds nothing: say what the claim has to begin with")]
    Anything,
}

impl Pattern {
    /// Returns true if `text` is meant. Case, space and Unicode forms count: nothing is folded.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(wanted) => text == wanted,
            Self::Prefix(start) => text.starts_with(start.as_str()),
            Self::Any => true,
        }
    }

    /// Specificity: an exact text counts more than any beginning, a long beginning more than a
    /// short.
    pub(crate) fn exactness(&self) -> usize {
        match self {
            Self::Exact(_) => usize::MAX,
            Self::Prefix(start) => start.len(),
            Self::Any => 0,
        }
    }
}

impl FromStr for Pattern {
    type Err = PatternError;
    fn from_str(text: &str) -> Result<Self, PatternError> {
        let (start, ends_in_star) = text.strip_suffix('*').map_or((text, false), |it| (it, true));
        if start.contains('*') {
            return Err(PatternError::Star(text.chars().take(100).collect()));
        }
        match (start.is_empty(), ends_in_star) {
            (true, false) => Err(PatternError::Empty),
            (true, true) => Ok(Self::Any),
            (false, true) => Ok(Self::Prefix(start.to_owned())),
            (false, false) => Ok(Self::Exact(start.to_owned())),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) => f.write_str(text),
            Self::Prefix(start) => write!(f, "{start}*"),
            Self::Any => f.write_str("*"),
        }
    }
}

/// Expected value of a claim. Types count: the text `10` is not the number 10.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// A text; never [`Pattern::Any`].
    Text(Pattern),
    Flag(bool),
    Integer(i64),
}

impl Expectation {
    /// A text or the beginning of one. Rejects `*` alone.
    pub fn text(pattern: &str) -> Result<Self, PatternError> {
        match pattern.parse()? {
            Pattern::Any => Err(PatternError::Anything),
            said @ (Pattern::Exact(_) | Pattern::Prefix(_)) => Ok(Self::Text(said)),
        }
    }

    /// Returns true if `value` is what is expected, or a list that holds it.
    #[must_use]
    pub fn holds(&self, value: &Value) -> bool {
        match value {
            Value::Array(members) => members.iter().any(|member| self.is(member)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => self.is(value),
        }
    }

    fn is(&self, value: &Value) -> bool {
        match self {
            Self::Text(pattern) => value.as_str().is_some_and(|text| pattern.matches(text)),
            Self::Flag(wanted) => value.as_bool() == Some(*wanted),
            Self::Integer(wanted) => value.as_i64() == Some(*wanted),
        }
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(pattern) => write!(f, "\"{pattern}\""),
            Self::Flag(wanted) => write!(f, "{wanted}"),
            Self::Integer(wanted) => write!(f, "{wanted}"),
        }
    }
}

/// Expectations of a rule about the claims. All of it has to hold, and there is always something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectations(Vec<(ClaimPath, Expectation)>);

impl Expectations {
    /// All of these; `None` if there are none, for nothing expected would be everybody trusted.
    #[must_use]
    pub fn new(all: Vec<(ClaimPath, Expectation)>) -> Option<Self> {
        if all.is_empty() { None } else { Some(Self(all)) }
    }

    /// Each claim and what is expected of it.
    pub fn iter(&self) -> impl Iterator<Item = (&ClaimPath, &Expectation)> {
        self.0.iter().map(|(claim, expected)| (claim, expected))
    }

    /// The claims that are not as expected.
    pub fn unmet<'a>(
        &'a self,
        claims: &'a Claims,
    ) -> impl Iterator<Item = (&'a ClaimPath, &'a Expectation)> {
        self.iter().filter(|(claim, expected)| {
            !claims.at(claim).is_some_and(|value| expected.holds(value))
        })
    }

    /// Returns true if all of it holds.
    #[must_use]
    pub fn hold(&self, claims: &Claims) -> bool {
        self.unmet(claims).next().is_none()
    }
}
