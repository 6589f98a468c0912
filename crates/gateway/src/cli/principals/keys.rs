//! `portcullis principal key`.

use std::{
    fs::File,
    io::{self, Read},
    path::PathBuf,
};

use clap::Subcommand;
use portcullis_core::{
    id::PrincipalId,
    trust::{MAX_PUBLIC_KEY_BYTES, PublicKey},
};
use portcullis_upstream::with_query;
use serde_json::{Value, json};

use super::Whom;
use crate::cli::{
    api::{Api, Shape, text},
    output::Failure,
};

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

/// A key as commands show it, of the principal `principal_id`.
const SHAPE: Shape = Shape {
    members: &["id", "principal_id", "type", "kid=/jwk/kid", "jwk", "created_at", "last_used_at"],
    columns: &["id", "type", "kid", "created_at", "last_used_at"],
    add: |members| {
        let jwk = members.get("jwk");
        let kind = jwk.and_then(|jwk| jwk.get("crv").or_else(|| jwk.get("kty"))).cloned();
        members.insert("type".to_owned(), json!(kind));
    },
};

impl Keys {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Add { whom, key_file } => {
                let key = PublicKey::parse(&read(&key_file)?)?;
                let add = async |api: &Api<'_>, id| {
                    let answer = api.post(&keys_of(id), json!({ "jwk": key.jwk() })).await?;
                    api.record(of(answer, id), &SHAPE).await
                };
                let added = whom.ask(add).await?;
                let id = text(&added, "principal_id");
                let text = format!("{id} has the key {}", key.thumbprint());
                whom.installation.output().record(&added, &text)
            }
            Self::List { whom } => {
                let list = async |api: &Api<'_>, id| {
                    let (keys, _) = api.page(&keys_of(id), &[]).await?;
                    api.records(keys.into_iter().map(|key| of(key, id)).collect(), &SHAPE).await
                };
                let keys = whom.ask(list).await?;
                whom.installation.output().table(&keys, SHAPE.columns)
            }
            Self::Remove { whom, key } => {
                let remove = async |api: &Api<'_>, id| {
                    let path = with_query(&keys_of(id), &[("key_id", &key)]);
                    let revoked = api.delete(&path).await?.get("tokens_revoked").cloned();
                    Ok(json!({ "principal_id": id, "id": key, "tokens_revoked": revoked }))
                };
                let removed = whom.ask(remove).await?;
                let id = text(&removed, "principal_id");
                let revoked = removed.get("tokens_revoked").cloned().unwrap_or_default();
                let text =
                    format!("removed {key} from {id}; live tokens that fell with it: {revoked}");
                whom.installation.output().record(&removed, &text)
            }
        }
    }
}

/// A key with whose it is.
fn of(mut key: Value, principal: PrincipalId) -> Value {
    if let Value::Object(members) = &mut key {
        members.insert("principal_id".to_owned(), json!(principal));
    }
    key
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
