//! Rows of one transaction.

use portcullis_core::id::EventId;

use super::{
    Began, NewEvent, NewIntent,
    jobs::{Job, Work},
};
use crate::idempotency::{KeyEnd, NewKey};

/// The intents of a batch that did not begin, because their keys stand for other calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Losers(Vec<EventId>);

impl Losers {
    pub(super) fn answer(&self, job: &Job) -> Began {
        match &job.work {
            Work::Intent(intent) if self.0.contains(&intent.id) => Began::KeyTaken,
            Work::Intent(_) | Work::Finish(_) | Work::FinishKeyed(..) | Work::Append(_) => {
                Began::Begun
            }
        }
    }
}

/// The answer of a call, sealed, for the key that its org and event name.
#[derive(Debug, Clone)]
pub(crate) struct AnsweredKey<'a> {
    pub(crate) org_id: String,
    pub(crate) subject: String,
    pub(crate) sealed: &'a [u8],
}

/// The rows of one transaction.
#[derive(Default)]
pub(crate) struct Batch<'a> {
    pub(crate) intents: Vec<&'a NewIntent>,
    /// Those of the intents that come with a key, one for each key.
    pub(crate) keyed: Vec<(&'a NewIntent, &'a NewKey)>,
    pub(super) losers: Losers,
    pub(crate) events: Vec<&'a NewEvent>,
    pub(crate) finished: Vec<EventId>,
    pub(crate) answered: Vec<AnsweredKey<'a>>,
    pub(crate) released: Vec<(String, String)>,
}

impl<'a> Batch<'a> {
    pub(super) fn of(jobs: &'a [Job]) -> Self {
        let mut batch = Self::default();
        for job in jobs {
            match &job.work {
                Work::Intent(intent) => batch.begin(intent),
                Work::Finish(event) => batch.finish(event),
                Work::FinishKeyed(event, end) => {
                    batch.finish(event);
                    batch.end(event, end);
                }
                Work::Append(event) => batch.events.push(event),
            }
        }
        // In one order on every node, so that two batches never wait for each other.
        batch.keyed.sort_unstable_by(|(a, key_a), (b, key_b)| {
            (a.org_id, &key_a.digest).cmp(&(b.org_id, &key_b.digest))
        });
        batch
    }

    fn begin(&mut self, intent: &'a NewIntent) {
        if let Some(key) = &intent.key {
            let same = |(other, known): &(&NewIntent, &NewKey)| {
                other.org_id == intent.org_id && known.digest == key.digest
            };
            if self.keyed.iter().any(same) {
                return self.losers.0.push(intent.id);
            }
            self.keyed.push((intent, key));
        }
        self.intents.push(intent);
    }

    fn finish(&mut self, event: &'a NewEvent) {
        self.finished.push(event.id);
        self.events.push(event);
    }

    fn end(&mut self, event: &NewEvent, end: &'a KeyEnd) {
        let (org_id, subject) = (event.org_id.to_string(), event.id.to_string());
        match end {
            KeyEnd::Answered(sealed) => self.answered.push(AnsweredKey { org_id, subject, sealed }),
            KeyEnd::Released => self.released.push((org_id, subject)),
        }
    }

    /// Lets go of the intents whose key was taken: `won` are the events of those that got theirs.
    pub(crate) fn keep_winners(&mut self, won: &[String]) {
        let lost = self.keyed.iter().map(|(intent, _)| intent.id);
        let lost = lost.filter(|id| !won.contains(&id.to_string()));
        self.losers.0.extend(lost.collect::<Vec<_>>());
        let losers = &self.losers.0;
        self.intents.retain(|intent| !losers.contains(&intent.id));
    }
}
