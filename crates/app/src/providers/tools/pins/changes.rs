//! Changes of pins by the operator or another node that this node does not know of yet.

use std::sync::PoisonError;

use portcullis_core::clock::Timestamp;
use portcullis_store::{PinChange, StoreError};

use super::held::Pins;
use crate::providers::tools::Tools;

/// Clocks of nodes differ, and a change may become visible after it was dated.
const MARGIN_SECONDS: i64 = 30;

impl Pins {
    /// True if this node has another idea of the tool than the store.
    fn differs(&self, change: &PinChange) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(&(change.org, change.tool.clone()));
        known.is_none_or(|(accepted, found)| (accepted, found) != (&change.accepted, &change.found))
    }

    /// Changes that this node does not know of. Each is given once.
    fn unfollowed(&self, mut changes: Vec<PinChange>, since: Timestamp) -> Vec<PinChange> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.retain(|_, at| *at >= since);
        changes.retain(|change| {
            let scope = change.org.map_or_else(String::new, |org| org.to_string());
            let before = followed.insert((scope, change.tool.to_string()), change.changed_at);
            before != Some(change.changed_at) && self.differs(change)
        });
        changes
    }
}

impl Tools {
    /// Changes of pins that this node does not know of. Each is given once.
    pub(crate) async fn changed_pins(&self) -> Result<Vec<PinChange>, StoreError> {
        // Not while this node changes pins: it would take its own change for that of another, ask the
        // provider again, and so on for as long as there is something new each time.
        let _turn = self.pins.turn.lock().await;
        let since = self.base.clock.now().plus_seconds(-MARGIN_SECONDS);
        let changes = self.base.store.pins_changed_since(since).await?;
        Ok(self.pins.unfollowed(changes, since))
    }
}
