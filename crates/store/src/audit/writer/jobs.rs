//! Jobs of the writer, and their waiters.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

use super::completions::{Completions, Waiter};
use crate::{
    db::{ApprovalRow, Losers, NewEvent, NewIntent},
    error::StoreError,
    idempotency::KeyEnd,
};

#[derive(Debug)]
pub(super) enum Work {
    Intent(NewIntent),
    Finish(NewEvent),
    FinishKeyed(NewEvent, KeyEnd),
    Append(NewEvent),
    Change(NewEvent, Box<ApprovalRow>),
}

#[derive(Debug)]
pub(super) struct Job {
    pub(super) work: Box<Work>,
    pub(super) claim: Claim,
    pub(super) waiter: Waiter,
}

/// Uncommitted parts of a batch: all of it at first, then, if a row is at fault, halves
/// of it, so that it takes no other with it.
pub(super) struct Parts(Vec<Vec<Job>>);

impl Parts {
    /// Takes those of `waiting` whose waiter has not given up. They are written from now on.
    pub(super) fn take_from(waiting: &mut Vec<Job>) -> Self {
        Self(vec![waiting.drain(..).filter(|job| job.claim.take()).collect()])
    }

    /// The next jobs to commit together.
    pub(super) fn next(&mut self) -> Option<Vec<Job>> {
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
        mut part: Vec<Job>,
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
fn take_undecided(part: &mut Vec<Job>) -> Vec<Job> {
    if !part.iter().any(|job| matches!(&*job.work, Work::Intent(it) if !it.approvals.is_empty())) {
        return Vec::new();
    }
    let mut asked = BTreeSet::new();
    let is_undecided = |job: &mut Job| {
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

/// Ownership of a job: the first claim wins, the writer's by taking it or the waiter's by withdrawing.
#[derive(Debug, Clone, Default)]
pub(super) struct Claim(Arc<AtomicU8>);

impl Claim {
    const FREE: u8 = 0;
    const TAKEN: u8 = 1;
    const WITHDRAWN: u8 = 2;

    pub(super) fn take(&self) -> bool {
        self.claim(Self::TAKEN)
    }

    /// Returns true if the job will never be written.
    pub(super) fn withdraw(&self) -> bool {
        self.claim(Self::WITHDRAWN)
    }

    fn claim(&self, by: u8) -> bool {
        let order = Ordering::AcqRel;
        self.0.compare_exchange(Self::FREE, by, order, Ordering::Acquire).is_ok()
    }
}

/// Withdraws the job when its waiter goes away.
pub(super) struct Withdrawal<'a>(pub(super) &'a Claim);

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}
