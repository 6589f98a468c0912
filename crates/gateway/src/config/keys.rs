//! `[keys]`: the key everything is derived from, and those that seal credentials.

use std::{fs, path::PathBuf};

use portcullis_core::vault::{Vault, parse_keys};
use portcullis_upstream::secret_printed_by;
use serde::Deserialize;
use zeroize::Zeroizing;

/// `[keys]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Keys {
    /// A file with 32 random bytes in base64; `key` in the data folder when absent.
    pub(crate) file: Option<PathBuf>,
    /// File of the keys that seal credentials; `vault.keys` beside the key file when absent.
    pub(crate) vault: Option<VaultKeys>,
}

/// Source of the keys: one a line, 32 bytes in base64, the one that seals first.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum VaultKeys {
    File {
        file: PathBuf,
    },
    Env {
        env: String,
    },
    /// On the standard output of a command, run without a shell.
    Command {
        command: Vec<String>,
    },
}

/// The longest text of keys.
const MAX_BYTES: usize = 64 << 10;

impl VaultKeys {
    fn read(&self) -> Result<Zeroizing<String>, String> {
        let text = match self {
            Self::File { file } => fs::read_to_string(file)
                .map_err(|error| format!("`{}` cannot be read: {error}", file.display()))?,
            Self::Env { env } => std::env::var(env)
                .map_err(|_| format!("the environment variable `{env}` is not set"))?,
            Self::Command { command } => {
                let printed = secret_printed_by(command, MAX_BYTES);
                printed.map_err(|error| format!("`keys.vault`: {error}"))?.expose().to_owned()
            }
        };
        let text = Zeroizing::new(text);
        if text.len() > MAX_BYTES {
            return Err("there are more keys than anybody needs".to_owned());
        }
        Ok(text)
    }
}

/// Source of the keys, which can be read again.
#[derive(Debug, Clone)]
pub(crate) struct VaultPlace {
    source: Option<VaultKeys>,
    /// The file beside the key file, for when nothing is configured.
    pub(crate) usual: PathBuf,
}

impl Keys {
    /// Source of the keys, relative to the key file.
    pub(crate) fn vault_place(&self, key_file: &std::path::Path) -> VaultPlace {
        VaultPlace { source: self.vault.clone(), usual: key_file.with_file_name("vault.keys") }
    }
}

impl VaultPlace {
    /// The file that `portcullis key rotate` writes; `None` if the keys come from elsewhere.
    pub(crate) fn own_file(&self) -> Option<&PathBuf> {
        match &self.source {
            None => Some(&self.usual),
            Some(VaultKeys::File { file }) => Some(file),
            Some(VaultKeys::Env { .. } | VaultKeys::Command { .. }) => None,
        }
    }

    /// The ring of keys. The one derived from the key file opens always and seals until there is
    /// another.
    pub(crate) fn open(&self, derived: &[u8; 32]) -> Result<Vault, String> {
        let text = match &self.source {
            Some(source) => source.read()?,
            None => match fs::read_to_string(&self.usual) {
                Ok(text) => Zeroizing::new(text),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Zeroizing::default(),
                Err(error) => {
                    return Err(format!("`{}` cannot be read: {error}", self.usual.display()));
                }
            },
        };
        let mut keys = parse_keys(&text).map_err(|error| format!("`[keys]`: {error}"))?;
        if self.source.is_some() && keys.is_empty() {
            return Err("`keys.vault` holds no key".to_owned());
        }
        keys.push(Zeroizing::new(*derived));
        Vault::new(&keys).map_err(|error| format!("`[keys]`: {error}"))
    }
}
