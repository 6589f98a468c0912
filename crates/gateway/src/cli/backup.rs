//! `portcullis backup` and `portcullis restore`.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Component, Path, PathBuf},
};

use aws_lc_rs::digest::{Context, SHA256};
use clap::Args;
use portcullis_app::PolicyFolder;
use portcullis_core::clock::Timestamp;
use portcullis_store::Store;
use serde::{Deserialize, Serialize};
use serde_json::json;
use zeroize::Zeroizing;

use super::{installation::Installation, output::Failure};
use crate::{
    boot::{self, OfflineNode, make_private},
    config::{Config, KeySource},
};

/// Write a copy of the installation, while it serves
///
/// The copy holds the database as it is at one moment, the policies and the configuration. Keys are left
/// out: kept together with the database they open everything. A PostgreSQL database is copied by `pg_dump`;
/// `--files-only` copies the rest.
#[derive(Args)]
#[command(after_help = "Examples:\n  portcullis backup /backup/2026-11-26\n  \
                        portcullis backup /safe/keys --files-only --keys")]
pub(super) struct Backup {
    /// The folder to make; it may exist if it is empty
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Copy the keys of the installation as well
    #[arg(long)]
    keys: bool,
    /// Leave the database out
    #[arg(long)]
    files_only: bool,
    #[command(flatten)]
    installation: Installation,
}

/// Put a copy that `portcullis backup` wrote into the place of an installation
///
/// Nothing may serve from the data folder, and nothing that is there is overwritten: a database has to be
/// moved away first, and policies and keys that are there stay. The configuration is the one of the
/// command, not the copied one.
#[derive(Args)]
#[command(
    after_help = "Example: portcullis restore /backup/2026-11-26 --config /etc/portcullis/portcullis.toml"
)]
pub(super) struct Restore {
    /// A folder that `portcullis backup` wrote
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    #[command(flatten)]
    installation: Installation,
}

const MANIFEST: &str = "manifest.json";
const DATABASE: &str = "portcullis.db";
const CONFIG: &str = "portcullis.toml";
const POLICIES: &str = "policies";
const KEYS: &str = "keys";

/// Contents of a copy. A copy without this file is not complete.
#[derive(Serialize, Deserialize)]
struct Manifest {
    version: String,
    taken_at: Timestamp,
    files: Vec<CopiedFile>,
}

/// A file of a copy, by its path in it.
#[derive(Serialize, Deserialize)]
struct CopiedFile {
    path: String,
    bytes: u64,
    sha256: String,
}

/// The files of an installation besides its database and policies, by their place in a copy.
fn places(config: &Config, with_keys: bool) -> Vec<(String, PathBuf)> {
    let anchor = config.audit.anchor_file().cloned();
    let mut places = vec![("policies.overrides.json".to_owned(), config.overrides_file())];
    places.extend(anchor.map(|file| ("anchor".to_owned(), file)));
    if with_keys {
        let key_file = config.key_file();
        let vault = config.keys.vault_place(&key_file).own_file().cloned();
        let audit = match config.audit.key_source(&config.data_dir) {
            KeySource::File { file } => Some(file),
            KeySource::Env { .. } | KeySource::Command { .. } => None,
        };
        places.push((format!("{KEYS}/key"), key_file));
        places.extend(vault.map(|file| (format!("{KEYS}/vault.keys"), file)));
        places.extend(audit.map(|file| (format!("{KEYS}/audit-key"), file)));
    }
    places
}

