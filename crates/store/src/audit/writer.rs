//! Group commit: one task writes what all are waiting for in one transaction.

use std::sync::{
    Arc,
    atomic::{AtomicU8, AtomicU64, Ordering},
};

use portcullis_core::{
    clock::{Clock, Timestamp},
    id::{EventId, OrgId, PrincipalId, RequestId, TokenId},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

use crate::{
    Store,
    db::{Dialect, change},
    error::StoreError,
    idempotency::{KeyEnd, NewKey},
};

/// A call that is about to have effects.
#[derive(Debug, Clone)]
pub struct NewIntent {
    /// The id its event will have.
    pub id: EventId,
    /// The tenant.
    pub org_id: OrgId,
    /// When it is opened.
    pub opened_at: Timestamp,
    /// What is needed to write its event if nobody else does, as JSON.
    pub record: String,
    /// The idempotency key it is protected by, if it is: then it begins only if the key is free.
    pub key: Option<NewKey>,
}

/// Whether a call may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Began {
    /// Its intent is durable, and so is its key.
    Begun,
    /// Its key stands for another call. Nothing was written.
    KeyTaken,
}

/// An event to remember for ever. The columns are those the log can be searched by; the record
/// itself is `core`.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// Its id.
    pub id: EventId,
    /// The tenant.
    pub org_id: OrgId,
    /// Its type, such as `mcp.invocation`.
    pub kind: String,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// Who did it.
    pub actor_id: Option<PrincipalId>,
    /// On whose behalf.
    pub via: Option<PrincipalId>,
    /// With which token.
    pub token_id: Option<TokenId>,
    /// To what: a tool id, a provider id, a policy name.
    pub target: Option<String>,
    /// `allow` or `deny`.
    pub decision: Option<String>,
    /// The policy that decided.
    pub policy: Option<String>,
    /// What DLP made of it.
    pub dlp_result: Option<String>,
    /// How it ended.
    pub outcome: Option<String>,
    /// In which request.
    pub request_id: Option<RequestId>,
    /// The part that is hashed, as JSON, without sequence and time of recording.
    pub core: String,
    /// The erasable part, as JSON.
    pub detached: Option<String>,
    /// The salts of the erasable part, as JSON.
    pub salts: Option<String>,
    /// Whether a payload is in the erasable part, which is let go sooner than the rest.
    pub has_payload: bool,
}

/// How the writer works.
#[derive(Debug, Clone)]
pub struct AuditSettings {
    /// The name of this node, written into its intents.
    pub node: String,
    /// How many jobs may wait before callers wait to hand theirs in.
    pub queue: usize,
    /// How many jobs one transaction takes at most.
    pub batch: usize,
}

impl AuditSettings {
    /// The defaults for the node of this name: 4096 may wait, 256 make a batch.
    #[must_use]
    pub const fn new(node: String) -> Self {
        Self { node, queue: 4096, batch: 256 }
    }
}

/// How much the writer has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditProgress {
    /// Transactions committed.
    pub commits: u64,
    /// Jobs in them.
    pub jobs: u64,
    /// Jobs that wait now.
    pub waiting: usize,
}

/// Hands intents and events to the task that commits them. Clones feed the same task.
///
/// Every function returns when the commit is durable, or at `deadline` (a few seconds ahead) with
/// - [`StoreError::Unavailable`] or [`StoreError::Conflict`]: nothing was written, and nothing
///   will be;
/// - [`StoreError::OutcomeUnknown`]: the writing had begun and its end is not known.
///
/// A future that is dropped before its batch began leaves nothing behind.
#[derive(Debug, Clone)]
pub struct AuditWriter {
    jobs: mpsc::Sender<Job>,
    commits: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
}

/// The work of an [`AuditWriter`]; it must be run for anything to be written.
#[derive(Debug)]
pub struct AuditTask {
    store: Store,
    clock: Arc<dyn Clock>,
    settings: AuditSettings,
    jobs: mpsc::Receiver<Job>,
    commits: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Work {
    Intent(NewIntent),
    Finish(NewEvent),
    FinishKeyed(NewEvent, KeyEnd),
    Append(NewEvent),
}

#[derive(Debug)]
struct Job {
    work: Work,
    claim: Claim,
    answer: oneshot::Sender<Result<Began, StoreError>>,
}

impl AuditWriter {
    /// A writer and the task that does its work, which the caller runs.
    #[must_use]
    pub fn new(store: Store, clock: Arc<dyn Clock>, settings: AuditSettings) -> (Self, AuditTask) {
        let (sender, jobs) = mpsc::channel(settings.queue.max(1));
        let (commits, written) = (Arc::default(), Arc::default());
        let writer =
            Self { jobs: sender, commits: Arc::clone(&commits), written: Arc::clone(&written) };
        (writer, AuditTask { store, clock, settings, jobs, commits, written })
    }

    /// Commits an intent, and the idempotency key it names with it: after this the effect may
    /// begin. Of any number of intents with the same key one begins.
    pub async fn intent(&self, intent: NewIntent, deadline: Instant) -> Result<Began, StoreError> {
        self.commit(Work::Intent(intent), deadline).await
    }

    /// Commits an event and removes the intent of the same id, if there is one, with it.
    pub async fn finish(&self, event: NewEvent, deadline: Instant) -> Result<(), StoreError> {
        self.commit(Work::Finish(event), deadline).await.map(drop)
    }

    /// Like [`Self::finish`], and ends the idempotency key that the intent came with.
    pub async fn finish_keyed(
        &self,
        event: NewEvent,
        end: KeyEnd,
        deadline: Instant,
    ) -> Result<(), StoreError> {
        self.commit(Work::FinishKeyed(event, end), deadline).await.map(drop)
    }

