//! State of each org in a node's memory: its counters and when its tokens last changed; and counters
//! of requests without a valid token.

pub(crate) mod sources;
pub(crate) mod tallies;
pub(crate) mod usage;

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use portcullis_core::{
    clock::Timestamp,
    dlp::FingerprintKey,
    id::OrgId,
    limits::{self, Bucket, Resource, Window},
    policy::PolicySet,
    principal::Plan,
};
use portcullis_store::{Usage, WindowCounts};

use self::{tallies::Tallies, usage::UsageCounter};

/// A count within a fixed window: 32 bits of window number, 32 bits of count, moved together.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Takes one of `limit` in `window`; `None` when none is left. Exact: of N callers at the
    /// edge, just as many pass as there is room for.
    pub(crate) fn take(&self, window: Window, limit: u32) -> Option<u32> {
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            let used = used_in(seen, window);
            if used >= limit {
                return None;
            }
            let next = pack(window, used + 1);
            match self.0.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(limit - used - 1),
                Err(now) => seen = now,
            }
        }
    }

    /// Takes over what others were told is used up in `window`; a count never goes back.
    fn learn(&self, window: Window, used: u32) {
        let told = pack(window, used);
        self.0.fetch_max(told, Ordering::AcqRel);
    }

    /// Number of units of `limit` left in `window`.
    pub(crate) fn remaining(&self, window: Window, limit: u32) -> u32 {
        limit.saturating_sub(used_in(self.0.load(Ordering::Acquire), window))
    }
}

fn pack(window: Window, used: u32) -> u64 {
    (low_bits(window.number) << 32) | u64::from(used)
}

fn used_in(packed: u64, window: Window) -> u32 {
    if packed >> 32 == low_bits(window.number) {
        u32::try_from(packed & u64::from(u32::MAX)).unwrap_or(u32::MAX)
    } else {
        0
    }
}

/// Windows are a minute long: 32 bits of them last 8,000 years.
fn low_bits(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0) & u64::from(u32::MAX)
}

/// One org as this node knows it.
#[derive(Debug)]
pub struct Tenant {
    pub(crate) org: OrgId,
    pub(crate) offset: i64,
    requests: Counter,
    invocations: Counter,
    revoked_at: AtomicU64,
    /// Calls that wait for another party before they are dispatched.
    pub(crate) outside: AtomicUsize,
    /// Set once the connections that work without anybody connecting are made.
    pub(crate) declared: OnceLock<()>,
    /// The key of its fingerprints, made when DLP first looks for it.
    pub(crate) fingerprints: OnceLock<FingerprintKey>,
    /// Counters of policies in its calls.
    pub(crate) tallies: Tallies,
    /// Usage that is not in the store yet.
    pub(crate) usage: UsageCounter,
}

impl Tenant {
    fn new(org: OrgId) -> Self {
        Self {
            org,
            offset: limits::window_offset(org),
            requests: Counter::default(),
            invocations: Counter::default(),
            revoked_at: AtomicU64::new(0),
            outside: AtomicUsize::new(0),
            declared: OnceLock::new(),
            fingerprints: OnceLock::new(),
            tallies: Tallies::default(),
            usage: UsageCounter::default(),
        }
    }

    fn counter(&self, resource: Resource) -> &Counter {
        match resource {
            Resource::Invocations => &self.invocations,
            Resource::Requests | Resource::Unauthenticated => &self.requests,
        }
    }

    /// Takes one of `resource` from the plan. `Err` is the exhausted bucket.
    pub(crate) fn take(
        &self,
        resource: Resource,
        plan: Plan,
        now: Timestamp,
    ) -> Result<Bucket, Bucket> {
        let window = Window::at(now, self.offset);
        let limit = resource.limit(plan);
        let bucket = |remaining| Bucket { resource, limit, remaining, resets_at: window.ends_at };
        let left = self.counter(resource).take(window, limit);
        if left.is_some() {
            self.usage.note(resource);
        }
        left.map(bucket).ok_or_else(|| bucket(0))
    }

    /// Usage that this node knows of at this moment.
    pub(crate) fn usage_at(&self, now: Timestamp) -> WindowCounts {
        let window = Window::at(now, self.offset);
        let used = |counter: &Counter| used_in(counter.0.load(Ordering::Acquire), window);
        WindowCounts {
            window,
            requests: used(&self.requests),
            invocations: used(&self.invocations),
        }
    }

    /// Takes over what the counters of all nodes say.
    pub(crate) fn learn(&self, counted: WindowCounts) {
        self.requests.learn(counted.window, counted.requests);
        self.invocations.learn(counted.window, counted.invocations);
    }

    /// The bucket as it stands, without taking from it.
    pub(crate) fn peek(&self, resource: Resource, plan: Plan, now: Timestamp) -> Bucket {
        let window = Window::at(now, self.offset);
        let limit = resource.limit(plan);
        let remaining = self.counter(resource).remaining(window, limit);
        Bucket { resource, limit, remaining, resets_at: window.ends_at }
    }
}

