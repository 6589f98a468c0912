//! `portcullis audit key`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use portcullis_app::origin;
use portcullis_core::{audit::keyring::Keyring, clock::Timestamp, id::OrgId};
use serde_json::{Value, json};

use crate::{
    boot::{OfflineNode, log_keys},
    cli::{installation::Installation, output::Failure},
    config::{Config, KeySource},
};

#[derive(Subcommand)]
pub(in crate::cli) enum AuditKeys {
    /// Print the verifier keys of the logs, to be given to the verifiers
    List(Keys),
    /// Add a signing key; from then on both sign, and verifiers with either key are content
    ///
    /// A running node takes it over within seconds. Give the new verifier keys to the verifiers,
    /// then take the old key out of use with `retire`.
    Rotate(Keys),
    /// Let only the newest key sign; the others are kept by their public halves
    Retire(Keys),
}

#[derive(Args)]
pub(in crate::cli) struct Keys {
    /// Print the keys of this org's log only; an id or a name
    #[arg(long)]
    org: Option<String>,
    #[command(flatten)]
    installation: Installation,
}

impl AuditKeys {
    pub(super) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::List(keys) => {
                let config = keys.installation.config()?;
                let ring = present(&config)?;
                keys.show(&config, &ring).await
            }
            Self::Rotate(keys) => {
                let change = |ring: &Keyring, node: &OfflineNode| {
                    let operator = &node.operator;
                    Ok(ring.rotated(&*operator.random, operator.clock.now()))
                };
                keys.change(change).await
            }
            Self::Retire(keys) => keys.change(|ring, _| Ok(ring.settled()?)).await,
        }
    }
}

/// The keys as they are. Fails if there are none yet.
fn present(config: &Config) -> Result<Keyring, Failure> {
    let source = config.audit.key_source(&config.data_dir);
    let none = || format!("there is no {source} yet: the first start of a node makes it");
    Ok(source.read()?.ok_or_else(none)?)
}

/// The file that holds the keys. Fails if they come from elsewhere.
fn file(config: &Config) -> Result<PathBuf, Failure> {
    match config.audit.key_source(&config.data_dir) {
        KeySource::File { file } => Ok(file),
        KeySource::Env { env } => Err(format!(
            "the signing keys come from the environment variable `{env}`: to rotate, put a second \
             line with 32 random bytes in base64 into it and start the nodes anew; to retire a key, \
             take its line out"
        )
        .into()),
        source @ KeySource::Command { .. } => Err(format!(
            "the signing keys come from {source}: to rotate, let it print a second line with 32 \
             random bytes in base64 and start the nodes anew; to retire a key, let it leave its line \
             out"
        )
        .into()),
    }
}

/// The org of this id or name; all orgs when none is named.
async fn orgs(config: &Config, named: Option<&str>) -> Result<Vec<OrgId>, Failure> {
    let node = OfflineNode::open(config).await?;
    let found = match named {
        Some(named) => node.operator.org(named).await.map(|org| vec![org]),
        None => node.operator.store.list_orgs().await.map_err(Into::into),
    };
    node.close().await;
    Ok(found?.into_iter().map(|org| org.id).collect())
}

impl Keys {
    async fn change(
        &self,
        change: impl FnOnce(&Keyring, &OfflineNode) -> Result<Keyring, Failure>,
    ) -> Result<(), Failure> {
        let config = self.installation.config()?;
        let file = file(&config)?;
        let ring = present(&config)?;
        let node = OfflineNode::open(&config).await?;
        let changed = change(&ring, &node);
        node.close().await;
        let changed = changed?;
        log_keys::replace(&file, &changed)
            .map_err(|error| format!("`{}`: {error}", file.display()))?;
        self.show(&config, &changed).await
    }

    async fn show(&self, config: &Config, ring: &Keyring) -> Result<(), Failure> {
        let mut rows = Vec::new();
        for org in orgs(config, self.org.as_deref()).await? {
            let known = ring.known(&origin(&config.server.public_host, org))?;
            rows.extend(known.into_iter().map(|key| {
                let since = (key.since != Timestamp::default()).then_some(key.since);
                json!({
                    "org_id": org,
                    "since": since,
                    "state": if key.signing { "signing" } else { "retired" },
                    "key": key.verifier.to_string(),
                })
            }));
        }
        let rows: Vec<Value> = rows;
        self.installation.output().table(&rows, &["since", "state", "key"])
    }
}
