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
use portcullis_upstream::with_query;
use serde_json::{Value, json};

use super::Whom;
use crate::cli::{output::Failure, remote::RemoteGateway};

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
        /// Id of the key, as `portcullis principal key list` shows it; it may begin with `-`
        #[arg(long, value_name = "ID", allow_hyphen_values = true)]
        key: String,
    },
}

impl Whom {
    /// The gateway that is named, if one is, and the principal there.
    async fn remotely(&self) -> Result<Option<(RemoteGateway, PrincipalId)>, Failure> {
        let Some(gateway) = self.installation.gateway(self.org.as_deref()).await? else {
            return Ok(None);
        };
        let id = gateway.principal(&self.principal).await?.id;
        Ok(Some((gateway, id)))
    }
}

impl Keys {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Add { whom, key_file } => {
                let key = PublicKey::parse(&read(&key_file)?)?;
                let thumbprint = key.thumbprint().to_owned();
                let jwk = key.jwk().clone();
                let (id, added) = if let Some((gateway, id)) = whom.remotely().await? {
                    let request = json!({ "jwk": jwk });
                    let answer = gateway.post(&keys_of(id), &request).await?;
                    (id, record(&answer, id))
                } else {
                    let add = async |shell: &Shell, id: PrincipalId| {
                        Ok(shell.add_principal_key(id, key).await?)
                    };
                    let added = whom.with(add).await?;
                    (added.principal_id, record(&view(&added), added.principal_id))
                };
                let text = format!("{id} has the key {thumbprint}");
                whom.installation.output().record(&added, &text)
            }
            Self::List { whom } => {
                let records: Vec<Value> = if let Some((gateway, id)) = whom.remotely().await? {
                    let (keys, _) = gateway.page(&keys_of(id), &[]).await?;
                    keys.iter().map(|answer| record(answer, id)).collect()
                } else {
                    let list =
                        async |shell: &Shell, id: PrincipalId| Ok(shell.principal_keys(id).await?);
                    let keys = whom.with(list).await?;
                    keys.iter().map(|key| record(&view(key), key.principal_id)).collect()
                };
                let columns = ["id", "type", "kid", "created_at", "last_used_at"];
                whom.installation.output().table(&records, &columns)
            }
            Self::Remove { whom, key } => {
                let (id, revoked) = if let Some((gateway, id)) = whom.remotely().await? {
                    let path = with_query(&keys_of(id), &[("key_id", &key)]);
                    let answer = gateway.delete(&path).await?;
                    (id, answer.get("tokens_revoked").cloned().unwrap_or_default())
                } else {
                    let remove = async |shell: &Shell, id: PrincipalId| {
                        Ok((id, json!(shell.remove_principal_key(id, &key).await?)))
                    };
                    whom.with(remove).await?
                };
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

fn keys_of(id: PrincipalId) -> String {
    format!("/v1/principals/{id}/keys")
}

/// A key as the API tells it.
fn view(key: &PrincipalKey) -> Value {
    let PrincipalKey { key, created_at, last_used_at, .. } = key;
    json!({
        "id": key.thumbprint(), "jwk": key.jwk(), "created_at": created_at, "last_used_at": last_used_at,
    })
}

fn record(answer: &Value, principal_id: PrincipalId) -> Value {
    let at = |pointer: &str| answer.pointer(pointer).cloned();
    json!({
        "id": at("/id"),
        "principal_id": principal_id,
        "type": at("/jwk/crv").or_else(|| at("/jwk/kty")),
        "kid": at("/jwk/kid"),
        "jwk": at("/jwk"),
        "created_at": at("/created_at"),
        "last_used_at": at("/last_used_at"),
    })
}
