//! The floor: what is done whatever is set.

use serde::Deserialize;

use crate::catalogue::load::Catalogue;

/// Least that is done about private keys and tokens of clouds and code hosts, whatever else is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Floor(bool);

impl Default for Floor {
    fn default() -> Self {
        Self(true)
    }
}

impl Floor {
    /// The floor taken away.
    pub const NONE: Self = Self(false);

    /// Returns true if the findings of a detector are at least blocked in arguments and masked in answers.
    pub(crate) fn holds(self, name: &str) -> bool {
        self.0 && Catalogue::get().is_on_floor(name)
    }
}
