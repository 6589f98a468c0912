//! Admission of calls: the number that is judged at once, and of those that wait for it.
//!
//! A call has a place while this node works on it, until it is dispatched. Around whatever waits for
//! another service, such as a detector outside or an authorization server, the place is given back, so
//! that one who does not answer holds up only those who need it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use portcullis_core::{
    call::Denial,
    id::OrgId,
    refusal::{Refusal, Unavailable},
};
use portcullis_lanes::{FairLimits, FairSlot, FairSlots, LARGE, Own, Permit, PermitQueue};
use portcullis_store::{AtWork, AuditWriter};
use tokio::runtime::Handle;

use super::tenants::Tenant;

/// Of the calls that are under way to their tools some are judged while the others wait: so many for
/// each thread that serves keep it busy and fill a commit. With more, those who are turned away hear it
/// later.
const JUDGED_BY_THREAD: usize = 32;

/// Time that a call waits to be judged. Longer than it takes unless calls are very large.
const PATIENCE: Duration = Duration::from_secs(1);

/// Large calls that are judged at once for each worker: they keep it busy and share commits, and each may
/// take a hundred times its size in memory. Others wait, each org in a queue of its own.
const LARGE_BY_WORKER: usize = 8;
const LARGE_PATIENCE: Duration = Duration::from_secs(10);

/// Bound of the calls of all orgs that wait for another service, as a multiple of that of one org.
const OUTSIDE: usize = 4;

/// The places where calls are judged. Each runtime has its own, so that a place which becomes free is
/// taken by a call of the same thread: to wake another thread is a system call.
#[derive(Debug)]
pub(crate) struct Judging {
    calls: usize,
    /// Queue that all calls share, with a permit or waiting for one.
    shared: PermitQueue,
    each: Own<Arc<PermitQueue>>,
    large: Arc<FairSlots<OrgId>>,
    /// Number of calls that wait for another service.
    outside: Arc<AtomicUsize>,
}

/// Admission of a call until it is dispatched: others wait for its place, and the next commit waits for
/// the call.
pub(crate) struct Admission {
    admissions: Arc<Admissions>,
    tenant: Arc<Tenant>,
    size: Size,
    held: Option<HeldPlace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Small,
    Large,
}

/// Held while this node works on the call.
struct HeldPlace {
    _slot: Slot,
    _at_work: AtWork,
}

enum Slot {
    Small { _place: Permit },
    Large { _slot: FairSlot<OrgId> },
}

/// A call that waits for another service, counted for its org and for all.
struct Outside {
    all: Arc<AtomicUsize>,
    tenant: Arc<Tenant>,
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::AcqRel);
        self.tenant.outside.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The answer when no capacity is left.
pub(crate) fn overloaded() -> Refusal {
    Refusal::Unavailable { reason: Unavailable::Overloaded }
}

/// Reason for which a call does not get past policy.
pub(crate) enum HaltedCall {
    Denied(Box<Denial>),
    /// No decision: its rates cannot be counted, or no capacity is left for it.
    Stopped(Refusal),
}

impl From<Denial> for HaltedCall {
    fn from(denial: Denial) -> Self {
        Self::Denied(Box::new(denial))
    }
}

/// Takes one of `limit`, if one is left.
fn take_one(count: &AtomicUsize, limit: usize) -> bool {
    let next = |count| (count < limit).then_some(count + 1);
    count.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
}

impl Judging {
    /// So many calls may be judged or wait for it. What is large is done by so many workers.
    pub(crate) fn new(calls: usize, workers: usize) -> Self {
        let shared = PermitQueue::with_queue(0, calls, PATIENCE);
        let large = FairSlots::new(FairLimits {
            slots: workers.max(1).saturating_mul(LARGE_BY_WORKER),
            reserve: 1,
            waiting: calls,
            patience: LARGE_PATIENCE,
        });
        let outside = Arc::default();
        Self { calls, shared, each: Own::default(), large: Arc::new(large), outside }
    }

    /// True if no further call may even wait.
    pub(crate) fn is_full(&self) -> bool {
        self.shared.is_full()
    }

    /// A place on this runtime. `None` when there is none in time.
    async fn take(&self) -> Option<Permit> {
        self.here().take().await
    }

    fn here(&self) -> Arc<PermitQueue> {
        let runtime = Handle::current();
        self.each.of(runtime.id()).unwrap_or_else(|| {
            let share = runtime.metrics().num_workers().saturating_mul(JUDGED_BY_THREAD);
            let places = self.shared.more(share.min(self.calls));
            self.each.of_or(runtime.id(), Arc::new(places))
        })
    }

    /// Room for a call of an org that waits for another service: of one org as many as may be judged or
    /// wait for it, so that no org can fill the node with calls that hang.
    fn outside(&self, tenant: &Arc<Tenant>) -> Option<Outside> {
        if !take_one(&tenant.outside, self.calls) {
            return None;
        }
        if !take_one(&self.outside, self.calls.saturating_mul(OUTSIDE)) {
            tenant.outside.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        Some(Outside { all: Arc::clone(&self.outside), tenant: Arc::clone(tenant) })
    }
}

/// Admission of calls, and the audit writer that is told of those at work.
#[derive(Debug)]
pub(crate) struct Admissions {
    judging: Judging,
    writer: AuditWriter,
}

impl Admissions {
    pub(crate) const fn new(judging: Judging, writer: AuditWriter) -> Self {
        Self { judging, writer }
    }

