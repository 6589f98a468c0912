//! `[audit]`: how safely events are kept, what signs the logs, where their checkpoints go.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use portcullis_app::{AnchorFile, Anchors, WitnessedBy};
use portcullis_core::{
    audit::{
        keyring::Keyring,
        note::{KeyKind, VerifierKey},
    },
    secret::Secret,
};
use portcullis_upstream::{Endpoint, Outbound, Witness, secret_printed_by};
use serde::Deserialize;

use super::{AuditRetention, CaptureMode, Exports, Sink, times};

/// `[audit]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Audit {
    pub(crate) sync: AuditSync,
    /// Payload that events keep where no policy says so.
    pub(crate) capture: CaptureMode,
    pub(crate) retention: AuditRetention,
    /// The keys that sign the logs; `audit-key` in the data folder when absent.
    pub(crate) signing_key: Option<KeySource>,
    pub(crate) anchor: Anchor,
    pub(crate) exports: Exports,
    pub(crate) sink: Vec<Sink>,
}

/// Durability of a recorded event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AuditSync {
    /// Every commit waits for the disk.
    #[default]
    PowerLoss,
    /// Faster: what the last moments before a power loss recorded may be lost.
    ProcessCrash,
}

/// File of the signing keys.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum KeySource {
    Env {
        /// Its name.
        env: String,
    },
    /// On the standard output of a command, run without a shell.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
    },
    /// In a file, which is made if nothing was signed yet.
    File { file: PathBuf },
}

/// The longest text of keys.
const MAX_BYTES: usize = 64 << 10;

impl KeySource {
    /// The keys; `None` if there is no such file.
    pub(crate) fn read(&self) -> Result<Option<Keyring>, String> {
        let text = match self {
            Self::Env { env: name } => env::var(name)
                .map(Secret::new)
                .map_err(|_| format!("the environment variable `{name}` is not set"))?,
            Self::Command { command } => secret_printed_by(command, MAX_BYTES)
                .map_err(|error| format!("`audit.signing_key`: {error}"))?,
            Self::File { file } => match fs::read_to_string(file) {
                Ok(text) => Secret::new(text),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(format!("`{}`: {error}", file.display())),
            },
        };
        let ring = Keyring::parse(text.expose()).map_err(|error| format!("{self}: {error}"))?;
        Ok(Some(ring))
    }
}

impl std::fmt::Display for KeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Env { env } => write!(f, "the environment variable `{env}`"),
            Self::Command { command } => {
                let program = command.first().map_or("", String::as_str);
                write!(f, "the output of `{program}`")
            }
            Self::File { file } => write!(f, "`{}`", file.display()),
        }
    }
}

/// `[audit.anchor]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Anchor {
    /// Interval between published checkpoints.
    #[serde(deserialize_with = "times::whole")]
    pub(crate) every_seconds: u64,
    /// A file that is only appended to.
    pub(crate) file: Option<PathBuf>,
    pub(crate) witnesses: Vec<WitnessSettings>,
}

impl Default for Anchor {
    fn default() -> Self {
        Self { every_seconds: 10, file: None, witnesses: Vec::new() }
    }
}

/// One `[[audit.anchor.witnesses]]` table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WitnessSettings {
    /// The submission prefix; `/add-checkpoint` is added to it.
    url: String,
    /// The witness's verifier key, of type 4.
    key: String,
    /// The host may have a private or loopback address, and may be spoken to without TLS.
    #[serde(default)]
    allow_private: bool,
}

impl Audit {
    pub(super) fn check(&self) -> Result<(), String> {
        if !(1..=86_400).contains(&self.anchor.every_seconds) {
            return Err("`audit.anchor.every_seconds` has to be 1 to 86400".to_owned());
        }
        self.retention.check()?;
        self.anchor.witnesses.iter().try_for_each(|witness| witness.key().map(drop))
    }

    /// File in which checkpoints are published.
    pub(crate) fn anchor_file(&self) -> Option<&PathBuf> {
        self.anchor.file.as_ref()
    }

    /// File of the signing keys.
    pub(crate) fn key_source(&self, data_dir: &Path) -> KeySource {
        let beside = || KeySource::File { file: data_dir.join("audit-key") };
        self.signing_key.clone().unwrap_or_else(beside)
    }

    /// The places where checkpoints are published, ready to be used. The error says what to change.
    pub(crate) fn anchors(&self, outbound: &Outbound) -> Result<Anchors, String> {
        let file = self.anchor.file.clone().map(|path| {
            let shown = path.display().to_string();
            AnchorFile::open(path)
                .map_err(|error| format!("`audit.anchor.file` `{shown}`: {error}"))
        });
        let witnesses = self.anchor.witnesses.iter().map(|witness| witness.declare(outbound));
        let every = Duration::from_secs(self.anchor.every_seconds);
        Ok(Anchors::new(every, file.transpose()?, witnesses.collect::<Result<_, _>>()?))
    }

    pub(super) fn take_paths_from(&mut self, folder: &Path) {
        if let Some(KeySource::File { file }) = &mut self.signing_key {
            *file = folder.join(&*file);
        }
        if let Some(file) = &mut self.anchor.file {
            *file = folder.join(&*file);
        }
        self.exports.take_path_from(folder);
        self.sink.iter_mut().for_each(|sink| sink.take_path_from(folder));
    }
}

impl WitnessSettings {
    fn key(&self) -> Result<VerifierKey, String> {
        let wrong = |error: String| format!("the witness `{}`: {error}", self.url);
        let key: VerifierKey = self.key.parse().map_err(|error| wrong(format!("{error}")))?;
        if key.kind() == KeyKind::Witness {
            Ok(key)
        } else {
            Err(wrong("its key is not one for cosignatures (type 4)".to_owned()))
        }
    }

    fn declare(&self, outbound: &Outbound) -> Result<WitnessedBy, String> {
        let endpoint = if self.allow_private {
            Endpoint::allowed(&self.url)
        } else {
            Endpoint::public(&self.url)
        };
        let witness = endpoint.and_then(|endpoint| Witness::new(outbound, &endpoint));
        let witness = witness.map_err(|error| format!("the witness `{}`: {error}", self.url))?;
        Ok(WitnessedBy::new(self.key()?, witness))
    }
}
