//! Tasks whose callers did not ask for their ends in time.

use std::time::Duration;

use futures_util::future::join_all;
use portcullis_core::{
    audit::{Event, EventParts, EventType, Target},
    capability::CapabilityKind,
};
use portcullis_store::{StoreError, StoredTask};

use crate::{
    audit::events::{patience, row_of_parts},
    calls::{Calls, event::DIED},
};

/// Time between two rounds that end such tasks.
pub(crate) const EVERY: Duration = Duration::from_secs(5);
/// Tasks that end in one commit, about, and how often so many do in one round.
const AT_ONCE: u32 = 250;
const ROUNDS: u32 = 40;

impl Calls {
    /// One round: tasks that are over their time end as `unknown`.
    pub(crate) async fn end_overdue_tasks(&self) {
        let now = self.base.now();
        for _ in 0..ROUNDS {
            let overdue = self.base.store.overdue_provider_tasks(now, AT_ONCE).await;
            let overdue = overdue.inspect_err(StoreError::log).unwrap_or_default();
            let ended = join_all(overdue.iter().map(|row| self.end_overdue(row))).await;
            let is_last = ended.len() < usize::try_from(AT_ONCE).unwrap_or(usize::MAX);
            let failed = ended.into_iter().filter_map(Result::err).inspect(StoreError::log).count();
            if is_last || failed > 0 {
                break;
            }
        }
        if let Err(error) = self.base.store.forget_provider_tasks(now).await {
            error.log();
        }
    }

    async fn end_overdue(&self, row: &StoredTask) -> Result<(), StoreError> {
        let kept = self.state_key.open_kept_task(row.org_id, row.event_id, &row.sealed);
        if kept.is_none() {
            tracing::error!(org = %row.org_id, call = %row.event_id, "a kept task cannot be opened");
        }
        let named = kept.as_ref().map(|kept| &kept.task);
        let target = Target {
            capability: Some(CapabilityKind::Tool),
            credential: None,
            id: named.map(|task| task.tool.clone()),
            provider_id: named.map(|task| task.connection),
            kind: "mcp",
            version: None,
        };
        let event = self.audit.system_event(row.org_id, EventType::McpTaskEnded, target);
        let event = Event { outcome: DIED, ..event };
        let parts = EventParts { call: Some(row.event_id), ..event.parts() };
        // Its answer cannot be asked for any more.
        let writer = &self.audit.writer;
        let (call, none, until) = (row.event_id, Vec::new(), row.ends_at);
        writer.end_provider_task(call, none, until, row_of_parts(&parts), patience()).await?;
        Ok(())
    }
}
