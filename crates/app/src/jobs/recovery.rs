//! Closes what a crash left open: an intent without an end becomes an event `unknown`.

use portcullis_store::StoreError;

use crate::{
    App,
    audit::{patience, recovered},
};

/// Intents closed at a time.
const BATCH: u32 = 500;

impl App {
    /// Closes every intent that no living node holds: before this node serves, and when another one
    /// dies. Gives how many.
    ///
    /// Running it twice or on several nodes does no harm: closing an intent writes its event and removes it in one
    /// transaction.
    pub async fn recover(&self) -> Result<usize, StoreError> {
        self.store.make_months(self.clock.now()).await?;
        let mut closed = 0;
        loop {
            let open = self.store.abandoned_intents(BATCH).await?;
            if open.is_empty() {
                return Ok(closed);
            }
            for intent in &open {
                let event = recovered(intent).ok_or(StoreError::Corrupt("audit_intents.record"))?;
                let written = match self.interrupted(&event) {
                    None => self.writer.finish(event, patience()).await,
                    Some(end) => self.writer.finish_keyed(event, end, patience()).await,
                };
                match written {
                    Ok(()) => closed += 1,
                    // Its event stands already: only the intent is left over.
                    Err(StoreError::Conflict(_)) => {
                        self.store.drop_intent(intent.org_id, intent.id).await?;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }
}
