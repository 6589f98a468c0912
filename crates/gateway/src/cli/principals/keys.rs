//! `portcullis principal key`.

use std::{
    fs::File,
    io::{self, Read},
    path::PathBuf,
};

use clap::Subcommand;
use portcullis_app::Shell;
use portcullis_core::{
    id::PrincipalId,
    trust::{MAX_PUBLIC_KEY_BYTES, PublicKey},
};
use portcullis_store::PrincipalKey;
use serde_json::{Value, json};

use super::Whom;
use crate::cli::Failure;

/// Public keys by which a service account proves itself at the token endpoint
#[derive(Subcommand)]
pub(in crate::cli) enum Keys {
    /// Register a public key: the service account gets tokens for what the private key signs
    Add {
        #[command(flatten)]
        whom: Whom,
        /// The file with the public key as a JWK or in PEM; `-` is standard input
        #[arg(long, value_name = "FILE", default_value = "-")]
        key_file: PathBuf,
    },
    /// List the keys of a service account
    List {
        #[command(flatten)]
        whom: Whom,
    },
    /// Remove a key and revoke the tokens that it bought; running nodes follow within 5 seconds
    Remove {
        #[command(flatten)]
        whom: Whom,
        /// Id of the key, as `portcullis principal key list` shows it
        #[arg(long, value_name = "ID")]
        key: String,
    },
}

impl Keys {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Add { whom, key_file } => {
                let key = PublicKey::parse(&read(&key_file)?)?;
                let added = whom
                    .with(async |shell: &Shell, id: PrincipalId| {
                        Ok(shell.add_principal_key(id, key).await?)
                    })
                    .await?;
                let text = format!("{} has the key {}", added.principal_id, added.key.thumbprint());
                whom.installation.output().record(&record(&added), &text)
            }
            Self::List { whom } => {
                let keys = whom
                    .with(async |shell: &Shell, id: PrincipalId| {
                        Ok(shell.principal_keys(id).await?)
                    })
                    .await?;
                let records: Vec<Value> = keys.iter().map(record).collect();
                let columns = ["id", "type", "kid", "created_at", "last_used_at"];
                whom.installation.output().table(&records, &columns)
            }
            Self::Remove { whom, key } => {
                let remove = async |shell: &Shell, id: PrincipalId| {
                    Ok((id, shell.remove_principal_key(id, &key).await?))
                };
                let (id, revoked) = whom.with(remove).await?;
                let text =
                    format!("removed {key} from {id}; live tokens that fell with it: {revoked}");
                let record = json!({ "principal_id": id, "id": key, "tokens_revoked": revoked });
                whom.installation.output().record(&record, &text)
            }
        }
    }
}

fn read(file: &PathBuf) -> Result<String, Failure> {
    let source: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(file).map_err(|error| format!("`{}`: {error}", file.display()))?)
    };
    let mut text = String::new();
    let limit = u64::try_from(MAX_PUBLIC_KEY_BYTES)? + 1024;
    source.take(limit).read_to_string(&mut text).map_err(|_| "the key cannot be read as text")?;
    Ok(text)
}

fn record(key: &PrincipalKey) -> Value {
    let PrincipalKey { principal_id, key, created_at, last_used_at, .. } = key;
    let kind = key.jwk().get("crv").or_else(|| key.jwk().get("kty"));
    json!({
        "id": key.thumbprint(),
        "principal_id": principal_id,
        "type": kind,
        "kid": key.jwk().get("kid"),
        "jwk": key.jwk(),
        "created_at": created_at,
        "last_used_at": last_used_at,
    })
}
