//! Rows of one transaction.

use portcullis_core::id::{ApprovalId, EventId, OrgId};

use super::{
    Began, NewEvent, NewIntent,
    jobs::{Job, Work},
};
use crate::{
    approvals::{ApprovalRow, TakenUses, Uses},
    idempotency::{KeyEnd, NewKey},
};

/// Jobs of a batch that were not written, by their events.
#[derive(Debug, Clone, Default)]
pub(super) struct Losers {
    /// Intents whose keys stand for other calls.
    keys: Vec<EventId>,
    /// Intents whose approvals do not permit them, and changes of approvals that were changed meanwhile.
    approvals: Vec<EventId>,
}

impl Losers {
    pub(super) fn answer(&self, job: &Job) -> Began {
        let id = match &job.work {
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
    /// Approvals that intents use, each once, in the order in which they are locked.
    pub(crate) approved: Vec<(OrgId, ApprovalId)>,
    /// Changes of approvals, those of a digest in the order of their jobs.
    pub(crate) changes: Vec<(&'a ApprovalRow, &'a NewEvent)>,
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
        self.losers.keys.extend(lost.collect::<Vec<_>>());
        let losers = &self.losers.keys;
        self.intents.retain(|intent| !losers.contains(&intent.id));
    }

    /// Notes whether a change of an approval was made; its event is written if it was.
    pub(crate) fn settle_change(&mut self, event: &'a NewEvent, made: bool) {
        if made {
            self.events.push(event);
        } else {
            self.losers.approvals.push(event.id);
        }
    }

    /// Gives the intents their uses of these approvals, in the order of their jobs, all of theirs or
    /// none. Lets go of those that get none, and releases their keys.
    pub(crate) fn use_approvals(&mut self, mut uses: Uses) -> impl Iterator<Item = TakenUses> {
        let Self { intents, losers, released, .. } = self;
        intents.retain(|intent| {
            let may_begin = uses.take(intent.org_id, &intent.approvals);
            if !may_begin {
                losers.approvals.push(intent.id);
                released.extend(
                    intent.key.as_ref().map(|_| (intent.org_id.to_string(), intent.id.to_string())),
                );
            }
            may_begin
        });
        uses.taken()
    }
}