    /// True if no further call may even wait.
    pub(crate) fn are_full(&self) -> bool {
        self.judging.is_full()
    }

    /// Admits a call whose body has so many bytes. `None` when there is no place in time; for a large
    /// one that is the org's own doing.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        tenant: &Arc<Tenant>,
        bytes: usize,
    ) -> Option<Admission> {
        let size = if bytes > LARGE { Size::Large } else { Size::Small };
        let slot = match size {
            Size::Small => self.judging.take().await.map(|place| Slot::Small { _place: place }),
            Size::Large => self.large_slot(tenant.org).await,
        };
        let held = Some(HeldPlace { _slot: slot?, _at_work: self.writer.at_work() });
        Some(Admission { admissions: Arc::clone(self), tenant: Arc::clone(tenant), size, held })
    }

    async fn large_slot(&self, org: OrgId) -> Option<Slot> {
        self.judging.large.take(org).await.map(|slot| Slot::Large { _slot: slot })
    }
}

impl Admission {
    /// Returns true for a call that workers judge.
    pub(crate) fn is_large(&self) -> bool {
        self.size == Size::Large
    }

    /// Waits for another service, without a place meanwhile. Fails when too many calls of the org, or
    /// of all, wait in this way, or when there is no place in time afterwards.
    pub(crate) async fn outside<T>(&mut self, wait: impl Future<Output = T>) -> Result<T, Refusal> {
        let counted = self.admissions.judging.outside(&self.tenant).ok_or_else(overloaded)?;
        self.held = None;
        let done = wait.await;
        let slot = match self.size {
            Size::Small => {
                let place = self.admissions.judging.here().take_again().await;
                place.map(|place| Slot::Small { _place: place })
            }
            Size::Large => self.admissions.large_slot(self.tenant.org).await,
        };
        drop(counted);
        let slot = slot.ok_or_else(overloaded)?;
        self.held = Some(HeldPlace { _slot: slot, _at_work: self.admissions.writer.at_work() });
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use futures_util::{FutureExt, future::join_all};
    use tokio::{
        runtime::{Builder, Runtime},
        task::yield_now,
    };

    use super::*;
    use crate::base::tenants::Tenants;

    #[test]
    fn each_runtime_has_places_of_its_own_in_one_room() {
        let judging = Arc::new(Judging::new(JUDGED_BY_THREAD * 2 + 1, 1));
        let one = runtime();
        let other = runtime();
        let taken = |runtime: &Runtime, places| {
            runtime.block_on(async {
                join_all(iter::repeat_with(|| judging.take()).take(places)).await
            })
        };

        let first = taken(&one, JUDGED_BY_THREAD);
        let second = taken(&other, JUDGED_BY_THREAD);
        assert!(first.iter().chain(&second).all(Option::is_some));
        assert!(!judging.is_full(), "one more may wait");

        // It waits for a place of its own runtime, whatever becomes free elsewhere.
        let waiting = one.spawn({
            let judging = Arc::clone(&judging);
            async move { judging.take().await }
        });
        one.block_on(yield_now());
        assert!(judging.is_full());
        drop(second);
        one.block_on(yield_now());
        assert!(!waiting.is_finished());
        drop(first);
        assert!(one.block_on(waiting).unwrap().is_some());
        assert!(!judging.is_full());
    }

    #[tokio::test]
    async fn with_room_for_one_nobody_waits() {
        let judging = Judging::new(1, 1);

        let place = judging.take().await;

        assert!(place.is_some() && judging.is_full());
        assert!(matches!(judging.take().now_or_never(), Some(None)));
        drop(place);
        assert!(!judging.is_full());
    }

    #[test]
    fn calls_that_wait_for_somebody_else_fill_their_orgs_share_only() {
        let judging = Judging::new(2, 1);
        let tenants = Tenants::default();
        let tenant = |number: usize| {
            tenants.tenant(format!("org_01M754BKTKX1YB8Q05NMW9TP{number:02}").parse().unwrap())
        };

        let mut waiting = Vec::new();
        for number in 0..OUTSIDE {
            waiting.extend([(); 2].map(|()| judging.outside(&tenant(number)).unwrap()));
            assert!(judging.outside(&tenant(number)).is_none(), "it is its own share");
        }
        assert!(judging.outside(&tenant(OUTSIDE)).is_none(), "of all orgs");
        waiting.pop();

        assert!(judging.outside(&tenant(OUTSIDE)).is_some());
        drop(waiting);
        assert_eq!(judging.outside.load(Ordering::Acquire), 0);
        assert_eq!(tenant(0).outside.load(Ordering::Acquire), 0);
    }

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }
}
