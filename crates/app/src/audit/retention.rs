//! Retention of events, and the events that tell of what was removed.

use std::collections::BTreeMap;

use portcullis_core::{
    audit::{Detached, Event, EventType, Target},
    clock::Timestamp,
    id::OrgId,
};
use portcullis_store::{
    Erased, ErasedParts, NewEvent, OldEvents, OldMonth, OldPart, Pruned, StoreError,
};
use serde_json::{Value, json};

use super::{
    Audit,
    events::row_of,
    evidence::{Evidence, pruned_size, unless_pruned},
    faults::{IndexFault, Unproven},
    log::REFUSED,
    proven::{LogReader, ProvenEvent, ProvenLog, WIDTH, place},
};
use crate::telemetry::counters;

/// The fewest days events are kept: six months.
pub const LEAST_DAYS: i64 = 183;

const DAY: i64 = 86_400;

/// Events removed in one transaction at most.
const MAX_REMOVED: usize = 2_000;

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

/// State of a log, as retention knows it.
#[derive(Debug, Default)]
pub(super) struct LogState {
    evidence: Evidence,
    /// The last fault that was recorded: another hour of the same is not another event.
    fault: Option<String>,
}

pub(super) type LogStates = BTreeMap<OrgId, LogState>;

/// Opens a log, of whose events something is to go, and reads on in what it tells of holds.
pub(crate) async fn open_log<'a>(
    reader: &'a LogReader<'a>,
    org: OrgId,
    evidence: &mut Evidence,
) -> Result<ProvenLog<'a>, Unproven> {
    let mut log = ProvenLog::open(reader, org).await?;
    evidence.read_on(&log).await?;
    if evidence.lost_hold(&log).await?.is_some() {
        // One that was lifted at this moment is none that was taken away.
        log = ProvenLog::open(reader, org).await?;
        evidence.read_on(&log).await?;
        if let Some(lost) = evidence.lost_hold(&log).await? {
            return Err(IndexFault::Hold(lost.to_owned()).into());
        }
    }
    Ok(log)
}

impl Audit {
    /// Lets go what is older than it may be: payloads, then whole events from the beginning of
    /// each log. A crash leaves what was committed so far, with the events that tell of it.
    ///
    /// **Invariant:** nothing goes that the log does not prove to be old and under no hold. Where it does not, all of
    /// that log stays, and an event tells why.
    pub(crate) async fn prune(&self) {
        if let Err(error) = self.base.store.make_months(self.base.clock.now()).await {
            error.log();
        }
        if let Err(error) = self.thin_counts().await {
            error.log();
        }
        if self.exports.stop.is_cancelled() {
            return;
        }
        let mut states = self.states.lock().await;
        if let Err(error) = self.prune_months(&mut states).await {
            error.log();
        }
        if let Err(error) = self.prune_orgs(&mut states).await {
            error.log();
        }
    }

