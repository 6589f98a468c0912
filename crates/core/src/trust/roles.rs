//! From the groups a token tells to one role.

use serde_json::Value;

use crate::{
    principal::Role,
    trust::{ClaimPath, Claims, Rejection, expectation::Pattern},
};

/// Roles by the values of a claim.
///
/// The most exact entry that matches decides: a whole text before a beginning, a longer beginning
/// before a shorter one, `*` when nothing else matches, also when the claim is absent. Entries that
/// are equally exact and give different roles contradict each other, and then there is no role:
/// neither the highest nor the first is taken, for roles are no ladder (an auditor must not
/// invoke), and the order of a TOML table carries no meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleMap {
    claim: ClaimPath,
    entries: Vec<(Pattern, Role)>,
}

/// The entries are no role map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RoleMapError {
    #[error("`roles` is empty: nobody would have a role")]
    Empty,
    #[error("a user has the role member, auditor or admin")]
    Service,
}

impl RoleMap {
    /// A map from values of `claim` to roles of users.
    pub fn new(claim: ClaimPath, entries: Vec<(Pattern, Role)>) -> Result<Self, RoleMapError> {
        if entries.is_empty() {
            return Err(RoleMapError::Empty);
        }
        if entries.iter().any(|(_, role)| matches!(role, Role::Service(_))) {
            return Err(RoleMapError::Service);
        }
        Ok(Self { claim, entries })
    }

    /// The claim that tells.
    #[must_use]
    pub fn claim(&self) -> &ClaimPath {
        &self.claim
    }

    /// The entries.
    #[must_use]
    pub fn entries(&self) -> &[(Pattern, Role)] {
        &self.entries
    }

    /// The role these claims make.
    pub fn role(&self, claims: &Claims) -> Result<Role, Rejection> {
        let told = claimed_texts(claims.at(&self.claim));
        let matching = |(pattern, _): &&(Pattern, Role)| {
            *pattern == Pattern::Any || told.iter().any(|value| pattern.matches(value))
        };
        let matching: Vec<_> = self.entries.iter().filter(matching).collect();
        let most = matching.iter().map(|(pattern, _)| pattern.exactness()).max();
        let mut roles = matching.iter().filter(|(pattern, _)| Some(pattern.exactness()) == most);
        let (_, role) = roles.next().ok_or_else(|| Rejection::NoRole(self.claim.clone()))?;
        if roles.any(|(_, other)| other != role) {
            return Err(Rejection::SeveralRoles(self.claim.clone()));
        }
        Ok(*role)
    }
}

/// The texts of a claim that is a text or a list of texts.
fn claimed_texts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Vec::new()
        }
    }
}
