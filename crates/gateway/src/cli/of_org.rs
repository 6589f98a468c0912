//! An org that a command works on: at a gateway elsewhere, or in the shell of an installation.

use std::collections::BTreeMap;

use clap::Args;
use portcullis_store::Org;
use serde::Serialize;
use serde_json::{Value, json};

use super::{installation::Installation, output::Failure, remote::RemoteGateway};
use crate::boot::OfflineNode;

/// Options of a command about one org.
#[derive(Args)]
pub(super) struct OfOrg {
    /// Id or name of the org; not needed where there is only one
    #[arg(long)]
    pub(super) org: Option<String>,
    #[command(flatten)]
    pub(super) installation: Installation,
}

/// Option of a list that is searched.
#[derive(Args)]
pub(super) struct Search {
    /// Only those in whose names, addresses or labels a word begins so, in any case
    #[arg(long = "search", value_name = "TEXT", value_parser = short)]
    text: Option<String>,
}

impl Search {
    pub(super) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// As a parameter of the API, if there is one.
    pub(super) fn parameter(&self) -> Option<(&'static str, &str)> {
        Some(("q", self.text()?))
    }
}

/// A text as the API takes it in a search.
fn short(text: &str) -> Result<String, &'static str> {
    let fits = !text.is_empty() && text.chars().count() <= 64;
    if fits { Ok(text.to_owned()) } else { Err("it has to be 1 to 64 characters long") }
}

impl OfOrg {
    /// Acts on the gateway that is named; otherwise on the org of the installation.
    pub(super) async fn act<T>(
        &self,
        remotely: impl AsyncFnOnce(&RemoteGateway) -> Result<T, Failure>,
        here: impl AsyncFnOnce(&OfflineNode, Org) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match self.gateway().await? {
            Some(gateway) => remotely(&gateway).await,
            None => self.here(here).await,
        }
    }

    /// Acts on the org of the installation.
    pub(super) async fn here<T>(
        &self,
        act: impl AsyncFnOnce(&OfflineNode, Org) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let named = self.org.as_deref();
        let act = async |node: &OfflineNode| act(node, node.shell.org_or_only(named).await?).await;
        self.installation.with_offline_node(act).await
    }

    /// Records about principals, whose ids are their member `id`: each with the name as `principal_name`.
    pub(super) async fn named(
        &self,
        id: &str,
        remotely: impl AsyncFnOnce(&RemoteGateway) -> Result<Vec<Value>, Failure>,
        here: impl AsyncFnOnce(&OfflineNode, Org) -> Result<Vec<Value>, Failure>,
    ) -> Result<Vec<Value>, Failure> {
        let remotely = async |gateway: &RemoteGateway| {
            // A token that may not list people is shown their ids.
            let known = gateway.list("/v1/principals", &[]).await.unwrap_or_default();
            let names =
                known.into_iter().filter_map(|it| Some((text(&it, "id")?, text(&it, "name")?)));
            Ok((names.collect(), remotely(gateway).await?))
        };
        let here = async |node: &OfflineNode, org: Org| {
            let known = node.shell.principals(org.id, None).await?;
            let names = known.into_iter().map(|it| (it.id.to_string(), it.name));
            Ok((names.collect(), here(node, org).await?))
        };
        let (names, mut records): (BTreeMap<String, String>, Vec<Value>) =
            self.act(remotely, here).await?;
        for record in &mut records {
            let (of, told) = (text(record, id), text(record, "principal_name"));
            let name = of.and_then(|of| names.get(&of).cloned().or(told).or(Some(of)));
            if let Value::Object(members) = record {
                members.insert("principal_name".to_owned(), json!(name));
            }
        }
        Ok(records)
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

fn text(record: &Value, member: &str) -> Option<String> {
    record.get(member)?.as_str().map(str::to_owned)
}
