//! Follows pins that were changed elsewhere: by the operator, or on another node.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use portcullis_core::id::OrgId;

use super::Providers;

/// Interval between two looks.
pub(crate) const EVERY: Duration = Duration::from_secs(2);
/// Connections that are asked for their tools at once.
const AT_ONCE: usize = 16;

/// Looks once which pins changed; their providers are asked for their tools anew, those that people
/// connect through each connection of the org.
pub(crate) async fn follow(providers: &Arc<Providers>) {
    let changes = match providers.tools.changed_pins().await {
        Ok(changes) => changes,
        Err(error) => {
            tracing::warn!(%error, "changes of pins cannot be read; retrying");
            return;
        }
    };
    let mut connected = BTreeSet::new();
    for change in changes {
        let Some(provider) = providers.catalogue.providers.get(change.tool.provider()) else {
            continue;
        };
        match change.org {
            Some(org) if !provider.declared.auth.needs_nobody() => {
                connected.insert((org, change.tool.provider().to_owned()));
            }
            Some(_) | None => provider.look_again.notify_one(),
        }
    }
    for (org, provider) in connected {
        providers.base.tasks.spawn(list_all(Arc::clone(providers), org, provider));
    }
}

/// Asks all connections of an org to a provider that this node has in memory for their tools.
/// Others are asked when a caller uses them.
async fn list_all(providers: Arc<Providers>, org: OrgId, provider: String) {
    let connections = providers.connections.of(org, &provider);
    let listing = stream::iter(connections).for_each_concurrent(AT_ONCE, |connection| {
        let providers = Arc::clone(&providers);
        async move {
            if let Err(error) = providers.list_again(&connection).await {
                tracing::warn!(provider = connection.slug(), %error, "tools cannot be listed");
            }
        }
    });
    listing.await;
}
