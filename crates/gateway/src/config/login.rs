//! `[login]`: how people log in with a browser.

use portcullis_app::LoginParts;
use serde::Deserialize;

/// `[login]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Login {
    /// Links that `portcullis login-link` makes log people in.
    pub(crate) links: bool,
}

impl Login {
    /// As the app takes it.
    pub(crate) const fn parts(&self) -> LoginParts {
        LoginParts { links: self.links }
    }
}