impl Backup {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let config = self.installation.config()?;
        let database = config.database.address(&config.data_dir)?;
        if !self.files_only && database.file().is_none() {
            return Err("the database is PostgreSQL: copy it with `pg_dump` (docs/operator.md), and the rest \
                        with `--files-only`"
                .into());
        }
        make_empty(&self.folder)?;
        if let Some(file) = database.file().filter(|_| !self.files_only) {
            let bytes = fs::metadata(file).map_or(0, |it| it.len());
            let mebibytes = bytes.div_ceil(1 << 20);
            self.installation.output().note(&format!("copying the database, {mebibytes} MiB"));
            let copy = self.folder.join(DATABASE);
            let copy = async |node: &OfflineNode| copy_database(&node.operator.store, &copy).await;
            self.installation.with_offline_node(copy).await?;
        }
        let mut sources = places(&config, self.keys);
        sources.extend(config.file.clone().map(|file| (CONFIG.to_owned(), file)));
        for (path, source) in sources.iter().filter(|(_, source)| source.exists()) {
            copy_new(source, &self.folder.join(path))?;
        }
        let policies = config.policy_folder();
        if policies.is_dir() {
            let read = PolicyFolder::new(policies).read()?;
            for file in read.policies.iter().chain(&read.cases) {
                write_new(&self.folder.join(POLICIES).join(&file.path), file.text.as_bytes())?;
            }
        }
        let manifest = Manifest {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            taken_at: boot::now(),
            files: described(&self.folder)?,
        };
        write_new(&self.folder.join(MANIFEST), &serde_json::to_vec_pretty(&manifest)?)?;
        let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
        let shown = json!({ "folder": self.folder, "files": manifest.files.len(), "bytes": bytes });
        let keys = if self.keys { "" } else { "; the keys are not in it (`--keys`)" };
        let text = format!(
            "{} files, {bytes} bytes in {}{keys}",
            manifest.files.len(),
            self.folder.display()
        );
        self.installation.output().record(&shown, &text)
    }
}

impl Restore {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let config = self.installation.config()?;
        let manifest = verified(&self.folder)?;
        boot::claim(&config)?;
        // Of the folder only files that were written with the copy, and are as they were, count.
        let holds = |path: &String| manifest.files.iter().any(|file| file.path == *path);
        let places: Vec<_> =
            places(&config, true).into_iter().filter(|(path, _)| holds(path)).collect();
        refuse_other_keys(&self.folder, &places)?;
        let database = config.database.address(&config.data_dir)?;
        let holds_one = manifest.files.iter().any(|file| file.path == DATABASE);
        if holds_one {
            let Some(file) = database.file() else {
                return Err("the copy holds an SQLite database, and the configuration names PostgreSQL: restore \
                            with a configuration of SQLite, then `portcullis migrate --from`"
                    .into());
            };
            if file.exists() {
                return Err(format!(
                    "`{}` exists: move it away first, with `-wal` and `-shm` beside it",
                    file.display()
                )
                .into());
            }
            require_key(&config, &manifest)?;
            copy_new(&self.folder.join(DATABASE), file)?;
        }
        let mut kept = Vec::new();
        for (path, place) in &places {
            kept.extend(restore_file(&self.folder.join(path), place)?);
        }
        let policies = config.policy_folder();
        let prefix = format!("{POLICIES}/");
        let files = manifest.files.iter().filter_map(|file| file.path.strip_prefix(&prefix));
        for path in files {
            let source = self.folder.join(POLICIES).join(path);
            kept.extend(restore_file(&source, &policies.join(path))?);
        }
        if holds_one {
            // Opening it brings its schema up to date.
            self.installation.with_offline_node(async |_| Ok(())).await?;
        }
        for place in &kept {
            let message = format!("`{place}` is there already and stays as it is");
            self.installation.output().warn(&message);
        }
        let shown = json!({ "taken_at": manifest.taken_at, "database": holds_one, "kept": kept });
        let text = format!(
            "restored what was copied at {}; what was revoked since is valid again (docs/operator.md, After a \
             restore). Go on with `portcullis check`",
            manifest.taken_at
        );
        self.installation.output().record(&shown, &text)
    }
}

/// Refuses key files that lack a key of the copy: they would not open what is restored. A file that has newer keys
/// beside those of the copy may stay.
fn refuse_other_keys(folder: &Path, places: &[(String, PathBuf)]) -> Result<(), Failure> {
    let keys = places.iter().filter(|(path, _)| Path::new(path).starts_with(KEYS));
    for (path, place) in keys.filter(|(_, place)| place.exists()) {
        let copied = Zeroizing::new(fs::read(folder.join(path))?);
        let there = Zeroizing::new(fs::read(place)?);
        let is_there = |key: &[u8]| lines(&there).any(|line| line == key);
        if !lines(&copied).all(is_there) {
            return Err(format!(
                "`{}` lacks a key of the copy: move it away first; nothing was restored",
                place.display()
            )
            .into());
        }
    }
    Ok(())
}

