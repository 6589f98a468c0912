//! Events that were read and are not what the log holds of them: counted each time, and told in the
//! log of the node once for each event.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use portcullis_core::{
    audit::{Sealed, Shown},
    clock::Timestamp,
    id::{EventId, OrgId},
};

use super::Audit;
use crate::telemetry::counters;

/// Events that are remembered as told; beyond them it begins anew.
const MAX_REMEMBERED: usize = 10_000;
/// Lines a minute at most. What is not told is told when it is read again.
const MAX_LINES: u32 = 10;
const MINUTE: i64 = 60;

/// The events that were told.
#[derive(Debug, Default)]
pub(crate) struct Mismatches(Mutex<ReportedMismatches>);

#[derive(Debug, Default)]
struct ReportedMismatches {
    events: BTreeSet<EventId>,
    minute: Timestamp,
    lines: u32,
}

impl ReportedMismatches {
    /// True if there is to be a line about this event now.
    fn is_due(&mut self, event: EventId, now: Timestamp) -> bool {
        if self.events.contains(&event) {
            return false;
        }
        if now >= self.minute.plus_seconds(MINUTE) {
            (self.minute, self.lines) = (now, 0);
        }
        if self.lines >= MAX_LINES {
            return false;
        }
        self.lines += 1;
        if self.events.len() >= MAX_REMEMBERED {
            self.events.clear();
        }
        self.events.insert(event)
    }
}

impl Audit {
    /// Holds a sealed event that was read against its leaf, and notes what does not fit.
    pub(crate) fn mismatches(
        &self,
        org: OrgId,
        id: EventId,
        sealed: &Sealed<'_>,
        shown: Shown,
    ) -> Vec<String> {
        let found = sealed.mismatches(shown);
        self.note_mismatch(org, id, &found);
        found
    }

    /// Counts and tells what was found of an event; nothing if nothing was.
    pub(crate) fn note_mismatch(&self, org: OrgId, event: EventId, found: &[String]) {
        if found.is_empty() {
            return;
        }
        counters::mismatched(1);
        let now = self.base.now();
        let mut told = self.mismatches.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_due(event, now) {
            tracing::error!(
                log = self.log.origin(org),
                %event,
                mismatch = found.join(" "),
                "a stored event is not the one that the log holds: it was changed in the database; \
                 `portcullis audit verify --org` tells more"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis_core::{clock::Clock, id::Ids, random::Random};

    use super::*;

    #[derive(Debug)]
    struct Counting(std::sync::atomic::AtomicU8);

    impl Random for Counting {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        }
    }

    #[derive(Debug)]
    struct Noon;

    impl Clock for Noon {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(1_795_172_535_000_000)
        }
    }

    #[test]
    fn an_event_is_told_once_and_few_in_a_minute() {
        let random = Counting(0.into());
        let ids = Ids { clock: &Noon, random: &random };
        let events: Vec<EventId> = (0..20).map(|_| EventId::new(ids)).collect();
        let mut told = ReportedMismatches::default();
        let now = Noon.now();

        let mut told_at = |now| events.iter().filter(|event| told.is_due(**event, now)).count();

        assert_eq!([told_at(now), told_at(now)], [10, 0]);
        assert_eq!(told_at(now.plus_seconds(MINUTE)), 10, "those that were left out");
        assert_eq!(told_at(now.plus_seconds(2 * MINUTE)), 0, "all are told");
    }
}