/// All orgs this node has met, and the order in which revocations happened.
#[derive(Debug, Default)]
pub(crate) struct Tenants {
    known: RwLock<HashMap<OrgId, Arc<Tenant>>>,
    revocations: AtomicU64,
    /// Everything looked up before this moment has to be looked up again.
    all_revoked_at: AtomicU64,
}

impl Tenants {
    /// The org's state; made on first sight.
    pub(crate) fn tenant(&self, org: OrgId) -> Arc<Tenant> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(tenant) = known.get(&org) {
            return Arc::clone(tenant);
        }
        drop(known);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(org).or_insert_with(|| Arc::new(Tenant::new(org))))
    }

    /// Every org of which this node has usage that is not in the store, with that usage; it is
    /// taken out of the counters.
    pub(crate) fn take_usage(&self) -> Vec<(OrgId, Usage)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let each = known.values().map(|tenant| (tenant.org, tenant.usage.take()));
        each.filter(|(_, usage)| *usage != Usage::default()).collect()
    }

    /// Forgets what became of policies that are no longer in force.
    pub(crate) fn forget_tallies(&self, set: &PolicySet) {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let tenants: Vec<_> = known.values().map(Arc::clone).collect();
        drop(known);
        for tenant in tenants {
            tenant.tallies.keep(set);
        }
    }

    /// A point in the order of revocations; taken before a token is looked up.
    pub(crate) fn now(&self) -> u64 {
        self.revocations.load(Ordering::Acquire)
    }

    /// Everything looked up for `org` before this moment has to be looked up again. Called after
    /// the revocation is committed.
    pub(crate) fn revoked(&self, org: OrgId) {
        let tenant = self.tenant(org);
        let moment = self.revocations.fetch_add(1, Ordering::AcqRel) + 1;
        tenant.revoked_at.fetch_max(moment, Ordering::AcqRel);
    }
}

impl Tenants {
    /// Everything looked up before this moment has to be looked up again, in every org.
    pub(crate) fn revoked_all(&self) {
        let moment = self.revocations.fetch_add(1, Ordering::AcqRel) + 1;
        self.all_revoked_at.fetch_max(moment, Ordering::AcqRel);
    }

    /// True if what was looked up for `tenant` at `moment` still counts.
    pub(crate) fn is_current(&self, tenant: &Tenant, moment: u64) -> bool {
        tenant.revoked_at.load(Ordering::Acquire) <= moment
            && self.all_revoked_at.load(Ordering::Acquire) <= moment
    }
}

/// Account whose plan pays for a request.
#[derive(Debug, Clone)]
pub struct Account {
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) plan: Plan,
}

impl Account {
    /// The org that pays.
    #[must_use]
    pub fn org(&self) -> OrgId {
        self.tenant.org
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const WINDOW: Window = Window { number: 29_000_000, ends_at: 60 };
    const NEXT: Window = Window { number: 29_000_001, ends_at: 120 };

    #[test]
    fn parallel_takers_at_the_edge_never_pass_one_too_many() {
        let counter = Counter::default();

        let passed: usize = thread::scope(|scope| {
            let takers: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| (0..100).filter_map(|_| counter.take(WINDOW, 500)).count()))
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).sum()
        });

        assert_eq!(passed, 500);
        assert_eq!(counter.take(WINDOW, 500), None);
    }

    #[test]
    fn a_new_window_is_full_again() {
        let counter = Counter::default();
        assert_eq!(counter.take(WINDOW, 1), Some(0));
        assert_eq!(counter.take(WINDOW, 1), None);

        assert_eq!(counter.remaining(NEXT, 1), 1);
        assert_eq!(counter.take(NEXT, 1), Some(0));
    }

    #[test]
    fn what_others_were_told_never_gives_back_what_is_used_up() {
        let counter = Counter::default();

        counter.learn(WINDOW, 7);
        counter.learn(WINDOW, 5);
        assert_eq!(counter.remaining(WINDOW, 10), 3);
        counter.learn(NEXT, 1);
        counter.learn(WINDOW, 9);

        assert_eq!(counter.remaining(NEXT, 10), 9);
    }

    #[test]
    fn what_was_looked_up_before_a_revocation_is_stale_after_it() {
        let tenants = Tenants::default();
        let org: OrgId = "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();
        let before = tenants.now();

        tenants.revoked(org);

        let tenant = tenants.tenant(org);
        let after = tenants.now();
        assert!(!tenants.is_current(&tenant, before));
        assert!(tenants.is_current(&tenant, after));

        tenants.revoked_all();

        assert!(!tenants.is_current(&tenant, after));
        assert!(tenants.is_current(&tenant, tenants.now()));
    }
}
