//! Bounds of the making of a set: how many checks it may take, and whether it is to go on.

use std::convert::Infallible;

use super::files::PolicyError;

/// Observer of the making of a set. It is asked between two policies and between two tools.
pub(in crate::policy) trait Watch {
    /// The reason to stop.
    type Stop;

    /// Fails once the work is to stop.
    fn go_on(&self) -> Result<(), Self::Stop>;

    /// Rejects more checks than may be made.
    fn admit(&self, size: DraftSize) -> Result<(), Self::Stop>;
}

/// No observer: the set is made to its end.
pub(in crate::policy) struct Unwatched;

impl Watch for Unwatched {
    type Stop = Infallible;

    fn go_on(&self) -> Result<(), Infallible> {
        Ok(())
    }

    fn admit(&self, _: DraftSize) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Size of a draft: its own policies, the tools there are, and the checks of one against the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftSize {
    /// Policies that the draft adds or changes.
    pub policies: usize,
    /// Tools that the set is bound to.
    pub tools: usize,
    /// Pairs of them that have to be checked, as far as they were counted.
    pub checks: usize,
}

/// Bounds of a draft.
#[derive(Clone, Copy)]
pub struct DraftBounds<'a> {
    /// The most checks of a policy of the draft against a tool.
    pub max_checks: usize,
    /// Returns true once the work is to stop.
    pub stop: &'a dyn Fn() -> bool,
}

/// Reason for which a set was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    #[error("the policies have {} errors", .0.len())]
    Policies(Vec<PolicyError>),
    #[error(
        "{} policies for {} tools need more than {max_checks} checks", .size.policies, .size.tools
    )]
    TooLarge { size: DraftSize, max_checks: usize },
    #[error("the work was stopped")]
    Stopped,
}

impl Watch for DraftBounds<'_> {
    type Stop = DraftError;

    fn go_on(&self) -> Result<(), DraftError> {
        if (self.stop)() { Err(DraftError::Stopped) } else { Ok(()) }
    }

    fn admit(&self, size: DraftSize) -> Result<(), DraftError> {
        let max_checks = self.max_checks;
        if size.checks <= max_checks {
            Ok(())
        } else {
            Err(DraftError::TooLarge { size, max_checks })
        }
    }
}
