//! `[audit.exports]` and `[[audit.sink]]`: where export files lie and copies of events go.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use portcullis_app::{ExportLimits, FileOutlet, Outlet, SinkSettings};
use portcullis_upstream::{OtlpReceiver, Outbound};
use serde::Deserialize;

use super::{
    ConfigError,
    otlp::Receiver,
    secrets::SecretSource,
    times::{self, Seconds},
};

/// Characters of a name at most.
const LONGEST_NAME: usize = 63;
const USUAL_BYTES: u64 = 64 << 20;
const USUAL_FILES: u32 = 10;

/// `[audit.exports]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Exports {
    /// The folder; `exports` in the data folder when absent.
    pub(crate) path: Option<PathBuf>,
    /// All nodes see the same files in it.
    pub(crate) shared: bool,
    /// Files of an org at once.
    max_per_org: u32,
    /// Bytes of an org's files together.
    max_bytes_per_org: u64,
    /// Bytes that have to stay free on the disk: below them no export begins or goes on.
    min_free_bytes: u64,
}

impl Default for Exports {
    fn default() -> Self {
        let ExportLimits { files, bytes, min_free_bytes } = ExportLimits::default();
        Self {
            path: None,
            shared: false,
            max_per_org: files,
            max_bytes_per_org: bytes,
            min_free_bytes,
        }
    }
}

impl Exports {
    /// Limits on export files.
    pub(crate) const fn limits(&self) -> ExportLimits {
        ExportLimits {
            files: self.max_per_org,
            bytes: self.max_bytes_per_org,
            min_free_bytes: self.min_free_bytes,
        }
    }

    /// Makes a relative path begin at the folder of the file it is written in.
    pub(super) fn take_path_from(&mut self, folder: &Path) {
        self.path = self.path.as_ref().map(|path| folder.join(path));
    }
}

/// One `[[audit.sink]]` entry.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sink {
    /// Its name; where it stopped is remembered under it.
    name: String,
    /// `stdout`, `file` or `otlp`.
    #[serde(rename = "type")]
    kind: SinkKind,
    /// Includes names and addresses.
    #[serde(default)]
    detached: bool,
    /// The file, for `file`.
    path: Option<PathBuf>,
    max_bytes: Option<u64>,
    /// Number of full files that are kept.
    max_files: Option<u32>,
    /// Longest time that they are kept.
    max_age: Option<Seconds>,
    /// The full address, for `otlp`: that of `/v1/logs`.
    url: Option<String>,
    /// The host may have a private or loopback address, and may be spoken to without TLS.
    #[serde(default)]
    allow_private: bool,
    token: Option<SecretSource>,
    /// The header that carries the token; `Authorization: Bearer` when absent.
    token_header: Option<String>,
    /// Seconds for a batch.
    #[serde(default, deserialize_with = "times::whole")]
    timeout_seconds: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SinkKind {
    Stdout,
    File,
    Otlp,
}

impl Sink {
    /// Makes a relative path begin at the folder of the file it is written in.
    pub(super) fn take_path_from(&mut self, folder: &Path) {
        self.path = self.path.as_ref().map(|path| folder.join(path));
    }

    /// The sinks, ready to be fed. The error says what to change.
    pub(crate) fn declare_all(
        sinks: &[Self],
        outbound: &Outbound,
    ) -> Result<Vec<SinkSettings>, ConfigError> {
        let mut names = BTreeSet::new();
        let mut paths = BTreeSet::new();
        let mut stdouts = 0;
        let mut declared = Vec::with_capacity(sinks.len());
        for sink in sinks {
            let wrong =
                |text: &str| Err(ConfigError::Wrong(format!("audit.sink `{}`: {text}", sink.name)));
            stdouts += u32::from(sink.kind == SinkKind::Stdout);
            if !names.insert(&sink.name) {
                return wrong("this name is given twice");
            }
            if sink.path.as_ref().is_some_and(|path| !paths.insert(path)) || stdouts > 1 {
                return wrong("another sink goes there already");
            }
            match sink.declared(outbound) {
                Ok(settings) => declared.push(settings),
                Err(text) => return wrong(&text),
            }
        }
        Ok(declared)
    }

    fn declared(&self, outbound: &Outbound) -> Result<SinkSettings, String> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || self.name.len() > LONGEST_NAME || !self.name.chars().all(plain) {
            return Err("a name has lower-case letters, digits and hyphens".to_owned());
        }
        self.only_its_own()?;
        let outlet = match self.kind {
            SinkKind::Stdout => Outlet::Stdout,
            SinkKind::File => Outlet::File(self.file()?),
            SinkKind::Otlp => Outlet::Otlp(self.receiver(outbound)?),
        };
        Ok(SinkSettings { name: self.name.clone(), outlet, detached: self.detached })
    }

    /// A key that does nothing is one that was meant to do something.
    fn only_its_own(&self) -> Result<(), String> {
        let file = [
            ("path", self.path.is_some()),
            ("max_bytes", self.max_bytes.is_some()),
            ("max_files", self.max_files.is_some()),
            ("max_age", self.max_age.is_some()),
        ];
        let otlp = [
            ("url", self.url.is_some()),
            ("allow_private", self.allow_private),
            ("token", self.token.is_some()),
            ("token_header", self.token_header.is_some()),
            ("timeout_seconds", self.timeout_seconds.is_some()),
        ];
        let foreign: &[&[_]] = match self.kind {
            SinkKind::Stdout => &[&file, &otlp],
            SinkKind::File => &[&otlp],
            SinkKind::Otlp => &[&file],
        };
        match foreign.iter().copied().flatten().find(|(_, given)| *given) {
            Some((key, _)) => Err(format!("`{key}` belongs to another type of sink")),
            None => Ok(()),
        }
    }

    fn file(&self) -> Result<FileOutlet, String> {
        let path = self.path.clone().ok_or("`type = \"file\"` needs a `path`")?;
        let max_bytes = self.max_bytes.unwrap_or(USUAL_BYTES);
        if max_bytes == 0 || path.file_name().is_none() {
            return Err("`path` has to name a file and `max_bytes` to be more than 0".to_owned());
        }
        let max_age = self.max_age.and_then(|age| u64::try_from(age.0).ok());
        Ok(FileOutlet {
            path,
            max_bytes,
            max_files: self.max_files.unwrap_or(USUAL_FILES).min(1_000),
            max_age: max_age.map(Duration::from_secs),
        })
    }

    fn receiver(&self, outbound: &Outbound) -> Result<OtlpReceiver, String> {
        let receiver = Receiver {
            url: self.url.as_deref().ok_or("`type = \"otlp\"` needs a `url`")?,
            allow_private: self.allow_private,
            token: self.token.as_ref(),
            token_header: self.token_header.as_deref(),
            timeout_seconds: self.timeout_seconds,
        };
        receiver.declare(outbound)
    }
}
