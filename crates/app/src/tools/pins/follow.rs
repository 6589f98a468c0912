//! Following pins that somebody else changed: the operator, or another node.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use portcullis_core::{clock::Timestamp, id::OrgId};
use portcullis_store::{PinChange, StoreError};

use crate::App;

use super::Pins;

/// How often it is looked.
pub(crate) const EVERY: Duration = Duration::from_secs(2);
/// Clocks of nodes differ, and a change may become visible after it was dated.
const MARGIN_SECONDS: i64 = 30;
/// Connections that are asked for their tools at once.
const AT_ONCE: usize = 16;

/// What was followed already.
#[derive(Debug, Default)]
pub(crate) struct Followed(HashMap<(String, String), Timestamp>);

impl Pins {
    /// Whether this node has another idea of the tool than the store.
    fn differs(&self, change: &PinChange) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(&(change.org, change.tool.clone()));
        known.is_none_or(|(accepted, found)| (accepted, found) != (&change.accepted, &change.found))
    }

    /// Those of the changes that this node does not know of. Each is given once.
    fn unfollowed(&self, mut changes: Vec<PinChange>, since: Timestamp) -> Vec<PinChange> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.0.retain(|_, at| *at >= since);
        changes.retain(|change| {
            let scope = change.org.map_or_else(String::new, |org| org.to_string());
            let before = followed.0.insert((scope, change.tool.to_string()), change.changed_at);
            before != Some(change.changed_at) && self.differs(change)
        });
        changes
    }
}

/// Looks once which pins changed; their providers are asked for their tools anew, those that people
/// connect through each connection of the org.
pub(crate) async fn follow(app: &Arc<App>) {
    let changes = match unfollowed(app).await {
        Ok(changes) => changes,
        Err(error) => {
            tracing::warn!(%error, "changes of pins cannot be read; it is tried again");
            return;
        }
    };
    let mut connected = BTreeSet::new();
    for change in changes {
        let Some(provider) = app.providers.get(change.tool.provider()) else { continue };
        match change.org {
            Some(org) if !provider.declared.auth.needs_nobody() => {
                connected.insert((org, change.tool.provider().to_owned()));
            }
            Some(_) | None => provider.look_again.notify_one(),
        }
    }
    for (org, provider) in connected {
        app.tasks.spawn(list_all(Arc::clone(app), org, provider));
    }
}

async fn unfollowed(app: &App) -> Result<Vec<PinChange>, StoreError> {
    // Not while this node changes pins: it would take its own change for that of another, ask the
    // provider again, and so on for as long as there is something new each time.
    let _turn = app.pins.turn.lock().await;
    let since = app.clock.now().plus_seconds(-MARGIN_SECONDS);
    let changes = app.store.pins_changed_since(since).await?;
    Ok(app.pins.unfollowed(changes, since))
}

/// Asks all connections of an org to a provider that this node has in memory for their tools.
/// Others are asked when somebody uses them.
async fn list_all(app: Arc<App>, org: OrgId, provider: String) {
    let connections = app.connections.of(org, &provider);
    let listing = stream::iter(connections).for_each_concurrent(AT_ONCE, |connection| {
        let app = Arc::clone(&app);
        async move {
            if let Err(error) = app.list_again(&connection).await {
                tracing::warn!(provider = connection.slug(), %error, "tools cannot be listed");
            }
        }
    });
    listing.await;
}
