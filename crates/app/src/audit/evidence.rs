//! Holds in force and the beginning of a log, as its own events tell of them: what may be removed does not depend on
//! rows that a writer of the database can change.
//!
//! Each event is read once by a process: a later look goes on where the last one ended.

use std::collections::{BTreeMap, BTreeSet};

use portcullis_core::{
    audit::{EventType, export::Fault},
    clock::Timestamp,
};
use portcullis_store::{ErasableEvent, MAX_HOLDS, StoreError};
use serde_json::Value;

use super::{
    faults::{IndexFault, Unproven},
    proven::{ProvenEvent, ProvenLog, WIDTH, place},
};

/// Bytes of records of which parts are erased together.
const MAX_ERASED: usize = 32 << 20;

/// Holds and beginning of a log, as its events up to a place tell of them.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// The first place that was not read.
    end: u64,
    /// Holds in force by their ids.
    holds: BTreeMap<String, HoldTold>,
    /// The first place that is left, by the `audit.pruned` events.
    begins: u64,
}

/// A hold as it was laid.
#[derive(Debug)]
struct HoldTold {
    /// Place of the event that tells of it.
    sequence: i64,
    actor: Option<String>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

impl HoldTold {
    fn covers(&self, event: &ProvenEvent) -> bool {
        self.actor.as_deref().is_none_or(|actor| event.concerns(actor))
            && self.from.is_none_or(|from| event.recorded_at() >= from)
            && self.to.is_none_or(|to| event.committed_at() < to)
    }
}

impl Evidence {
    /// Reads on to the signed end of the log. Fails if the log does not prove what it tells, or the database does not
    /// have what it tells.
    pub(crate) async fn read_on(&mut self, log: &ProvenLog<'_>) -> Result<(), Unproven> {
        if log.size < self.end {
            let (then, now) = (self.end, log.size);
            let what = format!("the log was set back: it had {then} events, and has {now} now");
            return Err(Fault::Inconsistent(what).into());
        }
        let begins = log.begins;
        self.end = self.end.max(begins.min(log.size));
        while self.end < log.size {
            let events = log.portion(self.end, self.end + WIDTH).await;
            for event in unless_pruned(log, begins, events).await? {
                self.take(&event)?;
                self.end += 1;
            }
        }
        // The event of a hold in force is never removed.
        self.holds.retain(|_, hold| hold.sequence >= place(begins));
        if begins > self.begins {
            return Err(IndexFault::Hidden(begins).into());
        }
        Ok(())
    }

    fn take(&mut self, event: &ProvenEvent) -> Result<(), IndexFault> {
        let kind = event.text_at("/type");
        if kind == Some(EventType::AuditHoldChanged.as_str()) {
            let hold = event.value("hold")?;
            let id = event.text_at("/target/id").unwrap_or_default().to_owned();
            match hold.get("laid") {
                Some(laid) => self.holds.insert(id, read_hold(event.sequence(), laid)),
                None => self.holds.remove(&id),
            };
        } else if kind == Some(EventType::AuditPruned.as_str()) {
            let last = event.value("pruning")?.get("last").and_then(Value::as_u64);
            self.begins = self.begins.max(last.map_or(0, |last| last.saturating_add(1)));
        }
        Ok(())
    }

    /// A hold in force that the database does not have as one.
    pub(crate) async fn lost_hold(&self, log: &ProvenLog<'_>) -> Result<Option<&str>, StoreError> {
        let holds = log.store.list_holds(log.org, None, MAX_HOLDS).await?;
        let in_force = holds.iter().filter(|hold| hold.released_at.is_none());
        let in_force: BTreeSet<String> = in_force.map(|hold| hold.id.to_string()).collect();
        Ok(self.holds.keys().find(|id| !in_force.contains(*id)).map(String::as_str))
    }

    pub(crate) fn has_holds(&self) -> bool {
        !self.holds.is_empty()
    }

    fn covers(&self, event: &ProvenEvent) -> bool {
        self.holds.values().any(|hold| hold.covers(event))
    }

    /// True if a hold covers the event, or the event tells of a hold in force: without it, nothing would.
    pub(crate) fn keeps(&self, event: &ProvenEvent) -> bool {
        let tells = |hold: &HoldTold| hold.sequence == event.sequence();
        self.covers(event) || self.holds.values().any(tells)
    }

    /// The events at these places, which ascend, proven: as many as may be erased together, of those that `picks`
    /// picks. Gives the last place that was looked at, too.
    pub(crate) async fn erasable(
        &self,
        log: &ProvenLog<'_>,
        places: &[i64],
        picks: impl Fn(&ProvenEvent) -> bool + Send,
    ) -> Result<(Vec<ErasableEvent>, Option<i64>), Unproven> {
        let mut found = Vec::new();
        let mut reached = None;
        let mut bytes = 0;
        let mut rest = places;
        while let [first, ..] = rest {
            let run = (*first..).zip(rest).take_while(|(next, at)| next == *at).count();
            let first = u64::try_from(*first).unwrap_or(0);
            let width = u64::try_from(run).unwrap_or(1).min(WIDTH);
            let begins = pruned_size(log).await?;
            let events = log.portion(first, first + width).await;
            let events = unless_pruned(log, begins, events).await?;
            let Some(last) = events.last() else { break };
            reached = Some(last.sequence());
            bytes += events.iter().map(ProvenEvent::bytes).sum::<usize>();
            let events_picked = events.iter().filter(|event| picks(event));
            found.extend(events_picked.map(|event| event.erasable(self.covers(event))));
            rest = rest.get(events.len()..).unwrap_or_default();
            if bytes > MAX_ERASED {
                break;
            }
        }
        Ok((found, reached))
    }
}

/// The hold that was laid, as its event at this place tells.
fn read_hold(sequence: i64, laid: &Value) -> HoldTold {
    let text = |name: &str| laid.get(name).and_then(Value::as_str);
    let time = |name: &str| text(name).and_then(Timestamp::parse_rfc3339);
    HoldTold {
        sequence,
        actor: text("actor").map(str::to_owned),
        from: time("from"),
        to: time("to"),
    }
}

pub(crate) async fn pruned_size(log: &ProvenLog<'_>) -> Result<u64, StoreError> {
    Ok(u64::try_from(log.store.pruned_size(log.org).await?).unwrap_or(0))
}

/// Events that were read of a log that began at the place `begins`, unless another node pruned it meanwhile: then
/// events are missing that were there.
pub(crate) async fn unless_pruned<T>(
    log: &ProvenLog<'_>,
    begins: u64,
    read: Result<T, Unproven>,
) -> Result<T, Unproven> {
    match read {
        Err(Unproven::Fault(_)) if pruned_size(log).await? > begins => {
            let why = "the log was pruned by another node at the same time".to_owned();
            Err(StoreError::Unavailable(why).into())
        }
        read => read,
    }
}
