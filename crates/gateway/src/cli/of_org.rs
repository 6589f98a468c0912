//! An org that a command works on: at a gateway elsewhere, or in the shell of an installation.

use clap::Args;
use portcullis_store::Org;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Failure, Installation, remote::RemoteGateway};
use crate::boot::Office;

/// Options of a command about one org.
#[derive(Args)]
pub(super) struct OfOrg {
    /// Id or name of the org; not needed where there is only one
    #[arg(long)]
    pub(super) org: Option<String>,
    #[command(flatten)]
    pub(super) installation: Installation,
}

impl OfOrg {
    /// Acts on the gateway that is named; otherwise on the org of the installation.
    pub(super) async fn act<T>(
        &self,
        remotely: impl AsyncFnOnce(&RemoteGateway) -> Result<T, Failure>,
        here: impl AsyncFnOnce(&Office, Org) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match self.gateway().await? {
            Some(gateway) => remotely(&gateway).await,
            None => self.here(here).await,
        }
    }

    /// Acts on the org of the installation.
    pub(super) async fn here<T>(
        &self,
        act: impl AsyncFnOnce(&Office, Org) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let named = self.org.as_deref();
        let act = async |office: &Office| act(office, office.shell.org_or_only(named).await?).await;
        self.installation.with_office(act).await
    }

    /// The gateway to work on over its API, if one is named.
    pub(super) async fn gateway(&self) -> Result<Option<RemoteGateway>, Failure> {
        self.installation.gateway(self.org.as_deref()).await
    }
}

/// The items of a list as JSON.
pub(super) fn values(items: impl IntoIterator<Item: Serialize>) -> Vec<Value> {
    items.into_iter().map(|item| json!(item)).collect()
}