    fn reader(&self) -> LogReader<'_> {
        let stop = self.exports.stop.clone();
        LogReader { store: &self.base.store, signer: &self.log, writer: &self.writer, stop }
    }

    async fn prune_orgs(&self, states: &mut LogStates) -> Result<(), StoreError> {
        let payloads = self.ago(self.retention.payloads);
        let events = self.base.store.rows_before(self.ago(self.retention.events)).await?;
        for org in self.base.store.orgs_to_prune(payloads, events).await? {
            let state = states.entry(org).or_default();
            match self.prune_org(org, payloads, events, &mut state.evidence).await {
                Ok(()) => state.fault = None,
                Err(error) => self.stop_removal(org, error, state).await,
            }
        }
        Ok(())
    }

    async fn prune_org(
        &self,
        org: OrgId,
        payloads: Timestamp,
        events: Timestamp,
        evidence: &mut Evidence,
    ) -> Result<(), Unproven> {
        self.let_payloads_go(org, payloads, evidence).await?;
        self.prune_events(org, events, evidence).await
    }

    async fn let_payloads_go(
        &self,
        org: OrgId,
        before: Timestamp,
        evidence: &mut Evidence,
    ) -> Result<(), Unproven> {
        let tell = |step: &Erased| {
            let details = json!({ "what": "payloads", "events": step.erased, "before": before });
            (step.erased > 0).then(|| row_of(&self.pruned(org, details)))
        };
        let reader = self.reader();
        loop {
            // Anew for each step: a hold may be laid between two of them.
            let log = open_log(&reader, org, evidence).await?;
            let places = self.base.store.old_payloads(org, before).await?;
            let is_old = |event: &ProvenEvent| event.committed_at() < before;
            let (events, _) = evidence.erasable(&log, &places, is_old).await?;
            let parts = ErasedParts::Payloads;
            if self.base.store.erase(org, &events, parts, tell).await?.erased == 0 {
                return Ok(());
            }
        }
    }

    /// Drops whole months, where the store has them.
    async fn prune_months(&self, states: &mut LogStates) -> Result<(), StoreError> {
        let before = self.ago(self.retention.events);
        let tell = |org, pruned: &Pruned| self.pruned_events(org, before, pruned);
        let mut months = 0;
        for month in self.base.store.old_months(before).await? {
            let Some(parts) = self.prove_month(&month, before, states).await else { continue };
            months += u64::from(self.base.store.prune_month(&month, &parts, tell).await?);
        }
        if months > 0 {
            tracing::info!(months, "old months of the audit log were dropped");
        }
        Ok(())
    }

    /// Parts of all logs that end in the month; `None` if something of it has to stay.
    async fn prove_month(
        &self,
        month: &OldMonth,
        before: Timestamp,
        states: &mut LogStates,
    ) -> Option<Vec<OldPart>> {
        let mut parts = Vec::new();
        for (org, last) in &month.ends {
            let state = states.entry(*org).or_default();
            match self.prove_part(*org, *last, before, &mut state.evidence).await {
                Ok(part) => parts.push(part?),
                Err(error) => {
                    self.stop_removal(*org, error, state).await;
                    return None;
                }
            }
        }
        Some(parts)
    }

    async fn prove_part(
        &self,
        org: OrgId,
        last: i64,
        before: Timestamp,
        evidence: &mut Evidence,
    ) -> Result<Option<OldPart>, Unproven> {
        let reader = self.reader();
        let log = open_log(&reader, org, evidence).await?;
        let begins = pruned_size(&log).await?;
        let mut part = OldPart { org, first: place(begins), last, position: 0 };
        let end = u64::try_from(last.saturating_add(1)).unwrap_or(0);
        let mut at = begins;
        while at < end {
            let events = log.portion(at, end.min(at + WIDTH)).await;
            let events = unless_pruned(&log, begins, events).await?;
            let is_free = |event: &ProvenEvent| event.recorded_at() < before;
            let Some(newest) = events.last().filter(|_| events.iter().all(is_free)) else {
                return Ok(None);
            };
            part.position = newest.position();
            at += u64::try_from(events.len()).unwrap_or(0);
        }
        Ok(Some(part).filter(|_| !evidence.has_holds()))
    }

    async fn prune_events(
        &self,
        org: OrgId,
        before: Timestamp,
        evidence: &mut Evidence,
    ) -> Result<(), Unproven> {
        let tell = |pruned: &Pruned| self.pruned_events(org, before, pruned);
        let reader = self.reader();
        loop {
            let log = open_log(&reader, org, evidence).await?;
            let old = self.old_events(&log, before, evidence).await?;
            let Some(pruned) = self.base.store.prune(org, &old, tell).await? else {
                return Ok(());
            };
            tracing::info!(org = %org, events = pruned.events(), "old events were removed");
            if pruned.held {
                return Ok(());
            }
        }
    }

    /// The events at the beginning of the log that may go together.
    async fn old_events(
        &self,
        log: &ProvenLog<'_>,
        before: Timestamp,
        evidence: &Evidence,
    ) -> Result<OldEvents, Unproven> {
        let begins = pruned_size(log).await?;
        let mut old = OldEvents { first: place(begins), ..OldEvents::default() };
        let mut at = begins;
        while old.events.len() < MAX_REMOVED {
            let events = log.portion(at, at + WIDTH).await;
            let events = unless_pruned(log, begins, events).await?;
            if events.is_empty() {
                break;
            }
            at += u64::try_from(events.len()).unwrap_or(0);
            for event in events {
                old.held = evidence.keeps(&event);
                if old.held || event.recorded_at() >= before {
                    return Ok(old);
                }
                old.events.push(event.old());
            }
        }
        Ok(old)
    }

    /// Tells why nothing of a log may go: each time in the log of the node, once in that of the org.
    async fn stop_removal(&self, org: OrgId, error: Unproven, state: &mut LogState) {
        let fault = match error {
            Unproven::Store(_) if self.exports.stop.is_cancelled() => return,
            Unproven::Store(error) => return error.log(),
            Unproven::Fault(fault) => fault,
        };
        counters::removal_stopped();
        tracing::error!(
            log = self.log.origin(org),
            kind = fault.name(),
            %fault,
            "the log does not prove that what is beyond its retention may go, so nothing of it was removed: it was \
             changed in the database; `portcullis audit verify --org` tells more"
        );
        let told = fault.to_string();
        if state.fault.as_ref() == Some(&told) {
            return;
        }
        let details = json!({ "what": "nothing", "events": 0, "fault": told });
        let event = Event { outcome: REFUSED, ..self.pruned(org, details) };
        // One that could not be recorded is recorded in the next round.
        state.fault = self.record(event).await.is_ok().then_some(told);
    }

    fn pruned_events(&self, org: OrgId, before: Timestamp, pruned: &Pruned) -> NewEvent {
        let details = json!({
            "what": "events", "events": pruned.events(), "before": before,
            "first": pruned.first, "last": pruned.size - 1, "stopped_by_hold": pruned.held,
        });
        row_of(&self.pruned(org, details))
    }

    /// A whole millisecond, as `before` is recorded.
    fn ago(&self, seconds: i64) -> Timestamp {
        self.base.clock.now().floor_to_millis().plus_seconds(-seconds)
    }

    fn pruned(&self, org: OrgId, details: Value) -> Event {
        let target = Target {
            capability: None,
            credential: None,
            id: Some(org.to_string()),
            provider_id: None,
            kind: "audit_log",
            version: None,
        };
        let count = details.get("events").and_then(Value::as_u64);
        Event {
            count,
            detached: Detached::default().keep("pruning", Some(details), &*self.base.random),
            ..self.system_event(org, EventType::AuditPruned, target)
        }
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