    /// Commits an event that had no intent.
    pub async fn append(&self, event: NewEvent, deadline: Instant) -> Result<(), StoreError> {
        self.commit(Work::Append(event), deadline).await.map(drop)
    }

    /// How much was written so far, and how much waits.
    #[must_use]
    pub fn progress(&self) -> AuditProgress {
        AuditProgress {
            commits: self.commits.load(Ordering::Relaxed),
            jobs: self.written.load(Ordering::Relaxed),
            waiting: self.jobs.max_capacity() - self.jobs.capacity(),
        }
    }

    async fn commit(&self, work: Work, deadline: Instant) -> Result<Began, StoreError> {
        let (answer, answered) = oneshot::channel();
        let claim = Claim::default();
        let job = Job { work, claim: claim.clone(), answer };
        match timeout_at(deadline, self.jobs.send(job)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(unavailable("the audit writer has stopped")),
            Err(_) => return Err(unavailable("the audit queue is full")),
        }
        let withdrawal = Withdrawal(&claim);
        let reason = match timeout_at(deadline, answered).await {
            Ok(Ok(result)) => return result,
            Ok(Err(_)) => "the audit writer has stopped",
            Err(_) => "the audit writer did not answer in time",
        };
        if withdrawal.0.withdraw() {
            Err(unavailable(reason))
        } else {
            Err(StoreError::OutcomeUnknown(reason.to_owned()))
        }
    }
}

fn unavailable(reason: &str) -> StoreError {
    StoreError::Unavailable(reason.to_owned())
}

impl AuditTask {
    /// Commits jobs until every [`AuditWriter`] is gone and the last job is done.
    pub async fn run(mut self) {
        let mut waiting = Vec::new();
        while self.jobs.recv_many(&mut waiting, self.settings.batch.max(1)).await > 0 {
            let begun = waiting.drain(..).filter(|job| job.claim.take()).collect();
            self.commit_split(begun).await;
        }
    }

    /// Commits the jobs in one transaction. If a row is at fault, in halves, so that it takes no
    /// other with it.
    async fn commit_split(&self, jobs: Vec<Job>) {
        let mut parts = vec![jobs];
        while let Some(mut part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            let result = self.commit(&part).await;
            if part.len() > 1 && matches!(result, Err(StoreError::Conflict(_))) {
                let later = part.split_off(part.len() / 2);
                parts.extend([later, part]);
            } else {
                for job in part {
                    let answer = result.clone().map(|losers| losers.answer(&job));
                    // Who asked may be gone; what was committed stays.
                    let _ = job.answer.send(answer);
                }
            }
        }
    }

    async fn commit(&self, jobs: &[Job]) -> Result<Losers, StoreError> {
        let mut batch = Batch::of(jobs);
        let committed_at = self.clock.now().as_micros();
        change!(self.store, |tx| {
            if !batch.keyed.is_empty() {
                let won = tx.insert_keys(committed_at, &batch.keyed).await?;
                batch.keep_winners(&won);
            }
            if !batch.intents.is_empty() {
                tx.insert_intents(&self.settings.node, &batch.intents).await?;
            }
            if !batch.events.is_empty() {
                tx.announce_writer().await?;
                tx.insert_events(committed_at, &batch.events).await?;
            }
            if !batch.finished.is_empty() {
                tx.delete_intents(&batch.finished).await?;
            }
            if !batch.answered.is_empty() {
                tx.answer_keys(&batch.answered).await?;
            }
            for (org, subject) in &batch.released {
                sqlx::query("DELETE FROM idempotency_keys WHERE org_id = $1 AND subject = $2")
                    .bind(org)
                    .bind(subject)
                    .execute(&mut *tx)
                    .await?;
            }
        });
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.written.fetch_add(u64::try_from(jobs.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(batch.losers)
    }
}

/// The intents of a batch that did not begin, because their keys stand for other calls.
#[derive(Debug, Clone, Default)]
struct Losers(Vec<EventId>);

impl Losers {
    fn answer(&self, job: &Job) -> Began {
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

#[derive(Default)]
struct Batch<'a> {
    intents: Vec<&'a NewIntent>,
    /// Those of the intents that come with a key, one for each key.
    keyed: Vec<(&'a NewIntent, &'a NewKey)>,
    losers: Losers,
    events: Vec<&'a NewEvent>,
    finished: Vec<String>,
    answered: Vec<AnsweredKey<'a>>,
    released: Vec<(String, String)>,
}

impl<'a> Batch<'a> {
    fn of(jobs: &'a [Job]) -> Self {
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
        self.finished.push(event.id.to_string());
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
    fn keep_winners(&mut self, won: &[String]) {
        let lost = self.keyed.iter().map(|(intent, _)| intent.id);
        let lost = lost.filter(|id| !won.contains(&id.to_string()));
        self.losers.0.extend(lost.collect::<Vec<_>>());
        let losers = &self.losers.0;
        self.intents.retain(|intent| !losers.contains(&intent.id));
    }
}

/// Whose a job is: first to claim it wins, the writer by taking it or the waiter by withdrawing.
#[derive(Debug, Clone, Default)]
struct Claim(Arc<AtomicU8>);

impl Claim {
    const FREE: u8 = 0;
    const TAKEN: u8 = 1;
    const WITHDRAWN: u8 = 2;

    fn take(&self) -> bool {
        self.claim(Self::TAKEN)
    }

    /// Whether the job will never be written.
    fn withdraw(&self) -> bool {
        self.claim(Self::WITHDRAWN)
    }

    fn claim(&self, by: u8) -> bool {
        let order = Ordering::AcqRel;
        self.0.compare_exchange(Self::FREE, by, order, Ordering::Acquire).is_ok()
    }
}

/// Withdraws the job when its waiter goes away.
struct Withdrawal<'a>(&'a Claim);

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}
