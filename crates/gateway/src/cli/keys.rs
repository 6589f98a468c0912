//! `portcullis key`: making keys, and rotating those that seal credentials.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use clap::Subcommand;
use portcullis_app::rotate_secrets;
use serde_json::{Value, json};

use super::{installation::Installation, output::Failure};
use crate::boot::{self, OfflineNode};

#[derive(Subcommand)]
pub(super) enum Keys {
    /// Write 32 random bytes in base64 to a new file that only its owner can read
    New {
        /// The file, which must not exist yet; by default the one that the configuration names
        file: Option<PathBuf>,
        #[command(flatten)]
        installation: Installation,
    },
    /// List the keys that seal credentials, and how much each of them seals
    List {
        #[command(flatten)]
        installation: Installation,
    },
    /// Seal all credentials under a new key; running nodes go on and read both meanwhile
    ///
    /// With keys from a file a new one is made. With keys from a variable or a command, put the new
    /// key on the first line there before, and this seals everything under it.
    Rotate {
        /// Make no new key: only bring everything under the one that is first already
        #[arg(long)]
        rewrap_only: bool,
        #[command(flatten)]
        installation: Installation,
    },
}

impl Keys {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::New { file, installation } => new(file, &installation),
            Self::List { installation } => list(&installation).await,
            Self::Rotate { rewrap_only, installation } => rotate(rewrap_only, &installation).await,
        }
    }
}

fn new(file: Option<PathBuf>, installation: &Installation) -> Result<(), Failure> {
    let file = if let Some(file) = file {
        file
    } else {
        let config = installation.config()?;
        installation.warn_if_unconfigured(&config);
        config.key_file()
    };
    let shown = file.display().to_string();
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let made = folder.map_or(Ok(()), boot::make_private).and_then(|()| boot::new_key(&file));
    made.map_err(|error| {
        if error.kind() == ErrorKind::AlreadyExists {
            format!("there is a key in `{shown}` already; it stays")
        } else {
            format!("`{shown}`: {error}")
        }
    })?;
    let text = format!("wrote {shown}; keep it, and keep it secret");
    installation.output().record(&json!({ "file": shown }), &text)
}

async fn list(installation: &Installation) -> Result<(), Failure> {
    let config = installation.config()?;
    let vault = boot::open_vault(&config)?;
    let count = async |node: &OfflineNode| Ok(node.operator.store.count_secrets().await?);
    let counted = installation.with_offline_node(count).await?;
    let sealed = |id: &str| counted.iter().find(|(key, _)| key == id).map_or(0, |(_, n)| *n);
    let mut records: Vec<Value> = vault
        .ids()
        .enumerate()
        .map(|(at, id)| {
            let role = if at == 0 { "seals" } else { "opens" };
            json!({ "id": id, "role": role, "secrets": sealed(id) })
        })
        .collect();
    let missing = counted.iter().filter(|(key, _)| !vault.ids().any(|id| id == key));
    records.extend(
        missing.map(|(key, count)| json!({ "id": key, "role": "missing", "secrets": count })),
    );
    installation.output().table(&records, &["id", "role", "secrets"])
}

async fn rotate(rewrap_only: bool, installation: &Installation) -> Result<(), Failure> {
    let config = installation.config()?;
    let place = config.keys.vault_place(&config.key_file());
    // Whatever is wrong with the keys there are is told before there is another.
    boot::open_vault(&config)?;
    let made = match place.own_file() {
        Some(file) if !rewrap_only => {
            prepend_key(file).map_err(|error| format!("`{}`: {error}", file.display()))?;
            true
        }
        Some(_) | None => false,
    };
    let vault = boot::open_vault(&config)?;
    let rotate = async |node: &OfflineNode| {
        Ok(rotate_secrets(&node.operator.store, &vault, &boot::SystemRandom).await?)
    };
    let count = installation.with_offline_node(rotate).await?;
    let id = vault.primary();
    let record = json!({ "id": id, "made": made, "rewrapped": count });
    let text = format!(
        "{count} secrets are sealed under {id} now; running nodes seal under it within a minute. \
         Keep the older keys until `portcullis key list` says that they seal nothing."
    );
    installation.output().record(&record, &text)
}

/// Puts a new key on the first line. A crash leaves the file as it was or as it shall be.
fn prepend_key(file: &Path) -> std::io::Result<()> {
    let known = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let known = zeroize::Zeroizing::new(known);
    let beside = file.with_extension("keys.new");
    let mut new =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    writeln!(new, "{}", *boot::key_line())?;
    new.write_all(known.as_bytes())?;
    new.sync_all()?;
    fs::rename(&beside, file)?;
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::File::open(folder)?.sync_all()?;
    }
    Ok(())
}
