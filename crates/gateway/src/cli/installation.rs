//! The installation that a command works on, or the gateway that stands for it.

use std::path::PathBuf;

use clap::Args;
use portcullis_core::id::OrgId;

use super::{
    output::{Failure, Output},
    remote::{self, GatewayOptions},
};
use crate::{
    boot::{self, OfflineNode},
    config::Config,
};

/// Options of every command that works on an installation.
#[derive(Clone, Args)]
pub(super) struct Installation {
    /// The configuration file; without it the defaults and PORTCULLIS_… variables count
    #[arg(long, env = "PORTCULLIS_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    pub(super) remote: GatewayOptions,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Error of commands that need the database and cannot run over the API.
const ONLY_HERE: &str = "this command works on the database and the files of an installation: run it on a node of \
                         the gateway, without `--url` and PORTCULLIS_URL";

impl Installation {
    pub(super) fn output(&self) -> Output {
        Output::new(self.json)
    }

    /// The configuration, for a command that works on the installation. Fails if a gateway is named instead.
    pub(super) fn config(&self) -> Result<Config, Failure> {
        match self.gateway_address() {
            Some(_) => Err(ONLY_HERE.into()),
            None => self.own_config(),
        }
    }

    /// The configuration, whatever gateway is named.
    pub(super) fn own_config(&self) -> Result<Config, Failure> {
        Ok(Config::load(self.config.as_deref())?)
    }

    /// The address of the gateway to work on over its API. That of the environment is for clients as well, so a
    /// configuration that is named counts more.
    pub(super) fn gateway_address(&self) -> Option<String> {
        let of_environment = || self.config.is_none().then(remote::address_of_environment)?;
        self.remote.url.clone().or_else(of_environment)
    }

    /// The id of an org of this installation, whose keys the command uses: it is given by its id, which is taken as it
    /// is, or by its name.
    pub(super) async fn org_id(&self, named: Option<&str>) -> Result<Option<OrgId>, Failure> {
        let Some(named) = named else { return Ok(None) };
        if let Ok(id) = named.parse() {
            return Ok(Some(id));
        }
        self.with_offline_node(async |node| Ok(Some(node.operator.org(named).await?.id))).await
    }

    /// Warns of a node that decides by other policies than those of the folder.
    pub(super) fn warn_if_outdated(&self, config: &Config) {
        if let Some(outdated) = boot::outdated(config) {
            self.output().warn(&outdated);
        }
    }

    /// Warns before files are made in the default data folder, for want of a configuration.
    pub(super) fn warn_if_unconfigured(&self, config: &Config) {
        if !config.is_given {
            let folder = config.data_dir.display();
            let told = format!("no configuration was named: the data folder is `{folder}`");
            self.output().warn(&told);
        }
    }

    /// Acts as the operator of the installation, for a command that only a node of it has.
    pub(super) async fn with_offline_node<T>(
        &self,
        act: impl AsyncFnOnce(&OfflineNode) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        with_node_of(&self.config()?, act).await
    }
}

/// Acts on the store of an installation, and closes it whatever comes of that. Fails if none was configured and none
/// was made: a command in the wrong folder would make another.
pub(super) async fn with_node_of<T>(
    config: &Config,
    act: impl AsyncFnOnce(&OfflineNode) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if !config.is_given && !config.data_dir.join("portcullis.db").exists() {
        return Err(config.without_installation().into());
    }
    let node = OfflineNode::open(config).await?;
    let done = act(&node).await;
    node.close().await;
    done
}
