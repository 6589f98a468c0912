//! Places that secrets come from.

use std::{env, fs, path::PathBuf};

use portcullis_core::secret::Secret;
use serde::Deserialize;

/// Source of a secret. Plain text in the file is possible for what is none.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum SecretSource {
    Env {
        env: String,
        /// Value in place of a variable that is not set.
        default: Option<String>,
    },
    File {
        file: PathBuf,
    },
    Text(String),
}

impl std::fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Env { env, .. } => write!(f, "env {env}"),
            Self::File { file } => write!(f, "file {}", file.display()),
            Self::Text(_) => f.write_str("text …"),
        }
    }
}

impl SecretSource {
    /// Takes this text in place of the value of a variable.
    pub(super) fn stand_in(&mut self, text: &str) {
        if let Self::Env { .. } = self {
            *self = Self::Text(text.to_owned());
        }
    }

    pub(super) fn read(&self) -> Result<Secret, String> {
        match self {
            Self::Env { env, default } => env::var(env)
                .ok()
                .or_else(|| default.clone())
                .map(Secret::new)
                .ok_or_else(|| format!("the environment variable `{env}` is not set")),
            Self::File { file } => fs::read_to_string(file)
                .map(|text| Secret::new(text.trim_end().to_owned()))
                .map_err(|error| format!("`{}` cannot be read: {error}", file.display())),
            Self::Text(text) => Ok(Secret::new(text.clone())),
        }
    }
}
