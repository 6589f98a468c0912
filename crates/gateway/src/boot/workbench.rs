//! Tools to work on policies with, on the command line.

use std::{collections::BTreeMap, sync::Arc};

use portcullis_app::{Declared, Unread, Workbench};
use portcullis_core::{
    capability::{Definition, ProviderSlug},
    clock::Clock as _,
};
use portcullis_upstream::Outbound;
use serde_json::Value;
use tokio::time::timeout;

use super::{BootError, OfflineNode, SystemClock, SystemRandom, names};
use crate::config::Config;

/// Source of the tools to work on policies with.
#[derive(Debug)]
pub(crate) enum ToolSource<'a> {
    /// A description of them.
    Described(&'a Value),
    /// The store, and the providers of which it knows nothing.
    Store,
    Providers,
}

/// The tools to work on policies with. Needs no key, and opens no database unless there is one.
pub(crate) async fn workbench(
    config: &Config,
    source: ToolSource<'_>,
) -> Result<(Workbench, Vec<Unread>), BootError> {
    let dlp = config.dlp.engine().map_err(BootError::Dlp)?;
    let config = &names::identified_if_known(config).await?;
    let outbound = Outbound::new(Arc::new(SystemRandom));
    let providers: Result<Vec<_>, _> =
        config.providers.iter().map(|it| it.declare(&outbound, &config.connect)).collect();
    let providers = providers?;
    let now = SystemClock.now();
    let webhooks = config.webhooks.keys().cloned();
    if let ToolSource::Described(described) = source {
        let slugs = providers.into_iter().map(|provider| provider.slug).collect();
        let bench = Workbench::described(slugs, described, dlp, now);
        let bench = bench.map_err(|error| BootError::Other(error.to_string()))?;
        return Ok((bench.with_webhooks(webhooks), Vec::new()));
    }
    let patience = config.server.command_patience();
    let mut unread = Vec::new();
    let remembered = match source {
        ToolSource::Store => match timeout(patience, remembered(config, &providers)).await {
            Ok(Ok(remembered)) => remembered,
            Ok(Err(error)) => {
                unread.push(Unread { what: DATABASE.to_owned(), why: error.to_string() });
                BTreeMap::new()
            }
            Err(_) => {
                let why = format!("no answer within {} s", patience.as_secs());
                unread.push(Unread { what: DATABASE.to_owned(), why });
                BTreeMap::new()
            }
        },
        ToolSource::Described(_) | ToolSource::Providers => BTreeMap::new(),
    };
    let (bench, silent) = Workbench::connected(&providers, &remembered, dlp, now, patience).await;
    unread.extend(silent);
    Ok((bench.with_webhooks(webhooks), unread))
}

const DATABASE: &str = "the database";

/// The tools that the store knows, by provider; none while there is no store.
async fn remembered(
    config: &Config,
    providers: &[Declared],
) -> Result<BTreeMap<ProviderSlug, Vec<Definition>>, BootError> {
    let mut remembered = BTreeMap::new();
    let Some(node) = OfflineNode::present(config).await? else { return Ok(remembered) };
    for Declared { slug, org, .. } in providers {
        let tools = node.operator.accepted_tools(*org, slug).await;
        let tools = tools.map_err(|error| BootError::Other(error.to_string()))?;
        if !tools.is_empty() {
            remembered.insert(slug.clone(), tools);
        }
    }
    node.close().await;
    Ok(remembered)
}
