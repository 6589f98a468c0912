//! Closes what a crash left open: an intent without an end becomes an event `unknown`. One that was added or
//! changed in the database is removed and told of.

use std::collections::BTreeMap;

use portcullis_core::{
    audit::{Actor, Auth, Detached, Event, EventType, Target},
    id::{EventId, OrgId},
};
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
            let (genuine, foreign): (Vec<_>, Vec<_>) =
                open.iter().partition(|intent| !intent.record.core.is_empty());
            self.refuse(&foreign).await?;
            for intent in genuine {
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

    /// Removes intents that the gateway did not write like this, and tells of them with one event for each org:
    /// anybody may have added any number.
    async fn refuse(&self, foreign: &[&OpenIntent]) -> Result<(), StoreError> {
        let mut by_org = BTreeMap::<OrgId, Vec<EventId>>::new();
        for intent in foreign {
            by_org.entry(intent.org_id).or_default().push(intent.id);
        }
        for (org, ids) in by_org {
            let event = self.audit.log.refuse_intents(org, &ids);
            match self.base.store.refuse_intents(org, &ids, &event).await {
                Ok(_) => {}
                // There is no such org.
                Err(StoreError::Conflict(_)) => {
                    for id in ids {
                        self.base.store.drop_intent(org, id).await?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The event of a call whose intent cannot be read: that there was one, and that its end is unknown. One intent must not keep the node from closing the others, and from serving.
    fn spoilt(&self, intent: &OpenIntent) -> NewEvent {
        tracing::error!(
            event = %intent.id, org = %intent.org_id,
            "the intent of a call cannot be read: the log tells of it, not what it was"
        );
        let target = Target {
            capability: None,
            credential: None,
            id: None,
            provider_id: None,
            kind: "mcp",
            version: None,
        };
        let why = json!({ "reason": "the intent could not be read" });
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
