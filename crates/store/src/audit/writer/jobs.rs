//! Jobs of the writer: as the rows of one transaction, and the answers to them.

use std::collections::BTreeSet;

use tokio::sync::oneshot;

use super::{
    Began,
    completions::{Completions, Waiter},
};
use crate::{
    db::{AnsweredKey, Batch, Losers, NewEvent, NewIntent, NewKey, RowChange},
    error::StoreError,
    idempotency::KeyEnd,
};

#[derive(Debug)]
pub(super) enum Work {
    Intent(NewIntent),
    Finish(NewEvent),
    FinishKeyed(NewEvent, KeyEnd),
    Append(NewEvent),
    Change(NewEvent, Box<RowChange>),
}

#[derive(Debug)]
pub(super) struct Job {
    pub(super) work: Box<Work>,
    /// Told when the job is begun, unless its waiter has given up: then it is never written.
    pub(super) begun: oneshot::Sender<()>,
    pub(super) waiter: Waiter,
}

/// A job that is written.
#[derive(Debug)]
pub(super) struct BegunJob {
    work: Box<Work>,
    waiter: Waiter,
}

/// Uncommitted parts of a batch: all of it at first, then, if a row is at fault, halves
/// of it, so that it takes no other with it.
pub(super) struct Parts(Vec<Vec<BegunJob>>);

impl Parts {
    /// Begins those of `waiting` whose waiter has not given up. They are written from now on.
    pub(super) fn begin(waiting: Vec<Job>) -> Self {
        let begin =
            |Job { work, begun, waiter }| begun.send(()).ok().map(|()| BegunJob { work, waiter });
        Self(vec![waiting.into_iter().filter_map(begin).collect()])
    }

    /// The next jobs to commit together.
    pub(super) fn next(&mut self) -> Option<Vec<BegunJob>> {
        let mut part = std::iter::from_fn(|| self.0.pop()).find(|part| !part.is_empty())?;
        let later = take_undecided(&mut part);
        if !later.is_empty() {
            self.0.push(later);
        }
        Some(part)
    }

    /// Answers those who wait for `part`, or splits it.
    pub(super) fn settle(
        &mut self,
        mut part: Vec<BegunJob>,
        result: &Result<Losers, StoreError>,
        completions: &Completions<Box<Work>>,
    ) {
        if part.len() > 1 && matches!(result, Err(StoreError::Conflict(_))) {
            let later = part.split_off(part.len() / 2);
            self.0.extend([later, part]);
            return;
        }
        completions.deliver(part.into_iter().map(|job| {
            let outcome = match result {
                Ok(losers) => Ok(losers.answer(&job)),
                Err(error) => Err(error.clone()),
            };
            (job.waiter, outcome, job.work)
        }));
    }
}

/// Takes out the intents whose key an earlier one asks for together with an approval: whether it is
/// free shows when that one has begun or not.
fn take_undecided(part: &mut Vec<BegunJob>) -> Vec<BegunJob> {
    if !part.iter().any(|job| matches!(&*job.work, Work::Intent(it) if !it.approvals.is_empty())) {
        return Vec::new();
    }
    let mut asked = BTreeSet::new();
    let is_undecided = |job: &mut BegunJob| {
        let Work::Intent(NewIntent { org_id, key: Some(key), approvals, .. }) = &*job.work else {
            return false;
        };
        let name = (*org_id, key.digest.clone());
        let undecided = asked.contains(&name);
        if !undecided && !approvals.is_empty() {
            asked.insert(name);
        }
        undecided
    };
    part.extract_if(.., is_undecided).collect()
}

impl Losers {
    fn answer(&self, job: &BegunJob) -> Began {
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
    pub(super) fn of(jobs: &'a [BegunJob]) -> Self {
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
