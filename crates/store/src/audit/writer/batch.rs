//! Jobs as the rows of one transaction, and the answers to them.

use super::{
    Began,
    jobs::{Job, Work},
};
use crate::{
    db::{AnsweredKey, Batch, Losers, NewEvent, NewIntent, NewKey},
    idempotency::KeyEnd,
};

impl Losers {
    pub(super) fn answer(&self, job: &Job) -> Began {
        let id = match &*job.work {
            Work::Intent(intent) => intent.id,
            Work::Change(event, _) => event.id,
            Work::Finish(_) | Work::FinishKeyed(..) | Work::Append(_) => return Began::Begun,
        };
        if self.keys.contains(&id) {
            Began::KeyTaken
        } else if self.approvals.contains(&id) {
            Began::NotApproved
        } else {
            Began::Begun
        }
    }
}

impl<'a> Batch<'a> {
    pub(super) fn of(jobs: &'a [Job]) -> Self {
        let mut batch = Self::default();
        for job in jobs {
            match &*job.work {
                Work::Intent(intent) => batch.begin(intent),
                Work::Finish(event) => batch.finish(event),
                Work::FinishKeyed(event, end) => {
                    batch.finish(event);
                    batch.end(event, end);
                }
                Work::Append(event) => batch.events.push(event),
                Work::Change(event, row) => batch.changes.push((row, event)),
            }
        }
        // In one order on every node, so that two batches never wait for each other.
        batch.keyed.sort_unstable_by(|(a, key_a), (b, key_b)| {
            (a.org_id, &key_a.digest).cmp(&(b.org_id, &key_b.digest))
        });
        batch.approved.sort_unstable();
        batch.approved.dedup();
        batch.changes.sort_by(|(a, _), (b, _)| a.place().cmp(&b.place()));
        batch
    }

    fn begin(&mut self, intent: &'a NewIntent) {
        if let Some(key) = &intent.key {
            let same = |(other, known): &(&NewIntent, &NewKey)| {
                other.org_id == intent.org_id && known.digest == key.digest
            };
            if self.keyed.iter().any(same) {
                return self.losers.keys.push(intent.id);
            }
            self.keyed.push((intent, key));
        }
        self.approved.extend(intent.approvals.iter().map(|used| (intent.org_id, used.id)));
        self.intents.push(intent);
    }

    fn finish(&mut self, event: &'a NewEvent) {
        self.finished.push(event.id);
        self.events.push(event);
    }

    fn end(&mut self, event: &NewEvent, end: &'a KeyEnd) {
        let org_id = event.org_id.to_string();
        let subject = event.id.to_string();
        match end {
            KeyEnd::Answered(sealed) => self.answered.push(AnsweredKey { org_id, subject, sealed }),
            KeyEnd::Released => self.released.push((org_id, subject)),
        }
    }
}
