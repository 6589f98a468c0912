//! The org and the tool that a value is scanned for.

use crate::findings::fingerprint::FingerprintKey;

/// For whom a value is scanned: under whose key fingerprints are made, and which tool's
/// exceptions hold.
#[derive(Debug, Clone)]
pub struct Subject {
    pub(crate) key: FingerprintKey,
    pub(crate) tool: Option<Box<str>>,
}

impl Subject {
    /// An org, by its key.
    #[must_use]
    pub const fn of(key: FingerprintKey) -> Self {
        Self { key, tool: None }
    }

    /// The same in a call of this tool.
    #[must_use]
    pub fn calling(self, tool: &str) -> Self {
        Self { tool: Some(tool.into()), ..self }
    }
}
