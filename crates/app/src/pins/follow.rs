//! Following pins that somebody else changed: the operator, or another node.

use std::{collections::HashMap, sync::PoisonError, time::Duration};

use portcullis_core::clock::Timestamp;
use portcullis_store::PinChange;

use crate::App;

use super::Pins;

/// How often it is looked.
pub(crate) const EVERY: Duration = Duration::from_secs(2);
/// Clocks of nodes differ, and a change may become visible after it was dated.
const MARGIN_SECONDS: i64 = 30;

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
}

/// Looks once which pins changed; their providers are asked for their tools anew.
pub(crate) async fn follow(app: &App) {
    let since = app.clock.now().plus_seconds(-MARGIN_SECONDS);
    let changes = match app.store.pins_changed_since(since).await {
        Ok(changes) => changes,
        Err(error) => {
            tracing::warn!(%error, "changes of pins cannot be read; it is tried again");
            return;
        }
    };
    let mut followed = app.pins.followed.lock().unwrap_or_else(PoisonError::into_inner);
    followed.0.retain(|_, at| *at >= since);
    for change in changes {
        let scope = change.org.map_or_else(String::new, |org| org.to_string());
        let before = followed.0.insert((scope, change.tool.to_string()), change.changed_at);
        if before == Some(change.changed_at) || !app.pins.differs(&change) {
            continue;
        }
        if let Some(provider) = app.providers.get(change.tool.provider()) {
            provider.look_again.notify_one();
        }
    }
}
