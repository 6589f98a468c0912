//! Closes what a crash left open: an intent without an end becomes an event `unknown`.

use portcullis_core::audit::{Actor, Auth, Detached, Event, EventType, Target};
use portcullis_store::{NewEvent, OpenIntent, StoreError};
use serde_json::json;

use crate::{
    audit::events::{patience, recovered, row_of},
    calls::event::DIED,
    nodes::Nodes,
};

/// Intents closed at a time.
const BATCH: u32 = 500;

impl Nodes {
    /// Closes every intent that no living node holds: before this node serves, and when another one
    /// dies. Gives how many.
    ///
    /// Running it twice or on several nodes does no harm: closing an intent writes its event and removes it in one
    /// transaction.
    pub async fn recover(&self) -> Result<usize, StoreError> {
        self.base.store.make_months(self.base.clock.now()).await?;
        let mut closed = 0;
        loop {
            let open = self.base.store.abandoned_intents(BATCH).await?;
            if open.is_empty() {
                return Ok(closed);
            }
            for intent in &open {
                let event = recovered(intent).unwrap_or_else(|| self.spoilt(intent));
                let written = match self.calls.interrupted(&event) {
                    None => self.audit.writer.finish(event, patience()).await,
                    Some(end) => self.audit.writer.finish_keyed(event, end, patience()).await,
                };
                match written {
                    Ok(()) => closed += 1,
                    // Its event stands already: only the intent is left over.
                    Err(StoreError::Conflict(_)) => {
                        self.base.store.drop_intent(intent.org_id, intent.id).await?;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// The event of a call whose intent cannot be read, or was not written like this: that there was one, and that its end is
    /// unknown. One intent must not keep the node from closing the others, and from serving.
    fn spoilt(&self, intent: &OpenIntent) -> NewEvent {
        tracing::error!(
            event = %intent.id, org = %intent.org_id,
            "the intent of a call cannot be read, or was added or changed in the database: the log tells \
             of it, not what it was"
        );
        let target =
            Target { credential: None, id: None, provider_id: None, kind: "mcp", version: None };
        let why = json!({ "reason": "the intent could not be read, or is not as it was written" });
        let event = self.audit.system_event(intent.org_id, EventType::McpInvocation, target);
        row_of(&Event {
            id: intent.id,
            occurred_at: intent.opened_at,
            actor: Actor { auth: Auth { method: "system", trust: None }, ..Actor::system() },
            outcome: DIED,
            detached: Detached::default().keep("recovery", Some(why), &*self.base.random),
            ..event
        })
    }
}
