//! Retention of events, and the events that tell of what was removed.

use portcullis_core::{
    audit::{Detached, Event, EventType, Target},
    clock::Timestamp,
    id::OrgId,
};
use portcullis_store::{NewEvent, Pruned, StoreError};
use serde_json::{Value, json};

use super::{Audit, events::row_of};

/// The fewest days events are kept: six months.
pub const LEAST_DAYS: i64 = 183;

const DAY: i64 = 86_400;

/// Retention of events, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Whole events.
    pub events: i64,
    /// The payloads in them.
    pub payloads: i64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { events: 400 * DAY, payloads: 30 * DAY }
    }
}

impl Retention {
    /// Rejects a retention of events below the minimum, and payloads that would outlive their
    /// events.
    pub fn check(self) -> Result<Self, String> {
        if self.events < LEAST_DAYS * DAY {
            return Err(format!("events are kept for at least {LEAST_DAYS} days"));
        }
        if self.payloads > self.events {
            return Err("payloads cannot be kept for longer than their events".to_owned());
        }
        Ok(self)
    }
}

impl Audit {
    /// Lets go what is older than it may be: payloads, then whole events from the beginning of
    /// each log. A crash leaves what was committed so far, with the events that tell of it.
    pub(crate) async fn prune(&self) {
        if let Err(error) = self.base.store.make_months(self.base.clock.now()).await {
            error.log();
        }
        if let Err(error) = self.thin_counts().await {
            error.log();
        }
        if let Err(error) = self.prune_months().await {
            error.log();
        }
        if let Err(error) = self.prune_orgs().await {
            error.log();
        }
    }

    async fn prune_orgs(&self) -> Result<(), StoreError> {
        let payloads = self.ago(self.retention.payloads);
        let events = self.base.store.rows_before(self.ago(self.retention.events)).await?;
        for org in self.base.store.orgs_to_prune(payloads, events).await? {
            if let Err(error) = self.let_payloads_go(org, payloads).await {
                error.log();
            }
            if let Err(error) = self.prune_events(org, events).await {
                error.log();
            }
        }
        Ok(())
    }

    async fn let_payloads_go(&self, org: OrgId, before: Timestamp) -> Result<(), StoreError> {
        let tell = |events: u64| {
            self.pruned(org, json!({ "what": "payloads", "events": events, "before": before }))
        };
        while self.base.store.let_payloads_go(org, before, tell).await? > 0 {}
        Ok(())
    }

    /// Drops whole months, where the store has them.
    async fn prune_months(&self) -> Result<(), StoreError> {
        let before = self.ago(self.retention.events);
        let tell = |org, pruned: &Pruned| self.pruned_events(org, before, pruned);
        let months = self.base.store.prune_months(before, tell).await?;
        if months > 0 {
            tracing::info!(months, "old months of the audit log were dropped");
        }
        Ok(())
    }

    async fn prune_events(&self, org: OrgId, before: Timestamp) -> Result<(), StoreError> {
        let tell = |pruned: &Pruned| self.pruned_events(org, before, pruned);
        while let Some(pruned) = self.base.store.prune(org, before, tell).await? {
            tracing::info!(%org, events = pruned.events(), "old events were removed");
            if pruned.held {
                break;
            }
        }
        Ok(())
    }

    fn pruned_events(&self, org: OrgId, before: Timestamp, pruned: &Pruned) -> NewEvent {
        self.pruned(
            org,
            json!({
                "what": "events", "events": pruned.events(), "before": before,
                "first": pruned.first, "last": pruned.size - 1, "stopped_by_hold": pruned.held,
            }),
        )
    }

    /// A whole millisecond, as `before` is recorded.
    fn ago(&self, seconds: i64) -> Timestamp {
        self.base.clock.now().floor_to_millis().plus_seconds(-seconds)
    }

    fn pruned(&self, org: OrgId, details: Value) -> NewEvent {
        let target = Target {
            credential: None,
            id: Some(org.to_string()),
            provider_id: None,
            kind: "audit_log",
            version: None,
        };
        let count = details.get("events").and_then(Value::as_u64);
        let event = Event {
            count,
            detached: Detached::default().keep("pruning", Some(details), &*self.base.random),
            ..self.system_event(org, EventType::AuditPruned, target)
        };
        row_of(&event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_kept_for_half_a_year_at_least_and_payloads_no_longer_than_they() {
        let usual = Retention::default();

        assert_eq!((usual.events, usual.payloads), (400 * DAY, 30 * DAY));
        assert_eq!(usual.check(), Ok(usual));
        assert!(Retention { events: 183 * DAY, ..usual }.check().is_ok());
        assert!(Retention { events: 183 * DAY - 1, ..usual }.check().is_err());
        assert!(Retention { payloads: 401 * DAY, ..usual }.check().is_err());
    }
}
