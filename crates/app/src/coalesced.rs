//! Events that a stranger or a runaway client could multiply. The first one is recorded at once,
//! then at most one a minute for each org, kind, code and source, with the count of all that it
//! stands for. So the log tells of every flood and is flooded by none.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use portcullis_core::{
    audit::{Actor, Detached, Event, EventType, Outcome},
    clock::Timestamp,
    id::{EventId, OrgId},
    refusal::{Executed, Refusal},
};

use crate::{
    App, Origin,
    answers::outcome_of,
    audit::{patience, row_of},
    sources::subnet,
};

/// How long one event stands for all of its kind, in seconds.
const SPAN: i64 = 60;
/// The most runs that are told apart; further ones are left to the log file.
const MOST: usize = 10_000;

/// What happened again and again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    org: OrgId,
    kind: EventType,
    code: &'static str,
    source: IpAddr,
}

/// Since when, to whom, and how often since the last event.
#[derive(Debug, Clone)]
struct Run {
    until: Timestamp,
    actor: Actor,
    outcome: Outcome,
    count: u64,
}

/// The runs of this node.
#[derive(Debug, Default)]
pub(crate) struct Coalesced(Mutex<HashMap<Key, Run>>);

impl Coalesced {
    /// Counts one; tells whether it is the first and has to be recorded now.
    fn note(&self, key: Key, actor: &Actor, outcome: Outcome, now: Timestamp) -> bool {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = runs.get_mut(&key) {
            run.count = run.count.saturating_add(1);
            return false;
        }
        if runs.len() >= MOST {
            tracing::warn!(code = key.code, "too many sources to record each of their refusals");
            return false;
        }
        let until = now.plus_seconds(SPAN);
        runs.insert(key, Run { until, actor: actor.clone(), outcome, count: 0 });
        true
    }

    /// The runs whose minute is over and that have something to tell; those without end.
    fn due(&self, now: Timestamp) -> Vec<(Key, Run)> {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|_, run| run.count > 0 || run.until > now);
        let mut due = Vec::new();
        for (key, run) in runs.iter_mut().filter(|(_, run)| run.until <= now) {
            due.push((key.clone(), run.clone()));
            (run.until, run.count) = (now.plus_seconds(SPAN), 0);
        }
        due
    }
}

impl App {
    /// Notes that a request of a known org was refused before anything was looked at.
    pub(crate) fn note_refused(
        &self,
        kind: EventType,
        org: OrgId,
        actor: Actor,
        refusal: &Refusal,
        origin: &Origin,
    ) {
        let outcome = outcome_of(refusal, Executed::No);
        let source = subnet(origin.source_ip);
        let key = Key { org, kind, code: refusal.code(), source };
        if !self.coalesced.note(key, &actor, outcome, origin.arrived) {
            return;
        }
        let mut event = self.refused_event(org, kind, actor, outcome, 1);
        event.request = Some(origin.recorded());
        event.detached = origin.detached(self);
        let writer = self.writer.clone();
        self.tasks.spawn(async move {
            if let Err(error) = writer.append(row_of(&event), patience()).await {
                tracing::error!(%error, event = kind.as_str(), "an event could not be recorded");
            }
        });
    }

    fn refused_event(
        &self,
        org_id: OrgId,
        kind: EventType,
        actor: Actor,
        outcome: Outcome,
        count: u64,
    ) -> Event {
        Event {
            id: EventId::new(self.ids()),
            org_id,
            kind,
            occurred_at: self.clock.now(),
            count: Some(count),
            actor,
            request: None,
            target: None,
            governance: None,
            outcome,
            detached: Detached::default(),
        }
    }

    /// Records what was counted in the minutes that are over.
    pub(crate) async fn record_coalesced(&self) {
        for (key, run) in self.coalesced.due(self.clock.now()) {
            let mut event =
                self.refused_event(key.org, key.kind, run.actor, run.outcome, run.count);
            let source = Some(key.source.to_string());
            event.detached = Detached::default().keep("source_ip", source, &*self.random);
            if let Err(error) = self.writer.append(row_of(&event), patience()).await {
                let kind = key.kind.as_str();
                tracing::error!(%error, event = kind, count = run.count, "refusals could not be recorded");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: &'static str) -> Key {
        Key {
            org: "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap(),
            kind: EventType::AuthRejected,
            code,
            source: "203.0.113.7".parse().unwrap(),
        }
    }

    fn note(coalesced: &Coalesced, code: &'static str, second: i64) -> bool {
        let outcome = outcome_of(&Refusal::TokenRevoked, Executed::No);
        let now = Timestamp::default().plus_seconds(second);
        coalesced.note(key(code), &Actor::system(), outcome, now)
    }

    fn due(coalesced: &Coalesced, second: i64) -> Vec<u64> {
        let now = Timestamp::default().plus_seconds(second);
        coalesced.due(now).into_iter().map(|(_, run)| run.count).collect()
    }

    #[test]
    fn the_first_is_told_at_once_and_the_others_once_a_minute_with_their_count() {
        let coalesced = Coalesced::default();

        assert!(note(&coalesced, "token_revoked", 0));
        assert!((1..50).all(|second| !note(&coalesced, "token_revoked", second)));
        assert!(due(&coalesced, 59).is_empty());
        assert_eq!(due(&coalesced, 60), [49]);
        assert!(!note(&coalesced, "token_revoked", 61));
        assert_eq!(due(&coalesced, 120), [1]);
        assert!(due(&coalesced, 180).is_empty());
        assert!(note(&coalesced, "token_revoked", 181), "after a silent minute it is news again");
    }

    #[test]
    fn another_code_is_another_run() {
        let coalesced = Coalesced::default();

        assert!(note(&coalesced, "token_revoked", 0));
        assert!(note(&coalesced, "token_expired", 0));
    }
}