/// The lines of a key file that are not blank.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

/// Copies a file, unless there is one in its place already. Gives that place if it holds another file.
fn restore_file(from: &Path, to: &Path) -> Result<Option<String>, Failure> {
    if !to.exists() {
        copy_new(from, to)?;
        return Ok(None);
    }
    let differs = fs::read(from)? != fs::read(to)?;
    Ok(differs.then(|| to.display().to_string()))
}

/// Refuses a database whose key is neither here nor in the copy: a new key in its place would not open it.
fn require_key(config: &Config, manifest: &Manifest) -> Result<(), Failure> {
    let key = config.key_file();
    if key.exists() || manifest.files.iter().any(|file| file.path == format!("{KEYS}/key")) {
        return Ok(());
    }
    Err(format!(
        "the key file `{}` is not there, and the database is opened with it: restore the copy of the keys first \
         (docs/operator.md)",
        key.display()
    )
    .into())
}

async fn copy_database(store: &Store, to: &Path) -> Result<(), Failure> {
    store.copy_to(to).await?;
    File::open(to)?.sync_all()?;
    Ok(())
}

/// Makes a folder for its owner alone. Rejects one that holds something.
fn make_empty(folder: &Path) -> Result<(), Failure> {
    make_private(folder).map_err(|error| format!("`{}`: {error}", folder.display()))?;
    if fs::read_dir(folder)?.next().is_some() {
        return Err(format!("`{}` is not empty", folder.display()).into());
    }
    Ok(fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?)
}

/// Opens a new file for its owner alone, in a folder that is made if it is not there.
fn create_new(to: &Path) -> Result<File, Failure> {
    let shown = |error: io::Error| format!("`{}`: {error}", to.display());
    make_private(to.parent().unwrap_or(Path::new("."))).map_err(shown)?;
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    Ok(file.map_err(shown)?)
}

fn copy_new(from: &Path, to: &Path) -> Result<(), Failure> {
    let mut source = File::open(from).map_err(|error| format!("`{}`: {error}", from.display()))?;
    let mut target = create_new(to)?;
    io::copy(&mut source, &mut target)?;
    Ok(target.sync_all()?)
}

fn write_new(to: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut target = create_new(to)?;
    io::Write::write_all(&mut target, bytes)?;
    Ok(target.sync_all()?)
}

/// The files below a folder, with their digests.
fn described(folder: &Path) -> Result<Vec<CopiedFile>, Failure> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(inner)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let (bytes, sha256) = digest_of(&path)?;
            let path = path.strip_prefix(folder)?.to_string_lossy().into_owned();
            found.push(CopiedFile { path, bytes, sha256 });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn digest_of(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let mut context = Context::new(&SHA256);
    let mut piece = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            let digest = context.finish();
            let hex = |text: String, byte: &u8| text + &format!("{byte:02x}");
            return Ok((bytes, digest.as_ref().iter().fold(String::new(), hex)));
        }
        bytes += u64::try_from(length).unwrap_or(u64::MAX);
        context.update(piece.get(..length).unwrap_or_default());
    }
}

/// The manifest of a copy whose files are those that were written.
fn verified(folder: &Path) -> Result<Manifest, Failure> {
    let file = folder.join(MANIFEST);
    let text = fs::read(&file).map_err(|error| {
        format!("`{}`: {error}; the copy was not finished, or this is none", file.display())
    })?;
    let manifest: Manifest = serde_json::from_slice(&text)?;
    for CopiedFile { path, bytes, sha256 } in &manifest.files {
        let inside = Path::new(path).components().all(|it| matches!(it, Component::Normal(_)));
        if !inside {
            return Err(format!("`{path}` in the manifest is no path within the copy").into());
        }
        let found = digest_of(&folder.join(path)).map_err(|error| format!("`{path}`: {error}"))?;
        if found != (*bytes, sha256.clone()) {
            return Err(format!("`{path}` is not as it was written: the copy is damaged").into());
        }
    }
    Ok(manifest)
}
