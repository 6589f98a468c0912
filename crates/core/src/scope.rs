//! Scopes: which endpoints a token may use.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

use crate::did_you_mean;

crate::words! { listed
    /// One endpoint permission. Scopes say *which endpoints*; policies say *which calls*.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Scope {
        /// Adds reach, not endpoints: others' connections and tokens.
        Admin = "admin",
        ApprovalsDecide = "approvals:decide",
        ApprovalsRead = "approvals:read",
        AuditExport = "audit:export",
        /// Everybody's events in the org.
        AuditRead = "audit:read",
        /// Invoke tools.
        McpsInvoke = "mcps:invoke",
        /// List and get tools.
        McpsRead = "mcps:read",
        /// List, get and simulate policies.
        PoliciesRead = "policies:read",
        /// List and get connections.
        ProvidersRead = "providers:read",
        /// Connect, disconnect and refresh own connections.
        ProvidersWrite = "providers:write",
        /// Provision users and groups of the org. Of service accounts only: no role has it.
        Scim = "scim",
        /// Ask what tokens of the org are worth.
        TokensIntrospect = "tokens:introspect",
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no scope{nearest}; there are {all}", nearest = did_you_mean(.0, words()), all = words().join(", "))]
pub struct ScopeError(String);

fn words() -> [&'static str; Scope::ALL.len()] {
    Scope::ALL.map(Scope::as_str)
}

impl FromStr for Scope {
    type Err = ScopeError;
    fn from_str(text: &str) -> Result<Self, ScopeError> {
        Self::from_word(text).ok_or_else(|| ScopeError(text.chars().take(64).collect()))
    }
}

/// A set of scopes; written as their names, sorted, with a space between (RFC 6749 §3.3).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ScopeSet(u16);

impl ScopeSet {
    /// No scope at all.
    pub const EMPTY: Self = Self(0);
    /// Every scope there is.
    pub const ALL: Self = Self((1 << Scope::ALL.len()) - 1);

    /// The set and `scope`.
    #[must_use]
    pub const fn with(self, scope: Scope) -> Self {
        Self(self.0 | (1 << scope as u8))
    }

    /// The set without `scope`.
    #[must_use]
    pub const fn without(self, scope: Scope) -> Self {
        Self(self.0 & !(1 << scope as u8))
    }

    /// The set without the scopes that a token has only if they are asked for by name.
    #[must_use]
    pub const fn unless_asked_for(self) -> Self {
        self.without(Scope::Admin)
            .without(Scope::AuditExport)
            .without(Scope::ApprovalsRead)
            .without(Scope::ApprovalsDecide)
            .without(Scope::Scim)
            .without(Scope::TokensIntrospect)
    }

    /// Returns true if `scope` is in the set.
    #[must_use]
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// Returns the scopes that are in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the scopes of this set that are not in `other`.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns true if nothing is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if every scope of this set is in `other`.
    #[must_use]
    pub const fn is_subset_of(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// The scopes in the set, in the order of their names.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        scopes.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl FromStr for ScopeSet {
    type Err = ScopeError;
    fn from_str(text: &str) -> Result<Self, ScopeError> {
        text.split_ascii_whitespace().map(Scope::from_str).collect()
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            f.write_str(scope.as_str())?;
        }
        Ok(())
    }
}

impl fmt::Debug for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopeSet({self})")
    }
}

impl Serialize for ScopeSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_set_is_written_sorted_and_reads_back() {
        let set: ScopeSet = "mcps:read mcps:invoke  admin".parse().unwrap();

        assert_eq!(set.to_string(), "admin mcps:invoke mcps:read");
        assert_eq!(set.to_string().parse::<ScopeSet>().unwrap(), set);
        assert!("mcps:write".parse::<ScopeSet>().is_err());
    }
}
