//! `[admin]`: what admins of orgs may do over the API.

use serde::Deserialize;

/// `[admin]`.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Admin {
    /// True if every change over the API is refused: the installation is run from elsewhere, such as
    /// a repository.
    pub(crate) read_only: bool,
}
