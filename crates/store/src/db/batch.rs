//! The rows of one transaction of the log.

use portcullis_core::id::{ApprovalId, EventId, OrgId};

use super::{
    approvals::{RowChange, TakenUses, Uses},
    rows::{NewEvent, NewIntent, NewKey},
};

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
    /// Intents that come with a key, one for each key.
    pub(crate) keyed: Vec<(&'a NewIntent, &'a NewKey)>,
    /// Approvals that intents use, each once, in the order in which they are locked.
    pub(crate) approved: Vec<(OrgId, ApprovalId)>,
    /// Changes of approvals and tasks, those of a digest in the order of their jobs.
    pub(crate) changes: Vec<(&'a RowChange, &'a NewEvent)>,
    pub(crate) losers: Losers,
    pub(crate) events: Vec<&'a NewEvent>,
    pub(crate) finished: Vec<EventId>,
    pub(crate) answered: Vec<AnsweredKey<'a>>,
    pub(crate) released: Vec<(String, String)>,
}

/// Jobs of a batch that were not written, by their events.
#[derive(Debug, Clone, Default)]
pub(crate) struct Losers {
    /// Intents whose keys stand for other calls.
    pub(crate) keys: Vec<EventId>,
    /// Intents whose approvals do not permit them, and changes of approvals that were changed meanwhile.
    pub(crate) approvals: Vec<EventId>,
}

impl<'a> Batch<'a> {
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

/// The rows of keys as a JSON array of arrays, in the order of the statement's columns.
pub(super) fn key_rows(rows: &[(&NewIntent, &NewKey)]) -> String {
    let rows: Vec<_> = rows
        .iter()
        .map(|(intent, key)| {
            let expires_at = key.expires_at.as_micros();
            serde_json::json!([
                intent.org_id, key.digest, key.fingerprint, intent.id, key.request_id, expires_at
            ])
        })
        .collect();
    serde_json::Value::Array(rows).to_string()
}
