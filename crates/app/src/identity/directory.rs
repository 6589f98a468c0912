//! Rules on principals and tokens of an org.

pub(crate) mod people;
pub(crate) mod tokens;

use portcullis_core::principal::ScopeSet;

/// Characters of a name at most.
const MAX_NAME: usize = 200;
/// Groups that a principal is put into at most.
const MAX_GROUPS: usize = 100;
/// Days a token may live at most.
const MAX_DAYS: i64 = 365;

/// A rule that a request for a principal or a token breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    #[error("a name has 1 to {MAX_NAME} characters, none of them a control character")]
    Name,
    #[error("a principal is put into {MAX_GROUPS} groups at most")]
    TooManyGroups,
    /// The token would be able to do more than its principal.
    #[error("the scopes `{asked}` are more than the principal may have: `{allowed}`")]
    TooMuch { asked: ScopeSet, allowed: ScopeSet },
    #[error("a token lives from 60 seconds to {MAX_DAYS} days")]
    Lifetime,
    #[error(
        "a service account has the role `service` with a list of scopes, a user has member, auditor or admin"
    )]
    RoleMismatch,
}

/// Rejects a text that is no name: names are shown to people and recorded in events.
pub(crate) fn check_name(name: &str) -> Result<(), DirectoryError> {
    let length = name.trim().chars().count();
    if (1..=MAX_NAME).contains(&length) && !name.chars().any(char::is_control) {
        Ok(())
    } else {
        Err(DirectoryError::Name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_can_be_shown() {
        for good in ["a", "Ana María", "x".repeat(200).as_str()] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "  ", "a\nb", "a\u{9b}b", "x".repeat(201).as_str()] {
            assert_eq!(check_name(bad), Err(DirectoryError::Name), "{bad}");
        }
    }
}
