//! `[console]`: pages for people who are signed in.

use serde::Deserialize;

/// `[console]`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Console {
    /// True if `/console` answers.
    pub(crate) enabled: bool,
}

impl Default for Console {
    fn default() -> Self {
        Self { enabled: true }
    }
}
